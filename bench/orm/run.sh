#!/bin/sh
# Builds a release wheel into an environment of its own, with the drivers, and measures on private servers: bench/orm/run.sh
# FRAZIL_BENCH_JSON=FILE writes there what the table says: [{"case", "ns"}].
set -eu
cd "$(dirname "$0")/../.."

venv=build/bench-orm
wheels=build/wheels-release
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement bench/orm/requirements.txt
rm -f "$wheels"/frazil-*.whl
"$venv/bin/maturin" build --quiet --profile "$([ -n "${FRAZIL_BENCH_QUICK:-}" ] && echo demo || echo release)" --manifest-path python/Cargo.toml --out "$wheels" >&2
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall "$wheels"/frazil-*.whl
exec python3 tests/servers postgresql,mariadb -- "$venv/bin/python" bench/orm/bench.py
