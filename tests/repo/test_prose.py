"""The prose that a machine can judge: the first words of doc comments, and the subjects of commits."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
# A doc comment begins with a noun phrase or a verb in the third person, not with one of these.
FIRST_WORDS = re.compile(r"(What|Who|Whose|Whoever|How|Whether|Where|When|Of|As|For|Until|The same)\b")
# Doc comments that begin otherwise, by language. These figures may only fall.
ALLOWED = {"rs": 927, "py": 158, "ts": 94}
# Later commits follow the rule on subjects.
FIRST_JUDGED = "dd7e906"
SUBJECT_MAX = 72

BEGINNINGS = {
    # The first line of a block of `///` or `//!`.
    "rs": re.compile(r"(?:^|\n)[ \t]*//[/!] ?(.*(?:\n[ \t]*//[/!].*)*)"),
    "py": re.compile(r'^\s*(?:"""|\'\'\')(\S.*)', re.MULTILINE),
    "ts": re.compile(r"/\*\*\s*(?:\*\s)?\s*(\S.*)"),
}


def beginnings(ending, text):
    """The first lines of the doc comments in a file's text."""
    return [found.splitlines()[0].strip() for found in BEGINNINGS[ending].findall(text) if found]


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("ending", ALLOWED)
def test_first_words_of_doc_comments(ending):
    found = [
        f"{path}: {line}"
        for path in git("ls-files", "-z", f"*.{ending}").split("\0")
        if path and (ROOT / path).exists()
        for line in beginnings(ending, (ROOT / path).read_text())
        if FIRST_WORDS.match(line)
    ]
    more = len(found) - ALLOWED[ending]
    assert more <= 0, f"{more} doc comments too many begin with a word that names no thing and no act; all of them:\n" + "\n".join(found)
    assert more == 0, f"fewer than before: lower ALLOWED[{ending!r}] to {len(found)} in tests/repo/test_prose.py"


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
    assert beginnings(ending, text) == expected


def test_subjects_of_commits():
    # A shallow clone has no base, and one that is not a checkout has no commits.
    ancestry = ["git", "merge-base", "--is-ancestor", FIRST_JUDGED, "HEAD"]
    known = subprocess.run(ancestry, cwd=ROOT, capture_output=True, check=False).returncode == 0
    subjects = git("log", "--no-merges", "--format=%s", *([f"{FIRST_JUDGED}..HEAD"] if known else ["-1"])).splitlines()
    long = [f"{len(subject)}: {subject}" for subject in subjects if len(subject) > SUBJECT_MAX]
    assert not long, f"subjects of more than {SUBJECT_MAX} characters (area: verb object; the why goes into the body):\n" + "\n".join(long)
    nameless = [subject for subject in subjects if not re.match(r"(Merge |Revert )|[a-z][\w./+, -]*: \S", subject)]
    assert not nameless, "subjects that are not `area: verb object`:\n" + "\n".join(nameless)
