#!/bin/sh
# Builds the C library, checks its headers and symbols, and runs the C and C++ suites.
# usage: tests/c/run.sh [--release | --built [K]]
#   --built: tests the library that c-api/build.sh has built, which other suites may use at the same time
#   K: runs only the cases whose names contain it
set -eu
cd "$(dirname "$0")/../.."
: "${CC:=cc}" "${CXX:=c++}" "${CLANG:=clang}"
warnings="-pedantic -Wall -Wextra -Wshadow -Werror"
out=build/c/tests
lib=$PWD/build/c/lib
only=''
if [ "${1:-}" = --built ]; then only=${2:-}; else c-api/build.sh "$@"; fi
mkdir -p "$out"
python3 tests/c/vectors.py > "$out/vectors.h"
[ -n "$only" ] || . tests/c/headers.sh

# Prints the cases of a program that K selects. Without K it prints nothing, and the program runs all of them.
wanted() { # PROGRAM
    [ -n "$only" ] || return 0
    source=tests/c/$(echo "$1" | sed 's/_\(c\|cpp\)\(_[a-z]*\)\{0,1\}$/.\1/; s/_c++[0-9]*$/.cpp/; s/^cases_results$/&.cpp/')
    sed -n 's/^CASE(\([a-z_0-9]*\)).*/\1/p' "$source" | grep -F -e "$only"
}
# Compiles a program, if the run wants it.
build() { # PROGRAM COMPILER ARGUMENT...
    program=$1
    shift
    ! wanted "$program" > /dev/null || "$@" -o "$out/$program"
}

echo "== suites build"
includes="-Ibuild/c/include -Itests/c -I$out"
# The shell splits this at spaces, so it has no absolute path: the checkout's may contain a space.
shared='-Lbuild/c/lib -Wl,-rpath,$ORIGIN/../lib -lfrazil -lpthread'
native=$(sed -n 's/^Libs.private: //p' "$lib/pkgconfig/frazil.pc")
for cases in cases cases_leases cases_errors cases_interop; do
    build "${cases}_c_static" "$CC" -g -std=c99 $warnings $includes tests/c/$cases.c "$lib/libfrazil.a" $native
done
for cases in cases cases_leases cases_errors cases_interop cases_numbers cases_waits cases_cancel; do
    build "${cases}_c" "$CC" -g -std=c99 $warnings $includes tests/c/$cases.c $shared
done
for cases in cases cases_numbers cases_waits; do
    build "${cases}_cpp" "$CXX" -g -std=c++17 $warnings $includes tests/c/$cases.cpp $shared
done
for std in c++17 c++20; do
    build "cases_values_$std" "$CXX" -g -std=$std $warnings $includes tests/c/cases_values.cpp $shared
done
build "cases_results" "$CXX" -g -std=c++17 $warnings -fno-exceptions -fno-rtti $includes tests/c/cases_results.cpp $shared

# Programs with AddressSanitizer and UBSan may call the library. cases_cancel is left out: GCC 12's AddressSanitizer fails on cancelled threads.
sanitized="-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all"
for cases in cases cases_leases cases_errors cases_interop cases_numbers cases_waits; do
    build "${cases}_c_sanitized" "$CC" $sanitized -std=c99 $warnings $includes tests/c/$cases.c $shared
done
# With the sanitizers, GCC 12 falsely warns of an uninitialized optional.
build "cases_cpp_sanitized" "$CXX" $sanitized -std=c++17 $warnings -Wno-maybe-uninitialized $includes tests/c/cases.cpp $shared

if [ -z "$only" ]; then
    "$CC" -g -std=c99 $warnings $includes tests/c/cases_unload.c -ldl -lpthread -o "$out/cases_unload_c"

    echo "== ThreadSanitizer reports nothing of the library, and still a race of the program"
    "$CC" -g -O1 -std=c99 $warnings $includes -fsanitize=thread tests/c/cases_races.c $shared -o "$out/cases_races_c"
    # With too much address randomization, ThreadSanitizer finds no place for its shadow memory.
    fixed=''
    ! setarch "$(uname -m)" -R true 2>/dev/null || fixed="setarch $(uname -m) -R"
    suppressions="suppressions='$PWD/c-api/tsan.supp'"
    TSAN_OPTIONS=$suppressions $fixed "$out/cases_races_c"
    if TSAN_OPTIONS=$suppressions $fixed "$out/cases_races_c" raced > "$out/raced" 2>&1; then
        echo "a race of the program is not reported" >&2
        exit 1
    fi
    grep -q 'data race.*cases_races.c' "$out/raced"

    echo "== cases_unload_c"
    "$out/cases_unload_c" "$lib/libfrazil.so"
fi
# Long programs run first, three at a time because they often wait; each one's output is printed in one piece. Two runs of one suite use
# the same numbers, so each run has its own scope. "Possibly lost" is not reported, because Rust's Arcs point into the middle of their blocks.
suites="cases_leases_c cases_cpp cases_numbers_c cases_numbers_cpp cases_waits_c cases_c cases_errors_c cases_interop_c cases_cancel_c
    cases_waits_cpp cases_values_c++20 cases_results"
valgrind="valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect
    --errors-for-leak-kinds=definite,indirect --child-silent-after-fork=yes"
for suite in $suites; do
    echo "$suite" $valgrind
done > "$out/list"
for suite in $suites; do
    [ -e "$out/${suite}_sanitized" ] && echo "${suite}_sanitized" || echo "$suite"
done >> "$out/list"
printf '%s\n' cases_c_static cases_leases_c_static cases_errors_c_static cases_interop_c_static cases_values_c++17 >> "$out/list"
while read -r suite under; do
    ! cases=$(wanted "$suite") || echo "$suite" "'$under'" $cases
done < "$out/list" > "$out/wanted"
xargs -r -P 3 -L 1 sh -c '
    suite=$1 under=$2 name=${2:-plain} status=0
    shift 2
    said=$0/$suite.${name%% *}
    FRAZIL_GUARD_SCOPE=$FRAZIL_GUARD_SCOPE/$said $under "$0/$suite" "$@" > "$said" 2>&1 || status=1
    printf "== %s%s\n%s\n" "$suite" "${under:+ under ${under%% *}}" "$(cat "$said")"
    exit $status
' "$out" < "$out/wanted"
if [ -z "$only" ]; then
    # At the end, because cargo waits for other builds in the same folder.
    echo "== header is up to date"
    c-api/generate.sh --check
fi
