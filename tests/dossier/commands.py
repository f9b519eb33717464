"""Finds commands that no longer parse: a target, a suite, a file, a package or a test that is gone."""

import itertools
import re
import shlex
import subprocess
import sys
from functools import cache

from .records import ROOT, Fault

sys.path.insert(0, str(ROOT / "tests"))
from runner import suites

ASSIGNMENT = re.compile(r"\w+=\S*")
# Options of cargo and pytest that take a value.
VALUED = {"--profile", "-p", "--features", "--test", "-k", "-n", "--config"}


@cache
def names():
    """Returns the names of all tests and test files in the repository, one on each line."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "tests", "core", "cli", "server"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    files = listed.stdout.split() or [str(path.relative_to(ROOT)) for path in ROOT.glob("*/**/*") if path.is_file()]
    found = set(files)
    for file in files:
        if file.endswith((".rs", ".py", ".mjs", ".c", ".cpp")) and (ROOT / file).exists():
            path = re.sub(r"(/mod)?\.rs$", "", file).replace("/", "::")
            found |= {f"{path}::{name}" for name in re.findall(r"\b(?:fn|def) (\w+)\(", (ROOT / file).read_text(errors="replace"))}
    return "\n".join(sorted(found))


def demand(condition, why):
    if not condition:
        raise Fault(why)


def make(words):
    targets = re.findall(r"^([\w%-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    target, *variables = words
    demand(target in targets, f"make has no target {target}")
    given = dict(each.split("=", 1) for each in variables)
    demand(given.keys() <= {"SUITE", "K", "ROW"}, f"make {target} takes no {' '.join(variables)}")
    if name := given.get("SUITE"):
        suite = next((suite for suite in suites.SUITES if suite.name == name), None)
        demand(suite, f"suite {name} is unknown")
        if k := given.get("K"):
            demand(suite.select, f"the suite {name} takes no K")
            # The folder of the suite's tests, or of the script that runs them. cargo's suites have none.
            folder = next(("/".join(word.split("/")[:2]) for word in suite.command if word.startswith("tests/")), "")
            of_suite = [name for name in names().splitlines() if name.replace("::", "/").startswith(folder)]
            demand(any(k in name for name in of_suite), f"no test's name holds {k}")


def cargo(words):
    demand(words[0] == "test", f"cargo {words[0]} does not test")
    own, _, tests = " ".join(words[1:]).partition(" -- ")
    own = own.split()
    crates = {
        re.search(r'^name = "([\w-]+)"', path.read_text(), re.MULTILINE)[1]
        for path in ROOT.glob("*/**/Cargo.toml")
        if "target" not in path.parts and re.search(r"^name", path.read_text(), re.MULTILINE)
    }
    for option, value in itertools.pairwise(own):
        if option == "-p":
            demand(value in crates, f"crate {value} is unknown")
        if option == "--test":
            demand(
                (ROOT / f"core/tests/{value}.rs").exists() or (ROOT / f"core/tests/{value}/main.rs").exists(), f"core/tests has no {value}"
            )
        if option == "--profile":
            demand(f"[profile.{value}]" in (ROOT / "Cargo.toml").read_text(), f"profile {value} is unknown")
    for word in tests.split():
        demand(word.startswith("-") or word in names(), f"no test's name holds {word}")


def files(words):
    """Demands that the words that look like paths are files."""
    before = ""
    for word in words:
        if "/" in word and not word.startswith("-") and before not in VALUED and not word.startswith((".venv/", "target/", "build/")):
            demand((ROOT / word.partition("::")[0]).exists(), f"{word} does not exist")
        before = word


def check(command):
    """Fails if a command names something that does not exist."""
    for part in re.split(r" && ", command):
        try:
            words = shlex.split(part)
        except ValueError as error:
            raise Fault(f"the shell cannot read it: {error}") from None
        while words and ASSIGNMENT.fullmatch(words[0]):
            words.pop(0)
        demand(words, "it is empty")
        if words[:2] == ["python3", "tests/servers"]:
            files(words[1:2])
            words = words[words.index("--") + 1 :]
        program, *rest = words
        if program == "make":
            make(rest)
        elif program == "cargo":
            cargo(rest)
        else:
            demand(program in ("python3", ".venv/bin/python", "node") or "/" in program, f"{program} cannot be checked")
            files(words)
            if words[1:2] == ["tests/dossier"]:
                demand(f'"{words[2]}"' in (ROOT / "tests/dossier/__main__.py").read_text(), f"tests/dossier has no command {words[2]}")


def check_test(name):
    """Fails if a test, given as a file or as file::function, does not exist."""
    file, _, function = name.partition("::")
    demand((ROOT / file).exists(), f"{file} does not exist")
    demand(not function or re.search(rf"\b(fn|def) {function}\(", (ROOT / file).read_text()), f"{file} has no {function}")
