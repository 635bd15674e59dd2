"""Programs that own an agent's loop, behind one protocol: they are asked to compact, given messages, and stopped.

`base` says what a runner can do and what it answers, `errors` how it fails, `addresses` which addresses are let through, `http`
speaks to the generic kind.
"""
