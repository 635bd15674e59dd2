"""Stand-ins for what is not ours: real servers on a local port, which behave as they are told."""
