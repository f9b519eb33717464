#!/usr/bin/env python3
"""Makes docs/api.md of docs/api.toml.

usage: scripts/api.py [--check]
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE, PAGE = ROOT / "docs/api.toml", ROOT / "docs/api.md"
HEAD = """# The API in five languages

Each operation has one name, spelled as the language spells names. The suffix of a call says how it waits:

| | waits as the spec line says | waits no longer than a limit | for event loops |
|---|---|---|---|
| Rust | `next_id` | `..._for` | `..._async` |
| C++, C | `next` | `..._for` | |
| Python | `next` | `timeout=` | `a...`, such as `anext` |
| Node | | `maxWaitMs` | `...Async`; `open` |

*Renew* always means to extend a lease: the option `renew`, and the counter `lease_renewals`. A call that gives the node
number back is `release_node`. [Segments, tickets and rings](segments.md) hand out plain numbers, or prefetched IDs.
"""


def cell(names):
    """Names in code; what is in code or has a space already is text."""
    if not names or "`" in names or re.match(r"(the|a) ", names):
        return names
    return ", ".join(f"`{name}`" for name in names.split(", "))


def page():
    source = tomllib.loads(SOURCE.read_text())
    parts = [HEAD]
    for group in source["group"]:
        head = ["operation", *source["languages"]]
        lines = [f"## {group['title']}", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        lines += [f"| {' | '.join([what, *map(cell, names)])} |".replace("  ", " ") for what, *names in group["rows"]]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if PAGE.read_text() == page() else "docs/api.md is out of date; run: scripts/api.py")
    PAGE.write_text(page())
