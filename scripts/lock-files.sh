#!/usr/bin/env bash
# The tests of the guard of a fixed number, with the locked files by which macOS and FreeBSD guard it.
set -euo pipefail
cd "$(dirname "$0")/.."
# tests/mutants compiles the same dependencies there. What is told to the compiler of our own crates alone leaves them as they are.
export CARGO_TARGET_DIR=target/mutants CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0
export RUSTC_WORKSPACE_WRAPPER=$PWD/target/mutants/with-lock-files
mkdir -p target/mutants
printf '#!/bin/sh\nexec "$@" --cfg frazil_lock_files\n' > "$RUSTC_WORKSPACE_WRAPPER"
chmod +x "$RUSTC_WORKSPACE_WRAPPER"
cargo test -q --locked -p frazil --test guard
# Its tests remove the files of the tests before, as of all numbers that nobody holds.
cargo test -q --locked -p frazil --lib guard
