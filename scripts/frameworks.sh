#!/usr/bin/env bash
# The adapters of Python at the oldest versions of the frameworks, every application of examples/, and frazil-server's clients with Go's:
# what `make test` leaves out for its time.
set -euo pipefail
. "$(dirname "$0")/begin.sh"

step "Tools, servers, ports and disk space"
run scripts/setup.sh --frameworks
step "Builds"
run python/build.sh
run node/build.sh
run c-api/build.sh
run cargo build --locked -p frazil-cli
step "Adapters in Python, with the oldest frameworks"
run tests/adapters/python/run.sh --oldest
step "Clients of frazil-server in every language of its guide"
run tests/server/run.sh -k guide
step "Examples: applications with four worker processes, one of which is killed; their IDs from the database to the browser"
run .venv/bin/python -m pytest -q tests/examples
