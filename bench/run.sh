#!/usr/bin/env bash
# Builds what a benchmark measures, as it is released, and runs it. Prints Markdown tables.
# usage: bench/run.sh c | node | python | rust      one ID and a batch in a language, beside floors and other libraries
#        bench/run.sh columns                       columns of IDs in Python
#        bench/run.sh orm                           rows through SQLAlchemy on private servers
#        bench/run.sh server                        what frazil-server does in a second, how long answers take, idle connections;
#                                                   beside redis-server and hyper alone
#        bench/run.sh server count [TITLE]          instructions and system calls of a request; of the rows that have TITLE
#        bench/run.sh server memory SECONDS         its memory in each minute under load in every protocol; fails where it grows
#        bench/run.sh leases [LEASES [ROUND_TRIP_MS [SECONDS [SPEC]]]]   many leases in one process on a private Redis
#        bench/run.sh fleet costs [STORES]          what a start, a renewal and a release cost each store
#        bench/run.sh fleet tier [PROCESSES]        leases through three replicas of frazil-server onto one PostgreSQL
#        bench/run.sh fleet simulation [PROCESSES [FILE]]   100,000 processes in simulated time; FILE gets the data of the plot
# also read: FRAZIL_BENCH_QUICK (not empty: less optimised, and built sooner),
#            FRAZIL_BENCH_JSON (a file, which gets the rows of a table: [{"case", "ns", "floor"}])
set -euo pipefail
cd "$(dirname "$0")/.."
quick=${FRAZIL_BENCH_QUICK:-}
if [ -n "$quick" ]; then profile=demo; else profile=release; fi
target=${CARGO_TARGET_DIR:-target}
name=${1:-}
[ $# -eq 0 ] || shift

# Installs a release wheel in a new environment, $venv, beside what the benchmark needs.
wheel() {
    local wheels=build/wheels-release
    venv=build/bench-$name
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "bench/$name/requirements.txt"
    rm -f "$wheels"/frazil-*.whl
    "$venv/bin/maturin" build --quiet --profile "$profile" --manifest-path python/Cargo.toml --out "$wheels" >&2
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall "$wheels"/frazil-*.whl
}

# Builds programs of bench/rust that need a feature.
programs() { # FEATURE ARGUMENT...
    cargo build --quiet --locked --release --manifest-path bench/rust/Cargo.toml --target-dir bench/rust/target \
        --no-default-features --features "$@"
}

case $name in
    c)
        c-api/build.sh "--$profile" >&2
        "${CXX:-c++}" -std=c++17 -O2 -Wall -Wextra bench/c/bench.cpp -Ibuild/c/include -Lbuild/c/lib -Wl,-rpath,"$PWD/build/c/lib" \
            -lfrazil -lpthread -o build/c/bench
        exec build/c/bench
        ;;
    columns)
        wheel
        exec "$venv/bin/python" bench/columns/bench.py
        ;;
    fleet)
        if [ "${1:-}" = simulation ]; then
            export FRAZIL_FLEET="${2:-100000}" FRAZIL_FLEET_OUT="${3:-/dev/null}"
            exec cargo test --quiet --locked --release -p frazil --lib fleet -- --nocapture
        fi
        cargo build --quiet --locked --release -p frazil-server
        programs leases --bin crowd
        exec python3 bench/fleet/costs.py --crowd bench/rust/target/release/crowd --server "$target/release/frazil-server" "$@"
        ;;
    leases)
        programs leases --bin leases
        # shellcheck disable=SC2016
        exec python3 tests/servers redis -- sh -c 'exec bench/rust/target/release/leases "$FRAZIL_TEST_REDIS" "$@"' \
            leases "${1:-300}" "${2:-40}" "${3:-20}" "${4-window=7s renew=2s}"
        ;;
    node)
        node/build.sh "--$profile" >&2
        cargo build --quiet --release --locked --manifest-path bench/node/floor/Cargo.toml --target-dir "$target/bench-node-floor"
        library=$target/bench-node-floor/release/libfrazil_bench_node_floor
        if [ -f "$library.dylib" ]; then cp "$library.dylib" bench/node/floor.node; else cp "$library.so" bench/node/floor.node; fi
        npm ci --prefix bench/node --no-audit --no-fund --loglevel=error >&2
        exec node bench/node/bench.mjs
        ;;
    orm)
        wheel
        exec python3 tests/servers postgresql,mariadb -- "$venv/bin/python" bench/orm/bench.py
        ;;
    python)
        wheel
        config() { "$venv/bin/python" -c "import sysconfig as s; print($1)"; }
        # The linker's command is several words.
        $(config "s.get_config_var('LDSHARED')") -O2 -fPIC -Wall -Wextra -I"$(config "s.get_path('include')")" bench/python/floor.c \
            -o "$(config "s.get_path('platlib') + '/frazil_bench_floor' + s.get_config_var('EXT_SUFFIX')")"
        exec "$venv/bin/python" bench/python/bench.py
        ;;
    rust)
        cd bench/rust
        if [ -n "$quick" ]; then
            cargo build --profile quick --no-default-features --locked --quiet
            exec "$target/quick/frazil-bench"
        fi
        cargo build --release --locked --quiet
        exec python3 ../../tests/servers postgresql,mariadb -- "$target/release/frazil-bench"
        ;;
    server)
        if [ -n "$quick" ]; then built=counted; else built=release; fi
        cargo build --quiet --locked --profile "$built" -p frazil-server
        programs server --bin floor --bin pace
        what=${1:-bench}
        [ $# -eq 0 ] || shift
        exec python3 "bench/server/$what.py" "$target/$built/frazil-server" bench/rust/target/release "$@"
        ;;
    *)
        echo "bench/run.sh: ${name:-nothing} is none of: c, columns, fleet, leases, node, orm, python, rust, server" >&2
        exit 2
        ;;
esac
