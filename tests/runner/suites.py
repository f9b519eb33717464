"""The table of builds and suites, and the plans that `make test`, `check`, `frameworks` and `soak` run."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .jobs import Job, Plan

Command = tuple[str, ...]
ROOT = Path(__file__).resolve().parents[2]
# The same features in every build of a binding, so that shared crates are compiled once: see Cargo.toml.
ALIGNED = "frazil-c/aligned,frazil-node/aligned,frazil-python/aligned"
# The guide's examples lease from `local`, which is a folder of the checkout here.
HOME = {"FRAZIL_HOME": str(ROOT / "build/local")}
CARGO: Command = ("cargo", "test", "--locked")
# All suites in Rust are compiled with these features, once.
RUST: Command = (*CARGO, "--workspace", "--features", f"frazil/stores,{ALIGNED}")
# Building a binding beside a crate gives it the features of the whole run, so that nothing is compiled again.
BINDING: Command = ("-p", "frazil-python", "--features", "frazil/stores,frazil-python/aligned")
CORE: Command = ("-p", "frazil-base", "-p", "frazil-store", "-p", "frazil")
# The crates without clients of servers, because the clients' dependencies do not support loom.
MODELLED: Command = ("-p", "frazil-base", "-p", "frazil")
CHECK: Command = (*CARGO, *CORE, "-p", "frazil-cli", *BINDING)
SOAK: Command = (*CARGO, "--release", "-p", "frazil")
SERVERS: Command = ("python3", "tests/servers", "all", "--")
POSTGRESQL: Command = ("python3", "tests/servers", "postgresql", "--")
PYTEST: Command = (".venv/bin/python", "-m", "pytest", "-q")
# Two processes, for tests that mostly wait for servers and for each other.
TWO: Command = ("--numprocesses", "2")
LOOM = {"RUSTFLAGS": "--cfg loom", "CARGO_TARGET_DIR": "target/loom"}
# The mutants' folder has the same dependencies, because the wrapper changes only the workspace's own crates.
LOCK_FILES = {
    "CARGO_TARGET_DIR": "target/mutants",
    "CARGO_PROFILE_DEV_DEBUG": "0",
    "CARGO_INCREMENTAL": "0",
    "RUSTC_WORKSPACE_WRAPPER": str(ROOT / "tests/runner/with-lock-files"),
}
PLATFORMS = os.environ.get("FRAZIL_PLATFORMS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "frazil/platforms"
)
EXAMPLES = "fastapi or test_harness"
LANGUAGES = "guide or test_other_languages"
CHECKED = (
    ("tests", "as a program sees it", "--test", "*"),
    ("units", "its unit tests", "--lib"),
    ("docs", "its documentation and README", "--doc"),
)
LONG_IN_PYTHON = ("copies", "embedding", "frameworks", "guard", "package", "waits")
RELEASE = "c-release python-release node-release"
LEAN = """
c-api/install.sh --release --lean --quiet build/lean
python3 scripts/sizes.py --lean build/lean/lib/libfrazil.so
"""
# The guard's own tests come last: they remove the files of earlier tests, because no process holds their numbers.
GUARD = """
cargo test -q --locked -p frazil --test guard "$@"
cargo test -q --locked -p frazil --lib "${1:-guard}"
"""
NODE = 'exec node --test --test-timeout=900000 "$@" tests/node/*.test.mjs'


def pytest(k: str) -> Command:
    return ("-k", k)


def cargo(k: str) -> Command:
    return ("--", k)


def argument(k: str) -> Command:
    return (k,)


def node(k: str) -> Command:
    return (f"--test-name-pattern={k}",)


@dataclass(frozen=True)
class Build:
    """A build that suites need."""

    name: str
    title: str
    command: Command


# Builds run one after the other, in this order. The suites of C and Python can start early. Rust's tests take
# the longest to compile, so they are last.
BUILDS = (
    Build("c", "the library for C", ("c-api/build.sh",)),
    Build("python", "the wheel for Python", ("python/build.sh",)),
    Build("node", "the addon for Node", ("node/build.sh",)),
    Build("server", "frazil-server", ("server/build.sh",)),
    Build("command", "the command line", ("cargo", "build", "--locked", "-p", "frazil-cli")),
    Build("rust", "all tests in Rust", (*RUST, "--quiet", "--no-run")),
    Build("check", "the tests of the core and the command line", (*CHECK, "--quiet", "--no-run")),
    Build("c-release", "the library for C, optimised", ("c-api/build.sh", "--release")),
    Build("python-release", "the wheel for Python, optimised", ("python/build.sh", "--release")),
    Build("node-release", "the addon for Node, optimised", ("node/build.sh", "--release")),
)


@dataclass(frozen=True)
class Suite:
    """A suite: how it runs, what it needs, and the plans to which it belongs."""

    name: str
    title: str
    command: Command
    needs: str = ""
    """Names of builds, divided by blanks."""
    plans: str = "test"
    """Names of plans, divided by blanks. A suite without a plan runs by its name alone."""
    whole: Command = ()
    """Arguments in addition if no pattern is given."""
    select: Callable[[str], Command] | None = None
    """Arguments in addition for a pattern; None if the suite takes no pattern."""
    env: Mapping[str, str] = field(default_factory=dict)
    nightly: bool = False
    """True if CI runs it at night, and not on each change."""

    def job(self, k: str = "") -> Job:
        more = self.select(k) if k and self.select else self.whole
        needs = tuple(f"Build: {build.title}" for build in BUILDS if build.name in self.needs.split())
        return Job(self.title, (*self.command, *more), needs, self.env, pattern=k)


def in_python(name: str, title: str, needs: str, *options: str, nightly: bool = False) -> Suite:
    """Returns the suite of a folder with pytest's tests."""
    return Suite(name, title, (*PYTEST, *options, f"tests/{name}"), needs=needs, select=pytest, nightly=nightly)


def in_rust(name: str, title: str, command: Command, needs: str, plans: str = "test", **env: str) -> Suite:
    """Returns a suite of libtest's tests without the simulation of leases, which `mutants` runs."""
    return Suite(name, title, command, needs, plans, whole=("--", "--skip", "simulation"), select=cargo, env=HOME | env)


def soak(name: str, title: str, command: Command, needs: str = "", **env: str) -> Suite:
    return Suite(f"soak-{name}", title, command, needs, plans="soak", env=env)


# The order in which suites start: the longest first, and suites that wait between suites that compute.
# A suite that needs no build still waits for one, because it would take processors from the builds.
SUITES = (
    Suite(
        "mutants",
        "Rust: the lease's simulation finds the bugs that are planted into it",
        ("tests/mutants/run.py",),
        needs="c",
        whole=("--short",),
        select=lambda k: ("--matching", k),
    ),
    in_python("faults", "Faults on every store: kills, pauses, cut connections, restarts", "c python node server", *TWO, "-rPfE"),
    Suite(
        "adapters-node",
        "Adapters in Node, with their frameworks",
        ("tests/adapters/node/run.sh",),
        needs="node",
        select=node,
    ),
    Suite(
        "agents",
        "Agents: MCP, FastMCP and LangChain in Python, MCP in TypeScript",
        ("tests/agents/run.sh",),
        needs="python node",
        select=pytest,
    ),
    Suite("c", "C and C++", ("tests/c/run.sh", "--built"), needs="c", select=argument),
    Suite(
        "adapters-python",
        "Adapters in Python, with the current frameworks",
        ("tests/adapters/python/run.sh", "--current"),
        needs="python",
        select=pytest,
    ),
    in_rust("rust", "Rust: the core, its documentation and README; the command line; the guards of the bindings", RUST, "rust"),
    in_python("restores", "Backups of every store, restored while processes mint", "python server", "--numprocesses", "4", nightly=True),
    in_python("leases", "Leases and segments on every store", "python server", *TWO),
    Suite("lean", "C: the size of the lean library of a release", ("sh", "-ec", LEAN), needs="rust"),
    Suite("instructions", "Rust: the instructions of the hot paths", ("tests/instructions/run.py",), needs="rust"),
    Suite(
        "loom",
        "Rust: the stamp, the gate and the lease under loom",
        (*CARGO, *MODELLED, "--lib"),
        needs="rust",
        whole=("loom",),
        select=argument,
        env=LOOM,
    ),
    Suite(
        "lock-files",
        "Rust: the guard of other Unix systems",
        ("sh", "-ec", GUARD, "sh"),
        needs="rust",
        select=argument,
        env=LOCK_FILES,
    ),
    in_python("python", "Python", "python", *TWO),
    Suite(
        "stores",
        "Rust: the client of every store, on private servers",
        (*SERVERS, *RUST, "-q", "--lib", "--test", "starts", "--test", "copies", "--", "--ignored"),
        needs="rust server",
        select=argument,
        env=HOME,
    ),
    Suite("node", "Node", ("sh", "-ec", NODE, "sh"), needs="node", select=node),
    in_python(
        "package",
        "What users install, in clean environments: the crate, the wheel, the npm packages, the C library; frazil/lite in a browser",
        "c python node server rust",
        "-rsfE",
    ),
    in_python("cross", "All languages at once", "c python node"),
    in_python("repo", "The README, the guide, and what must not drift", "c python node"),
    Suite(
        "windows",
        "Rust: the core on Windows, in the folder of make platforms",
        ("tests/platforms/run.sh", "quick"),
        needs="rust",
    ),
    Suite(
        "server",
        "frazil-server, driven by real clients",
        ("tests/server/run.sh",),
        needs="python server",
        whole=("--ignore", "tests/server/test_other_languages.py"),
        select=pytest,
    ),
    Suite("sql", "What `frazil sql` prints, on every database", ("tests/sql/run.sh",), needs="python", select=pytest),
    Suite(
        "examples",
        "An example, whose IDs go from the database to the browser",
        (*PYTEST, "tests/examples"),
        needs="python node",
        whole=("-k", EXAMPLES),
        select=lambda k: ("-k", f"({EXAMPLES}) and ({k})"),
    ),
    in_python("servers", "The tests' servers and the proxy that cuts connections", "python server"),
    # These suites are parts of others, and run only by name.
    in_rust("core", "Rust: the core, its documentation and README", (*CARGO, *CORE, *BINDING), "", ""),
    in_rust("cli", "Rust: the command line", (*CARGO, "-p", "frazil-cli", *BINDING), "", ""),
    # Separate suites, because cargo runs its programs one after the other, and many of their tests wait.
    *(
        in_rust(
            f"check-core-{name}",
            f"Rust: the core, {title}",
            (*CARGO, *CORE, *BINDING, *targets),
            "check",
            "check",
            RUST_TEST_THREADS="4",
        )
        for name, title, *targets in CHECKED
    ),
    # This leaves out the audits of a merge and the longest test, which take most of the suite's time.
    Suite(
        "check-cli",
        "Rust: the command line",
        (*CARGO, "-p", "frazil-cli", *BINDING),
        needs="check",
        plans="check",
        whole=("--", "--skip", "random_ids_of_the_presets", "--skip", "merge_audit::"),
        select=cargo,
        env=HOME | {"RUST_TEST_THREADS": "4"},
    ),
    # This leaves out tests that start interpreters, servers and type checkers, which take most of the time.
    Suite(
        "check-python",
        "Python, within one process",
        (*PYTEST, *TWO, *(f"--ignore=tests/python/test_{name}.py" for name in LONG_IN_PYTHON), "tests/python"),
        needs="python",
        plans="check",
        select=pytest,
    ),
    Suite(
        "adapters-python-oldest",
        "Adapters in Python, with the oldest frameworks",
        ("tests/adapters/python/run.sh", "--oldest"),
        needs="python",
        plans="frameworks",
        select=pytest,
    ),
    Suite(
        "server-clients",
        "Clients of frazil-server in every language of its guide; Java, PHP-FPM and Go, also over the C library",
        ("tests/server/run.sh",),
        needs="c python node server",
        plans="frameworks",
        whole=("-k", LANGUAGES),
        select=lambda k: ("-k", f"({LANGUAGES}) and ({k})"),
    ),
    Suite(
        "examples-all",
        "Examples: applications with four worker processes, one of which is killed; their IDs from the database to the browser",
        (*PYTEST, "tests/examples"),
        needs="c python node command",
        plans="frameworks",
        select=pytest,
    ),
    soak(
        "models",
        "Models and round trips",
        (*SOAK, "--test", "values", "--", "models", "roundtrip"),
        PROPTEST_CASES="200000",
        FRAZIL_CHECK_IDS="10000000",
    ),
    soak(
        "requests",
        "Broken requests to the server: a million of each kind",
        (*CARGO, "--release", "-p", "frazil-server", "any_"),
        PROPTEST_CASES="1000000",
    ),
    soak(
        "forks",
        "Forks at any moment, and four hundred processes that open at once",
        (*SOAK, "--test", "storm", "--test", "fresh", "--test", "worker"),
        FRAZIL_STORM_MS="60000",
        FRAZIL_CROWD="400",
    ),
    soak(
        "starts",
        "A thousand processes that start at once on each server",
        (*SERVERS, *SOAK, "--features", "stores", "--test", "starts", "--", "--ignored", "--nocapture"),
        "server",
        FRAZIL_CROWD="1000",
    ),
    soak(
        "copies",
        "A thousand copies of a running process",
        (*POSTGRESQL, *SOAK, "--features", "stores", "--test", "copies", "--", "--ignored", "--nocapture"),
        FRAZIL_COPIES="1000",
    ),
    soak("simulation", "The lease's protocol in its simulation", (*SOAK, "--lib", "simulation"), FRAZIL_SEEDS="200000"),
    soak("mutants", "Bugs that are planted into the lease's protocol", ("tests/mutants/run.py",)),
    soak("attacks", "Attacks by real processes find planted bugs", ("python3", "tests/dossier/planted.py")),
    soak("fleet", "A fleet of a hundred thousand processes on one store, in simulated time", ("bench/run.sh", "fleet", "simulation")),
    soak("loom", "loom", (*CARGO, "--release", *MODELLED, "--lib", "loom"), LOOM_MAX_PREEMPTIONS="5", **LOOM),
    soak("cross", "All languages at once", (*PYTEST, "tests/cross"), RELEASE, FRAZIL_CROSS_IDS="30000000", FRAZIL_CHECK_IDS="10000000"),
    soak(
        "show",
        "frazil-server: three replicas, a balancer and six clients, and everything around them breaks",
        ("tests/server/run.sh", "-rPfE", "-k", "the_show"),
        "python-release server",
        FRAZIL_SHOW_IDS="10000000",
    ),
    soak(
        "faults",
        "Faults on every store",
        (".venv/bin/python", "tests/faults"),
        f"{RELEASE} server",
        FRAZIL_FAULTS="200",
        FRAZIL_FAULT_IDS="10000000",
        FRAZIL_FAULT_WINDOW="60000",
        FRAZIL_FAULT_RENEW="10000",
    ),
    soak(
        "segments",
        "Faults on segments",
        (".venv/bin/python", "tests/faults", "segments"),
        f"{RELEASE} server",
        FRAZIL_FAULTS="100",
        FRAZIL_FAULT_IDS="30000000",
    ),
    soak(
        "memory",
        "frazil-server: its memory, over an hour of every protocol",
        ("bench/run.sh", "server", "memory", "3600"),
        "python-release server",
    ),
)


def missing(suite: Suite) -> str:
    """Returns why a suite cannot run on this machine, or nothing."""
    if suite.name == "windows" and (os.geteuid() != 0 or not Path(PLATFORMS, "sid/ready").exists()):
        return "Other systems are tested by make platforms, which has not run here as root"
    return ""


def of_plan(plan: str) -> list[Suite]:
    """Returns the suites of a plan; `ci` and `night` are the two parts of `test` in CI."""
    if plan in ("ci", "night"):
        return [suite for suite in of_plan("test") if suite.nightly == (plan == "night") and suite.name != "windows"]
    return [suite for suite in SUITES if plan in suite.plans.split()]


def builds(suites: Iterable[Suite], after: str = "") -> list[Job]:
    """Returns the builds that suites need, each after the one before it."""
    wanted = {name for suite in suites for name in suite.needs.split()}
    jobs: list[Job] = []
    for build in BUILDS:
        if build.name in wanted:
            before = jobs[-1].title if jobs else after
            jobs.append(Job(f"Build: {build.title}", build.command, (before,) if before else ()))
    return jobs


def whole(plan: str) -> Plan:
    """Returns the plan with all its suites."""
    suites = [suite for suite in of_plan(plan) if not missing(suite)]
    notes = tuple(filter(None, map(missing, of_plan(plan))))
    purpose = "test" if plan == "soak" else plan
    setup = Job("Tools and disk space" if plan == "check" else "Tools, servers, ports and disk space", ("scripts/setup.sh", f"--{purpose}"))
    jobs = (setup, *builds(suites, setup.title), *(suite.job() for suite in suites))
    if plan in ("frameworks", "soak"):
        return Plan(jobs, live=True, notes=notes, limit_s=None)
    return Plan(jobs, notes=notes, memory=plan == "test")


def single(suite: Suite, k: str) -> Plan:
    """Returns the plan of one suite, or of its tests whose names contain a pattern."""
    limit = {"limit_s": None} if suite.plans == "soak" else {}
    return Plan((*builds([suite]), suite.job(k)), live=True, memory=True, **limit)
