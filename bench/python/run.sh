#!/bin/sh
# Builds a release wheel and the floor's extension into an environment of its own, with the peers, and measures: bench/python/run.sh
# FRAZIL_BENCH_JSON=FILE writes there what the table says: [{"case", "ns", "floor"}].
set -eu
cd "$(dirname "$0")/../.."

venv=build/bench-python
wheels=build/wheels-release
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement bench/python/requirements.txt
rm -f "$wheels"/frazil-*.whl
"$venv/bin/maturin" build --quiet --profile "$([ -n "${FRAZIL_BENCH_QUICK:-}" ] && echo demo || echo release)" --manifest-path python/Cargo.toml --out "$wheels" >&2
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall "$wheels"/frazil-*.whl

config() { "$venv/bin/python" -c "import sysconfig as s; print($1)"; }
# The linker's command is several words.
$(config "s.get_config_var('LDSHARED')") -O2 -fPIC -Wall -Wextra -I"$(config "s.get_path('include')")" bench/python/floor.c \
    -o "$(config "s.get_path('platlib') + '/frazil_bench_floor' + s.get_config_var('EXT_SUFFIX')")"
exec "$venv/bin/python" bench/python/bench.py
