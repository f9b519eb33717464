"""No ID occurs twice, whatever breaks. The controls show that the check finds duplicates."""

import subprocess

import frazil
import numpy
import pytest

from . import check, workers
from .restarts import FailoverRun, RestartRun
from .run import LAYOUT, STORES, LargeRun, Run, run
from .segments import SEGMENTS, TABLES, SegmentRun

# A store that frazil-server lends gets a shorter run, because it has a long run without the server.
FEW = {"frazil": {"faults": 11, "at_least": 300_000}, "segments:frazil": {"faults": 5, "at_least": 300_000}}

# Only stores whose records survive: after a loss, a start would wait for the long bounds.
LARGE = {"postgresql": LargeRun}


@pytest.mark.parametrize("store", STORES)
def test_nothing_repeats_and_all_workers_continue(store, tmp_path):
    report = run(store, tmp_path, of=LARGE.get(store, Run), **FEW.get(store, {}))
    print(report)
    assert not report.problems, f"what the workers wrote is in {tmp_path}"


# Each table runs with one store here, and with the others in the soak.
@pytest.mark.parametrize("name", [*SEGMENTS, *TABLES[:2]])
def test_no_segment_number_repeats(name, tmp_path):
    report = run(name, tmp_path, of=SegmentRun, **FEW.get(name, {}))
    print(report)
    assert not report.problems, f"what the workers wrote is in {tmp_path}"


@pytest.mark.parametrize("steady", [RestartRun, FailoverRun])
def test_nobody_is_refused_when_redis_forgets(steady, tmp_path):
    report = run("redis", tmp_path, of=steady, faults=1, at_least=100_000)
    print(report)
    assert not report.problems, f"what the workers wrote is in {tmp_path}"


def test_fixed_numbers_survive_the_same_faults(tmp_path):
    report = run("fixed", tmp_path, faults=4, at_least=100_000)
    assert not report.problems, str(report)


def test_two_owners_of_one_number_are_caught(tmp_path):
    """The control: the run finds the duplicates of two workers that hold one number at once."""

    class Careless(Run):
        def spec(self, number):
            return super().spec(number % 5)

    with Careless("fixed", tmp_path) as careless:
        report = careless.go(faults=0, at_least=100_000)
    assert report.found.duplicates > 100
    assert "node 0" in report.problems[0]
    assert all(f"{workers.CREW[index][0]}." in report.problems[0] for index in (0, 5)), report.problems[0]


def test_two_tags_that_should_be_one_are_caught(tmp_path):
    class Careless(SegmentRun):
        def spec(self, number):
            return super().spec(number).replace("namespace=faults", "namespace=apart" if number == 5 else "namespace=faults")

    with Careless("segments:file", tmp_path) as careless:
        report = careless.go(faults=0, at_least=100_000)
    assert report.found.duplicates > 100
    assert f"{workers.CREW[5][0]}." in report.problems[0], report.problems[0]


def test_a_single_duplicate_is_found_and_described(tmp_path):
    layout = frazil.Layout(LAYOUT)
    first, second = numpy.arange(1 << 16, (1 << 16) + 1000, dtype="<i8"), numpy.arange(1 << 20, (1 << 20) + 1000, dtype="<i8")
    second[700] = first[3]
    (tmp_path / "a.1.ids").write_bytes(first.tobytes() + b"cut")
    (tmp_path / "b.2.ids").write_bytes(second.tobytes())
    (tmp_path / "b.2.log").write_text("CLOCK_BACK expected\nINTERNAL a defect\n")
    found = check.examine(tmp_path, layout)
    assert (found.total, found.duplicates) == (2000, 1)
    assert found.places == [f"{1 << 16 | 3} (2025-01-01T00:00:00.001+00:00, node 0, sequence 3): a.1.ids at byte 24; b.2.ids at byte 5600"]
    assert found.errors == {"CLOCK_BACK": 1, "INTERNAL": 1}
    assert found.unexpected == ["b.2.log: INTERNAL a defect"]


def test_a_worker_that_dies_is_a_problem(tmp_path):
    with Run("fixed", tmp_path) as bereft:
        bereft.expect_all_to_mint("has not begun")
        subprocess.run(["kill", "-9", str(bereft.crew[0].running.pid)], check=True)
        report = bereft.go(faults=0, at_least=0)
    assert any("python-1 ended with -9" in problem for problem in report.problems), str(report)
