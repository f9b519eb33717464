#!/bin/sh
# Tests docs/agents.md with the real packages in which agents call tools, in Python and TypeScript.
# usage: tests/agents/run.sh [PYTEST ARGUMENT...]; python/build.sh and node/build.sh build what is tested
set -eu
cd "$(dirname "$0")/../.."
here=tests/agents
venv=build/agents
python=$(tests/adapters/python/newest.sh)
pip() { scripts/uv.sh pip "$@" --quiet --python "$venv/bin/python"; }
# The marks are written last, so a half-made installation is made again.
[ -e "$venv/made" ] || { rm -rf "$venv" && "$python" -m venv "$venv" && : > "$venv/made"; }
if ! cmp -s $here/requirements.txt "$venv/installed"; then
    echo "Installing the packages of agents, Python" >&2
    pip install --requirement $here/requirements.txt
    cp $here/requirements.txt "$venv/installed"
fi
pip install --no-deps --reinstall build/wheels/frazil-*.whl
locked=$here/package-lock.json installed=$here/node_modules/.installed
if ! cmp -s $locked $installed; then
    echo "Installing the packages of agents, Node" >&2
    npm ci --prefix $here --ignore-scripts --no-audit --no-fund --loglevel=error
    cp $locked $installed
fi
exec "$venv/bin/python" -m pytest -q "$@" $here
