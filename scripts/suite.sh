#!/usr/bin/env bash
# One suite, or the tests of it whose names hold K: make test SUITE=core K=fork. It builds what the suite needs, and nothing else.
# usage: scripts/suite.sh SUITE [K]
set -euo pipefail
. "$(dirname "$0")/begin.sh"
suite=${1:-} k=${2:-}
rust=(env FRAZIL_HOME="$PWD/build/local" cargo test --locked)
pytest=(.venv/bin/python -m pytest -q ${k:+-k "$k"})

step "Suite: $suite${k:+, $k}"
case $suite in
    core) run "${rust[@]}" -p frazil --features stores,admin,lend,serde,sqlx -- ${k:---skip simulation} ;;
    cli) run "${rust[@]}" -p frazil-cli -- $k ;;
    loom) run env RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test --locked -p frazil --lib "${k:-loom}" ;;
    python | cross | repo | leases | servers | faults | restores | package)
        [ "$suite" != cross ] || run node/build.sh
        run python/build.sh
        run "${pytest[@]}" "tests/$suite" ;;
    server)
        run python/build.sh
        run tests/server/run.sh ${k:+-k "$k"} ;;
    sql)
        run python/build.sh
        run tests/sql/run.sh ${k:+-k "$k"} ;;
    adapters-python)
        run python/build.sh
        run tests/adapters/python/run.sh --current ${k:+-k "$k"} ;;
    node)
        run node/build.sh
        run node --test --test-timeout=900000 ${k:+--test-name-pattern="$k"} tests/node/*.test.mjs ;;
    adapters-node)
        run node/build.sh
        run tests/adapters/node/run.sh ;;
    c)
        run c-api/build.sh
        run tests/c/run.sh --built ;;
    mutants) run tests/mutants/run.py --short ;;
    instructions) run tests/instructions/run.py ;;
    *)
        echo "SUITE=$suite is no suite: CONTRIBUTING.md has the list" >&2
        exit 2 ;;
esac
