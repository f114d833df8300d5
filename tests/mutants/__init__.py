"""Mutants: small mistakes, drawn by rules, that some test has to notice. See __main__.py."""
