#!/bin/bash
# Runs a suite for another Linux, within the folder of run.sh. `build` makes the core's tests and the release's packages, with the
# release's own scripts. The other suites test the installed packages. The last line has libtest's form.
# usage: tests/platforms/linux.sh build | core | a file of core/tests | c | python | node | server    TARGET
set -euo pipefail
case $2 in *-musl*) system=musl ;; aarch64-*) system=arm64 ;; armv7-*) system=arm ;; esac
. tests/platforms/common.sh
packages=/build/packages/$target out=/build/linux/$target
# Node and Python for this system's libc. The builds use those of sid.
node=/opt/node python=/usr pytest=/opt/pytest
[ $system != musl ] || node=/opt/node-musl python=/opt/python-musl pytest=/opt/pytest-musl
[ $system != arm ] || node=/usr pytest=/usr/lib/python3/dist-packages
mkdir -p "$packages" "$out" build
ln -sfn "$packages" build/package
export FRAZIL_HOME=/tmp/frazil-home

build() {
    build_packages
    case $target in *-linux-musl) server/package.sh ;; esac
    . scripts/release-settings.sh
    unset CARGO_ENCODED_RUSTFLAGS
    # The programs of C's tests, linked as by a user. A program without a dynamic linker uses the static library.
    local zig=${target/-unknown/} cases native
    zig=${zig/armv7/arm}
    rm -rf "$out"
    mkdir -p "$out"
    tar xzf "$packages"/c/frazil-*-"$target".tar.gz -C "$out" --strip-components=1
    python3 tests/c/vectors.py > "$out/vectors.h"
    native=$(sed -n 's/^Libs.private: //p' "$out/lib/pkgconfig/frazil.pc")
    for cases in cases cases_interop cases_errors cases_numbers cases_leases cases_waits; do
        python-zig cc -target "$zig" -std=c99 -Wall -Wextra -Werror -I"$out/include" -Itests/c -I"$out" tests/c/$cases.c \
            -L"$out/lib" -Wl,-rpath,"$out/lib" -lfrazil -lpthread -o "$out/$cases"
    done
    # shellcheck disable=SC2086
    python-zig cc -target "$zig" $([ $system != musl ] || echo -static) -std=c99 -I"$out/include" -Itests/c -I"$out" tests/c/cases.c \
        "$out/lib/libfrazil.a" $native -o "$out/cases_static"
    # The core's own tests run once with musl, and once on each processor. Unoptimised, they would take hours under QEMU.
    case $target in a*-musl*) return ;; esac
    [ $system != musl ] || export RUSTFLAGS="$RUSTFLAGS -Ctarget-feature=-crt-static"
    CARGO_PROFILE_DEV_OPT_LEVEL=1 build_tests cargo-zigbuild -p frazil-base -p frazil-store -p frazil --features frazil/stores,frazil/admin
}

# Runs a program, and copies its output to a file.
logged() { # LOG PROGRAM ARGUMENTS
    local log=$1 status=0
    shift
    timeout 900 "$@" > "$log" 2>&1 || status=$?
    cat "$log"
    return $status
}

run_c() {
    local cases
    for cases in cases cases_static cases_interop cases_errors cases_numbers cases_leases cases_waits; do
        FRAZIL_GUARD_SCOPE=$cases logged "$out/$cases.log" "$out/$cases" || true
        count_c "$out/$cases.log"
    done
    result
}

run_python() {
    local arguments log=$out/python.log venv=/tmp/venv
    export PATH=$python/bin:$PATH
    scripts/smoke.sh python
    python3 -m venv $venv
    $venv/bin/python -m pip install --quiet --no-index --find-links build/package/python frazil
    choose test_{errors,generator,guard,interop,lease,numbers,stats,values,vectors}.py
    cd tests
    PYTHONPATH=$pytest $venv/bin/python -m pytest -q -p no:cacheprovider --timeout 300 "${arguments[@]}" | tee $log || true
    count_pytest $log
    result
}

run_node() {
    local tests=/tmp/node-tests
    export PATH=$node/bin:$PATH
    # npm detects the system's libc by this file. The mount ends with the suite.
    if [ $system = musl ]; then echo musl; else echo 'GNU C Library'; fi > /tmp/ldd
    touch /usr/bin/ldd
    mount --bind /tmp/ldd /usr/bin/ldd
    scripts/smoke.sh node
    rm -rf $tests
    mkdir -p $tests/node
    cp tests/node/*.mjs $tests/node/
    echo '{ "private": true, "type": "module" }' > $tests/node/package.json
    cp -r tests/vectors $tests/
    (cd $tests/node && npm install --offline --no-audit --no-fund --loglevel=error "$packages"/node/*.tgz)
    run_tap logged node $tests/node {ahead,bad_input,classes,errors,generator,guard,interop,lease,numbers,starts,stats,threads,vectors}.test.mjs
    result
}

case $suite in
    build) build ;;
    c | python | node) "run_$suite" ;;
    server)
        scripts/smoke.sh server
        count 1 0
        result ;;
    *) run_rust '' ;;
esac
