"""SQLite, as the embedded form uses it."""
