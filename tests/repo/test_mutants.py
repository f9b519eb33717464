"""Planted bugs. A bug counts as caught only if it makes an expected test fail."""

import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests/mutants"))
import planting
import run
import switched
from servers import process

PART = """
    /// A brace in a comment: }, and in a text.
    pub fn double(n: u32) -> u32 {
        fn twice(n: u32) -> u32 {
            n * 2
        }
        let _ = ("{", '{');
        twice(n) + 0
    }

    pub fn unused(n: u32) -> u32 {
        n + 7
    }

    #[test]
    fn sound_of_double() {
        assert_eq!(double(2), 4);
    }

    #[test]
    fn broken_by_itself() {
        panic!("whatever acts");
    }

    #[test]
    fn aborts() {
        if double(2) != 4 {
            std::process::abort();
        }
    }
"""
TWICE, PLUS, UNUSED, BOTH = range(1, 5)
BUGS = [
    [("n * 2", "n * 3")],
    [("twice(n) + 0", "twice(n) + 0 * n")],
    [("n + 7", "n + 8")],
    [("n * 2", "n * 4"), ("twice(n) + 0", "twice(n) + 4 - 4 * n")],
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Builds a test program with four planted bugs."""
    folder = tmp_path_factory.mktemp("planted")
    (folder / "lib.rs").write_text("mod part;\n")
    (folder / "part.rs").write_text(textwrap.dedent(PART))
    switched.plant([folder], BUGS)
    command = ["rustc", "--edition=2024", "--test", "-Awarnings", "lib.rs", "-o", "program"]
    subprocess.run(command, cwd=folder, check=True)
    return str(folder / "program")


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    (tmp_path / "source/core").mkdir(parents=True)
    monkeypatch.setattr(run, "TARGET", tmp_path)


@pytest.mark.parametrize(
    "number, tests, caught",
    [
        (TWICE, "sound", "part::sound_of_double"),
        (PLUS, "sound", None),
        (UNUSED, "sound", None),
        (BOTH, "sound", None),
        (UNUSED, "broken", None),
        (TWICE, "aborts", None),
        (TWICE, "no_such_test", None),
    ],
)
def test_a_bug_counts_as_caught_only_by_an_expected_failure(number, tests, caught, program):
    """A test that always fails and a program that dies do not count. All changes of one bug are active together."""
    assert run.failed_test(run.run(program, number, tests), tests) == caught


@pytest.mark.parametrize("tests, passes", [("sound", True), ("aborts", True), ("broken", False), ("no_such_test", False)])
def test_tests_have_to_pass_without_a_bug(tests, passes, program, monkeypatch):
    monkeypatch.setitem(run.ENVIRONMENT, "FRAZIL_PLANTED", str(TWICE))
    assert run.passes(run.run(program, 0, tests)) == passes


def test_a_duplicate_that_is_there_without_a_bug_is_no_catch(program, monkeypatch):
    said = "seed 7: duplicate on node 3: p1 mints 1..=2\n"
    ended = run.Ended(-9, said, acted=True)
    assert run.duplicate(program, ended._replace(acted=False)) is None
    assert run.duplicate(program, ended._replace(said="seed 7: nothing was minted\n")) is None
    passed = run.Ended(0, "test result: ok. 1 passed; 0 failed;\n", acted=False)
    monkeypatch.setattr(run, "run", lambda *_, **variables: passed if variables["FRAZIL_SEED"] == "7" else None)
    assert run.duplicate(program, ended) == "seed 7: duplicate on node 3"
    monkeypatch.setattr(run, "run", lambda *_, **variables: run.Ended(101, said, acted=False))
    with pytest.raises(SystemExit, match="seed 7 of the simulation fails without a mutant"):
        run.duplicate(program, ended)


@pytest.mark.parametrize(
    "edits, why",
    [
        ([("n * 5", "n")], "occurs 0 times"),
        ([("n: u32", "n: u64")], "occurs 3 times"),
        ([("pub fn unused", "fn unused")], "is not within one function"),
        ([("n + 7", "n + 8"), ("n + 7", "n + 9")], "occurs 0 times"),
    ],
)
def test_a_bug_that_does_not_fit_the_code_is_refused(edits, why):
    with pytest.raises(switched.CannotPlant, match=why):
        switched.switched(PART, [(1, *edit) for edit in edits], "part.rs")


def test_spaces_and_comments_do_not_count(tmp_path):
    """A line may be wrapped, commented or moved to another file."""
    (tmp_path / "lib.rs").write_text("mod other;\n// n * 2\n")
    (tmp_path / "other.rs").write_text("fn twice(n: u32) -> u32 {\n    n // half of it\n        * 2\n}\n")
    switched.plant([tmp_path], [[("n * 2", "n * 3")]])
    assert "1 => { crate::planted_acts(); {\n    n * 3\n} }" in (tmp_path / "other.rs").read_text()
    with pytest.raises(switched.CannotPlant, match=r"occurs 2 times in the code: .*lib\.rs, .*other\.rs"):
        (tmp_path / "lib.rs").write_text("fn two(n: u32) -> u32 { n * 2 }")
        (tmp_path / "other.rs").write_text("fn two(n: u32) -> u32 { n * 2 }")
        switched.plant([tmp_path], [[("n*2", "n")]])


def test_names_that_are_not_there_are_refused():
    command = [sys.executable, ROOT / "tests/mutants/run.py", "no cap", "no such bug"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 3 and done.stderr.startswith("no such mutant: no such bug; there are: ")


def test_the_lists_fit_the_code(tmp_path):
    """Finds errors in the lists early. The test run itself finds them only after a build, and only for the mutants that it runs."""
    sources = [shutil.copytree(ROOT / source, tmp_path / source) for source in run.SOURCES]
    switched.plant(sources, run.changes(run.FOUND_BY_TESTS, run.MUTANTS))


def test_each_test_of_a_mutant_is_there():
    """Finds a renamed test early. Otherwise it would be missed only after everything is built."""
    tests = set()
    for source in run.SOURCES:
        for path in (ROOT / source).rglob("*.rs"):
            module = re.sub(r"(/mod)?\.rs$", "", str(path.relative_to(ROOT / source))).replace("/", "::")
            names = re.findall(r"\bfn (\w+)\(", path.read_text())
            tests |= {f"{module}{part}::{name}" for name in names for part in ("", "::tests")}
    missing = {mutant[0]: mutant[-1] for mutant in run.FOUND_BY_TESTS if not any(mutant[-1] in test for test in tests)}
    assert missing == {}


def test_the_short_list_names_existing_mutants():
    assert set(run.SHORT) <= {mutant[0] for mutant in run.MUTANTS}


def begin(tmp_path, work):
    """Starts a run of one shell program."""
    script = f"import sys; sys.path.insert(0, {str(ROOT / 'tests/mutants')!r}); import run, pathlib; run.TARGET = pathlib.Path({str(tmp_path)!r})"
    return subprocess.Popen([sys.executable, "-c", f"{script}; run.end_on_signals(); run.run('/bin/sh', 0, '-c', {work!r})"])


def test_a_run_that_is_ended_leaves_no_program(tmp_path):
    program = begin(tmp_path, "sleep 600 & echo $$ > begun.new; mv begun.new begun; wait")
    begun = tmp_path / "source/core/begun"
    try:
        assert process.await_true(begun.exists, 60)
        first = int(begun.read_text())
        # `mv` is a third process until the shell has waited for it.
        assert process.await_true(lambda: len(process.family(first)) == 2, 60)
        members = process.family(first)
        os.kill(program.pid, signal.SIGTERM)
        assert program.wait(60) == 128 + signal.SIGTERM
        assert process.await_true(lambda: all(map(process.gone, members)), 60)
    finally:
        program.kill()
        program.wait()


def test_a_run_that_is_ended_as_its_program_begins_leaves_none(tmp_path):
    for _ in range(10):
        program = begin(tmp_path, "echo $$ > begun.new; mv begun.new begun; kill -TERM $PPID; exec sleep 600")
        begun = tmp_path / "source/core/begun"
        try:
            assert program.wait(60) == 128 + signal.SIGTERM
            assert process.await_true(partial(process.gone, int(begun.read_text())), 60)
        finally:
            program.kill()
            program.wait()


def test_the_modules_that_planted_code_names_exist():
    """The test run plants some bugs alone. The others would not compile after a module has moved, and nobody would notice."""
    planted = repr([run.MUTANTS, run.FOUND_BY_TESTS])
    named = {f"core/src/{name}" for name in re.findall(r"\bcrate::([a-z]\w*)", planted)}
    named |= {f"core/{name}/src/lib" for name in re.findall(r"\bfrazil_(\w+)::", planted)}
    assert named and not {path for path in named if not (ROOT / path).exists() and not (ROOT / f"{path}.rs").exists()}


def test_random_mutants_change_functions_of_the_product_alone():
    code = """
        const fn width() -> u32 { 1 + 2 }

        fn first(list: &[u32]) -> Option<u32> {
            // A comment, in which a < b.
            debug_assert!(list.len() < 9);
            if list.len() > 1 { Some(list[0]) } else { None }
        }

        #[cfg(test)]
        mod tests {
            fn three() -> u32 { 1 + 2 }
        }
    """
    found = planting.of_file("part.rs", textwrap.dedent(code))
    line = "first: if list.len() > 1 { Some(list[0]) } else { None } -> if "
    ends = (
        "list.len() >= 1 { Some(list[0]) }",
        "true { Some(list[0]) }",
        "false { Some(list[0]) }",
        "list.len() > 1 { None }",
    )
    assert {mutant.change for mutant in found} == {f"{line}{end} else {{ None }}" for end in ends}


def test_the_reasons_of_equivalent_mutants_fit_the_code():
    for each in planting.equivalent():
        changes = {mutant.change for mutant in planting.of_file(each["file"], (ROOT / each["file"]).read_text())}
        assert each["change"] in changes, each
        assert len(each["why"]) > 20, each
