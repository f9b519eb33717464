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
# A test that takes longer runs alone, and after the quick ones.
QUICK_S = 0.3
# Twice as many mutants as processors wait for most of their time.
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
    ignored: bool


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
            spans = [span for span in (message["spans"] if message["level"] == "error" else [])]
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
            for ignored in (False, True):
                listed = subprocess.run(
                    [program, "--list", *["--ignored"] * ignored], cwd=folder, capture_output=True, text=True, check=True
                )
                names = re.findall(r"^(\S+): test$", listed.stdout, re.MULTILINE)
                yield from (Test(folder, program, name, ignored) for name in names)


def ended(tests, mutant, limit_s, **more):
    """Runs tests of one program, until one fails, and returns (whether all passed, the failed one's name or None, seconds)."""
    program, folder = tests[0].program, tests[0].folder
    known = {name: value for name, value in run.ENVIRONMENT.items() if not name.startswith("FRAZIL") or name.startswith("FRAZIL_TEST_")}
    with tempfile.TemporaryDirectory(prefix="score") as temporary:
        own = {"FRAZIL_HOME": f"{temporary}/home", "FRAZIL_GUARD_SCOPE": temporary, "TMPDIR": temporary, "FRAZIL_MUTANT": str(mutant)}
        command = [program, "--exact", *[test.name for test in tests], "--test-threads", "2", "--include-ignored"]
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
        good, _, took = ended([test], 0, 120, FRAZIL_MUTANTS_CALLED=str(called))
        called_here = {int(line) for line in called.read_text().split()} if called.exists() else set()
        said[test] = (took, called_here) if good else None

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(one, enumerate(tests)))
    for test in [test for test, found in said.items() if not found]:
        print(f"not counted, because it fails alone or takes over 120 s: {test.name}", flush=True)
    return {test: found for test, found in said.items() if found}


def judged(function, known, number):
    """Returns how a mutant is caught: the name of a test, `hangs` or `crashes`; or None if it survives."""
    reach = sorted((took, test) for test, (took, called) in known.items() if function in called)
    groups = collections.defaultdict(list)
    for took, test in reach:
        groups[(test.program, took >= QUICK_S and test.name)].append((took, test))
    for group in sorted(groups.values(), key=lambda group: (group[0][0] >= QUICK_S, sum(took for took, _ in group))):
        tests = [test for _, test in group]
        limit_s = 20 + 10 * sum(took for took, _ in group)
        while tests:
            good, failed, _ = ended(tests, number, limit_s)
            if good:
                break
            again = [test for test in tests if test.name == failed] or tests
            if ended(again, 0, limit_s)[0]:
                return f"{failed or 'crashes'}{' in ' + again[0].name if failed == 'hangs' or not failed else ''}"
            # A test that also fails without the mutant shows nothing.
            tests = [test for test in tests if test not in again]
    return None


def main():
    run.end_on_signals()
    count, seed = (int(word) for word in [*sys.argv[1:3], *["300", "1"][len(sys.argv) - 1 :]])
    if "FRAZIL_TEST_REDIS" not in os.environ:
        command = [sys.executable, run.ROOT / "tests/servers", SERVERS, "--", sys.executable, *sys.argv]
        return subprocess.run(command, check=False).returncode
    equivalent = {(each["file"], each["change"]): each["why"] for each in planting.equivalent()}
    copy = run.copied("score", [])
    # Tests read files outside of the crates, and code that a mutant leaves unused must compile.
    shutil.copytree(run.ROOT / "tests/vectors", copy / "tests/vectors")
    shutil.copytree(run.ROOT / "docs", copy / "docs")
    manifest = copy / "Cargo.toml"
    lints = "[workspace.lints.rust]\n"
    lenient = manifest.read_text().replace('= "deny"', '= "warn"').replace(lints, lints + "".join(f'{lint} = "warn"\n' for lint in LINTS))
    manifest.write_text(lenient)
    texts, all_of_them = planting.all_mutants(copy, AREAS)
    random.Random(seed).shuffle(all_of_them)
    print(f"{len(all_of_them)} possible mutants, seed {seed}", flush=True)
    fit, functions = compiled(copy, texts, all_of_them, count)
    sample = fit[:count]
    status, messages, said = cargo(copy, "test", "--no-run", "--tests")
    if status:
        sys.exit(f"the tests do not compile:\n{said[-4000:]}")
    with tempfile.TemporaryDirectory() as folder:
        tests = list(dict.fromkeys(tests_of(messages)))
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
        for kind, number, mutant, how, why in pool.map(one, controls + numbered):
            found[kind] += 1
            found["timed out"] += bool(kind == "caught" and how.startswith("hangs"))
            print(f"{kind}  {number}  {mutant.path}: {mutant.change} ({how or why or 'no test fails'})", flush=True)
            if kind == "control" and how:
                sys.exit("a mutant without a change was caught: the tests fail by themselves")
    counted = found["caught"] + found["SURVIVED"]
    print(
        f"{found['caught']} of {counted} mutants caught, {found['timed out']} of them by a time limit; {found['equivalent']} more are equivalent"
    )
    print(
        f"score {found['caught'] / counted:.1%} (without equivalents), {found['caught'] / count:.1%} (with them); seed {seed}, sample {count}"
    )
    if found["caught"] < GOAL * counted:
        print(f"below the goal of {GOAL:.0%}")
    return 0 if counted and found["caught"] / counted >= GOAL else 1


if __name__ == "__main__":
    sys.exit(run.harness(main))
