/* Mints half of the IDs after a line of input, and the other half after another line: mint SPEC COUNT FILE */
#include <frazil.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void check(frazil_status status) {
    if (status != FRAZIL_OK) {
        fprintf(stderr, "%s\n", frazil_last_error());
        exit(1);
    }
}

/* Prints its place, and waits for a line. */
static void meet(const char *place) {
    char line[8];
    puts(place);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) exit(1);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    size_t count = (size_t)strtoull(argv[2], NULL, 10), written = 0;
    int64_t *minted = malloc(count * sizeof *minted);
    frazil_snowflake *ids;
    check(frazil_snowflake_open(argv[1], &ids));
    meet("ready");
    for (size_t i = 0; i < count / 2; i++) check(frazil_snowflake_next(ids, &minted[i]));
    meet("half");
    check(frazil_snowflake_fill(ids, minted + count / 2, count - count / 2, &written));
    FILE *file = fopen(argv[3], "wb");
    if (!file || fwrite(minted, sizeof *minted, count, file) != count || fclose(file)) return 1;
    frazil_snowflake_free(ids);
    free(minted);
    return 0;
}
