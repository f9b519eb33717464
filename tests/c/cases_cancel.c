/* pthread_cancel takes effect only after a call of frazil has returned, because the library's frames cannot be unwound. Each case runs in its own
   process, because an unwinding would abort the process. */
#define _GNU_SOURCE

#include "helpers.h"

#include <pthread.h>

/* One ID a second: the second call of a second waits. */
#define SLOW "layout='time:31@1s node:31 sequence:1 epoch:2025-01-01' start=zero exhausted=wait:60s"

struct calls {
    /* Returns 0, or the line of the failed check. */
    int (*run)(void *data);
    void *data;
    int state, type;
    int failed;
    bool returned;
};

#define NEED(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) return __LINE__;                                                                             \
    } while (0)

static void *cancelled_before(void *data) {
    struct calls *calls = data;
    int state = -1, type = -1, other;
    pthread_setcanceltype(calls->type, NULL);
    pthread_setcancelstate(calls->state, NULL);
    /* With the deferred type, the cancellation acts at the next cancellation point. A wait has many. */
    if (calls->type == PTHREAD_CANCEL_DEFERRED) pthread_cancel(pthread_self());
    calls->failed = calls->run(calls->data);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    if (calls->failed == 0 && (state != calls->state || type != calls->type)) calls->failed = __LINE__;
    calls->returned = true;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &other);
    pthread_testcancel();
    return NULL;
}

/* Runs calls in a thread that is cancelled before it makes them. The calls return normally and do not change the thread's settings. Then the
   thread ends. */
static bool survives(struct calls calls) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        void *result = NULL;
        if (pthread_create(&thread, NULL, cancelled_before, &calls) != 0 || pthread_join(thread, &result) != 0) end_child(__LINE__);
        bool cancelled = calls.type == PTHREAD_CANCEL_DEFERRED;
        if (!calls.returned || (result == PTHREAD_CANCELED) != cancelled) end_child(__LINE__);
        end_child(calls.failed);
    }
    return ended_well(child);
}

/* Runs the calls in both cancellation states and types of a thread. A thread of the asynchronous type is not cancelled during a call. */
static bool survives_all(int (*run)(void *data), void *data) {
    return survives((struct calls){run, data, PTHREAD_CANCEL_ENABLE, PTHREAD_CANCEL_DEFERRED, 0, false}) &&
           survives((struct calls){run, data, PTHREAD_CANCEL_DISABLE, PTHREAD_CANCEL_DEFERRED, 0, false}) &&
           survives((struct calls){run, data, PTHREAD_CANCEL_ENABLE, PTHREAD_CANCEL_ASYNCHRONOUS, 0, false});
}

static int wait_for_ids(void *data) {
    frazil_snowflake *ids;
    int64_t id, three[3];
    char text[FRAZIL_ID_TEXT_SIZE];
    size_t written;
    (void)data;
    NEED(frazil_snowflake_open(SLOW " node=1", &ids) == FRAZIL_OK);
    for (int i = 0; i < 3; ++i) NEED(frazil_snowflake_next(ids, &id) == FRAZIL_OK);
    for (int i = 0; i < 3; ++i) NEED(frazil_snowflake_next_for(ids, 60000, &id) == FRAZIL_OK);
    for (int i = 0; i < 3; ++i) NEED(frazil_snowflake_text(ids, FRAZIL_HEX, text, sizeof text) == FRAZIL_OK);
    NEED(frazil_snowflake_fill(ids, three, 3, &written) == FRAZIL_OK && written == 3);
    NEED(frazil_snowflake_fill_for(ids, 60000, three, 3, NULL) == FRAZIL_OK);
    NEED(frazil_snowflake_batch(ids, three, 3) == FRAZIL_OK);
    frazil_snowflake_free(ids);
    return 0;
}

CASE(cancel_waits_for_ids) { CHECK(survives_all(wait_for_ids, NULL)); }

static void *wait_and_return(void *data) {
    struct calls *calls = data;
    calls->failed = calls->run(calls->data);
    calls->returned = true;
    pthread_testcancel();
    return NULL;
}

/* The usual case of a program: one thread cancels another that waits. */
CASE(cancel_by_another_thread) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        void *result = NULL;
        struct calls calls = {wait_for_ids, NULL, PTHREAD_CANCEL_ENABLE, PTHREAD_CANCEL_DEFERRED, 0, false};
        if (pthread_create(&thread, NULL, wait_and_return, &calls) != 0) end_child(__LINE__);
        pause_ms(500);
        if (pthread_cancel(thread) != 0 || pthread_join(thread, &result) != 0) end_child(__LINE__);
        if (!calls.returned || result != PTHREAD_CANCELED) end_child(__LINE__);
        end_child(calls.failed);
    }
    CHECK(ended_well(child));
}

static int lease(void *data) {
    const struct folder *folder = data;
    char line[200];
    frazil_snowflake *ids, *same;
    frazil_lease lease;
    int64_t id;
    snprintf(line, sizeof line, "standard store=file:%s", folder->path);
    NEED(frazil_snowflake_open(line, &ids) == FRAZIL_OK && frazil_snowflake_next(ids, &id) == FRAZIL_OK);
    NEED(frazil_snowflake_open_for(line, 60000, &same) == FRAZIL_OK);
    NEED(frazil_snowflake_release_node(ids) == FRAZIL_OK && frazil_snowflake_release_node_for(ids, 60000) == FRAZIL_OK);
    NEED(frazil_snowflake_next(ids, &id) == FRAZIL_OK);
    NEED(frazil_snowflake_lease(ids, &lease, sizeof lease) == FRAZIL_OK && lease.leased);
    NEED(frazil_snowflake_close(same) == FRAZIL_OK && frazil_snowflake_close_for(ids, 60000) == FRAZIL_OK);
    frazil_snowflake_free(same);
    frazil_snowflake_free(ids);
    NEED(frazil_snowflake_open(line, &ids) == FRAZIL_OK);
    NEED(frazil_close_all(60000) == FRAZIL_OK);
    frazil_snowflake_free(ids);
    return 0;
}

CASE(cancel_leases) {
    struct folder folder = make_folder();
    CHECK(survives_all(lease, &folder));
    remove_folder(folder);
}

static int take_numbers(void *data) {
    const struct folder *folder = data;
    char line[300];
    frazil_numbers *orders, *ring, *tickets;
    int64_t number, many[3000];
    snprintf(line, sizeof line, "orders store=file:%s step=1000 wait=60s", folder->path);
    NEED(frazil_segment_open(line, &orders) == FRAZIL_OK && frazil_numbers_next(orders, &number) == FRAZIL_OK);
    NEED(frazil_numbers_fill(orders, many, 3000, NULL) == FRAZIL_OK && frazil_numbers_batch(orders, many, 3000) == FRAZIL_OK);
    NEED(frazil_numbers_discard(orders) == FRAZIL_OK);
    for (int i = 0; i < 3000; ++i) NEED(frazil_numbers_next_for(orders, 60000, &number) == FRAZIL_OK);
    NEED(frazil_numbers_close(orders) == FRAZIL_OK);
    frazil_numbers_free(orders);
    snprintf(line, sizeof line, "singles store='file:%s/a file:%s/b'", folder->path, folder->path);
    NEED(frazil_tickets_open(line, &tickets) == FRAZIL_OK && frazil_numbers_next(tickets, &number) == FRAZIL_OK);
    frazil_numbers_free(tickets);
    NEED(frazil_buffered_open(SLOW " node=2 size=2 empty=wait:60s", &ring) == FRAZIL_OK);
    for (int i = 0; i < 5; ++i) NEED(frazil_numbers_next(ring, &number) == FRAZIL_OK);
    NEED(frazil_numbers_fill_for(ring, 60000, many, 3, NULL) == FRAZIL_OK);
    NEED(frazil_numbers_close_for(ring, 60000) == FRAZIL_OK);
    frazil_numbers_free(ring);
    return 0;
}

CASE(cancel_numbers) {
    struct folder folder = make_folder();
    CHECK(survives_all(take_numbers, &folder));
    remove_folder(folder);
}

static int make_ids(void *data) {
    uint8_t bytes[FRAZIL_UUID_SIZE];
    (void)data;
    for (int i = 0; i < 2000; ++i) {
        NEED(frazil_uuid7(bytes) == FRAZIL_OK && frazil_uuid4(bytes) == FRAZIL_OK && frazil_object_id_new(bytes) == FRAZIL_OK);
    }
    return 0;
}

CASE(cancel_uuids) { CHECK(survives_all(make_ids, NULL)); }

/* The first call of a process reads files. */
static int make_first(void *data) {
    uint8_t bytes[FRAZIL_UUID_SIZE];
    int which = *(const int *)data;
    if (which == 0) NEED(frazil_object_id_new(bytes) == FRAZIL_OK);
    if (which == 1) NEED(frazil_uuid4(bytes) == FRAZIL_OK);
    if (which == 2) NEED(frazil_uuid7(bytes) == FRAZIL_OK);
    return 0;
}

CASE(cancel_the_first_call) {
    for (int which = 0; which < 3; ++which) CHECK(survives_all(make_first, &which));
}

static void *fork_and_wait(void *data) {
    pid_t *child = data;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    *child = fork();
    if (*child == 0) {
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
        pthread_cancel(pthread_self());
        int failed = wait_for_ids(NULL);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        end_child(failed);
    }
    return NULL;
}

/* A thread of a forked child is cancelled while the parent's thread waits. */
CASE(cancel_in_a_forked_child) {
    pthread_t thread;
    pid_t child = -1;
    CHECK(pthread_create(&thread, NULL, fork_and_wait, &child) == 0);
    pthread_join(thread, NULL);
    CHECK(ended_well(child));
}

/* The wait's hook cannot be cancelled either, because it runs within the call. */
static void hook(const frazil_event *event, void *data) {
    if (strcmp(event->name, "lease.waiting") != 0) return;
    *(bool *)data = event->text[0] != '\0';
    pthread_testcancel();
    pause_ms(1);
}

static int wait_for_a_holder(void *data) {
    bool called = false;
    frazil_snowflake *ids;
    NEED(frazil_on_event(hook, &called) == FRAZIL_OK);
    NEED(frazil_snowflake_open(data, &ids) == FRAZIL_OK);
    NEED(frazil_on_event(NULL, NULL) == FRAZIL_OK && called);
    frazil_snowflake_free(ids);
    return 0;
}

CASE(cancel_a_start_that_waits) {
    struct folder folder = make_folder();
    char line[200], byte;
    frazil_snowflake *ids;
    int opened[2];
    snprintf(line, sizeof line, "standard node=3 store=file:%s window=8s renew=500ms rollback=error", folder.path);
    CHECK(pipe(opened) == 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (frazil_snowflake_open(line, &ids) == FRAZIL_OK && write(opened[1], "!", 1) == 1) pause_ms(60000);
        end_child(__LINE__);
    }
    close(opened[1]);
    CHECK(read(opened[0], &byte, 1) == 1);
    close(opened[0]);
    /* The child is killed, because under valgrind on a busy machine a normal exit can take as long as the window. */
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    CHECK(survives((struct calls){wait_for_a_holder, line, PTHREAD_CANCEL_ENABLE, PTHREAD_CANCEL_DEFERRED, 0, false}));
    remove_folder(folder);
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
