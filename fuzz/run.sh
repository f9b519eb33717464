#!/bin/sh
# Fuzzes every target, or some: fuzz/run.sh MINUTES [TARGET]...
# Builds them as cargo-fuzz does, with the nightly toolchain and AddressSanitizer. Prints a line for each target: runs, edges of the code
# that were reached, inputs that reach them. An input that fails stays in fuzz/artifacts. With FUZZ_RUNS=N, a target ends after N runs.
# Exit statuses: 0 if no target failed, 1 if one did, 3 if one could not be built or did not run.
set -eu
cd "$(dirname "$0")"
minutes=${1:?the minutes for each target}
shift
target=$(rustc -vV | sed -n 's/^host: //p')
[ $# -gt 0 ] || set -- $(ls fuzz_targets | sed 's/\.rs$//')
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Zsanitizer=address --cfg fuzzing -Ccodegen-units=1"
# frazil's own folder of locks, so that this meets no other program.
export FRAZIL_GUARD_SCOPE="${FRAZIL_GUARD_SCOPE:-$PWD/target}" FRAZIL_HOME="$PWD/target/home" ASAN_OPTIONS=detect_odr_violation=0
cargo +nightly build --quiet --locked --release --target "$target" $(printf -- '--bin %s ' "$@") || exit 3
failed=''
broken=''
for name; do
    mkdir -p "artifacts/$name" "target/corpus/$name" "target/seeds/$name"
    tar -xf "corpus/$name.tar" -C "target/seeds/$name" || exit 3
    log=target/$name.log
    "${CARGO_TARGET_DIR:-target}/$target/release/$name" -artifact_prefix="artifacts/$name/" -max_total_time=$((minutes * 60)) \
        -runs="${FUZZ_RUNS:--1}" -timeout=30 -rss_limit_mb=4096 -max_len=4096 -print_final_stats=1 -dict=words.txt "target/corpus/$name" "target/seeds/$name" \
        >"$log" 2>&1 || { failed="$failed $name"; grep -E '^(thread|ERROR|==|SUMMARY)' "$log" | head -5; grep "^Base64" "$log" || true; }
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    last=$(grep -oE 'cov: [0-9]+ ft: [0-9]+ corp: [0-9]+' "$log" | tail -1)
    echo "$name: ${runs:-?} runs, ${last:-nothing reached}"
    # An input was written, or the target has not run.
    case " $failed " in
    *" $name "*) grep -q 'Test unit written to' "$log" ;;
    *) [ -n "$runs" ] && [ -n "$last" ] ;;
    esac || broken="$broken $name"
done
[ -z "$broken" ] || { echo "these did not run, or ended without an input:$broken" >&2; exit 3; }
[ -z "$failed" ] || { echo "failed:$failed; the inputs are in fuzz/artifacts" >&2; exit 1; }
echo "no target failed"
