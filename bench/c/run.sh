#!/bin/sh
# Builds the release library and measures it: prints Markdown tables.
# FRAZIL_BENCH_JSON=FILE gets the rows of the table: [{"case", "ns", "floor"}].
set -eu
cd "$(dirname "$0")/../.."
c-api/build.sh "$([ -n "${FRAZIL_BENCH_QUICK:-}" ] && echo --demo || echo --release)" >&2
"${CXX:-c++}" -std=c++17 -O2 -Wall -Wextra bench/c/bench.cpp -Ibuild/c/include -Lbuild/c/lib -Wl,-rpath,"$PWD/build/c/lib" \
    -lfrazil -lpthread -o build/c/bench
build/c/bench
