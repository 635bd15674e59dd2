"""PURE. The demo's transcripts: sessions of our own making, in the form in which a coding agent writes them."""
