#!/usr/bin/env bash
# ns per ID beside floors and peers of the same run, and the service level, in every language; what a row costs in a database; what plots
# are made of goes to build/bench.
# usage: scripts/bench.sh [--quick]: builds as for the demo, fewer rounds, and no service levels
set -euo pipefail
. "$(dirname "$0")/begin.sh"
run scripts/setup.sh --bench
[ "${1:-}" != --quick ] || export FRAZIL_BENCH_QUICK=1
mkdir -p build/bench
bench() { # NAME LANGUAGE
    printf '\n## %s\n\n' "$1"
    run env FRAZIL_BENCH_JSON="$PWD/build/bench/$2.json" "bench/$2/run.sh"
}
bench Rust rust
bench 'C and C++' c
bench Python python
bench Node node
bench 'A row in a database, by its key' orm
bench 'frazil-server, beside redis-server and hyper alone' server
printf '\n'
run build/bench-python/bin/python bench/plot.py build/bench build/bench
