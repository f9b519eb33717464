# Shared by windows.sh, linux.sh and macos.sh, which source it in the root of the repository. $system is a system of left-out.
suite=$1 target=$2
passed=0 failed=0 skipped=0

# Prints the cases of a suite that cannot pass on this system. tests/platforms/left-out has the reasons.
left_out() { # SUITE
    local on of name why
    # shellcheck disable=SC2034
    while read -r on of name why; do
        # shellcheck disable=SC2053
        if [[ $system == $on && $of == "$1" ]]; then echo "$name"; fi
    done < tests/platforms/left-out
}

# Adds a run's counts. A run without a count did not reach its end, so it counts as failed.
count() { # PASSED FAILED
    passed=$((passed + ${1:-0}))
    failed=$((failed + ${2:-$((${1:-0} == 0))}))
}
count_c() { # LOG
    count "$(grep -ao '[0-9]* passed, [0-9]* failed' "$1" | cut -d ' ' -f 1)" "$(grep -ao '[0-9]* passed, [0-9]* failed' "$1" | cut -d ' ' -f 3)"
}
count_pytest() { # LOG
    count "$(tail -1 "$1" | grep -o '[0-9]* passed' | cut -d ' ' -f 1)" "$(tail -1 "$1" | grep -o '[0-9]* \(failed\|error\)' | cut -d ' ' -f 1 | head -1)"
}
count_tap() { # LOG
    count "$(sed -n 's/^# pass //p' "$1")" "$(sed -n 's/^# fail //p' "$1")"
}

# Prints pytest's arguments for test files. pytest is started in `tests`, so that it finds conftest.py.
choose() { # FILE...
    local file name
    arguments=()
    for file; do
        for name in $(left_out "$file"); do
            arguments+=(--deselect "python/$file::$name")
            skipped=$((skipped + 1))
        done
        arguments+=("python/$file")
    done
}

# Runs Node's tests in files of a folder. RUN takes a log and a command, like `windows`.
run_tap() { # RUN NODE FOLDER FILE...
    local run=$1 node=$2 folder=$3 file name skip log
    shift 3
    for file; do
        log=/build/node-$target-$file.log skip=()
        for name in $(left_out "$file"); do
            skip+=("--test-skip-pattern=^$name")
            skipped=$((skipped + 1))
        done
        (cd "$folder" && FRAZIL_GUARD_SCOPE=node-$file "$run" "$log" "$node" --test-reporter=tap "${skip[@]}" "$file") || true
        count_tap "$log"
    done
}

# Makes the packages with the release's own scripts, with less optimisation, which takes most of a release's time.
build_packages() {
    export TARGET=$target PATH=/opt/node/bin:$PATH
    export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1
    c-api/package.sh
    node/package.sh
    python/package.sh
}

# Prints the result in libtest's form.
result() {
    echo "test result: ok. $passed passed; $failed failed; $skipped ignored"
    [ $failed = 0 ] && [ $passed != 0 ]
}

# Builds Rust tests, and keeps the names of their programs.
build_tests() { # CARGO ARGUMENTS
    mkdir -p "/build/$target"
    "$1" test --locked --no-run --target "$target" "${@:2}" 2>&1 | tee "/build/$target/programs"
}

# Runs a Rust suite: the unit tests of the core or the command line, or a file of their tests.
run_rust() { # ENDING [RUNNER]
    local program name arguments=() file=$suite
    case $suite in core) file=frazil ;; cli) file=frazil_cli ;; esac
    for name in $(left_out "$suite"); do arguments+=(--skip "$name"); done
    program=$(sed -n "s/.*Executable.*(\(.*\/$file-[0-9a-f]*$1\))/\1/p" "/build/$target/programs")
    cd core
    RUST_TEST_THREADS=${RUST_TEST_THREADS:-2} ${2:-} "$program" "${arguments[@]}"
}
