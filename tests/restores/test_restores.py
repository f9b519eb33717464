"""Each store, restored in each way from a backup while processes mint: what the processes notice, and which IDs may repeat."""

import pytest

from .methods import CELLS, Sees
from .run import BUSY_RENEW_S, LATEST_S, SKEW_S, run


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_a_restored_backup(cell):
    for sees, outcome in zip((cell.later, cell.earlier), run(cell, BUSY_RENEW_S), strict=True):
        print(f"{cell.name}: {outcome}")
        if sees is Sees.HOLDER:
            assert outcome.noticed and outcome.after_s < LATEST_S, outcome.said
            assert outcome.late_s < SKEW_S, f"IDs repeat after the holder has noticed: {outcome}, {outcome.said}"
            assert not (outcome.taken and outcome.holder_mints), "both go on"
        else:
            assert outcome.repeated == 0 and not outcome.taken, f"{outcome}, {outcome.said}"
            # If the store has no clock, a lease lasts up to its bound, because no other process takes the number.
            assert bool(outcome.noticed) == (sees is Sees.EVERYBODY) or not cell.clock, outcome.said
        # A copy over a folder in use can meet a write. The record then has halves of two times, and is refused.
        is_mixed = cell.name == "file-in-place" and "STORE_CORRUPT" in str(outcome.said) and outcome.repeated == 0
        if cell.clock and not outcome.taken and not is_mixed:
            assert outcome.holder_mints, f"it has no reason to stop: {outcome.said}"
