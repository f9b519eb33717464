#!/usr/bin/env python3
"""Runs the tests of this checkout, and make's other commands that need the checkout for themselves.

tests/run.py test                # every suite
tests/run.py test SUITE [K]      # one suite, or those of its tests whose names hold K
tests/run.py check | frameworks | soak
tests/run.py demo | demo-server | example NAME | bench [--quick] | trial | package | rehearse
tests/run.py --list [PLAN]       # the suites: of all plans, or of test, check, frameworks, soak,
                                 # and of CI on each change (ci) and at night (night)
tests/run.py --json PLAN         # their names, for a workflow
"""

import sys

# make calls this with any Python.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit(f"frazil needs Python 3.11 or later, and python3 is {sys.version.split()[0]}")

import json
import os

from runner import plans, suites
from runner.jobs import Plan
from runner.processes import Interrupted
from runner.session import ROOT, Session

WHOLE = ("test", "check", "frameworks", "soak")
STEPS = {"demo": plans.demo, "demo-server": plans.demo_server, "trial": plans.trial, "package": plans.package, "rehearse": plans.rehearse}


class UsageError(Exception):
    """A command line with an unknown name."""


def listed(plan: str) -> str:
    """Returns a line for each suite, of a plan or of all."""
    chosen = suites.of_plan(plan) if plan else suites.SUITES
    return "\n".join(f"{suite.name:24}{suite.title}{'' if suite.select else ' (takes no K)'}" for suite in chosen)


def one_suite(name: str, k: str) -> Plan:
    suite = next((suite for suite in suites.SUITES if suite.name == name), None)
    if suite is None:
        raise UsageError(f"SUITE={name} is unknown. The suites:\n{listed('')}")
    if k and not suite.select:
        raise UsageError(f"SUITE={name} takes no K: it runs as a whole")
    if reason := suites.missing(suite):
        raise UsageError(f"SUITE={name} cannot run: {reason}")
    return suites.single(suite, k)


def plan_of(command: str, arguments: list[str]) -> Plan:
    """Returns the plan that a command line names."""
    # make passes both SUITE and K, even if they are empty.
    if command == "test" and any(arguments):
        name, k = arguments[0], " ".join(arguments[1:])
        if not name:
            raise UsageError(f"K={k} needs a suite, for example: make test SUITE=core K={k}")
        return one_suite(name, k)
    if command in WHOLE and not any(arguments):
        return suites.whole(command)
    if command in STEPS and not arguments:
        return STEPS[command]()
    if command == "example" and len(arguments) == 1:
        return plans.example(arguments[0])
    if command == "bench" and arguments in ([], ["--quick"]):
        return plans.bench(quick=bool(arguments))
    raise UsageError(__doc__.strip())


def main(arguments: list[str]) -> int:
    os.chdir(ROOT)
    if arguments[:1] == ["--list"]:
        print(listed("".join(arguments[1:])))
        return 0
    if arguments[:1] == ["--json"]:
        print(json.dumps([suite.name for suite in suites.of_plan("".join(arguments[1:]))]))
        return 0
    try:
        plan = plan_of(arguments[0] if arguments else "", arguments[1:])
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    return Session(plan).run()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Interrupted as signal:
        sys.exit(128 + signal.number)
