"""The gates of a release, R1 ... R14 of docs/reliability.md: what counts to large numbers.

Each gate is a row of parts in one of these modules, and `python -m gates` runs them: __main__.py.
"""
