"""Compactions of this console: asking, running, committing, cancelling, reverting.

Only this package writes attempts, plans and leases.
"""
