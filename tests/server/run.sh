#!/bin/sh
# Tests frazil-server with real clients (Redis' own, HTTP/1.1 and HTTP/2), on a private PostgreSQL.
# usage: tests/server/run.sh [PYTEST ARGUMENT...]; python/build.sh makes the environment
set -eu
cd "$(dirname "$0")/../.."
server/build.sh
cd tests/server
# npm empties the folder first, so this file is there only if all packages are.
if ! cmp -s package-lock.json node_modules/.installed; then
    echo "Installing Node's clients of Redis" >&2
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
    cp package-lock.json node_modules/.installed
fi
cd ../..
if ! command -v go >/dev/null; then
    echo "go is missing: make frameworks, which installs it, runs the Go program of docs/server-clients.md" >&2
    set -- --deselect 'tests/server/test_clients.py::test_a_program_of_the_guide[go' "$@"
fi
exec python3 tests/servers postgresql -- .venv/bin/python -m pytest -q --numprocesses 2 "$@" tests/server
