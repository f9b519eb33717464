#!/bin/sh
# Builds the programs of the trial with their pinned libraries, runs the trials, and makes docs/trial.md: trial/run.sh [TRIAL|LIBRARY]...
# python/build.sh --lean and node/build.sh --lean come first.
set -eu
cd "$(dirname "$0")/.."
. scripts/rust.sh
find_cargo
venv=build/trial-venv
scripts/venv.sh $venv trial/requirements.txt
$venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall build/wheels/frazil-*.whl
npm ci --prefix trial --ignore-scripts --no-audit --no-fund --loglevel=error >&2
cargo build --quiet --locked --manifest-path trial/Cargo.toml
$venv/bin/python trial/run.py "$@"
exec $venv/bin/python trial/page.py
