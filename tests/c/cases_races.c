/* Threads share a generator, and open and close others. With c-api/tsan.supp, ThreadSanitizer reports nothing. With an argument, the program
   itself contains a race, which ThreadSanitizer must still report. */
#include <frazil.h>
#include <pthread.h>
#include <stdio.h>

#define THREADS 4
#define LEASED "standard store=memory namespace=races"

static frazil_snowflake *shared;
static int raced, counted;

#define NEED(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) != FRAZIL_OK) return (void *)frazil_last_error();                                                   \
    } while (0)

static void *mint(void *unused) {
    (void)unused;
    for (int round = 0; round < 200; ++round) {
        int64_t ids[64], id;
        size_t written;
        frazil_snowflake *own;
        frazil_stats stats;
        NEED(frazil_snowflake_fill(shared, ids, 64, &written));
        NEED(frazil_snowflake_open(LEASED, &own));
        NEED(frazil_snowflake_next(own, &id));
        NEED(frazil_snowflake_stats(own, &stats, sizeof stats));
        frazil_snowflake_free(own);
        if (raced) ++counted;
    }
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t threads[THREADS];
    int failed = 0;
    (void)arguments;
    raced = count > 1;
    if (frazil_snowflake_open(LEASED, &shared) != FRAZIL_OK) return puts(frazil_last_error()), 1;
    for (int at = 0; at < THREADS; ++at) {
        if (pthread_create(&threads[at], NULL, mint, NULL) != 0) return puts("no thread"), 1;
    }
    for (int at = 0; at < THREADS; ++at) {
        void *error;
        pthread_join(threads[at], &error);
        /* The error's text is freed at the end of its thread. */
        if (error) failed = 1;
    }
    frazil_snowflake_free(shared);
    return failed;
}
