"""Stores that are restored from a backup while processes mint: what these notice, when, and which IDs repeat.

`python tests/restores` prints the table of docs/guarantees.md, and `python tests/restores CELL...` some of its rows.
"""
