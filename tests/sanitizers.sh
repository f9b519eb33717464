#!/bin/sh
# Tests the library with a sanitizer in its own code, in its dependencies and in Rust's standard library: tests in Rust, and the C suites.
# usage: tests/sanitizers.sh address | thread
# `address` is AddressSanitizer with LeakSanitizer, `thread` is ThreadSanitizer. Needs the nightly toolchain with rust-src:
#   rustup component add rust-src --toolchain nightly
# At the end, a program that breaks the demands of frazil.h must be reported: the fault is in the library's own code, at the caller's
# buffer. So it shows that this code is instrumented.
set -eu
cd "$(dirname "$0")/.."
kind=${1:?address or thread}
host=$(rustc -vV | sed -n 's/^host: //p')
root=$(rustc +nightly --print sysroot)
[ -d "$root/lib/rustlib/src/rust/library" ] || { echo "rustup component add rust-src --toolchain nightly" >&2; exit 1; }
case $kind in
    address)
        runtime=asan faults='overflow:heap-buffer-overflow leak:LeakSanitizer'
        skipped='--skip calls_that_may_not_wait_cost_no_memory'
        ;;
    thread) runtime=tsan faults='race:data.race' skipped='' ;;
    *) echo "tests/sanitizers.sh address | thread" >&2; exit 2 ;;
esac
# These tests measure the process's memory, which has the sanitizer's own in it: shadows, and freed blocks that are kept. libfaketime allocates
# when a sanitizer's allocator reads the clock.
skipped="$skipped --skip no_answer_takes_more_than_64_mib --skip faked_clock_does_not_change_the_stores"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}/sanitizers/$kind")
export CARGO_TARGET_DIR="$target" CARGO_PROFILE_DEV_DEBUG=line-tables-only CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_INCREMENTAL=0
export RUSTFLAGS="-Zsanitizer=$kind" CARGO_UNSTABLE_BUILD_STD=std,panic_unwind,test
export ASAN_OPTIONS="detect_leaks=0:detect_odr_violation=0"
# A forked child of a program with threads is what the library is for.
export TSAN_OPTIONS="die_after_fork=0:suppressions=$target/tsan.supp"
# With too much address randomization, ThreadSanitizer finds no place for its shadow memory.
fixed=''
! setarch "$(uname -m)" -R true 2>/dev/null || fixed="setarch $(uname -m) -R"

# Two findings of ThreadSanitizer are of the tests alone. A thread of the test writes to standard descriptors that the program has closed,
# while the library opens folders, for which the kernel may choose these numbers. A proxy of the tests keeps the handles of ended threads.
mkdir -p "$target"
printf '%s\n' race:core/tests/descriptors.rs thread:core/store/src/sigpipe.rs > "$target/tsan.supp"

echo "== Rust"
# The simulation has one thread and no unsafe code, and takes the longest.
$fixed cargo +nightly test -q --no-fail-fast --locked --target "$host" -p frazil -p frazil-base -p frazil-store --features frazil/stores,frazil/admin \
    --lib --tests -- --skip simulation $skipped

echo "== C"
# Leaks are looked for here alone. A forked child that exits as usual has lost the stacks of its parent's threads, so what was reachable from
# there looks like a leak, as in a test of events.
export ASAN_OPTIONS="detect_leaks=1:detect_odr_violation=0"
cargo +nightly rustc -q --locked --target "$host" -p frazil-c --crate-type staticlib
out=$target/c
mkdir -p "$out"
python3 tests/c/vectors.py > "$out/vectors.h"
link="$target/$host/debug/libfrazil.a -Wl,--whole-archive $root/lib/rustlib/$host/lib/librustc-nightly_rt.$runtime.a -Wl,--no-whole-archive
    -Wl,--export-dynamic -lpthread -ldl -lm -lrt -lresolv"
for cases in cases cases_leases cases_errors cases_interop cases_numbers cases_waits cases_races faults; do
    cc -g -std=c99 -Iinclude -Itests/c -I"$out" "tests/c/$cases.c" $link -o "$out/$cases"
done
for cases in cases cases_leases cases_errors cases_interop cases_numbers cases_waits cases_races; do
    echo "== $cases"
    FRAZIL_GUARD_SCOPE=${FRAZIL_GUARD_SCOPE:-}/$out/$cases $fixed "$out/$cases"
done
for fault in $faults; do
    name=${fault%%:*}
    if $fixed "$out/faults" "$name" > "$out/$name" 2>&1 || ! grep -q "${fault#*:}" "$out/$name"; then
        cat "$out/$name" >&2
        echo "the sanitizer does not report the $name of a program" >&2
        exit 1
    fi
    echo "reported: $name"
done
