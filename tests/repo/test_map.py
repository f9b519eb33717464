"""The map of the tests, tests/README.md, names every file with tests, and no other."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
# The files that pytest, node --test, tests/c/run.sh and cargo treat as tests.
IS_TEST = re.compile(r"tests/.*/(test_\w+\.py|[\w-]+\.test\.mjs)|tests/c/cases\w*\.(c|cpp)|(core|cli)/tests/(?!common/).*\.rs")
ROW = re.compile(r"^\| \S.* \| `([\w./-]+)` \|$", re.MULTILINE)


def test_the_map_names_every_file_with_tests():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True)
    files = {path for path in listed.stdout.splitlines() if IS_TEST.fullmatch(path) and (ROOT / path).exists()}
    rows = ROW.findall((ROOT / "tests/README.md").read_text())
    assert len(rows) == len(set(rows)), "a file is named twice"
    assert files - set(rows) == set(), "tests/README.md does not name them"
    assert set(rows) - files == set(), "tests/README.md names no file with tests"
