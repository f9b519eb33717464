#!/bin/sh
# Builds a release wheel and the floor's extension into a new environment, with the peers, and measures: bench/python/run.sh
# FRAZIL_BENCH_JSON=FILE gets the rows of the table: [{"case", "ns", "floor"}].
set -eu
cd "$(dirname "$0")/../.."

NAME=python
. bench/wheel.sh

config() { "$venv/bin/python" -c "import sysconfig as s; print($1)"; }
# The linker's command is several words.
$(config "s.get_config_var('LDSHARED')") -O2 -fPIC -Wall -Wextra -I"$(config "s.get_path('include')")" bench/python/floor.c \
    -o "$(config "s.get_path('platlib') + '/frazil_bench_floor' + s.get_config_var('EXT_SUFFIX')")"
exec "$venv/bin/python" bench/python/bench.py
