/* dlclose does not unload the library: its threads may still run, and its record of fixed numbers in use must outlive it. The program is not
   linked with the library; its first argument is the library's path. */
#define _GNU_SOURCE

#include <frazil.h>

/* suite.h prints this text. The program is not linked with the library, so it has no other. */
#define frazil_last_error() "unknown: the library was closed"
#include "suite.h"
#undef frazil_last_error

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define COUNT_AHEAD 100000

static const char *path;

/* One use of a plugin: open the library, use it in a thread that ends, close it. */
struct use {
    const char *spec;
    size_t count;
    bool worked;
    int64_t first, last;
    void *library;
};

static void *run_use(void *data) {
    struct use *use = data;
    frazil_snowflake *ids;
    static int64_t many[COUNT_AHEAD];
    void *library = use->library;
    frazil_status (*open)(const char *, frazil_snowflake **);
    frazil_status (*fill)(const frazil_snowflake *, int64_t *, size_t, size_t *);
    void (*free_ids)(frazil_snowflake *);
    const char *(*last_error)(void);
    *(void **)&open = dlsym(library, "frazil_snowflake_open");
    *(void **)&fill = dlsym(library, "frazil_snowflake_fill");
    *(void **)&free_ids = dlsym(library, "frazil_snowflake_free");
    *(void **)&last_error = dlsym(library, "frazil_last_error");
    if (open == NULL || fill == NULL || free_ids == NULL || last_error == NULL) return NULL;
    if (open(use->spec, &ids) != FRAZIL_OK || fill(ids, many, use->count, NULL) != FRAZIL_OK) {
        printf("# %s\n", last_error());
        return NULL;
    }
    use->first = many[0];
    use->last = many[use->count - 1];
    use->worked = true;
    free_ids(ids);
    return NULL;
}

static bool used(struct use *use) {
    pthread_t thread;
    use->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (use->library == NULL) printf("# %s\n", dlerror());
    if (use->library == NULL || pthread_create(&thread, NULL, run_use, use) != 0) return false;
    pthread_join(thread, NULL);
    return dlclose(use->library) == 0 && use->worked;
}

/* A library that is loaded again does not repeat IDs that it has issued ahead of the clock. */
CASE(unload_keeps_what_was_issued) {
    struct use before = {"standard node=1 start=zero exhausted=ahead:1h rollback=ahead:1h", COUNT_AHEAD, false, 0, 0, NULL}, after = before;
    CHECK(used(&before));
    after.count = 1;
    CHECK(used(&after));
    CHECK(after.first > before.last);
}

CASE(unload_keeps_the_library_mapped) {
    struct use given = {"standard node=2", 1, false, 0, 0, NULL};
    CHECK(used(&given));
    void *still = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    CHECK(still != NULL);
    dlclose(still);
}

/* The thread that renews the lease runs for a while after the handle was freed. */
CASE(unload_while_threads_run) {
    struct use leased = {"standard store=memory", 1, false, 0, 0, NULL};
    struct use ring = leased;
    ring.spec = "standard store=memory namespace=other";
    for (int i = 0; i < 20; ++i) CHECK(used(&leased) && used(&ring));
    /* The thread has usually ended by now. */
    sleep(2);
    CHECK(used(&leased));
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    path = argv[1];
    argv[1] = argv[0];
    return run_cases(argc - 1, argv + 1);
}
