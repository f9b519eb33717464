/* Mints IDs from a given instant on: mint SPEC COUNT START_UNIX_MS FILE */
#define _POSIX_C_SOURCE 200809L
#include <frazil.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void check(frazil_status status) {
    if (status != FRAZIL_OK) {
        fprintf(stderr, "%s\n", frazil_last_error());
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    size_t count = (size_t)strtoull(argv[2], NULL, 10), written = 0;
    long long start = strtoll(argv[3], NULL, 10);
    int64_t *minted = malloc(count * sizeof *minted);
    frazil_snowflake *ids;
    check(frazil_snowflake_open(argv[1], &ids));
    struct timespec now;
    do clock_gettime(CLOCK_REALTIME, &now); while (now.tv_sec * 1000LL + now.tv_nsec / 1000000 < start);
    for (size_t i = 0; i < count / 2; i++) check(frazil_snowflake_next(ids, &minted[i]));
    check(frazil_snowflake_fill(ids, minted + count / 2, count - count / 2, &written));
    FILE *file = fopen(argv[4], "wb");
    if (!file || fwrite(minted, sizeof *minted, count, file) != count || fclose(file)) return 1;
    frazil_snowflake_free(ids);
    free(minted);
    return 0;
}
