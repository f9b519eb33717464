"""The trial of ID generators: its page is what its records give, and each failing trial has its program."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "trial"))
import page

RECORDS = page.results()
LIBRARIES = page.libraries()
# A record names no person and no folder of a machine.
ALLOWED = {"library", "version", "trial", "command", "date", "processor", "kernel", "runtime", "ids", "errors", "longest"}
ALLOWED |= {"duplicates", "descents", "changed", "running", "starting", "not_applicable", "cut"}


def test_the_page_is_what_the_records_give():
    assert page.page() == page.PAGE.read_text(), "run trial/page.py"


def test_every_trial_has_a_record_or_is_shown_as_not_run():
    trials = {trial for row in page.TABLES.values() for trial in row} | {"control"}
    missing = {(key, trial) for key in LIBRARIES for trial in trials} - set(RECORDS)
    assert page.PAGE.read_text().count(f"| {page.NOT_RUN} ") == len(missing), "the page says which trials have none"
    assert missing <= {(key, trial) for key in LIBRARIES if key.startswith("rust/") for trial in ("burst", "kill")}
    assert set(RECORDS) <= {(key, trial) for key in LIBRARIES for trial in trials}
    assert len({library["source"] for library in LIBRARIES.values() if library["library"] != "frazil"}) >= 12


@pytest.mark.parametrize("key", LIBRARIES)
def test_a_row_has_a_short_program(key):
    file, first, last = page.program(key)
    assert 1 <= last - first <= 30
    failing = [trial for library, trial in RECORDS if library == key and page.failed(RECORDS[library, trial])]
    for trial in failing:
        assert RECORDS[key, trial]["command"] == f"trial/run.sh {trial} {key}"
    assert not failing or f"(../trial/programs/{file.name}#L{first})" in page.PAGE.read_text()


@pytest.mark.parametrize("key", LIBRARIES)
def test_a_record_has_its_version_and_no_machine(key):
    language = key.split("/")[0]
    file = {"python": "requirements.txt", "node": "package.json", "rust": "Cargo.toml"}[language]
    for (library, _), record in RECORDS.items():
        if library != key:
            continue
        assert set(record) <= ALLOWED
        assert "/" not in re.sub(re.escape(key), "", json.dumps(record)).replace("trial/run.sh", "").replace("x86/MMX", "")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", record["date"])
        if LIBRARIES[key]["library"] != "frazil":
            assert record["version"] in (ROOT / "trial" / file).read_text()


def test_a_clock_that_is_set_back_is_seen():
    """The positive control: every program followed the clock before it started, and all but those that say so while they ran."""
    for (key, trial), record in RECORDS.items():
        if trial == "control":
            assert record["starting"], key
            assert record["running"] or "does not follow" in LIBRARIES[key]["says"], key


def test_a_changed_record_fails(tmp_path, monkeypatch):
    key, record = next((key, record) for key, record in RECORDS.items() if record.get("duplicates"))
    monkeypatch.setattr(page, "results", lambda: RECORDS | {key: record | {"duplicates": record["duplicates"] + 1}})
    assert page.page() != page.PAGE.read_text()


def test_a_process_that_hangs_fails_and_is_shown():
    """`run.py` kills a process after 60 s, and counts its IDs so far."""
    hung = {"trial": "fork", "ids": 10, "errors": {}, "duplicates": 0, "cut": True}
    assert page.failed(hung) and not page.failed(hung | {"cut": False})
    assert page.cell(hung, running=True) == "0 of 10; **a process did not end**"


def test_the_check_of_the_command_passes():
    subprocess.run([sys.executable, ROOT / "trial/page.py", "--check"], check=True)
