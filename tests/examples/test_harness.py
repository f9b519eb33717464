"""The checks find planted defects."""

import pytest

from . import checks

# Rows of four nodes, the newest first.
ROWS = [(str(checks.LAYOUT.compose(checks.LAYOUT.epoch, sequence=5, node=node) + (1 << 58)), f"row {node}") for node in (900, 31, 7, 4)]
IDS = [id for id, _ in ROWS]
SHOWN = [[id, f"#{id}", text] for id, text in ROWS]


def rounded(id):
    """Returns an ID as JavaScript's numbers would round it."""
    return str(int(float(id)))


def test_correct_rows_pass():
    checks.same_rows(ROWS, 0, ROWS, ROWS)
    checks.same_rows(ROWS[1:], 1, ROWS, ROWS)
    checks.many_nodes(IDS, {10: {900}, 11: {31}, 12: {7}, 13: {4}}, 4)
    checks.shown_as_stored(SHOWN, ROWS)
    checks.shown_as_stored(SHOWN[:2], ROWS)
    checks.would_be_seen(IDS)


@pytest.mark.parametrize(
    "acknowledged, doubtful, listed, stored, reason",
    [
        (ROWS + ROWS[:1], 0, ROWS, ROWS, "duplicates in the answers"),
        (ROWS, 0, ROWS + ROWS[:1], ROWS, "duplicates in the API's list"),
        (ROWS, 1, ROWS, ROWS + [(ROWS[0][0], "another row")], "duplicates in the database"),
        (ROWS, 0, ROWS[1:], ROWS[1:], "1 acknowledged messages are not in the database"),
        ([(IDS[0], "another text"), *ROWS[1:]], 0, ROWS, ROWS, "or with another text"),
        (ROWS[1:], 0, ROWS, ROWS, "1 rows more than were acknowledged"),
        (ROWS, 0, ROWS[1:], ROWS, "the API lists other rows"),
        (ROWS, 0, ROWS[::-1], ROWS, "the API lists other rows"),
        (ROWS, 0, [(rounded(id), text) for id, text in ROWS], ROWS, "the API lists other rows"),
        ([(int(IDS[0]), "row 900"), *ROWS[1:]], 0, ROWS, ROWS, "no strings of decimal digits in the answers"),
        (ROWS, 0, [(f"0{IDS[0]}", "row 900"), *ROWS[1:]], ROWS, "no strings of decimal digits in the API's list"),
    ],
)
def test_wrong_rows_are_noticed(acknowledged, doubtful, listed, stored, reason):
    with pytest.raises(AssertionError, match=reason):
        checks.same_rows(acknowledged, doubtful, listed, stored)


def test_shared_node_numbers_are_noticed():
    with pytest.raises(AssertionError, match=r"5 workers have used only the node numbers \[4, 7, 31, 900\]"):
        checks.many_nodes(IDS, {}, 5)
    with pytest.raises(AssertionError, match=r"several workers have used: \{7: \[10, 11\]\}"):
        checks.many_nodes(IDS, {10: {900, 7}, 11: {7}}, 4)


@pytest.mark.parametrize(
    "shown",
    [
        [[rounded(id), f"#{id}", text] for id, _, text in SHOWN],
        [[id, f"#{rounded(id)}", text] for id, _, text in SHOWN],
        [[id, link, "another text"] for id, link, _ in SHOWN],
        SHOWN[::-1],
    ],
)
def test_a_wrong_page_is_noticed(shown):
    with pytest.raises(AssertionError, match="shows other messages"):
        checks.shown_as_stored(shown, ROWS)


def test_ids_that_doubles_represent_are_refused_as_proof():
    with pytest.raises(AssertionError, match="doubles hold all of these"):
        checks.would_be_seen([rounded(id) for id in IDS])
