#!/bin/sh
# Builds a release wheel into a new environment, with the drivers, and measures on private servers: bench/orm/run.sh
# FRAZIL_BENCH_JSON=FILE gets the rows of the table: [{"case", "ns"}].
set -eu
cd "$(dirname "$0")/../.."

NAME=orm
. bench/wheel.sh
exec python3 tests/servers postgresql,mariadb -- "$venv/bin/python" bench/orm/bench.py
