"""The promises of the scripts: steps with their times, one run at a time, an end that leaves nothing, and what is missing named first."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from servers import process

TIMEOUT_S = 60


@pytest.fixture
def start(tmp_path):
    """A function that starts a script in a checkout of its own, whose temporary folder is `tmp_path/tmp`."""
    checkout = tmp_path / "a checkout"
    (checkout / "scripts").mkdir(parents=True)
    (tmp_path / "tmp").mkdir()
    for name in ("begin.sh", "rust.sh"):
        shutil.copy(ROOT / "scripts" / name, checkout / "scripts")

    def start(body, **more):
        # A shell reads its script as it goes on.
        path = checkout / f"scripts/{len(list(checkout.glob('scripts/*')))}.sh"
        path.write_text(f'set -euo pipefail\n. "$(dirname "$0")/begin.sh"\n{body}')
        environment = os.environ | {"TMPDIR": str(tmp_path / "tmp")}
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True} | more
        # As from a terminal: what a shell starts in the background ignores SIGINT and SIGQUIT, and what nohup starts SIGHUP, as they should.
        inherited = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)}
        try:
            return subprocess.Popen(["bash", path], env=environment, start_new_session=True, **streams)
        finally:
            for number, handler in inherited.items():
                signal.signal(number, handler)

    return start


def test_steps_and_their_times(start, tmp_path):
    told, _ = start("step one\nrun true\nstep two\nrun sh -c 'echo \"$TMPDIR\"'").communicate(timeout=TIMEOUT_S)
    assert told.startswith(f"\n== one\n\n== two\n{tmp_path}/tmp/frazil-")
    assert [line.split("s  ")[1] for line in told.partition("\n== Times\n")[2].splitlines()] == ["one", "two", "in all"]
    assert not list((tmp_path / "tmp").iterdir())


def test_a_step_that_fails_is_named_and_the_last(start, tmp_path):
    program = start("step good\nrun true\nstep bad\nrun sh -c 'touch \"$TMPDIR\"/left; exit 7'\nstep never\nrun touch never")
    told, _ = program.communicate(timeout=TIMEOUT_S)
    assert program.returncode == 7
    [left] = (tmp_path / "tmp").iterdir()
    assert told.endswith(f"Failed: bad. What the tests have left is in {left}\n") and "never" not in told


@pytest.mark.parametrize("status", [0, 7])
def test_servers_write_into_memory_which_is_given_back(status, start, tmp_path):
    """Servers write into memory where there is plenty; their files are kept with the rest after a failure."""
    script = 'echo "$FRAZIL_TEST_SERVERS"; touch "${FRAZIL_TEST_SERVERS:-$TMPDIR}/left"'
    told, _ = start(f"servers_in_memory\nstep servers\nrun sh -c '{script}'\nexit {status}").communicate(timeout=TIMEOUT_S)
    memory = told.partition("== servers\n")[2].splitlines()[0]
    assert not memory or (memory.startswith("/dev/shm/frazil-") and not Path(memory).exists())
    assert len(list((tmp_path / "tmp").rglob("left"))) == (status != 0)


def test_a_step_beside_others_is_told_of_at_the_end(start, tmp_path):
    body = """
        beside "slow" sh -c 'until [ -e "$TMPDIR"/go ]; do sleep 0.05; done; echo slow has ended'
        step quick
        run sh -c 'echo quick has ended; touch "$TMPDIR"/go'
        join
        step last
        run echo last has ended
    """
    told, _ = start(body).communicate(timeout=TIMEOUT_S)
    steps, _, times = told.partition("\n== Times\n")
    begins = "\n== slow: begins beside others\n"
    assert steps == begins + "\n== quick\nquick has ended\n\n== slow\nslow has ended\n\n== last\nlast has ended\n"
    named = [line.split("s  ")[1] for line in times.splitlines()]
    assert named == ["quick", "slow, beside others: 0 s of a processor", "last", "in all"]
    assert not list((tmp_path / "tmp").iterdir())


def test_a_step_beside_others_begins_once_there_is_a_place_for_it(start):
    body = """
        places=2
        beside long sh -c 'until [ -e "$TMPDIR"/go ]; do sleep 0.05; done'
        beside short true
        beside next sh -c 'touch "$TMPDIR"/go'
        join
    """
    told, _ = start(body).communicate(timeout=TIMEOUT_S)
    steps = [line.removeprefix("== ").removesuffix(" beside others") for line in told.partition("\n== Times\n")[0].splitlines() if line]
    assert steps[:4] == ["long: begins", "short: begins", "short", "next: begins"] and set(steps[4:]) == {"long", "next"}


def test_a_step_beside_others_that_fails_is_named_and_the_last(start, tmp_path):
    program = start("beside bad sh -c 'printf why; exit 7'\nstep good\nrun true\njoin\nstep never\nrun touch never")
    told, _ = program.communicate(timeout=TIMEOUT_S)
    assert program.returncode == 7
    # The end of a long log has the reason, on lines of its own.
    assert " in all\n\n== bad\nwhy\nFailed: bad. " in told and told.count("why") == 1 and "never" not in told
    assert told.index("== bad: failed") < told.index("== Times")


def test_a_step_beside_others_that_fails_ends_those_that_go_on(start):
    body = "beside long sleep 600\nbeside bad sh -c 'exit 7'\nplaces=2\nbeside never touch never\njoin"
    program = start(body)
    told, _ = program.communicate(timeout=TIMEOUT_S)
    assert program.returncode == 7
    assert "\nFailed: bad" in told and "never" not in told


@pytest.mark.parametrize("listens", [True, False])
def test_a_step_beside_others_that_hangs_is_interrupted_and_says_where(listens, start):
    trap = "trap 'echo it was here; exit 3' TERM" if listens else "trap '' TERM"
    body = f"""
        limit_s=2 farewell_s=2
        beside "hangs" sh -c "{trap}; while true; do sleep 0.05; done"
        beside "other" true
        join
    """
    program = start(body)
    told, _ = program.communicate(timeout=TIMEOUT_S)
    assert program.returncode == (3 if listens else 137)
    assert "\nNot ended after " in told and ("it was here" in told) == listens
    assert "Failed: hangs." in told


# On a busy machine, a command may print its first line before the shell that has started it takes its next step.
SLOW_TO_GO_ON = "set -T; trap 'sleep 0.05' DEBUG\n"


@pytest.mark.parametrize("before", ["", SLOW_TO_GO_ON])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_interrupted_run_leaves_nothing(number, before, start, tmp_path):
    work = "sh -c 'sleep 600 & touch \"$TMPDIR\"/it; echo begun; wait; echo went on'"
    program = start(f"{before}beside more sleep 600\nstep work\nrun {work}")
    try:
        assert [program.stdout.readline() for _ in range(5)][2:] == ["\n", "== work\n", "begun\n"]
        members = process.family(program.pid)
        assert len(members) >= 4
        os.kill(program.pid, number)
        assert program.wait(TIMEOUT_S) == 128 + number
        assert process.await_true(lambda: all(map(process.gone, members)), TIMEOUT_S)
        assert not list((tmp_path / "tmp").iterdir())
        assert "went on" not in program.stdout.read()
    finally:
        program.stdout.close()
        process.send([program.pid], signal.SIGKILL)


@pytest.mark.parametrize("key, status", [(b"\x03", 130), (b"\x1c", 131), (None, 129)], ids=["interrupt", "quit", "hangup"])
@pytest.mark.parametrize("last", ["run sh -c 'echo begun; sleep 600'", "echo begun\njoin"], ids=["run", "join"])
def test_a_terminal_ends_a_run(last, key, status, start, tmp_path):
    """By a key, whatever the run does at that moment; or by going away, when nobody can be told of the times."""
    ours, theirs = os.openpty()
    with open(ours, "rb+", buffering=0) as terminal:
        of_its_own = {"preexec_fn": lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)}
        program = start(f"step it\nend_step\nbeside more sleep 600\n{last}", stdin=theirs, stdout=theirs, stderr=theirs, **of_its_own)
        os.close(theirs)
        told = b""
        while b"begun" not in told:
            told += terminal.read(4096)
        members = process.family(program.pid)
        if key:
            terminal.write(key)
            assert program.wait(TIMEOUT_S) == status
    assert program.wait(TIMEOUT_S) == status
    assert process.await_true(lambda: all(map(process.gone, members)), TIMEOUT_S)
    assert not list((tmp_path / "tmp").iterdir())


def test_a_reader_that_goes_ends_a_run(start, tmp_path):
    """A reader that ends early, as `head` does."""
    os.mkfifo(tmp_path / "go")
    # For reading as well: it waits for no reader.
    with open(tmp_path / "go", "wb+", buffering=0) as go:
        program = start("step it\nbeside more sleep 600\necho begun\nrun sh -c 'read -r _ < ../go; echo on'\nrun sleep 600")
        while program.stdout.readline() != "begun\n":
            pass
        members = process.family(program.pid)
        program.stdout.close()
        go.write(b"on\n")
        assert program.wait(TIMEOUT_S) == 141
    assert process.await_true(lambda: all(map(process.gone, members)), TIMEOUT_S)
    assert not list((tmp_path / "tmp").iterdir())


def test_a_step_that_has_ended_leaves_no_process(start):
    leave = "sh -c 'sleep 600 & echo pid $!'"
    told, _ = start(f"run {leave}\nbeside other {leave}\njoin\necho joined; run sleep 0.1").communicate(timeout=TIMEOUT_S)
    left = [int(line.split()[1]) for line in told.splitlines() if line.startswith("pid ")]
    assert len(left) == 2 and all(map(process.gone, left))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_run_that_is_interrupted_while_it_waits_leaves_nothing(number, start):
    """A signal that the script gets alone, as from make."""
    first = start("echo begun\nrun sleep 600")
    assert first.stdout.readline() == "begun\n"
    second = start("echo begun too")
    try:
        assert second.stdout.readline().startswith("Another run is going on")
        assert process.await_true(lambda: len(process.family(second.pid)) == 2, TIMEOUT_S)
        members = process.family(second.pid)
        os.kill(second.pid, number)
        assert second.wait(TIMEOUT_S) == 128 + number
        assert process.await_true(lambda: all(map(process.gone, members)), TIMEOUT_S)
        assert "begun" not in second.stdout.read()
        assert first.poll() is None
    finally:
        first.terminate()
        first.communicate(timeout=TIMEOUT_S)
        second.kill()
        second.communicate(timeout=TIMEOUT_S)


def test_a_second_run_says_that_it_waits(start, tmp_path):
    go = tmp_path / "go"
    first = start(f"echo begun\nrun sh -c 'until [ -e \"$0\" ]; do sleep 0.05; done' '{go}'\necho ended")
    assert first.stdout.readline() == "begun\n"
    second = start("echo begun too")
    try:
        assert second.stdout.readline() == f"Another run is going on in {tmp_path}/a checkout: waiting for its end\n"
        # It would go on at once.
        time.sleep(0.3)
        assert second.poll() is None
        go.touch()
        assert first.communicate(timeout=TIMEOUT_S)[0] == "ended\n"
        assert second.communicate(timeout=TIMEOUT_S)[0] == "begun too\n"
    finally:
        process.send([first.pid, second.pid], signal.SIGKILL)


@pytest.mark.parametrize(
    "purpose, needed",
    [
        ("--check", {"gcc", "make", "python3-venv"}),
        ("--demo", {"nodejs", "npm", "g++"}),
        ("--test", {"valgrind", "etcd-server", "git", "openssl"}),
    ],
)
def test_everything_that_is_missing_is_named_at_once(purpose, needed, tmp_path):
    """A user other than root, on a machine with next to nothing."""
    for name in ("bash", "dirname", "grep", "find", "awk", "env"):
        (tmp_path / name).symlink_to(shutil.which(name))
    fakes = {"id": "echo 1000", "df": "printf 'h\\nfs 1 1 1048576 1 /\\n'", "python3": "exit 1", "cargo": "echo cargo 1.63.0"}
    for name, says in fakes.items():
        (tmp_path / name).write_text(f"#!{shutil.which('bash')}\n{says}\n")
        (tmp_path / name).chmod(0o755)
    command = [shutil.which("bash"), ROOT / "scripts/setup.sh", purpose]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert done.returncode == 1 and not done.stdout
    lines = done.stderr.splitlines()
    assert lines[0].startswith("frazil needs these packages: ") and needed <= set(lines[0].partition(";")[0].split())
    assert "; root installs them with: apt-get install " in lines[0]
    assert any(f"Rust 1.94 or later: see rustup.rs; {tmp_path}/cargo is 1.63.0" in line for line in lines)
    assert any("Python 3.11" in line for line in lines)
    assert any("GB of free disk space, and in" in line and line.endswith("there are 1") for line in lines)
    assert (purpose == "--test") == any("Python 3.12 or 3.13 as well" in line for line in lines)
    assert (purpose != "--demo") == any("free disk space for temporary files, and in /tmp there are 1" in line for line in lines)
    assert (purpose == "--test") == any("free ports on the loopback interface" in line for line in lines)


def cargo_of(folder, version):
    """A folder with a cargo that says its version, and what else it was asked for."""
    folder.mkdir()
    path = folder / "cargo"
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "cargo {version} (0123456789 2026-01-01)" || echo "$0 $1" >&2\n')
    path.chmod(0o755)
    return folder


BUILDS = ["c-api/install.sh prefix", "node/build.sh --demo", "python/build.sh --demo", "server/build.sh", "cmake -S . -B build/cmake"]


@pytest.mark.parametrize("build", BUILDS)
def test_an_old_cargo_is_named_and_passed_over(build, tmp_path):
    """Debian's cargo does not read our Cargo.toml, and says so in words of TOML."""
    tree = tmp_path / "a checkout"
    tracked = ("Cargo.toml", "CMakeLists.txt", "scripts/rust.sh", "c-api/install.sh", "node/build.sh", "python/build.sh", "server/build.sh")
    for name in (*tracked, "c-api/lay_out.sh"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    (tree / ".venv/bin").mkdir(parents=True)
    (tree / ".venv/made").touch()
    (tree / ".venv/bin/maturin").write_text("#!/bin/sh\ncargo maturin\n")
    (tree / ".venv/bin/maturin").chmod(0o755)
    old, new = cargo_of(tmp_path / "old", "1.63.0"), cargo_of(tmp_path / "new cargo", "1.99.1")
    # A folder of the path that is not there is nobody's.
    path = f"{tmp_path}/none:{old}:/usr/bin:/bin"

    def run(**environment):
        environment = {"PATH": path, "HOME": str(tmp_path), **environment}
        return subprocess.run(build.split(), cwd=tree, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)

    refused = run()
    # CMake wraps lines.
    told = " ".join(refused.stderr.split())
    assert refused.returncode != 0 and f"frazil needs Rust 1.94 or later: see rustup.rs; {old}/cargo is 1.63.0" in told
    (tmp_path / "rustup").mkdir()
    (tmp_path / "rustup/bin").symlink_to(new)
    for folder, environment in ((new, {"PATH": f"{path}:{new}"}), (tmp_path / "rustup/bin", {"CARGO_HOME": str(tmp_path / "rustup")})):
        done = run(**environment)
        if "cmake" in build:
            assert done.returncode == 0 and f"frazil is built by {folder}/cargo" in done.stdout, done.stderr
            shutil.rmtree(tree / "build/cmake")
        else:
            assert f"Building with {folder}/cargo, because {old}/cargo is 1.63.0" in done.stderr
            assert f"{folder}/cargo " in done.stderr.partition("\n")[2], done.stderr
