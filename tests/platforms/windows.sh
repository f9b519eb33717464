#!/bin/bash
# Runs a suite for Windows under Wine, within the folder of run.sh. Builds the binding that it tests. The last line has libtest's form.
# usage: tests/platforms/windows.sh build | core | a file of core/tests | cli | command | kills | c | python | node | server    TARGET
set -euo pipefail
system=windows
. tests/platforms/common.sh
built=/build/$target/debug
cargo=(-q --locked --target "$target")

# Runs a Windows program. The output goes to a file, because Node cannot open a pipe of Linux.
windows() { # LOG PROGRAM ARGUMENTS
    local log=$1 status=0
    shift
    timeout 300 wine "$@" < /dev/null > "$log" 2> "$log.errors" || status=$?
    grep -av ':fixme:\|:err:' "$log.errors" >&2 || true
    cat "$log"
    return $status
}

# Runs a program with a console, in which a test sends Ctrl-C. Wine makes a console if there is a terminal.
in_console() { # PROGRAM ARGUMENTS
    python3 -c 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))' wine "$@" |
        sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g; s/\r//'
}

# Runs the cases of a file that end processes and workers.
ends() { # LOG NODE ARGUMENTS
    windows "$1" "$2" '--test-name-pattern=^the end of' "${@:3}"
}

run_c() {
    local out=/build/c cases names wanted
    cargo build "${cargo[@]}" -p frazil-c
    mkdir -p $out/posix/{netinet,sys}
    # The headers of POSIX that the cases include.
    for header in netinet/in sys/mman sys/socket sys/syscall sys/wait; do cp tests/platforms/posix.h $out/posix/$header.h; done
    cp "$built/frazil.dll" /usr/x86_64-w64-mingw32/lib/libwinpthread-1.dll $out/
    python3 tests/c/vectors.py > $out/vectors.h
    for std in c99 c17; do
        x86_64-w64-mingw32-gcc -std=$std -pedantic -Wall -Wextra -Wconversion -Werror -fsyntax-only -Iinclude -x c include/frazil.h
    done
    for cases in cases cases_interop cases_errors; do
        x86_64-w64-mingw32-gcc -w -fpermissive -std=gnu99 -D__USE_MINGW_ANSI_STDIO=1 -I$out/posix -Iinclude -Itests/c -I$out \
            tests/c/$cases.c "$built/libfrazil.dll.a" -lpthread -lws2_32 -o $out/$cases.exe
        names=$(left_out $cases.c)
        skipped=$((skipped + $(wc -w <<< "$names")))
        wanted=$(grep -o '^CASE([a-z_0-9]*)' tests/c/$cases.c | sed 's/CASE(//; s/)//' | grep -vxF "${names:-none}")
        # shellcheck disable=SC2086
        FRAZIL_GUARD_SCOPE=$cases windows $out/$cases.log $out/$cases.exe $wanted || true
        count_c $out/$cases.log
    done
    result
}

run_python() {
    local site=/python/cp313/site arguments log=/build/python.log
    PYO3_CROSS_PYTHON_VERSION=3.13 cargo build "${cargo[@]}" -p frazil-python
    rm -rf $site/frazil
    cp -r python/frazil $site/
    cp "$built/_frazil.dll" $site/frazil/_frazil.pyd
    choose test_{errors,generator,interop,vectors}.py
    cd tests
    windows $log /python/cp313/python.exe -m pytest -q -p no:cacheprovider --timeout 120 "${arguments[@]}" || true
    count_pytest $log
    result
}

run_node() {
    local library=/build/nodelib tests=/build/node-tests
    mkdir -p $library
    cp /node/bin/node.exe $library/
    # napi-build looks for libnode.dll, and links against an import library of node.exe's exports.
    cp $library/node.exe $library/libnode.dll
    (
        printf 'LIBRARY "node.exe"\nEXPORTS\n'
        x86_64-w64-mingw32-objdump -p $library/node.exe | grep -oE '\b(napi|node_api)_[a-z0-9_]+$' | sort -u
    ) > $library/node.def
    x86_64-w64-mingw32-dlltool -d $library/node.def -l $library/libnode.dll.a
    LIBNODE_PATH=$library cargo rustc "${cargo[@]}" -p frazil-node -- -C link-arg=$library/libnode.dll.a
    rm -rf $tests
    mkdir -p $tests/node/node_modules/frazil
    (cd node && tar cf - --exclude=node_modules --exclude='*.node' .) | tar xf - -C $tests/node/node_modules/frazil
    cp "$built/frazil_node.dll" $tests/node/node_modules/frazil/frazil.node
    cp tests/node/*.mjs tests/node/package.json $tests/node/
    cp -r tests/vectors $tests/
    run_tap windows $library/node.exe $tests/node {errors,generator,interop,stats,threads}.test.mjs
    run_tap ends $library/node.exe $tests/node lease.test.mjs
    result
}

# The server is only for Unix. Its build must fail with one sentence that says so, and with no other error.
run_server() {
    local log=/build/server.log
    ! cargo check "${cargo[@]}" -p frazil-server 2> $log || { echo "frazil-server was built" >&2; exit 1; }
    cat $log
    count "$(grep -c "^error: .* frazil-server is for Unix, and $target is not" $log)" "$(grep -c '^error\[' $log)"
    result
}

case $suite in
    build) build_tests cargo -p frazil-base -p frazil-store -p frazil -p frazil-cli --features frazil/stores,frazil/admin ;;
    c | python | node | server) "run_$suite" ;;
    kills) tests/platforms/kills.py "$built/frazil.exe" 1000 ;;
    # One test at a time, because Ctrl-C reaches all programs of a console.
    command) RUST_TEST_THREADS=1 run_rust .exe in_console ;;
    *) run_rust .exe wine ;;
esac
