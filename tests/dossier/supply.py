"""Table J: the `unsafe` code with its SAFETY comments, and the linked crates of THIRD-PARTY-NOTICES.txt."""

import re
import sys
from collections import defaultdict
from functools import cache

from .records import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import house

CRATES = ("core/src", "core/base/src", "core/store/src", "cli/src", "server/src", "python/src", "node/src", "c-api/src")
# Folders and files of tests within the sources.
TESTS = re.compile(r"(^|/)(tests?|simulation|suite|hostile|loom_tests|\w+_tests|sigpipe)(/|\.rs$)")
SAFETY = re.compile(r"// SAFETY: (.*(?:\n[ \t]*// .*)*)")
# Blocks, implementations, foreign functions and sections. A function that is unsafe to call has its demands in its documentation, and
# `no_mangle` of the C API makes a name, of which the linker accepts one.
UNSAFE = re.compile(r"\bunsafe (?:\{|impl\b|extern\s*\{)|\bunsafe\((?!no_mangle)")
RULE = "=" * 80
CRATE = re.compile(r"^([\w-]+) (\d[\w.+-]*), http", re.MULTILINE)
LICENCE = re.compile(r"\n.*\(([\w.-]+(?: WITH [\w.-]+)?)\)\n")


@cache
def unsafe_files():
    """Returns each file with `unsafe` code: its name, the number of places, and its distinct reasons."""
    found = []
    for file in sorted(path for crate in CRATES for path in (ROOT / crate).rglob("*.rs")):
        name = str(file.relative_to(ROOT))
        if TESTS.search(name):
            continue
        # Test modules are at the end of a file, with the functions that only they call.
        text = house.TEST_MODULE.split(file.read_text(), maxsplit=1)[0]
        places = len(UNSAFE.findall(house.NOISE.sub("", text)))
        reasons = [re.sub(r"\s*\n\s*// ", " ", found).strip() for found in SAFETY.findall(text)]
        if places:
            found.append((name, places, list(dict.fromkeys(reasons))))
    return found


def attack(name, attacks):
    """Returns the test that attacks a file's `unsafe` code."""
    fitting = [beginning for beginning in attacks if name.startswith(beginning)]
    return attacks[max(fitting, key=len)] if fitting else None


def crates():
    """Returns the linked crates with their versions, by licence."""
    found = defaultdict(set)
    for part in (ROOT / "THIRD-PARTY-NOTICES.txt").read_text().split(RULE)[1:]:
        if licence := LICENCE.match(part):
            found[licence[1]] |= {f"{name} {version}" for name, version in CRATE.findall(part)}
    return {licence: sorted(names) for licence, names in sorted(found.items()) if names}
