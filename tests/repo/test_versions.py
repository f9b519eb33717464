"""The tested versions of frameworks agree with the guide's table, which has every framework of the npm package."""

import json
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
    named = {*json.loads((ROOT / "node/package.json").read_text())["peerDependenciesMeta"]} - {"@nestjs/common"}
    assert named <= {*rows}
