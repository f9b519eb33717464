#!/bin/sh
# frazil-server, driven by real clients: Redis' own, HTTP/1.1 and HTTP/2, on a private PostgreSQL.
# usage: tests/server/run.sh [PYTEST ARGUMENT...]; python/build.sh makes the environment
set -eu
cd "$(dirname "$0")/../.."
server/build.sh
cd tests/server
# npm empties the folder first, so the mark stands for all of it.
if ! cmp -s package-lock.json node_modules/.installed; then
    echo "Installing Node's clients of Redis" >&2
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
    cp package-lock.json node_modules/.installed
fi
cd ../..
if ! command -v go >/dev/null; then
    echo "There is no go: its program of docs/server-clients.md is left to make frameworks, which installs it" >&2
    set -- --deselect 'tests/server/test_clients.py::test_a_program_of_the_guide[go' "$@"
fi
exec python3 tests/servers postgresql -- .venv/bin/python -m pytest -q --numprocesses 2 "$@" tests/server
