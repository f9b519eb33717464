/* Breaks one demand of frazil.h: the fault happens in the library's own code, so only a sanitizer in the library can report it, as in
   tests/sanitizers.sh. */
#include <frazil.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static frazil_snowflake *ids;
static int64_t shared_rows[64];
static size_t written;

static void *fill(void *unused) {
    size_t own;
    (void)unused;
    for (int round = 0; round < 1000; ++round) {
        if (frazil_snowflake_fill(ids, shared_rows, 64, &own) != FRAZIL_OK) return (void *)frazil_last_error();
    }
    return NULL;
}

int main(int count, char **arguments) {
    const char *fault = count > 1 ? arguments[1] : "";
    if (frazil_snowflake_open("standard node=7", &ids) != FRAZIL_OK) return puts(frazil_last_error()), 1;
    if (strcmp(fault, "overflow") == 0) {
        int64_t *rows = malloc(7 * sizeof *rows);
        if (frazil_snowflake_fill(ids, rows, 8, &written) != FRAZIL_OK) return puts(frazil_last_error()), 1;
        free(rows);
    } else if (strcmp(fault, "leak") == 0) {
        frazil_local *local;
        if (frazil_snowflake_local(ids, &local) != FRAZIL_OK) return puts(frazil_last_error()), 1;
        local = NULL;
    } else if (strcmp(fault, "race") == 0) {
        pthread_t threads[2];
        for (int at = 0; at < 2; ++at) pthread_create(&threads[at], NULL, fill, NULL);
        for (int at = 0; at < 2; ++at) pthread_join(threads[at], NULL);
    }
    frazil_snowflake_free(ids);
    return 0;
}
