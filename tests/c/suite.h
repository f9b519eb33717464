/* A test runner for C99 and C++17: `ok name` or `not ok name` for each case, and a closing line. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test_case {
    const char *name;
    void (*run)(void);
};

static struct test_case all_cases[64];
static size_t case_count;
static bool case_failed;

static void add_case(const char *name, void (*run)(void)) {
    if (case_count == sizeof all_cases / sizeof all_cases[0]) abort();
    all_cases[case_count].name = name;
    all_cases[case_count++].run = run;
}

/* `CASE(name) { ... }` defines a case; all run in the order of the file. */
#define CASE(name)                                                                                                     \
    static void case_##name(void);                                                                                     \
    __attribute__((constructor)) static void add_##name(void) { add_case(#name, case_##name); }                        \
    static void case_##name(void)

static void case_fail(const char *file, int line, const char *what) {
    case_failed = true;
    printf("# %s:%d: %s\n# last error: %s\n", file, line, what, frazil_last_error());
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Ends the case if the condition does not hold. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            case_fail(__FILE__, __LINE__, #condition);                                                                 \
            return;                                                                                                    \
        }                                                                                                              \
    } while (0)

/* Runs all cases, or those that the arguments name. */
static int run_cases(int argc, char **argv) {
    int passed = 0, failed = 0;
    for (size_t i = 0; i < case_count; ++i) {
        bool wanted = argc < 2;
        for (int j = 1; j < argc; ++j) wanted = wanted || strcmp(argv[j], all_cases[i].name) == 0;
        if (!wanted) continue;
        case_failed = false;
        all_cases[i].run();
        printf("%s %s\n", case_failed ? "not ok" : "ok", all_cases[i].name);
        fflush(stdout);
        if (case_failed) ++failed;
        else ++passed;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 && passed > 0 ? 0 : 1;
}
