#!/usr/bin/env python3
"""Measures how many random mistakes the tests notice: tests/mutants/score.py [COUNT [SEED]]

A mutant is one small change of the product's code, such as `<` to `<=`. A seed draws COUNT mutants from all possible ones in the generator,
the layouts and texts of IDs, segments, prefetch, leases and the clients of stores. All are in one build of a copy of the sources, and a
number in the environment selects one. A first run of each test records which functions with mutants it calls. A mutant then meets only the
tests that call its function, the quick ones first. It is caught if a test fails or hangs with it, and passes without it. Mutants that
change nothing that a test could see are listed with the reasons in `equivalent.toml`, and do not count.

As controls, some functions of the sample get a mutant without a change. If one of those is caught, the harness has failed.

Exit statuses: 0 if at least 95 % are caught, 1 if fewer, 3 if the harness failed.
"""

import collections
import concurrent.futures
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import planting
import run

GOAL = 0.95
AREAS = [*(f"core/src/{area}" for area in ("generator", "clock", "counters", "id", "lease")), "core/store/src"]
SERVERS = "redis,postgresql,mariadb,etcd,zookeeper"
CONTROLS = 5
# Slower tests run after the quick ones. Tests over `LONGEST_S` do not count, and a mutant meets tests of at most `BUDGET_S` in all.
QUICK_S, LONGEST_S, BUDGET_S = 0.3, 40, 60
# Tests with hundreds of processes or numbers do not count, because they would disturb those that run at the same time.
CROWDS = re.compile(r"/(?:copies|starts)-\w+ |crowd|thousand|\ball_errors_of_many|exhaustive::no_order")
# The simulation's seeds. More than its usual ones find more, but need minutes.
SEEDS = "50"
# The test that finds most in leases. Each mutant there meets it, though it takes long.
STRONGEST = "lease::simulation::no_stamp_is_minted_twice"
# More mutants at once than processors, because many tests wait for most of their time.
JOBS = int(os.environ.get("FRAZIL_SCORE_JOBS", "4"))
# Lints that reject a mutant late, after the first check.
LINTS = ("arithmetic_overflow", "unconditional_panic")
CARGO = ["--locked", "--features", "frazil/stores,frazil/admin,frazil/serde", "--message-format", "json", "--lib"]
CARGO += [word for crate in ("frazil", "frazil-base", "frazil-store") for word in ("-p", crate)]
CARGO += [word for crate in ("frazil", "frazil-base", "frazil-store") for word in ("--config", f"profile.dev.package.{crate}.opt-level=1")]
FAILED = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. FAILED$", re.MULTILINE)
PASSED = re.compile(r"^test result: ok\. [1-9]\d* passed;", re.MULTILINE)


class Test(NamedTuple):
    """A test, with the folder and the program in which it runs."""

    folder: Path
    program: str
    name: str


def prepared():
    """Copies the sources, and returns the folder."""
    copy = run.copied("score", [])
    # Tests read files outside of the crates, and code that a mutant leaves unused must compile.
    shutil.copytree(run.ROOT / "tests/vectors", copy / "tests/vectors")
    shutil.copytree(run.ROOT / "docs", copy / "docs")
    manifest = copy / "Cargo.toml"
    lints = "[workspace.lints.rust]\n"
    lenient = manifest.read_text().replace('= "deny"', '= "warn"').replace(lints, lints + "".join(f'{lint} = "warn"\n' for lint in LINTS))
    manifest.write_text(lenient)
    return copy


def cargo(copy, *arguments):
    """Runs cargo in the copy, and returns its messages."""
    done = subprocess.run(["cargo", *arguments, *CARGO], cwd=copy, env=run.ENVIRONMENT, capture_output=True, text=True, check=False)
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    errors = [each["message"]["rendered"] for each in messages if each.get("message", {}).get("level") == "error"]
    return done.returncode, messages, done.stderr + "".join(errors)


def compiled(copy, texts, candidates, count):
    """Returns the first mutants that compile, and that this system compiles at all; writes them, and returns the functions too."""
    drawn, fit = list(candidates), []
    while True:
        chosen = fit + drawn[: max(0, count * 4 // 3 - len(fit))]
        lines, functions = planting.write(copy, texts, chosen)
        status, messages, said = cargo(copy, "check")
        bad, seen = set(), set()
        for message in (each["message"] for each in messages if each["reason"] == "compiler-message"):
            seen |= {int(number) for number in re.findall(r"unused variable: `mutant_(\d+)`", message["message"])}
            spans = message["spans"] if message["level"] == "error" else []
            for span in sorted(spans, key=lambda span: not span["is_primary"]):
                hit = {number for path, first, last, number in lines if path == span["file_name"] and first <= span["line_start"] <= last}
                bad |= hit
                if hit:
                    break
        if status and not bad:
            sys.exit(f"the copy with its mutants does not compile:\n{said[-4000:]}")
        bad = bad if status else set(range(1, len(chosen) + 1)) - seen
        gone = {id(chosen[number - 1]) for number in bad}
        drawn = [each for each in drawn if id(each) not in gone and each not in chosen]
        fit = [each for each in chosen if id(each) not in gone]
        print(f"{len(chosen)} mutants: {len(bad)} do not compile or are of other systems", flush=True)
        if not bad:
            return fit, functions


def tests_of(messages):
    """Returns all tests of the programs that cargo has built."""
    for message in messages:
        if program := message.get("executable"):
            folder = Path(message["manifest_path"]).parent
            listed = subprocess.run([program, "--list"], cwd=folder, capture_output=True, text=True, check=True).stdout
            yield from (Test(folder, program, name) for name in re.findall(r"^(\S+): test$", listed, re.MULTILINE))


def ended(tests, mutant, limit_s, **more):
    """Runs tests of one program, until one fails, and returns (whether all passed, the failed one's name or None, seconds)."""
    program, folder = tests[0].program, tests[0].folder
    known = {name: value for name, value in run.ENVIRONMENT.items() if not name.startswith("FRAZIL") or name.startswith("FRAZIL_TEST_")}
    with tempfile.TemporaryDirectory(prefix="score") as temporary:
        own = {
            "FRAZIL_HOME": f"{temporary}/home",
            "FRAZIL_GUARD_SCOPE": temporary,
            "TMPDIR": temporary,
            "FRAZIL_SEEDS": SEEDS,
            "FRAZIL_MUTANT": str(mutant),
        }
        command = [program, "--exact", *[test.name for test in tests], "--test-threads", "3", "--include-ignored"]
        since, said = time.monotonic(), Path(temporary, "said")
        with said.open("wb") as output:
            child = subprocess.Popen(command, cwd=folder, env=known | own | more, stdout=output, stderr=output, start_new_session=True)
            while True:
                try:
                    status = child.wait(0.02 if time.monotonic() - since < 1 else 0.2)
                except subprocess.TimeoutExpired:
                    status = None
                text = said.read_text(errors="replace")
                failed = FAILED.search(text)
                took = time.monotonic() - since
                if status is not None or failed or took > limit_s:
                    run.kill(child.pid)
                    child.wait()
                    good = status == 0 and not failed and bool(PASSED.search(text))
                    return good, "hangs" if status is None and not failed else failed and failed[1], took


def baseline(tests, folder):
    """Runs each test alone without a mutant. Returns those that pass, with their seconds and the functions that they call."""
    said = {}

    def one(numbered):
        number, test = numbered
        called = folder / str(number)
        good, _, took = ended([test], 0, LONGEST_S, FRAZIL_MUTANTS_CALLED=str(called))
        called_here = {int(line) for line in called.read_text().split()} if called.exists() else set()
        said[test] = (took, called_here) if good else None

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(one, enumerate(tests)))
    for test in [test for test, found in said.items() if not found]:
        print(f"not counted, because it fails alone or takes over {LONGEST_S} s: {test.name}", flush=True)
    return {test: found for test, found in said.items() if found}


def meets(function, known):
    """Returns the tests that a mutant of a function meets, in groups of one program, the quick ones first."""
    groups, left_s = collections.defaultdict(list), BUDGET_S
    met = [(test.name != STRONGEST, took, test) for test, (took, called) in known.items() if function in called]
    for _, took, test in sorted(met):
        left_s -= took
        if left_s >= 0:
            groups[(took >= QUICK_S, test.program)].append((took, test))
    return sorted(groups.values(), key=lambda group: (group[0][0] >= QUICK_S, sum(took for took, _ in group)))


def judged(function, known, number):
    """Returns how a mutant is caught: the name of a test, or one that hangs or crashes; or None if it survives."""
    for group in meets(function, known):
        tests, limit_s = [test for _, test in group], 20 + 5 * sum(took for took, _ in group)
        while tests:
            good, failed, _ = ended(tests, number, limit_s)
            if good:
                break
            one = [test for test in tests if test.name == failed]
            again = one or tests
            # A test fails by chance, or by itself, if it does not fail again with the mutant, or fails without it.
            if (not one or not ended(one, number, limit_s)[0]) and ended(again, 0, limit_s)[0]:
                return one[0].name if one else f"{failed or 'crashes'} in {again[0].name}"
            tests = [test for test in tests if test not in again]
    return None


def main():
    run.end_on_signals()
    count, seed = (int(word) for word in [*sys.argv[1:3], *["300", "1"][len(sys.argv) - 1 :]])
    if "FRAZIL_TEST_REDIS" not in os.environ:
        command = [sys.executable, run.ROOT / "tests/servers", SERVERS, "--", sys.executable, *sys.argv]
        return subprocess.run(command, check=False).returncode
    equivalent = {(each["file"], each["change"]): each["why"] for each in planting.equivalent()}
    copy = prepared()
    texts, all_of_them = planting.all_mutants(copy, AREAS)
    random.Random(seed).shuffle(all_of_them)
    print(f"{len(all_of_them)} possible mutants, seed {seed}", flush=True)
    fit, functions = compiled(copy, texts, all_of_them, count)
    sample = fit[:count]
    status, messages, said = cargo(copy, "test", "--no-run", "--tests")
    if status:
        sys.exit(f"the tests do not compile:\n{said[-4000:]}")
    with tempfile.TemporaryDirectory() as folder:
        tests = [test for test in tests_of(messages) if not CROWDS.search(f"{test.program} {test.name}")]
        since = time.monotonic()
        known = baseline(tests, Path(folder))
    print(f"{len(known)} of {len(tests)} tests count, first run in {time.monotonic() - since:.0f} s", flush=True)
    numbered = list(enumerate(sample, 1))
    # A number that no function has is a mutant without a change.
    controls = [(10_000 + at, mutant) for at, mutant in enumerate(sample[:CONTROLS])]
    found = collections.Counter()

    def one(pair):
        number, mutant = pair
        how = judged(functions.index((mutant.path, mutant.body)), known, number)
        why = equivalent.get((mutant.path, mutant.change))
        kind = "control" if number >= 10_000 else "caught" if how else "equivalent" if why else "SURVIVED"
        return kind, number, mutant, how, why

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for each in concurrent.futures.as_completed([pool.submit(one, pair) for pair in controls + numbered]):
            kind, number, mutant, how, why = each.result()
            found[kind] += 1
            found["timed out"] += bool(kind == "caught" and how.startswith("hangs"))
            print(f"{kind}  {number}  {mutant.path}: {mutant.change} ({how or why or 'no test fails'})", flush=True)
            if kind == "control" and how:
                pool.shutdown(wait=False, cancel_futures=True)
                sys.exit("a mutant without a change was caught: the tests fail by themselves")
    counted = found["caught"] + found["SURVIVED"]
    caught, equal = found["caught"], found["equivalent"]
    print(f"{caught} of {counted} mutants caught, {found['timed out']} of them by a time limit; {equal} more are equivalent")
    print(f"score {caught / counted:.1%} (without equivalents), {caught / count:.1%} (with them); seed {seed}, sample {count}")
    if caught < GOAL * counted:
        print(f"below the goal of {GOAL:.0%}")
    return 0 if caught >= GOAL * counted else 1


if __name__ == "__main__":
    sys.exit(run.harness(main))
