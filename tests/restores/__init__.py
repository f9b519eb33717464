"""Stores that are restored from a backup while processes mint: what the processes notice, when, and which IDs repeat.

`python tests/restores` prints the table of docs/guarantees.md, and `python tests/restores CELL...` prints some of its rows.
"""
