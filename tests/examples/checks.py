"""Checks of IDs from the database to the browser. Each raises an AssertionError that names what is wrong."""

import collections
import re

import frazil

ID = re.compile(r"0|[1-9][0-9]{0,18}")
LAYOUT = frazil.Layout("standard")


def nodes_of(ids):
    """Returns the node numbers of IDs."""
    return {LAYOUT.decode(id).node for id in ids}


def each_once(ids, where):
    """Checks that IDs are decimal strings, and that none occurs twice."""
    wrong = [id for id in ids if not isinstance(id, str) or not ID.fullmatch(id)]
    assert not wrong, f"no strings of decimal digits {where}: {wrong[:5]}"
    twice = [id for id, count in collections.Counter(ids).items() if count > 1]
    assert not twice, f"duplicates {where}: {twice[:5]}"


def same_rows(acknowledged, doubtful, listed, stored):
    """Checks that the database has each acknowledged message once, with its text, and that the API lists the same messages.

    `acknowledged`, `listed` and `stored` are lists of (ID, text), the newest first: the answers to clients, the API's and the database's.
    `doubtful` is the number of requests without an answer.
    """
    for rows, where in ((acknowledged, "in the answers"), (listed, "in the API's list"), (stored, "in the database")):
        each_once([id for id, _ in rows], where)
    missing = set(acknowledged) - set(stored)
    assert not missing, f"{len(missing)} acknowledged messages are not in the database, or with another text: {sorted(missing)[:5]}"
    more = len(stored) - len(acknowledged)
    assert more <= doubtful, f"{more} rows more than were acknowledged, and only {doubtful} requests had no answer"
    assert listed == stored, f"the API lists other rows than the database holds: {sorted(set(listed) ^ set(stored))[:5]}"


def many_nodes(ids, made_by, workers):
    """Checks that each worker has used its own node number. `made_by` has the numbers of some workers by process ID."""
    found = nodes_of(ids)
    assert len(found) >= workers, f"{workers} workers have used only the node numbers {sorted(found)}"
    owners = collections.defaultdict(set)
    for worker, nodes in made_by.items():
        for node in nodes:
            owners[node].add(worker)
    shared = {node: sorted(workers) for node, workers in owners.items() if len(workers) > 1}
    assert not shared, f"node numbers that several workers have used: {shared}"


def shown_as_stored(rows, stored):
    """Checks that the page shows the database's newest messages with their IDs, each with its link. `rows` come from `Page.rows`."""
    newest = [(id, f"#{id}", text) for id, text in stored[: len(rows)]]
    wrong = [(shown, kept) for shown, kept in zip(rows, newest, strict=True) if tuple(shown) != kept]
    assert not wrong, f"the page shows other messages than the database holds: {wrong[0][0]} for {wrong[0][1]}, and {len(wrong) - 1} more"


def would_be_seen(ids):
    """Checks that doubles cannot represent these IDs, so that rounding would be noticed."""
    assert any(int(float(id)) != int(id) for id in ids), f"doubles hold all of these IDs: {ids[:5]}"
