"""The tested versions of frameworks agree with the guide's table, and with the npm package's ranges."""

import json
import re
import sys

from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import newer


def test_the_guides_table_is_what_is_tested():
    rows, tested = newer.in_table(), newer.in_node() | newer.in_python()
    assert rows == {name: tested[name] for name in rows}
    # Frameworks that only a page's program uses have no oldest version.
    assert {"next", "sequelize", "litestar"} <= {name for name, (oldest, _) in rows.items() if not oldest}
    # An adapter has the name of its framework.
    named = {*json.loads((ROOT / "node/package.json").read_text())["peerDependencies"]} - {"@nestjs/common"}
    assert named <= {*rows}


def test_an_adapters_range_ends_where_its_framework_changes():
    peers = json.loads((ROOT / "node/package.json").read_text())["peerDependencies"]
    for name, allowed in peers.items():
        oldest, newest = newer.in_node()[name]
        above, below = re.fullmatch(r">=(\S+) <(\d+)", allowed).groups()
        assert newer.number(oldest)[: len(newer.number(above))] == newer.number(above), name
        assert int(below) == newer.number(newest)[0] + 1, name
