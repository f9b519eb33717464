"""Checks of IDs from the database to the browser. Each raises an AssertionError that names what is wrong."""

import collections
import re

import frazil

ID = re.compile(r"0|[1-9][0-9]{0,18}")
LAYOUT = frazil.Layout("standard")


def nodes_of(ids):
    """The node numbers that IDs were made with."""
    return {LAYOUT.decode(id).node for id in ids}


def each_once(ids, where):
    """IDs are decimal strings, and none is there twice."""
    wrong = [id for id in ids if not isinstance(id, str) or not ID.fullmatch(id)]
    assert not wrong, f"no strings of decimal digits {where}: {wrong[:5]}"
    twice = [id for id, count in collections.Counter(ids).items() if count > 1]
    assert not twice, f"duplicates {where}: {twice[:5]}"


def same_rows(acknowledged, doubtful, listed, stored):
    """The database has each message that was acknowledged, once, with its text, and the API lists what the database has.

    All but `doubtful` are lists of (ID, text): what clients were told, what the API lists, and what the database holds, the newest first.
    `doubtful` is how many requests had no answer.
    """
    for rows, where in ((acknowledged, "in the answers"), (listed, "in the API's list"), (stored, "in the database")):
        each_once([id for id, _ in rows], where)
    missing = set(acknowledged) - set(stored)
    assert not missing, f"{len(missing)} acknowledged messages are not in the database, or with another text: {sorted(missing)[:5]}"
    more = len(stored) - len(acknowledged)
    assert more <= doubtful, f"{more} rows more than were acknowledged, and only {doubtful} requests had no answer"
    assert listed == stored, f"the API lists other rows than the database holds: {sorted(set(listed) ^ set(stored))[:5]}"


def many_nodes(ids, made_by, workers):
    """The workers have used node numbers of their own; `made_by` tells those of some workers by their process IDs."""
    found = nodes_of(ids)
    assert len(found) >= workers, f"{workers} workers have used only the node numbers {sorted(found)}"
    owners = collections.defaultdict(set)
    for worker, nodes in made_by.items():
        for node in nodes:
            owners[node].add(worker)
    shared = {node: sorted(workers) for node, workers in owners.items() if len(workers) > 1}
    assert not shared, f"node numbers that several workers have used: {shared}"


def shown_as_stored(rows, stored):
    """The page shows the newest messages with their IDs, each with a link to it; what `Page.rows` tells, and (ID, text) of the database."""
    newest = [(id, f"#{id}", text) for id, text in stored[: len(rows)]]
    wrong = [(shown, kept) for shown, kept in zip(rows, newest, strict=True) if tuple(shown) != kept]
    assert not wrong, f"the page shows other messages than the database holds: {wrong[0][0]} for {wrong[0][1]}, and {len(wrong) - 1} more"


def would_be_seen(ids):
    """Rounding would be seen in these IDs: doubles cannot hold them."""
    assert any(int(float(id)) != int(id) for id in ids), f"doubles hold all of these IDs: {ids[:5]}"
