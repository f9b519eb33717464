"""The test runner: `python3 tests/run.py` runs a plan of jobs in this checkout.

`suites` is the table of suites and builds, and `plans` has the other commands of make. A `Plan` is a
list of `jobs`; `schedule` runs it; `session` gives it the checkout and cleans up afterwards.
"""
