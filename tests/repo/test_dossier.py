"""The dossier, docs/assurance.md: every figure has a sealed record, and every command and test that it names exists."""

import array
import dataclasses
import importlib.util
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from dossier import __main__ as main
from dossier import attacks, commands, defects, page, planted, records, rerun, source, supply

ROWS = source.rows()
HISTORY = source.load("history")
DEFECTS = {f"H-{each['name']}": each for each in HISTORY["defects"]}
RUNS = records.read()
LAST = {row: runs[-1] for row, runs in RUNS.items()}
PRIVATE = re.compile(r"/(home|root|work|tmp|Users|usr)/|\w@\w")


def test_the_page_is_what_the_records_give():
    assert page.PAGE.read_text() == page.make(), "run `make dossier`, and commit docs/assurance.md"


@pytest.mark.parametrize("row", RUNS)
def test_a_record_is_of_this_history(row):
    for record in RUNS[row]:
        try:
            assert (why := records.ancestry(record)) is None, why
        except LookupError as unknown:
            pytest.skip(str(unknown))


@pytest.mark.parametrize("row", RUNS)
def test_a_record_has_the_figures_of_its_row(row):
    """A row that was renamed, or whose command was changed, has to be run again."""
    record = LAST[row]
    if row in DEFECTS:
        assert "command" in DEFECTS[row], f"{row}: the defect has lost its command"
        return
    assert row in ROWS, f"{row}: table C has no such row"
    assert record["command"] == ROWS[row].command, f"{row}: the command has changed since its record: make evidence ROW={row}"
    assert record["exit"] == rerun.BROKEN or record["figures"].keys() == ROWS[row].patterns.keys(), f"{row}: its figures have changed"
    assert record.get("seeds", "") == ROWS[row].seeds, f"{row}: its seeds have changed"
    if seeds := re.fullmatch(r"0 to (\d+)", ROWS[row].seeds):
        assert record["exit"] == rerun.BROKEN or record["figures"]["seeds"] == int(seeds[1]) + 1, f"{row}: it ran other seeds"


def test_no_record_shows_a_path_or_a_user():
    for runs in RUNS.values():
        for record in runs:
            found = PRIVATE.search(json.dumps(record))
            assert not found, f"{record['row']}: {found[0]}"


@pytest.mark.parametrize("row", ROWS)
def test_a_command_parses(row):
    try:
        commands.check(ROWS[row].command)
        for test in re.findall(r"`(test_\w+|\w+_\w+_repeat\w*)`", ROWS[row].control):
            commands.demand(test in commands.names(), f"no test is called {test}")
    except records.Fault as fault:
        pytest.fail(f"{row}: {fault}")


@pytest.mark.parametrize("each", [*HISTORY["mistakes"], *HISTORY["defects"]], ids=lambda each: each["fixed"])
def test_what_the_history_names_exists(each):
    commands.check_test(each["test"])
    shallow = records.git("rev-parse", "--is-shallow-repository") != "false"
    for commit in re.findall(
        r"\b(?=[0-9a-f]*\d)[0-9a-f]{8}\b", " ".join([each["fixed"], *(each.get(key, "") for key in ("introduced", "old", "passes"))])
    ):
        if records.git("cat-file", "-e", f"{commit}^{{commit}}") is None:
            assert shallow, f"{commit} is not a commit"
            pytest.skip(f"{commit} is not in this shallow or missing history")


def test_claims_name_rows_files_and_kinds():
    claims = source.load("claims")
    for name, claim in claims.items():
        if name.startswith("A"):
            assert not set(claim["evidence"]) - set(ROWS), name
            assert all((ROOT / path).exists() for path in claim["paper"]), name
            assert {ROWS[row].kind for row in claim["evidence"]} <= set(claims["kinds"]), name


def test_each_unsafe_file_has_reasons_and_an_attack():
    attacks = source.load("claims")["attacks"]
    for name, places, reasons in supply.unsafe_files():
        assert reasons, f"{name} has {places} places without a SAFETY comment"
        assert supply.attack(name, attacks), f"tests/dossier/claims.toml names no attack on {name}"


def test_no_unsafe_code_is_left_out():
    """Also not a section, which runs before `main`, or a foreign function. Each attack exists, and has code to attack."""
    places = {name: count for name, count, _ in supply.unsafe_files()}
    assert places["cli/src/bin/frazil.rs"] == 2 and places["core/base/src/os/cancel.rs"] > 1
    attacks = source.load("claims")["attacks"]
    gone = [path for text in attacks.values() for path in re.findall(r"`([^`]+)`", text) if not (ROOT / path).exists()]
    assert not gone + [beginning for beginning in attacks if not any(name.startswith(beginning) for name in places)]


@pytest.mark.parametrize("name", ["claims", "evidence", "history", "assurance.md.in"])
def test_no_figure_stands_without_a_record(name):
    # The limit of `make try-to-break` is its promise, and no result.
    content = source.load(name) if "." not in name else (source.HERE / name).read_text().replace("at most 10 minutes", "")
    if name == "evidence":
        content = {row: [each["what"], each["runs"], each["control"]] for row, each in content.items()}
    if name == "history":
        content = [
            [text for key, text in each.items() if key not in ("since", "old", "command", "shows", "overlay", "add", "test", "passes")]
            for each in itertools.chain(*content.values())
        ]
    texts = [text for text in source.strings(content) if not re.fullmatch(r"[0-9a-f]{8}", text)]
    found = {text: source.bare_figures(text) for text in texts}
    assert not {text: figures for text, figures in found.items() if figures}


# The checks above can fail.


def a_record(**changes):
    about = {
        "row": "C1",
        "flag": "first",
        "commit": "0" * 40,
        "product": "0" * 16,
        "start": "2026-11-30T12:00:00Z",
        "seconds": 1,
        "load": 0.1,
    }
    about |= {"processor": "x", "cores": 2, "kernel": "6.1", "command": ROWS["C1"].command, "figures": {"seeds": 5, "IDs": 7}, "exit": 0}
    return about | changes


def test_an_edited_or_removed_record_is_named(tmp_path):
    for seconds in range(3):
        records.append(a_record(seconds=seconds), tmp_path)
    file = tmp_path / "runs.jsonl"
    good = file.read_text()
    assert len(records.read(tmp_path)["C1"]) == 3
    for bad in (good.replace('"IDs": 7', '"IDs": 8', 1), "".join(good.splitlines(keepends=True)[1:])):
        file.write_text(bad)
        with pytest.raises(records.Fault, match=r"^C1 \(runs.jsonl:1\): the record was edited, or one before it was removed"):
            records.read(tmp_path)
    file.write_text(good.replace('"seconds"', '"time"', 1))
    with pytest.raises(records.Fault, match=r"^C1 \(runs.jsonl:1\): missing fields \['seconds'\], unknown fields \['time'\]"):
        records.read(tmp_path)


def test_an_edited_page_or_record_changes_the_page():
    runs = {"C3": [a_record(row="C3", figures={"seeds": 400, "trace lines": 9}, lists={"hash": [["400", "12ab"]]})]}
    text = page.make(runs)
    assert "| simulation | 400 | 9 | `00000000` | `12ab` |" in text and "C1: not run yet." in text
    runs["C3"][0]["figures"]["trace lines"] = 10
    assert page.make(runs) != text


def test_ancestors_differ_from_others(monkeypatch):
    head = records.git("rev-parse", "HEAD")
    if head is None:
        pytest.skip("git has no history here")
    record = a_record(commit=head, product=records.product("HEAD"))
    assert records.ancestry(record) is None
    assert "has another hash" in records.ancestry(record | {"product": "0" * 16})
    orphan = records.git("-c", "user.name=a", "-c", "user.email=b", "commit-tree", "HEAD^{tree}", "-m", "an orphan")
    assert "is not an ancestor" in records.ancestry(record | {"commit": orphan})
    for answer, is_whole in (("false", True), ("true", False), (None, False)):
        monkeypatch.setattr(records, "git", lambda name, *_, answer=answer: answer if name == "rev-parse" else None)
        if is_whole:
            assert records.ancestry(record) == f"C1: the whole history does not have {head[:12]}"
        else:
            with pytest.raises(LookupError, match=f"C1: this repository does not have {head[:12]}"):
                records.ancestry(record)


@pytest.mark.parametrize(
    "command, why",
    [
        ("make no-such-target", "no target no-such-target"),
        ("make test SUITE=no-such-suite", "suite no-such-suite is unknown"),
        ("make test SUITE=lean K=x", "takes no K"),
        ("make test SUITE=core K=" + "no_such_" + "test", "no test's name holds"),
        ("make test SUITE=server K=no_stamp_is_minted", "no test's name holds no_stamp"),
        ("cargo test -p frazil --test gone", "core/tests has no gone"),
        ("cargo test -p gone", "crate gone is unknown"),
        ("cargo test --profile gone -p frazil", "profile gone is unknown"),
        ("cargo test -p frazil --lib -- no_such_" + "test_here", "no test's name holds"),
        ("python3 tests/gone", "tests/gone does not exist"),
        ("python3 tests/dossier gone", "no command gone"),
        ("gone --now", "gone cannot be checked"),
        ("make 'test", "the shell cannot read it"),
    ],
)
def test_a_renamed_command_is_noticed(command, why):
    with pytest.raises(records.Fault, match=why):
        commands.check(command)


@pytest.mark.parametrize(
    "status, output, exit",
    [
        (0, "5 seeds: 7 stamps under 3 leases, 2 faults\ntest result: ok. 1 passed", rerun.CLEAN),
        (101, "seed 4: duplicate on node 3: p1\n", rerun.BROKEN),
        (101, "harness: 500 seeds reach too rarely: x\n", rerun.FAILED),
        (0, "5 seeds: 7 stamps under 3 leases, 2 faults", rerun.FAILED),
        (0, "test result: ok. 1 passed", rerun.FAILED),
        (0, "", rerun.FAILED),
    ],
)
def test_a_broken_claim_differs_from_a_failed_harness(status, output, exit):
    assert rerun.judge(ROWS["C1"], status, output)[0] == exit


@pytest.mark.parametrize(
    "row, status, output, exit",
    [
        ("C4", 101, "test result: FAILED. 43 passed; 1 failed; 0 ignored\n", rerun.BROKEN),
        ("C7", 2, "FAILED tests/restores/test_restores.py::test_x\n1 failed, 14 passed in 9.00s\n", rerun.BROKEN),
        ("C15", 2, "# pass 236\n# fail 1\n", rerun.BROKEN),
        ("C19", 2, "not ok waits\n357 passed, 1 failed\n", rerun.BROKEN),
        ("C26", 1, "MISSED  no cap: survived 20000 seeds:\n83 of 84 mutants caught in 9 s\n", rerun.BROKEN),
        ("C23", 1, "MISSED a lost lease is still renewed: 1 attacks\n2 of 3 planted bugs found\n", rerun.BROKEN),
        ("C1", 101, "seed 4 panicked\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n", rerun.BROKEN),
        ("C1", 101, "harness: 500 seeds reach too rarely: x\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n", rerun.FAILED),
        ("C3", 101, "panicked at x.rs:1:1:\nharness: seed 3 has two traces\ntest result: FAILED. 0 passed; 1 failed\n", rerun.FAILED),
        ("C4", 101, "error: could not compile `frazil`\n", rerun.FAILED),
        ("C7", 2, "ERROR tests/restores/test_restores.py::test_x\n14 passed, 1 error in 9.00s\n", rerun.FAILED),
        ("C6", 2, "PROBLEM     only 3 faults of 20\n1 failed, 10 passed in 9.00s\n", rerun.FAILED),
        ("C6", 2, "PROBLEM     twice: process 3\n1 failed, 10 passed in 9.00s\n", rerun.BROKEN),
        # A filter that selects nothing, and faults that did not happen.
        ("C10", 0, "test result: ok. 0 passed; 0 failed; 28 filtered out\n", rerun.FAILED),
        ("C22", 0, "kills: 3 processes, 70 IDs, 0 faults, 0 duplicates\n1 attacks: 0 duplicates\n", rerun.FAILED),
    ],
)
def test_a_failed_check_differs_from_a_run_that_checked_nothing(row, status, output, exit):
    assert rerun.judge(ROWS[row], status, output)[0] == exit


def test_a_log_with_a_failed_part_is_not_clean():
    """A whole run's log has no exit status for one suite."""
    log = "test result: ok. 20 passed; 0 failed\ntest result: FAILED. 23 passed; 1 failed\n"
    assert rerun.judge(ROWS["C4"], 0, log)[0] == rerun.BROKEN


def test_the_page_shows_a_broken_row():
    """A broken run has no table of states, and no hash."""
    good = page.make({"C1": [a_record(lists={"reached": [["9", "5", "a state"]]})]})
    broken = a_record(exit=1, figures={"seeds": 3})
    text = page.make({"C1": [a_record(lists={"reached": [["9", "5", "a state"]]}), broken], "C3": [broken | {"row": "C3"}]})
    assert "| a state | 9 | 5 |" in good and "C1: broken" in text and "C3: broken" in text
    assert text.count("**the claim is broken**") == 2 and " in 2 runs, **1 broken** |" in text
    assert "A5: " not in page.make({row: [a_record()] for row in ROWS})
    assert "A5: no evidence that ran" in page.make({row: [a_record(exit=1)] for row in ROWS}), "broken runs are no evidence"


def test_a_bug_that_was_missed_last_is_not_shown_as_found():
    name = planted.run.SHORT[0]
    found, missed = a_record(row="C5", lists={"caught": [[name, "seed 6: duplicate on node 1"]]}), a_record(row="C26", exit=1)
    missed |= {"start": "2026-11-30T13:00:00Z", "lists": {"missed": [[name, "survived 20000 seeds"]]}}
    shown = f"| {name} | the simulation, by a duplicate | "
    assert f"{shown}`seed 6: duplicate on node 1` | 7 |" in page.make({"C5": [found]})
    assert f"{shown}**missed** | - |" in page.make({"C26": [missed], "C5": [found]})


def test_no_record_of_the_history_is_gone():
    """The hashes find a record that was removed before another one. Only the history has the last ones, and the first."""
    kept = {line for file in records.FOLDER.glob("*.jsonl") for line in file.read_text().splitlines()}
    assert not records.removed(kept), "docs/evidence only grows"
    if records.git("rev-parse", "HEAD:docs/evidence") is None:
        pytest.skip("git has no history here")
    last = max((record for runs in RUNS.values() for record in runs), key=lambda record: record["start"])
    line = next(line for line in kept if last["hash"] in line)
    assert records.removed(kept - {line}) == [last["row"]]


def test_two_hashes_of_one_product_differ_in_no_run():
    first = a_record(row="C3", figures={"seeds": 400, "trace lines": 9}, lists={"hash": [["400", "12ab"]]})
    other = first | {"lists": {"hash": [["400", "99ff"]]}}
    assert rerun.contradiction(first, first) is None and rerun.contradiction(None, first) is None
    assert "12ab" in rerun.contradiction(first, other) and "99ff" in rerun.contradiction(first, other)
    assert rerun.contradiction(first, other | {"product": "1" * 16}) is None
    assert "12ab" in rerun.compare(first, other) and "99ff" in rerun.compare(first, other), "the reader sees both"


@pytest.mark.parametrize(
    "old, fixed, exit",
    [
        ((0, "7 IDs repeated\n"), (0, "0 IDs repeated\n"), rerun.CLEAN),
        ((0, "0 IDs repeated\n"), (0, "0 IDs repeated\n"), rerun.FAILED),
        # A command that also shows the defect where it is fixed, or runs nothing there, shows nothing.
        ((0, "7 IDs repeated\n"), (0, "7 IDs repeated\n"), rerun.FAILED),
        ((0, "7 IDs repeated\n"), (101, "error: could not compile\n"), rerun.FAILED),
    ],
)
def test_a_defect_is_shown_by_its_commit_and_not_by_the_fixed_one(old, fixed, exit, monkeypatch):
    recorded, results = [], [old, fixed]
    for name, result in (("git", "a" * 40), ("product", "b" * 16)):
        monkeypatch.setattr(records, name, lambda *_, result=result: result)
    monkeypatch.setattr(records, "append", recorded.append)
    monkeypatch.setattr(rerun, "dirty", list)
    monkeypatch.setattr(defects, "run_at", lambda *_: results.pop(0))
    assert defects.show("fixed") == exit
    assert [record["figures"] for record in recorded] == ([{"IDs": 7}] if exit == rerun.CLEAN else [])


def test_duplicates_break_the_claim():
    output = "forks: 3 processes, 70 IDs, 2 faults, {} duplicates\nall: 0 duplicates"
    assert rerun.judge(ROWS["C22"], 0, output.format(0))[:2] == (rerun.CLEAN, {"IDs": 70, "processes": 3, "faults": 2, "duplicates": 0})
    assert rerun.judge(ROWS["C22"], 0, output.format(4))[0] == rerun.BROKEN
    exit, figures, _ = rerun.judge(ROWS["C22"], 2, output.format(4) + "\nBROKEN: 4 duplicates.")
    assert (exit, figures["duplicates"]) == (rerun.BROKEN, 4), "the record says how many"


def test_bare_figures_are_found():
    assert source.bare_figures("12,299 IDs, and 95 % of them") == ["12,299", "95 %"]
    assert source.bare_figures("12345678 IDs, 5 million more, 1.5 s") == ["12345678", "5 million", "1.5"]
    assert source.bare_figures("UUID 7, one of 2, in `f(12)`, {C1.seeds}, 2026-11-30, 9bd267cc and A14") == []


def test_a_single_repeated_id_is_counted(tmp_path):
    one = attacks.Attack(tmp_path)
    (one.ids / "1.ids").write_bytes(array.array("q", range(1000)).tobytes() + b"cut")
    (one.ids / "2.ids").write_bytes(array.array("q", range(999, 2000)).tobytes())
    assert one.count() == (2001, 1)


def test_an_attack_that_attacks_nothing_fails(monkeypatch, capsys):
    monkeypatch.setattr(attacks, "LIBRARY", ROOT / "README.md")
    assert attacks.main(0.5, "kills") == rerun.FAILED
    monkeypatch.setattr(attacks, "LIBRARY", ROOT / "gone")
    assert attacks.main(1) == rerun.FAILED
    said = capsys.readouterr().err
    assert "kills: only 0 IDs and 0 faults, which attacks nothing" in said and "gone does not exist" in said


def test_a_duplicate_counts_although_the_harness_fails_after_it(monkeypatch, capsys):
    def attack(kind, seconds):
        if kind is not attacks.ATTACKS[0]:
            raise attacks.Broken("a process ended")
        return type("One", (), {"name": "forks", "started": 3, "faults": 5}), 2_000, 1

    monkeypatch.setattr(attacks, "LIBRARY", ROOT / "README.md")
    monkeypatch.setattr(attacks, "attack", attack)
    assert attacks.main(1) == rerun.BROKEN
    said = capsys.readouterr()
    assert "BROKEN: 1 duplicates" in said.out and "a process ended" in said.err


def test_what_a_process_wrote_before_it_ended_is_counted(tmp_path, monkeypatch):
    class Ends(attacks.Kills):
        def step(self):
            for name in "ab":
                (self.ids / f"{name}.ids").write_bytes(array.array("q", [7]).tobytes())
            self.kill(0)
            return 0

    # It ends by the attack alone.
    worker = tmp_path / "worker.py"
    worker.write_text("import time\n\ntime.sleep(600)\n")
    monkeypatch.setattr(attacks, "LIBRARY", ROOT / "README.md")
    monkeypatch.setattr(attacks, "WORKER", worker)
    monkeypatch.setattr(attacks.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(attacks, "ATTACKS", (Ends,))
    assert attacks.main(1) == rerun.BROKEN


def test_no_process_starts_in_an_older_folder_before_the_holders_have_looked(tmp_path, monkeypatch):
    """A start before that may take a number that is in use, as the page of guarantees says. On a busy machine that takes long."""
    one, slept, started = attacks.FolderGoesBack(tmp_path), [], []
    slot = one.store / "default/7"
    slot.parent.mkdir()
    one.crew = [type("Run", (), {"pid": 12})()]

    def write(_):
        # The process renews in the tenth pause after the replacement.
        slept.append(0)
        at = time.time() if len(slept) >= 11 else 1
        slot.write_bytes(b"1 held token=1 version=1 bound=1 holder=host:12\n")
        os.utime(slot, (at, at))

    monkeypatch.setattr(attacks.time, "sleep", write)
    monkeypatch.setattr(one, "start", lambda: (started.append(len(slept)), one.crew.append(one.crew[0])))
    monkeypatch.setattr(one, "kill", lambda place: None)
    write(0)
    one.step()
    assert started == [11] and one.faults == 1
    monkeypatch.setattr(attacks, "RECORD_S", 0)
    with pytest.raises(attacks.Broken, match="has not written its record for 0 s"):
        one.written(time.time() + 60)


def test_a_failed_build_is_no_broken_claim(tmp_path, monkeypatch):
    # A copy, because the test run may be building the library.
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "c-api").mkdir()
    for file in ("cargo", "c-api/build.sh"):
        (tmp_path / file).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / file).chmod(0o755)
    done = subprocess.run(["make", "try-to-break"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Error 3" in done.stderr, done.stderr
    monkeypatch.setattr(planted.run, "copied", lambda *_: tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert planted.run.harness(planted.main) == rerun.FAILED


def test_an_exception_is_the_harness_s(monkeypatch, capsys):
    """Python ends with 1 after one."""
    monkeypatch.setattr(main.records, "read", lambda *_: {}["x"])
    monkeypatch.setattr(sys, "argv", ["dossier", "status"])
    assert main.main() == rerun.FAILED and planted.run.harness(lambda: {}["x"]) == rerun.FAILED
    assert planted.run.harness(lambda: sys.exit("a text")) == rerun.FAILED and "a text" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="^130$"):
        planted.run.harness(lambda: sys.exit(130))


def replayed(text, output, tmp_path, monkeypatch, status=0):
    (tmp_path / "log").write_text(text)
    monkeypatch.setattr(rerun, "stream", lambda command: (status, output.format(command)))
    return main.replay(tmp_path / "log")


def test_a_replay_that_runs_nothing_is_not_clean(tmp_path, monkeypatch):
    line, ran = "x\nreplay: FRAZIL_SEED=4 FRAZIL_MOST_FAULTS=2\n", "{}\nseed 4: 9 stamps under 2 leases\ntest result: ok. 1 passed\n"
    assert replayed(line, ran, tmp_path, monkeypatch) == rerun.CLEAN
    assert replayed(line, "{}\ntest result: ok. 0 passed\n", tmp_path, monkeypatch) == rerun.FAILED
    assert replayed(line, "seed 4: duplicate on node 1: x\n", tmp_path, monkeypatch, 101) == rerun.BROKEN
    assert replayed("no line", ran, tmp_path, monkeypatch) == rerun.FAILED
    renamed = dataclasses.replace(ROWS["C1"], command=ROWS["C1"].command.replace("SEEDS", "SEED_COUNT"))
    monkeypatch.setattr(source, "rows", lambda: {"C1": renamed})
    with pytest.raises(records.Fault, match="C1: its command has no FRAZIL_SEEDS"):
        replayed(line, ran, tmp_path, monkeypatch)


def test_changed_files_have_their_whole_names(monkeypatch):
    monkeypatch.setattr(records, "git", lambda *_: " M core/src/lib.rs\n M docs/evidence/runs.jsonl")
    assert rerun.dirty() == ["core/src/lib.rs"]


def test_the_bugs_that_the_attacks_must_find_fit_the_code(tmp_path):
    """Finds a change of the code early. Otherwise only the soak would find it, after a build."""
    sources = [shutil.copytree(ROOT / source, tmp_path / source) for source in planted.run.SOURCES]
    planted.run.switched.plant(sources, planted.bugs())
    assert set(planted.FINDS.values()) <= {kind.name for kind in attacks.ATTACKS}


def test_the_bugs_that_the_fuzz_targets_must_find_fit_the_code():
    spec = importlib.util.spec_from_file_location("fuzz_planted", ROOT / "fuzz/planted.py")
    spec.loader.exec_module(fuzzed := importlib.util.module_from_spec(spec))
    assert set(fuzzed.BUGS) == {path.stem for path in (ROOT / "fuzz/fuzz_targets").glob("*.rs")}, "each target has a bug to find"
    for name, (file, *_) in fuzzed.BUGS.items():
        fuzzed.planted((ROOT / file).read_text(), name)


@pytest.mark.parametrize(
    "builds, target, exit",
    [
        (0, "echo stat::number_of_executed_units: 5; echo cov: 3 ft: 4 corp: 1", rerun.CLEAN),
        (0, "echo cov: 3 ft: 4 corp: 1; echo \"artifact_prefix='x'; Test unit written to x\"; exit 77", rerun.BROKEN),
        (0, "exit 127", rerun.FAILED),
        (0, "echo INFO: nothing ran", rerun.FAILED),
        (101, "exit 0", rerun.FAILED),
    ],
)
def test_fuzzing_tells_a_find_from_a_failed_harness(builds, target, exit, tmp_path):
    for file in ("run.sh", "words.txt", "corpus/spec.tar"):
        (tmp_path / "fuzz/corpus").mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "fuzz" / file, tmp_path / "fuzz" / file)
    for file, text in (("rustc", "echo host: here"), ("cargo", f"exit {builds}"), ("here/release/spec", target)):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / file).chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CARGO_TARGET_DIR": str(tmp_path)}
    done = subprocess.run([tmp_path / "fuzz/run.sh", "1", "spec"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == exit, done.stdout + done.stderr
