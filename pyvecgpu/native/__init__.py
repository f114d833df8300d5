"""The C library seen from Python: its ABI as data, loading it, and the settings handed to it."""
