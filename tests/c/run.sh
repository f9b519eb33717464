#!/bin/sh
# Builds the C library, checks its headers and symbols, and runs the C and C++ suites.
# usage: tests/c/run.sh [--release | --built]
#   --built: the library that c-api/build.sh has built, which others may use meanwhile
set -eu
cd "$(dirname "$0")/../.."
: "${CC:=cc}" "${CXX:=c++}" "${CLANG:=clang}"
warnings="-pedantic -Wall -Wextra -Wshadow -Werror"
out=build/c/tests
lib=$PWD/build/c/lib

echo "== header is up to date"
c-api/generate.sh --check
[ "${1:-}" = --built ] || c-api/build.sh "$@"
mkdir -p "$out"
python3 tests/c/vectors.py > "$out/vectors.h"

echo "== exported symbols are those of the header"
nm -D --defined-only "$lib/libfrazil.so" | awk '{print $3}' | sort > "$out/exported"
grep -o '\bfrazil_[a-z0-9_]*(' include/frazil.h | tr -d '(' | sort -u > "$out/mentioned"
grep -E '^[a-z].*\bfrazil_[a-z0-9_]*\(' include/frazil.h | grep -o '\bfrazil_[a-z0-9_]*(' | tr -d '(' | sort > "$out/declared"
diff "$out/declared" "$out/exported"
diff "$out/declared" "$out/mentioned"
soname=$(readelf -d "$lib/libfrazil.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
[ "$soname" = "$(readlink "$lib/libfrazil.so")" ] || { echo "the library names itself $soname, its link does not" >&2; exit 1; }

echo "== headers compile alone, twice, in two units, in every standard"
for number in 1 2; do
    printf '#include <frazil.h>\n#include <frazil.h>\nint unit_%s(void);\nint unit_%s(void) { return FRAZIL_OK; }\n' $number $number > "$out/unit_$number.c"
    printf '#include <frazil.hpp>\n#include <frazil.hpp>\nint unit_%s();\nint unit_%s() { return frazil::layout::parse("leaf") ? 0 : 1; }\n' $number $number \
        > "$out/unit_$number.cpp"
done
printf 'int unit_1(void);\nint unit_2(void);\nint main(void) { return unit_1() + unit_2(); }\n' | tee "$out/main.c" > "$out/main.cpp"
# All warnings but those of older standards than the header's, of padding, and of a class without a function in a unit of its own.
everything="-Weverything -Werror -Wno-padded -Wno-weak-vtables -Wno-c++98-compat -Wno-c++98-compat-pedantic -Wno-c++98-compat-local-type-template-args
    -Wno-pre-c++14-compat -Wno-pre-c++17-compat"
for std in c99 c11 c17 c2x; do
    "$CC" -std=$std $warnings -Wconversion -Ibuild/c/include "$out/unit_1.c" "$out/unit_2.c" "$out/main.c" -o "$out/units"
    "$CLANG" -std=$std $everything -Ibuild/c/include -fsyntax-only "$out/unit_1.c"
done
for compiler in "$CXX" "$CLANG"; do
    "$compiler" -std=c++14 -Ibuild/c/include -fsyntax-only "$out/unit_1.cpp" 2>&1 | grep -q 'frazil.hpp needs C++17: compile with -std=c++17 or later'
done
printf '#include <frazil.hpp>\nint main() { frazil::snowflake{"standard node=1"}.next(); }\n' > "$out/discards.cpp"
! "$CXX" -std=c++17 $warnings -Ibuild/c/include -fsyntax-only "$out/discards.cpp" 2> "$out/discards.log"
grep -q nodiscard "$out/discards.log"
for std in c++17 c++20 c++2b; do
    "$CXX" -std=$std $warnings -Wconversion -Ibuild/c/include -c "$out/unit_1.cpp" -o "$out/unit_1.o"
    "$CLANG" -std=$std $everything -Ibuild/c/include -fsyntax-only "$out/unit_1.cpp"
    for flags in "" "-fno-exceptions -fno-rtti" "-DFRAZIL_NO_EXCEPTIONS"; do
        "$CXX" -std=$std $warnings $flags -Ibuild/c/include -c "$out/unit_2.cpp" -o "$out/unit_2.o"
        "$CXX" "$out/main.cpp" "$out/unit_1.o" "$out/unit_2.o" -L"$lib" -Wl,-rpath,"$lib" -lfrazil -o "$out/units"
        "$out/units"
    done
done

echo "== a buffer of another type is one error, which names the right one"
{
    printf '#include <frazil.hpp>\n#include <set>\n'
    for buffer in 'std::vector<std::int32_t>' 'std::vector<std::uint64_t>' 'std::vector<double>' 'const std::vector<std::int64_t>' \
        'std::set<std::int64_t>' std::string 'const std::int64_t[2]'; do
        printf 'void f(const frazil::snowflake &ids, std::add_lvalue_reference_t<%s> all) { ids.fill(all); ids.fill_for(all, std::chrono::seconds(1)); }\n' "$buffer"
    done
} > "$out/buffers.cpp"
for compiler in "$CXX" "$CLANG"; do
    "$compiler" -std=c++17 -Ibuild/c/include -fsyntax-only "$out/buffers.cpp" 2> "$out/buffers.log" || true
    [ "$(grep -c 'error:.*needs a contiguous container of std::int64_t' "$out/buffers.log")" = 14 ]
    [ "$(grep -c 'error:' "$out/buffers.log")" = 14 ]
done

echo "== a status that is dropped is a warning, of every call"
[ "$(grep -c '^frazil_status frazil_' include/frazil.h)" = "$(grep -A1 '^FRAZIL_NODISCARD$' include/frazil.h | grep -c '^frazil_status frazil_')" ]
printf '#include <frazil.h>\nvoid unit(const frazil_snowflake *ids) { frazil_snowflake_close(ids); }\n' | tee "$out/drop.c" > "$out/drop.cpp"
for unit in "$CC -std=c99 $out/drop.c" "$CC -std=c17 $out/drop.c" "$CC -std=c2x $out/drop.c" "$CXX -std=c++11 $out/drop.cpp" "$CXX -std=c++17 $out/drop.cpp"; do
    $unit -c -o "$out/drop.o" $warnings -Ibuild/c/include 2> "$out/drop.log" && { echo "$unit: dropped without a warning" >&2; exit 1; }
    grep -q 'unused-result' "$out/drop.log"
    $unit -c -o "$out/drop.o" $warnings -DFRAZIL_NODISCARD= -Ibuild/c/include
done

echo "== suites build"
includes="-Ibuild/c/include -Itests/c -I$out"
# Of these words none may have a space, which the path of the checkout may.
shared='-Lbuild/c/lib -Wl,-rpath,$ORIGIN/../lib -lfrazil -lpthread'
native=$(sed -n 's/^Libs.private: //p' "$lib/pkgconfig/frazil.pc")
for cases in cases cases_leases cases_errors cases_interop; do
    "$CC" -g -std=c99 $warnings $includes tests/c/$cases.c "$lib/libfrazil.a" $native -o "$out/${cases}_c_static"
done
for cases in cases cases_leases cases_errors cases_interop cases_numbers cases_waits cases_cancel; do
    "$CC" -g -std=c99 $warnings $includes tests/c/$cases.c $shared -o "$out/${cases}_c"
done
for cases in cases cases_numbers cases_waits; do
    "$CXX" -g -std=c++17 $warnings $includes tests/c/$cases.cpp $shared -o "$out/${cases}_cpp"
done
for std in c++17 c++20; do
    "$CXX" -g -std=$std $warnings $includes tests/c/cases_values.cpp $shared -o "$out/cases_values_$std"
done
"$CXX" -g -std=c++17 $warnings -fno-exceptions -fno-rtti $includes tests/c/cases_results.cpp $shared -o "$out/cases_results"

# Whoever calls the library may be built with AddressSanitizer and UBSan. A cancelled thread is left out: GCC 12's takes its stack for a buffer.
sanitized="-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all"
for cases in cases cases_leases cases_errors cases_interop cases_numbers cases_waits; do
    "$CC" $sanitized -std=c99 $warnings $includes tests/c/$cases.c $shared -o "$out/${cases}_c_sanitized"
done
# GCC 12 sees an optional that is not there, where the sanitizers are.
"$CXX" $sanitized -std=c++17 $warnings -Wno-maybe-uninitialized $includes tests/c/cases.cpp $shared -o "$out/cases_cpp_sanitized"

"$CC" -g -std=c99 $warnings $includes tests/c/cases_unload.c -ldl -lpthread -o "$out/cases_unload_c"

echo "== ThreadSanitizer reports nothing of the library, and still a race of the program"
"$CC" -g -O1 -std=c99 $warnings $includes -fsanitize=thread tests/c/cases_races.c $shared -o "$out/cases_races_c"
# It finds no place for its shadow memory where addresses are too random.
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
# The long ones first, three at a time, because they often wait; what each says in one piece. Two runs of one suite use the same numbers, so each
# run has a scope of its own.
# Rust's Arcs point into their blocks, which is all that "possibly lost" means here.
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
xargs -P 3 -L 1 sh -c '
    suite=$1 status=0
    shift
    said=$0/$suite.${1:-plain}
    FRAZIL_GUARD_SCOPE=$FRAZIL_GUARD_SCOPE/$said "$@" "$0/$suite" > "$said" 2>&1 || status=1
    printf "== %s%s\n%s\n" "$suite" "${1:+ under $1}" "$(cat "$said")"
    exit $status
' "$out" < "$out/list"
