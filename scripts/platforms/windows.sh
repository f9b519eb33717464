#!/bin/bash
# The bindings for Windows, within the folder of platforms.sh: builds one, and runs its tests under Wine.
# usage: scripts/platforms/windows.sh c | python | node     prints `test result: ok. N passed; M failed; K ignored` at the end, as libtest does
set -euo pipefail
target=x86_64-pc-windows-gnu
built=/build/$target/debug
cargo=(-q --locked -Zbuild-std=std,panic_unwind --target $target)
left_out=0

# The cases that cannot pass here: scripts/platforms/left-out says why.
left_out() { # SUITE
    awk -v suite="$1" '$1 == suite { print $2 }' scripts/platforms/left-out
}

# Runs a program of Windows, whose output is a file: Node cannot open a pipe of Linux'.
windows() { # LOG PROGRAM ARGUMENTS
    local log=$1 status=0
    shift
    timeout 300 wine "$@" < /dev/null > "$log" 2> "$log.errors" || status=$?
    grep -av ':fixme:\|:err:' "$log.errors" >&2 || true
    cat "$log"
    return $status
}

result() { # PASSED FAILED
    echo "test result: ok. $1 passed; $2 failed; $left_out ignored"
    [ "$2" = 0 ]
}

c() {
    local passed=0 failed=0 out=/build/c suite names wanted counts
    cargo build "${cargo[@]}" -p frazil-c
    mkdir -p $out
    cp $built/frazil.dll /usr/x86_64-w64-mingw32/lib/libwinpthread-1.dll $out/
    python3 tests/c/vectors.py > $out/vectors.h
    for suite in cases cases_interop cases_errors; do
        x86_64-w64-mingw32-gcc -w -fpermissive -std=gnu99 -D__USE_MINGW_ANSI_STDIO=1 -Iscripts/platforms/include -Iinclude -Itests/c -I$out \
            tests/c/$suite.c $built/libfrazil.dll.a -lpthread -lws2_32 -o $out/$suite.exe
        names=$(left_out $suite.c)
        left_out=$((left_out + $(wc -w <<< "$names")))
        wanted=$(grep -o '^CASE([a-z_0-9]*)' tests/c/$suite.c | sed 's/CASE(//; s/)//' | grep -vxF "${names:-none}")
        # shellcheck disable=SC2086
        FRAZIL_GUARD_SCOPE=$suite windows $out/$suite.log $out/$suite.exe $wanted || true
        counts=$(grep -ao '[0-9]* passed, [0-9]* failed' $out/$suite.log) || counts='0 passed, 1 failed'
        passed=$((passed + ${counts%% passed*}))
        counts=${counts##*, }
        failed=$((failed + ${counts%% failed*}))
    done
    result $passed $failed
}

python() {
    local site=/python/cp313/site suite arguments=() name log=/build/python.log counts passed failed
    PYO3_CROSS_PYTHON_VERSION=3.13 cargo build "${cargo[@]}" -p frazil-python
    rm -rf $site/frazil
    cp -r python/frazil $site/
    cp $built/_frazil.dll $site/frazil/_frazil.pyd
    for suite in vectors interop errors generator; do
        for name in $(left_out test_$suite.py); do
            arguments+=(--deselect "test_$suite.py::$name")
            left_out=$((left_out + 1))
        done
        arguments+=("test_$suite.py")
    done
    cd tests/python
    FRAZIL_GUARD_SCOPE=python windows $log /python/cp313/python.exe -m pytest -q -p no:cacheprovider --timeout 120 "${arguments[@]}" || true
    counts=$(tail -1 $log)
    passed=$(grep -o '[0-9]* passed' <<< "$counts" || echo 0)
    failed=$(grep -o '[0-9]* failed' <<< "$counts" || echo 0)
    # Where nothing was counted the run did not come to its end.
    [ "${passed%% *}" != 0 ] || failed=1
    result "${passed%% *}" "${failed%% *}"
}

node() {
    local library=/build/nodelib tests=/build/node-tests suite log skip passed=0 failed=0 name
    mkdir -p $library
    cp /node/bin/node.exe $library/
    # napi-build looks for it, and links against an import library: of node.exe's own exports.
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
    cp $built/frazil_node.dll $tests/node/node_modules/frazil/frazil.node
    cp tests/node/*.mjs tests/node/package.json $tests/node/
    cp -r tests/vectors $tests/
    for suite in generator errors interop stats threads; do
        log=/build/node-$suite.log skip=()
        for name in $(left_out $suite.test.mjs); do
            skip+=("--test-skip-pattern=^$name")
            left_out=$((left_out + 1))
        done
        (cd $tests/node && FRAZIL_GUARD_SCOPE=node-$suite windows $log $library/node.exe --test-reporter=tap "${skip[@]}" $suite.test.mjs) || true
        passed=$((passed + $(sed -n 's/^# pass //p' $log)))
        failed=$((failed + $(sed -n 's/^# fail //p' $log || echo 1)))
    done
    result $passed $failed
}

"$1"
