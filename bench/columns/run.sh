#!/bin/sh
# Builds a release wheel into a new environment, with the peers, and measures: bench/columns/run.sh
# FRAZIL_BENCH_JSON=FILE gets the rows of the table: [{"case", "ns", "floor"}].
set -eu
cd "$(dirname "$0")/../.."

NAME=columns
. bench/wheel.sh
exec "$venv/bin/python" bench/columns/bench.py
