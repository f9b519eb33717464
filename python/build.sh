#!/bin/sh
# Builds the wheel into build/wheels and installs it into .venv: python/build.sh [--release]
set -eu
cd "$(dirname "$0")/.."

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "frazil needs python3 of version 3.11 or later" >&2; exit 1; }
[ -x .venv/bin/python ] || python3 -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement tests/python/requirements.txt

wheels=build/wheels
rm -f "$wheels"/frazil-*.whl
.venv/bin/maturin build --quiet --manifest-path python/Cargo.toml --out "$wheels" "$@"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall "$wheels"/frazil-*.whl
