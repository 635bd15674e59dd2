"""Turns of inline sessions: a message is queued, delivered once, and answered by a provider.

`sessions` begins a session, `send` takes messages, `claims` gives a turn to one worker, `run` has it answered, `endings`
ends it. `sweeping` finds what a worker left behind.
"""
