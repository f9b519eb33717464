"""The promises of tests/run.py: the order of jobs, one run at a time, and a clean end."""

import fcntl
import json
import os
import re
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
from runner import plans, schedule, suites
from runner.jobs import Job, Plan
from servers import process

TIMEOUT_S = 60
# The command of a job that waits for a file.
WAIT = 'until [ -e "$TMPDIR"/go ]; do sleep 0.05; done'
GO = 'touch "$TMPDIR"/go'
DRIVER = """
import sys
sys.path.insert(0, {tests!r})
from runner import processes
from runner.jobs import Job, Plan
from runner.session import Session

def sh(title, script, *needs, **more):
    return Job(title, ("sh", "-c", script), needs, **more)

{before}
sys.exit(Session(Plan(({jobs}), **dict({options}))).run())
"""
# On a busy machine, a command may print its first line before the runner takes its next step.
SLOW = """
import os, time
spawn = os.posix_spawnp
def slow(*words, **more):
    pid = spawn(*words, **more)
    time.sleep(0.3)
    return pid
processes.os.posix_spawnp = slow
"""


@pytest.fixture
def start(tmp_path):
    """Returns a function that starts a plan in its own checkout, with the temporary folder `tmp_path/tmp`."""
    checkout = tmp_path / "a checkout"
    shutil.copytree(ROOT / "tests/runner", checkout / "tests/runner")
    (checkout / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/rust.sh", checkout / "scripts")
    (tmp_path / "tmp").mkdir()

    def start(jobs, options="", before="", **more):
        script = DRIVER.format(tests=str(checkout / "tests"), jobs=f"{jobs},", options=options, before=before)
        environment = os.environ | {"TMPDIR": str(tmp_path / "tmp")}
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True} | more
        # As from a terminal, no signal is ignored. In the background, a shell makes a program ignore SIGINT and SIGQUIT, and nohup SIGHUP.
        inherited = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)}
        try:
            return subprocess.Popen([sys.executable, "-c", script], env=environment, start_new_session=True, **streams)
        finally:
            for number, handler in inherited.items():
                signal.signal(number, handler)

    return start


def titles(output):
    """Returns the headings of an output without its times."""
    return re.findall(r"^== (.*)$", output.partition("\n== Times\n")[0], re.MULTILINE)


def left(tmp_path):
    return list((tmp_path / "tmp").iterdir())


def test_live_jobs_run_one_after_the_other(start, tmp_path):
    jobs = """sh("one", "echo first"), sh("two", 'echo "$TMPDIR"')"""
    output, _ = start(jobs, "live=True").communicate(timeout=TIMEOUT_S)
    assert output.startswith(f"\n== one\nfirst\n\n== two\n{tmp_path}/tmp/frazil-")
    named = [line.split("s  ")[1] for line in output.partition("\n== Times\n")[2].splitlines()]
    assert named == ["one, 0 s of a processor", "two, 0 s of a processor", "in all"]
    assert not left(tmp_path)


def test_a_live_job_that_fails_is_named_last(start, tmp_path):
    jobs = """sh("good", "true"), sh("bad", 'touch "$TMPDIR"/left; exit 7'), sh("never", "touch never")"""
    program = start(jobs, "live=True")
    output, _ = program.communicate(timeout=TIMEOUT_S)
    assert program.returncode == 7
    [folder] = left(tmp_path)
    assert output.endswith(f"Failed: bad. The tests' files are in {folder}\n") and "never" not in output


def test_an_unknown_command_fails(start):
    program = start("""Job("bad", ("/no/such/command",))""")
    output, _ = program.communicate(timeout=TIMEOUT_S)
    assert program.returncode == 127 and "/no/such/command: No such file" in output and "Failed: bad" in output


@pytest.mark.parametrize("status", [0, 7])
def test_servers_write_into_memory_which_is_freed(status, start, tmp_path):
    """Servers write into memory if there is enough. After a failure, their files are kept with the others."""
    script = f'echo "${{FRAZIL_TEST_SERVERS:-}}"; touch "${{FRAZIL_TEST_SERVERS:-$TMPDIR}}/left"; exit {status}'
    output, _ = start(f"sh('servers', {script!r})", "memory=True, live=True").communicate(timeout=TIMEOUT_S)
    memory = output.partition("== servers\n")[2].splitlines()[0]
    assert not memory or (memory.startswith("/dev/shm/frazil-") and not Path(memory).exists())
    assert len(list((tmp_path / "tmp").rglob("left"))) == (status != 0)


def test_the_output_of_a_job_is_printed_when_it_ends(start, tmp_path):
    jobs = f"""sh("slow", '{WAIT}; sleep 0.5; echo slow has ended'), sh("quick", 'echo quick has ended; {GO}'),
        sh("last", "echo last has ended", "slow", "quick")"""
    output, _ = start(jobs).communicate(timeout=TIMEOUT_S)
    begin, _, rest = output.partition("\n== quick\n")
    assert titles(begin) == ["slow: begins", "quick: begins"]
    last = "\n== last: begins\n\n== last\nlast has ended\n"
    assert rest.partition("\n== Times\n")[0] == "quick has ended\n\n== slow\nslow has ended\n" + last
    assert not left(tmp_path)


def test_a_job_starts_once_what_it_needs_has_ended(start):
    """A suite starts after its build, while the next build runs."""
    jobs = f"""sh("build 1", "true"), sh("build 2", '{WAIT}', "build 1"), sh("suite 2", "true", "build 2"),
        sh("suite 1", '{GO}', "build 1"), sh("suite 3", "true", "no job of this plan")"""
    output, _ = start(jobs).communicate(timeout=TIMEOUT_S)
    order = titles(output)
    assert order[:2] == ["build 1: begins", "suite 3: begins"]
    assert order.index("build 1") < order.index("suite 1: begins") < order.index("build 2")
    assert order.index("build 2") < order.index("suite 2: begins")


def test_a_job_starts_once_a_place_is_free(start):
    jobs = f"""sh("long", '{WAIT}'), sh("short", "true"), sh("next", '{GO}')"""
    output, _ = start(jobs, "places=2").communicate(timeout=TIMEOUT_S)
    order = titles(output)
    assert order[:4] == ["long: begins", "short: begins", "short", "next: begins"] and set(order[4:]) == {"long", "next"}


def test_a_failure_ends_the_run_and_is_printed_last(start):
    jobs = """sh("long", "sleep 600"), sh("bad", "printf why; exit 7"), sh("never", "touch never")"""
    began = time.monotonic()
    program = start(jobs, "places=2")
    output, _ = program.communicate(timeout=TIMEOUT_S)
    assert program.returncode == 7 and time.monotonic() - began < 30
    # The reason is at the end of a long log, on its own lines.
    assert " in all\n\n== bad\nwhy\nFailed: bad. " in output and output.count("why") == 1 and "never" not in output
    assert output.index("== bad: failed") < output.index("== Times")


def test_a_long_output_is_cut(start):
    script = "head -c 12000000 /dev/zero | tr '\\\\0' x; echo; echo the end"
    output, _ = start(f'sh("long", "{script}")').communicate(timeout=TIMEOUT_S)
    assert "The last 10 of 12 MB:\n" in output and "the end\n" in output and 10_000_000 <= len(output) < 10_001_000


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("listens", [True, False])
def test_a_job_that_hangs_is_interrupted_and_says_where(listens, live, start):
    trap = "trap 'echo it was here; exit 3' TERM" if listens else "trap '' TERM"
    jobs = f"""sh("hangs", "{trap}; while true; do sleep 0.05; done"), sh("other", "true")"""
    program = start(jobs, f"limit_s=2, farewell_s=2, live={live}")
    output, _ = program.communicate(timeout=TIMEOUT_S)
    assert program.returncode == (3 if listens else 137)
    assert "\nNot ended after " in output and ("it was here" in output) == listens
    assert live or "Failed: hangs." in output


@pytest.mark.parametrize("before", ["", SLOW])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_interrupted_run_leaves_nothing(number, before, start, tmp_path):
    work = f"sleep 600 & touch {tmp_path}/begun; wait; touch {tmp_path}/continued"
    program = start(f"""sh("more", "sleep 600; true"), sh("work", "{work}")""", before=before)
    try:
        assert process.await_true((tmp_path / "begun").exists, TIMEOUT_S)
        members = process.family(program.pid)
        assert len(members) >= 4
        os.kill(program.pid, number)
        assert program.wait(TIMEOUT_S) == 128 + number
        assert process.await_true(lambda: all(map(process.gone, members)), TIMEOUT_S)
        assert not left(tmp_path) and not (tmp_path / "continued").exists()
    finally:
        program.stdout.close()
        process.send([program.pid], signal.SIGKILL)


def test_a_command_that_ignores_the_signal_is_killed(start, tmp_path):
    jobs = f"""sh("work", "trap '' TERM; touch {tmp_path}/begun; while true; do sleep 0.05; done")"""
    program = start(jobs, before="import runner.session; runner.session.PATIENCE_S = 1")
    assert process.await_true((tmp_path / "begun").exists, TIMEOUT_S)
    members = process.family(program.pid)
    program.terminate()
    program.communicate(timeout=TIMEOUT_S)
    assert program.returncode == 143 and process.await_true(lambda: all(map(process.gone, members)), TIMEOUT_S)


@pytest.mark.parametrize("key, status", [(b"\x03", 130), (b"\x1c", 131), (None, 129)], ids=["interrupt", "quit", "hangup"])
@pytest.mark.parametrize("live", [True, False])
def test_a_terminal_ends_a_run(live, key, status, start, tmp_path):
    """A run ends by a key, or when the terminal has gone, so that nothing can be printed."""
    ours, theirs = os.openpty()
    with open(ours, "rb+", buffering=0) as terminal:
        controls = {"preexec_fn": lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)}
        jobs = f"""sh("it", "sleep 600 & touch {tmp_path}/begun; wait")"""
        program = start(jobs, f"live={live}", stdin=theirs, stdout=theirs, stderr=theirs, **controls)
        os.close(theirs)
        assert process.await_true((tmp_path / "begun").exists, TIMEOUT_S)
        members = process.family(program.pid)
        assert len(members) >= 3
        if key:
            terminal.write(key)
            assert program.wait(TIMEOUT_S) == status
    assert program.wait(TIMEOUT_S) == status
    assert process.await_true(lambda: all(map(process.gone, members)), TIMEOUT_S)
    assert not left(tmp_path)


def test_a_reader_that_ends_early_ends_a_run(start, tmp_path):
    """A reader such as `head`."""
    jobs = f"""sh("more", "sleep 600; true"), sh("it", "touch {tmp_path}/begun; {WAIT.replace('"$TMPDIR"', str(tmp_path))}"),
        sh("next", "sleep 600; true", "it")"""
    program = start(jobs)
    assert process.await_true((tmp_path / "begun").exists, TIMEOUT_S)
    members = process.family(program.pid)
    program.stdout.close()
    (tmp_path / "go").touch()
    assert program.wait(TIMEOUT_S) == 141
    assert process.await_true(lambda: all(map(process.gone, members)), TIMEOUT_S)
    assert not left(tmp_path)


def test_a_job_that_has_ended_leaves_no_process(start):
    leave = "sleep 600 & echo pid $!"
    jobs = f"""sh("one", "{leave}"), sh("other", "{leave}"), sh("last", "sleep 0.1", "one", "other")"""
    output, _ = start(jobs).communicate(timeout=TIMEOUT_S)
    pids = [int(line.split()[1]) for line in output.splitlines() if line.startswith("pid ")]
    assert len(pids) == 2 and all(map(process.gone, pids))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_run_that_is_interrupted_while_it_waits_leaves_nothing(number, start, tmp_path):
    first = start(f"""sh("first", "touch {tmp_path}/begun; sleep 600; true")""")
    assert process.await_true((tmp_path / "begun").exists, TIMEOUT_S)
    second = start("""sh("second", "true")""")
    try:
        assert second.stdout.readline().startswith("Waiting for the end of another run")
        os.kill(second.pid, number)
        assert second.wait(TIMEOUT_S) == 128 + number
        assert "second" not in second.stdout.read()
        assert first.poll() is None
    finally:
        first.terminate()
        first.communicate(timeout=TIMEOUT_S)
        second.kill()
        second.communicate(timeout=TIMEOUT_S)


def test_a_second_run_waits_for_the_first(start, tmp_path):
    first = start(f"""sh("first", "touch {tmp_path}/begun; {WAIT.replace('"$TMPDIR"', str(tmp_path))}")""")
    assert process.await_true((tmp_path / "begun").exists, TIMEOUT_S)
    second = start("""sh("second", "echo it runs")""")
    try:
        assert second.stdout.readline() == f"Waiting for the end of another run in {tmp_path}/a checkout\n"
        # Without the lock, the second run would continue at once.
        time.sleep(0.3)
        assert second.poll() is None
        (tmp_path / "go").touch()
        first.communicate(timeout=TIMEOUT_S)
        assert "it runs\n" in second.communicate(timeout=TIMEOUT_S)[0]
    finally:
        process.send([first.pid, second.pid], signal.SIGKILL)


def test_a_job_may_give_the_checkout_to_other_runs(start, tmp_path):
    first = start(f"""sh("first", "touch {tmp_path}/begun; sleep 600; true", holds_lock=False)""", "live=True")
    try:
        assert process.await_true((tmp_path / "begun").exists, TIMEOUT_S)
        second = start("""sh("second", "true")""")
        assert "Waiting" not in second.communicate(timeout=TIMEOUT_S)[0] and second.returncode == 0
    finally:
        first.terminate()
        first.communicate(timeout=TIMEOUT_S)


# The closing lines of each runner, for a pattern that selects two tests or none.
CLOSING = {
    "libtest": ("test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 5 filtered out; finished in 0.1s",
        "test result: ok. 0 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 0.1s"),
    "pytest": ("1 passed, 1 skipped, 9 deselected in 0.42s", "11 deselected in 0.08s"),
    "node": ("# pass 2", "# pass 0"),
    "node's other reporter": ("ℹ pass 2", "ℹ pass 0"),
    "c": ("2 passed, 0 failed", ""),
    "mutants": ("2 of 2 mutants caught in 3 s", ""),
}  # fmt: skip


@pytest.mark.parametrize("runner", CLOSING)
def test_a_pattern_that_selects_no_test_fails(runner, start):
    some, none = CLOSING[runner]
    assert schedule.tests_run(f"begin\n{some}\n") and not schedule.tests_run(f"begin\n{none}\n")
    program = start(f"""sh("suite", "echo '{none}'", pattern="xyz")""", "live=True")
    output, _ = program.communicate(timeout=TIMEOUT_S)
    assert program.returncode == 1 and "K=xyz selects no test of this suite: suite\n" in output
    program = start(f"""sh("suite", "echo '{some}'", pattern="xyz")""", "live=True")
    assert some in program.communicate(timeout=TIMEOUT_S)[0] and program.returncode == 0


def test_pytests_own_status_for_no_test_is_explained(start):
    program = start("""sh("suite", "echo '5 deselected in 0.01s'; exit 5", pattern="xyz")""", "live=True")
    output, _ = program.communicate(timeout=TIMEOUT_S)
    assert program.returncode == 1 and "K=xyz selects no test" in output


def run_py(*words):
    done = subprocess.run([sys.executable, ROOT / "tests/run.py", *words], check=False, capture_output=True, text=True, timeout=TIMEOUT_S)
    return done.returncode, done.stdout, done.stderr


def test_an_unknown_suite_lists_the_suites():
    status, _, errors = run_py("test", "pyhton")
    assert status == 2 and errors.startswith("SUITE=pyhton is unknown. The suites:\n")
    assert all(re.search(rf"^{suite.name} ", errors, re.MULTILINE) for suite in suites.SUITES)


@pytest.mark.parametrize(
    "words, text",
    [
        (("test", "", "fork"), "K=fork needs a suite, for example: make test SUITE=core K=fork"),
        (("test", "instructions", "next"), "SUITE=instructions takes no K: it runs as a whole"),
        ((), "Runs the tests of this checkout"),
        (("everything",), "Runs the tests of this checkout"),
    ],
)
def test_a_wrong_command_line_is_refused(words, text):
    status, _, errors = run_py(*words)
    assert status == 2 and errors.startswith(text)


@pytest.mark.parametrize("plan", ["test", "check", "frameworks", "soak"])
def test_the_jobs_of_a_plan_wait_for_each_other_without_a_circle(plan):
    jobs = suites.whole(plan).jobs
    named = [job.title for job in jobs]
    assert len(set(named)) == len(named) and not {need for job in jobs for need in job.needs} - set(named)
    done = set()
    while len(done) < len(jobs):
        ready = {job.title for job in jobs if done.issuperset(job.needs)} - done
        assert ready, f"these wait for each other: {set(named) - done}"
        done |= ready


@pytest.mark.parametrize("plan", ["test", "check", "frameworks"])
def test_a_whole_plan_runs_each_job_once(plan, start, tmp_path):
    """Runs the real plan with replaced commands."""
    before = "from dataclasses import replace\nfrom runner import suites"
    fake = 'replace(job, command=("sh", "-c", "echo its output"))'
    options = f"live=suites.whole({plan!r}).live, memory=True"
    program = start(f"*[{fake} for job in suites.whole({plan!r}).jobs]", options, before)
    output, _ = program.communicate(timeout=TIMEOUT_S)
    assert program.returncode == 0, output
    named = sorted(job.title for job in suites.whole(plan).jobs)
    assert sorted(title for title in titles(output) if not title.endswith(": begins")) == named
    assert output.count("\nits output\n") == len(named) and not left(tmp_path)


def test_the_first_suites_of_make_test_wait_for_one_build():
    jobs = {job.title: job for job in suites.whole("test").jobs}
    builds = [title for title in jobs if title.startswith("Build: ")]
    assert [builds.index(title) for title in jobs["C and C++"].needs] == [0]
    assert [builds.index(title) for title in jobs["Python"].needs] == [1]
    # One build at a time, because cargo would make the others wait.
    assert [jobs[title].needs for title in builds[1:]] == [(title,) for title in builds[:-1]]


def test_every_command_is_of_words():
    words = [word for suite in suites.SUITES for word in suite.job().command] + [word for build in suites.BUILDS for word in build.command]
    assert [word for word in words if not isinstance(word, str)] == []


def test_every_suite_can_be_started():
    names = [suite.name for suite in suites.SUITES]
    builds = {build.name for build in suites.BUILDS}
    assert len(set(names)) == len(names)
    for suite in suites.SUITES:
        assert set(suite.needs.split()) <= builds and set(suite.plans.split()) <= {"test", "check", "frameworks", "soak"}
        jobs = [suite.job(), *([suite.job("K")] if suite.select else [])]
        assert not suite.select or any("K" in word for word in jobs[1].command) and jobs[1].pattern == "K"
        for job in jobs:
            assert_is_there(job)
    for plan in (
        plans.demo(),
        plans.demo_server(),
        plans.trial(),
        plans.package(),
        plans.rehearse(),
        *map(plans.example, os.listdir(ROOT / "examples")),
    ):
        assert isinstance(plan, Plan) and plan.live
        for job in plan.jobs:
            assert_is_there(job)


def assert_is_there(job: Job):
    """Asserts that the repository has the files of a job's command, and that its programs are executable."""
    first, *rest = job.command
    if "/" in first and not first.startswith((".venv/", "build/")):
        assert os.access(ROOT / first, os.X_OK), first
    for word in rest:
        if re.fullmatch(r"(tests|scripts|demo)/[\w./-]+", word):
            assert (ROOT / word).exists(), word


def test_contributing_names_every_suite():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = {suite.name for suite in suites.of_plan("test")} | {"core", "cli"}
    assert not {name for name in named if f"`{name}`" not in text}


def test_ci_runs_every_suite_once():
    _, on_change, _ = run_py("--json", "ci")
    _, at_night, _ = run_py("--json", "night")
    names = json.loads(on_change) + json.loads(at_night)
    assert sorted(names) == sorted(suite.name for suite in suites.of_plan("test") if suite.name != "windows")
    for workflow, plan in (("ci", "ci"), ("nightly", "night"), ("nightly", "soak")):
        assert f"tests/run.py --json {plan}" in (ROOT / f".github/workflows/{workflow}.yml").read_text()
