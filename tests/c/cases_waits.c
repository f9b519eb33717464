/* Waits end: by time, by frazil_snowflake_close() in another thread, with the program. Cases in processes of their own close all. */
#define _GNU_SOURCE

#include "helpers.h"

#include <pthread.h>

/* 16 IDs a second: a thousand take a minute. */
#define SLOW "layout='time:31@1s node:20 sequence:4 epoch:2025-01-01' start=zero exhausted=wait:60s"
#define MANY 1000

struct batch {
    const frazil_snowflake *ids;
    const frazil_numbers *numbers;
    frazil_status status;
    size_t written;
    int64_t buffer[MANY];
};

static void *fill(void *data) {
    struct batch *batch = data;
    batch->status = batch->ids != NULL ? frazil_snowflake_fill(batch->ids, batch->buffer, MANY, &batch->written)
                                       : frazil_numbers_fill(batch->numbers, batch->buffer, MANY, &batch->written);
    return NULL;
}

CASE(wait_ends_with_close) {
    static struct batch ids, numbers;
    frazil_snowflake *slow;
    frazil_numbers *ring;
    pthread_t threads[2];
    OK(frazil_snowflake_open(SLOW " node=1", &slow));
    OK(frazil_buffered_open(SLOW " node=2 size=2 empty=wait:60s", &ring));
    ids.ids = slow;
    numbers.numbers = ring;
    int64_t begun = wall_ms();
    CHECK(pthread_create(&threads[0], NULL, fill, &ids) == 0 && pthread_create(&threads[1], NULL, fill, &numbers) == 0);
    pause_ms(300);
    OK(frazil_snowflake_close(slow));
    OK(frazil_numbers_close(ring));
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    CHECK(wall_ms() - begun < 30000);
    CHECK(ids.status == FRAZIL_CLOSED && ids.written < MANY && ascending(ids.buffer, ids.written));
    CHECK(numbers.status == FRAZIL_CLOSED && numbers.written < MANY);
    frazil_snowflake_free(slow);
    frazil_numbers_free(ring);
}

CASE(wait_bounds) {
    struct folder folder = make_folder();
    char line[200];
    frazil_snowflake *ids;
    frazil_numbers *ring;
    uint64_t node;
    snprintf(line, sizeof line, "standard store=file:%s namespace=waits", folder.path);
    OK(frazil_snowflake_open(line, &ids));
    snprintf(line, sizeof line, "standard store=file:%s namespace=ring size=8", folder.path);
    OK(frazil_buffered_open(line, &ring));
    STATUS(frazil_snowflake_try_renew(ids, -1), FRAZIL_OUT_OF_RANGE);
    CHECK(error_has("max_wait_ms=-1"));
    STATUS(frazil_snowflake_try_close(ids, INT64_MIN), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_numbers_try_renew(ring, -1), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_numbers_try_close(ring, -1), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_close_all(-1), FRAZIL_OUT_OF_RANGE);
    REFUSED(frazil_snowflake_try_renew(NULL, 0), "ids");
    REFUSED(frazil_snowflake_try_close(NULL, 0), "ids");
    REFUSED(frazil_numbers_try_renew(NULL, 0), "numbers");
    REFUSED(frazil_numbers_try_close(NULL, 0), "numbers");
    OK(frazil_snowflake_try_renew(ids, INT64_MAX));
    OK(frazil_numbers_try_renew(ring, 60000));
    OK(frazil_snowflake_node(ids, &node));
    OK(frazil_snowflake_try_close(ids, 60000));
    for (int i = 0; i < 6000 && !is_free(folder, "waits", node); ++i) pause_ms(10);
    CHECK(is_free(folder, "waits", node));
    /* At once, and the rest in the background; then there is none. */
    frazil_status closed = frazil_numbers_try_close(ring, 0);
    for (int i = 0; i < 6000 && closed == FRAZIL_WOULD_BLOCK; ++i) {
        pause_ms(10);
        closed = frazil_numbers_try_close(ring, 0);
    }
    CHECK(closed == FRAZIL_OK);
    frazil_snowflake_free(ids);
    frazil_numbers_free(ring);
    remove_folder(folder);
}

CASE(wait_close_all) {
    struct folder folder = make_folder();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char line[200];
        frazil_snowflake *leased, *given;
        int64_t id;
        uint64_t node;
        snprintf(line, sizeof line, "standard store=file:%s namespace=all", folder.path);
        if (frazil_snowflake_open(line, &leased) != FRAZIL_OK || frazil_snowflake_open("standard node=9", &given) != FRAZIL_OK) end_child(__LINE__);
        if (frazil_snowflake_next(leased, &id) != FRAZIL_OK || frazil_snowflake_node(leased, &node) != FRAZIL_OK) end_child(__LINE__);
        if (frazil_close_all(60000) != FRAZIL_OK) end_child(__LINE__);
        /* A store is waited for no longer than a call of it may take, which on a slow machine is not enough. */
        for (int i = 0; i < 6000 && !is_free(folder, "all", node); ++i) pause_ms(10);
        if (!is_free(folder, "all", node)) end_child(__LINE__);
        if (frazil_snowflake_next(leased, &id) != FRAZIL_CLOSED || frazil_snowflake_next(given, &id) != FRAZIL_OK) end_child(__LINE__);
        frazil_snowflake_free(leased);
        frazil_snowflake_free(given);
        if (frazil_close_all(0) != FRAZIL_OK) end_child(__LINE__);
        end_child(0);
    }
    CHECK(ended_well(child));
    remove_folder(folder);
}

static void tell(const char *text, void *data) {
    snprintf(data, 500, "%s", text);
}

/* A crashed holder's number is waited for; whoever waits says so. */
CASE(wait_is_told) {
    static char told[500];
    struct folder folder = make_folder();
    char line[200];
    frazil_snowflake *ids;
    snprintf(line, sizeof line, "standard node=3 store=file:%s window=6s renew=500ms rollback=error", folder.path);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) end_child(frazil_snowflake_open(line, &ids) != FRAZIL_OK);
    CHECK(ended_well(child));
    OK(frazil_on_wait(tell, told));
    OK(frazil_snowflake_open(line, &ids));
    OK(frazil_on_wait(NULL, NULL));
    CHECK(strstr(told, "namespace=default: waiting: all node numbers that the spec allows are held; the next may be free at 2") != NULL);
    frazil_snowflake_free(ids);
    remove_folder(folder);
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
