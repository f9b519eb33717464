# Checks the headers and the library's symbols. run.sh sources it.
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
# All warnings except those about older standards than the header's, about padding, and about a class whose functions are all inline.
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
