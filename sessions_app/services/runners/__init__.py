"""Runners of this installation: `table` keeps them, `binding` says which session is whose, `clients` talks to them."""
