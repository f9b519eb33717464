#!/bin/sh
# frazil-server, driven by real clients: Redis' own, HTTP/1.1 and HTTP/2, on a private PostgreSQL.
# usage: tests/server/run.sh [PYTEST ARGUMENT...]; python/build.sh makes the environment
set -eu
cd "$(dirname "$0")/../.."
# What all suites in Rust are compiled with, so that it is compiled once.
aligned=frazil-c/aligned,frazil-node/aligned,frazil-python/aligned
cargo build --quiet --locked --workspace --bin frazil-server --features "frazil/stores,frazil/cli,$aligned"
exec python3 tests/servers postgresql -- .venv/bin/python -m pytest -q --numprocesses 2 "$@" tests/server
