"""The other commands of make that need the checkout for themselves: the demos, an example, the benchmarks, the packages."""

import os
from pathlib import Path

from .jobs import Job, Plan
from .suites import PYTEST

BENCHMARKS = {
    "rust": "Rust",
    "c": "C and C++",
    "python": "Python",
    "node": "Node",
    "columns": "Columns of IDs, beside numpy, pandas, polars and DuckDB",
    "orm": "A row in a database, by its key",
    "server": "frazil-server, beside redis-server and hyper alone",
}
GAME = """
[ build/game -nt demo/game.cpp ] && [ build/game -nt include/frazil.hpp ] ||
    exec c++ -std=c++17 -O2 -Ibuild/c/include demo/game.cpp -Lbuild/c/lib -lfrazil -Wl,-rpath,"$PWD/build/c/lib" -o build/game
"""
INSTALLS = """
echo "npm install $(echo "$PWD"/build/package/node/*.tgz)"
echo "pip install $(echo "$PWD"/build/package/python/*.whl)"
echo "tar -xzf $(ls "$PWD"/build/package/c/*.tar.gz | grep -v lean)"
"""
FOUND = """
[ "$(id -u)" = 0 ] || { echo "make rehearse needs root, because it makes separate systems" >&2; exit 1; }
ls build/package/*/*.whl build/package/*/*.tgz build/package/*/*.tar.gz || { echo "make package comes first" >&2; exit 1; }
"""


def shell(title: str, script: str) -> Job:
    return Job(title, ("sh", "-ec", script))


def steps(*jobs: Job) -> Plan:
    """Returns a plan whose jobs run one after the other, without a time limit."""
    return Plan(jobs, live=True, limit_s=None)


def setup(purpose: str, what: str = "Tools and disk space") -> Job:
    return Job(what, ("scripts/setup.sh", f"--{purpose}"))


def demo() -> Plan:
    return steps(
        setup("demo"),
        Job("Building the core and the addon for Node, which takes two minutes the first time", ("node/build.sh", "--lean")),
        Job("Building the wheel for Python", ("python/build.sh", "--lean")),
        Job("Building the library for C and C++", ("c-api/build.sh", "--demo", "--lean")),
        shell("Building the game in C++", GAME),
        Job("The programs", (".venv/bin/python", "demo/run.py")),
    )


def demo_server() -> Plan:
    program = Path(os.environ.get("CARGO_TARGET_DIR", "target"), "demo/frazil-server")
    build = ("cargo", "build", "--quiet", "--locked", "--profile", "demo", "-p", "frazil-server")
    return steps(
        setup("demo-server"),
        Job("Building frazil-server, which takes two minutes the first time", build),
        Job("What the clients need", ("scripts/venv.sh", "build/demo-server", "demo/requirements.txt")),
        Job("frazil-server", ("build/demo-server/bin/python", "demo/server.py"), env={"FRAZIL_TEST_PROGRAM": str(program)}),
    )


def example(name: str) -> Plan:
    folder = Path("examples", name)
    build = [setup("example")]
    if (folder / "requirements.txt").exists():
        build.append(Job("Building the wheel, which takes two minutes the first time", ("python/build.sh", "--demo")))
    if (folder / "package.json").exists():
        build.append(Job("Building the addon, which takes two minutes the first time", ("node/build.sh",)))
    if not (folder / "play.sh").exists():
        # The application may run for long, and does not change files that other runs need.
        return steps(*build, Job("The application", ("python3", "tests/examples", name), holds_lock=False))
    env = {"PKG_CONFIG_PATH": os.path.abspath("build/c/lib/pkgconfig"), "FRAZIL": os.path.abspath("target/debug/frazil")}
    return steps(
        *build,
        Job("Building the library, which takes two minutes the first time", ("c-api/build.sh",)),
        Job("Building the command line", ("cargo", "build", "--locked", "-p", "frazil-cli")),
        Job("Two servers, and their merge", (str(folder / "play.sh"),), env=env),
    )


def bench(quick: bool) -> Plan:
    """Returns the benchmarks. The quick ones are built as for the demo, have fewer rounds, and no service levels."""
    folder = Path("build/bench").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    env = {"FRAZIL_BENCH_QUICK": "1"} if quick else {}
    jobs = [
        Job(title, ("bench/run.sh", name), env=env | {"FRAZIL_BENCH_JSON": str(folder / f"{name}.json")})
        for name, title in BENCHMARKS.items()
    ]
    plots = ("python3", "bench/plot.py", "build/bench", "build/bench")
    return steps(setup("bench"), *jobs, Job("Plots", plots))


def trial() -> Plan:
    """Returns the trials of frazil and other libraries. They replace the records in trial/results.jsonl, and docs/trial.md."""
    return steps(
        setup("bench"),
        Job("Building the wheel for Python", ("python/build.sh", "--lean")),
        Job("Building the addon for Node", ("node/build.sh", "--lean")),
        Job("The trials, which take half an hour", ("trial/run.sh",)),
    )


def package() -> Plan:
    """Returns the build of this machine's release artefacts, and their tests in clean environments."""
    tests = Job("Installed and run in clean environments", (*PYTEST, "-rsfE", "tests/package"), env={"FRAZIL_PACKAGES": "build/package"})
    sizes = "Sizes, against 7.5 MB with the command line, 6 MB for the C library and 1.33 MB for the lean one"
    return steps(
        setup("package", "Tools, servers, ports and disk space"),
        *(Job(f"Release artefacts: {name}", (f"{name}/package.sh",)) for name in ("c-api", "python", "node")),
        shell("Commands that install what was built", INSTALLS),
        Job(sizes, ("python3", "scripts/sizes.py", "build/package")),
        Job("Build: the tests' own tools", ("python/build.sh",)),
        tests,
    )


def rehearse() -> Plan:
    """Returns the installation of what `package` has made, on machines that have nothing else."""
    folder = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "frazil/rehearsal")
    env = {"FRAZIL_PACKAGES": "build/package", "FRAZIL_REHEARSAL": folder}
    return steps(
        setup("package", "Tools, servers, ports and disk space"),
        shell("The packages of make package", FOUND),
        Job("Build: the tests' own tools", ("python/build.sh",)),
        Job("Installed on empty machines", (*PYTEST, "-rsfE", "tests/package/test_rehearsal.py"), env=env),
    )
