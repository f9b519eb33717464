"""Prose rules that a program can check: the first words of doc comments, and the subjects of commits."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import house

# The number of doc comments with wrong first words, by language. The figures may only fall.
ALLOWED = {"rs": 0, "py": 0, "ts": 0}
# The rule on subjects applies to commits after this one.
FIRST_JUDGED = "dd7e906"
SUBJECT_MAX = 72


@pytest.mark.parametrize("ending", ALLOWED)
def test_first_words_of_doc_comments(ending):
    found, _ = house.misbegun(ending)
    more = len(found) - ALLOWED[ending]
    assert more <= 0, f"{more} doc comments too many begin with a word that names no thing and no act; all of them:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("ending", "text", "expected"),
    [
        ("rs", "/// What is asked.\n/// More.\nfn f() {}\n", ["What is asked."]),
        ("rs", "//! A module.\n\n    /// Whether.\n", ["A module.", "Whether."]),
        ("py", 'def f():\n    """How it is.\n\n    More.\n    """\n', ["How it is."]),
        ("ts", "/** Of a thing. */\n/**\n * When it ends.\n */\n", ["Of a thing. */", "When it ends."]),
    ],
)
def test_first_lines_are_found(ending, text, expected):
    assert house.first_lines(ending, text) == expected


def test_subjects_of_commits():
    # A shallow clone may lack that commit. Then only the last commit is checked.
    ancestry = ["git", "merge-base", "--is-ancestor", FIRST_JUDGED, "HEAD"]
    known = subprocess.run(ancestry, cwd=ROOT, capture_output=True, check=False).returncode == 0
    subjects = house.git("log", "--no-merges", "--format=%s", *([f"{FIRST_JUDGED}..HEAD"] if known else ["-1"])).splitlines()
    long = [f"{len(subject)}: {subject}" for subject in subjects if len(subject) > SUBJECT_MAX]
    assert not long, f"subjects of more than {SUBJECT_MAX} characters (area: verb object; the why goes into the body):\n" + "\n".join(long)
    nameless = [subject for subject in subjects if not re.match(r"(Merge |Revert )|[a-z][\w./+, -]*: \S", subject)]
    assert not nameless, "subjects that are not `area: verb object`:\n" + "\n".join(nameless)
