/* Waits end by time, by frazil_snowflake_close() in another thread, and with the program. Cases that close all handles run in their own
   processes. */
#define _GNU_SOURCE

#include "helpers.h"

#include <pthread.h>
#include <sys/time.h>

/* 16 IDs a second, so a thousand take a minute. */
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
    frazil_snowflake *ids, *none = NULL;
    frazil_numbers *ring, *no_numbers = NULL;
    uint64_t node;
    int64_t id, buffer[4];
    snprintf(line, sizeof line, "standard store=file:%s namespace=waits", folder.path);
    OK(frazil_snowflake_open(line, &ids));
    snprintf(line, sizeof line, "standard store=file:%s namespace=ring size=8", folder.path);
    OK(frazil_buffered_open(line, &ring));
    const int64_t negative[] = {-1, INT64_MIN};
    for (int i = 0; i < 2; ++i) {
        STATUS(frazil_snowflake_open_for("standard node=1", negative[i], &none), FRAZIL_OUT_OF_RANGE);
        STATUS(frazil_segment_open_for("orders store=memory", negative[i], &no_numbers), FRAZIL_OUT_OF_RANGE);
        STATUS(frazil_tickets_open_for("orders store=memory", negative[i], &no_numbers), FRAZIL_OUT_OF_RANGE);
        STATUS(frazil_buffered_open_for("standard node=1", negative[i], &no_numbers), FRAZIL_OUT_OF_RANGE);
        STATUS(frazil_snowflake_next_for(ids, negative[i], &id), FRAZIL_OUT_OF_RANGE);
        STATUS(frazil_snowflake_fill_for(ids, negative[i], buffer, 4, NULL), FRAZIL_OUT_OF_RANGE);
        STATUS(frazil_numbers_next_for(ring, negative[i], &id), FRAZIL_OUT_OF_RANGE);
        STATUS(frazil_numbers_fill_for(ring, negative[i], buffer, 4, NULL), FRAZIL_OUT_OF_RANGE);
    }
    CHECK(none == NULL && no_numbers == NULL);
    /* The refused calls have issued and closed nothing. The longest time limit is accepted. */
    OK(frazil_snowflake_next_for(ids, INT64_MAX, &id));
    OK(frazil_numbers_fill_for(ring, INT64_MAX, buffer, 4, NULL));
    STATUS(frazil_snowflake_release_node_for(ids, -1), FRAZIL_OUT_OF_RANGE);
    CHECK(error_has("max_wait_ms=-1"));
    STATUS(frazil_snowflake_close_for(ids, INT64_MIN), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_numbers_discard_for(ring, -1), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_numbers_close_for(ring, -1), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_close_all(-1), FRAZIL_OUT_OF_RANGE);
    REFUSED(frazil_snowflake_release_node_for(NULL, 0), "ids");
    REFUSED(frazil_snowflake_close_for(NULL, 0), "ids");
    REFUSED(frazil_numbers_discard_for(NULL, 0), "numbers");
    REFUSED(frazil_numbers_close_for(NULL, 0), "numbers");
    OK(frazil_snowflake_release_node_for(ids, INT64_MAX));
    OK(frazil_numbers_discard_for(ring, 60000));
    OK(frazil_snowflake_node(ids, &node));
    OK(frazil_snowflake_close_for(ids, 60000));
    CHECK(is_released(folder, "waits", node));
    /* The first call returns at once. The close continues in the background, until a call finds the ring closed. */
    frazil_status closed = frazil_numbers_close_for(ring, 0);
    for (int i = 0; i < 6000 && closed == FRAZIL_WOULD_BLOCK; ++i) {
        pause_ms(10);
        closed = frazil_numbers_close_for(ring, 0);
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
        /* close waits at most as long as one call of the store may take. On a slow machine, the release may come later. */
        if (!is_released(folder, "all", node)) end_child(__LINE__);
        if (frazil_snowflake_next(leased, &id) != FRAZIL_CLOSED || frazil_snowflake_next(given, &id) != FRAZIL_OK) end_child(__LINE__);
        frazil_snowflake_free(leased);
        frazil_snowflake_free(given);
        if (frazil_close_all(0) != FRAZIL_OK) end_child(__LINE__);
        end_child(0);
    }
    CHECK(ended_well(child));
    remove_folder(folder);
}

struct warning {
    char text[500];
    const frazil_snowflake *waits;
    int64_t id;
    frazil_status given, closed, all, unhooked;
};

/* A hook may call frazil, close a generator on which another thread waits, and remove itself. */
static void on_warning(const frazil_event *event, void *data) {
    struct warning *warning = data;
    if (strcmp(event->name, "lease.waiting") != 0) return;
    snprintf(warning->text, sizeof warning->text, "%s", event->text);
    warning->given = frazil_snowflake_next_for(warning->waits, 0, &warning->id);
    warning->closed = frazil_snowflake_close(warning->waits);
    warning->all = frazil_close_all(0);
    warning->unhooked = frazil_on_event(NULL, NULL);
}

/* An open waits for the number of a crashed holder, and reports that in an event. */
CASE(wait_is_reported) {
    static struct warning warning;
    static struct batch batch;
    struct folder folder = make_folder();
    char line[200];
    frazil_snowflake *ids, *slow;
    pthread_t thread;
    int64_t id;
    snprintf(line, sizeof line, "standard node=3 store=file:%s window=6s renew=500ms rollback=error", folder.path);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) end_child(frazil_snowflake_open(line, &ids) != FRAZIL_OK);
    CHECK(ended_well(child));
    OK(frazil_snowflake_open(SLOW " node=4", &slow));
    batch.ids = warning.waits = slow;
    CHECK(pthread_create(&thread, NULL, fill, &batch) == 0);
    OK(frazil_on_event(on_warning, &warning));
    OK(frazil_snowflake_open(line, &ids));
    CHECK(strstr(warning.text, "namespace=default: waiting: node number 3 is held by ") != NULL);
    pthread_join(thread, NULL);
    CHECK(batch.status == FRAZIL_CLOSED);
    CHECK(warning.given == FRAZIL_OK || warning.given == FRAZIL_WOULD_BLOCK);
    CHECK(warning.closed == FRAZIL_OK && warning.all == FRAZIL_OK && warning.unhooked == FRAZIL_OK);
    /* frazil_close_all() does not close a handle that was not open yet. */
    OK(frazil_snowflake_next(ids, &id));
    frazil_snowflake_free(ids);
    frazil_snowflake_free(slow);
    remove_folder(folder);
}

static void find_stats(const frazil_stats *stats, void *data) {
    uint64_t *issued = data;
    if (strstr(stats->spec, "c-counted") != NULL) *issued = stats->issued;
}

CASE(stats_count) {
    frazil_snowflake *ids;
    frazil_numbers *orders;
    frazil_stats stats;
    frazil_metric metric;
    int64_t buffer[500];
    size_t written;
    uint64_t issued = 0;
    OK(frazil_snowflake_open("standard store=memory namespace=c-counted", &ids));
    OK(frazil_snowflake_fill(ids, buffer, 500, &written));
    OK(frazil_snowflake_stats(ids, &stats, sizeof stats));
    CHECK(stats.issued == 500 && stats.is_leased && !stats.has_ranges && stats.lease_seconds_left > 0 && stats.leases_lost == 0);
    CHECK(strcmp(stats.kind, "snowflake") == 0 && strstr(stats.spec, "namespace=c-counted") != NULL);
    CHECK(frazil_snowflake_stats(ids, &stats, sizeof stats - 8) == FRAZIL_OUT_OF_RANGE);
    CHECK(frazil_snowflake_stats(NULL, &stats, sizeof stats) == FRAZIL_WRONG_TYPE);
    OK(frazil_each_stats(find_stats, &issued));
    CHECK(issued == 500);
    CHECK(frazil_each_stats(NULL, NULL) == FRAZIL_WRONG_TYPE);
    OK(frazil_segment_open("c-orders store=memory step=100", &orders));
    OK(frazil_numbers_fill(orders, buffer, 30, &written));
    OK(frazil_numbers_stats(orders, &stats, sizeof stats));
    CHECK(stats.issued == 30 && stats.range_left == 70 && stats.has_ranges && !stats.is_leased);
    OK(frazil_metric_at(0, &metric, sizeof metric));
    CHECK(strcmp(metric.field, "issued") == 0 && strcmp(metric.prometheus, "frazil_issued_total") == 0 && metric.is_counter);
    CHECK(frazil_metric_at(frazil_metric_count(), &metric, sizeof metric) == FRAZIL_OUT_OF_RANGE);
    frazil_numbers_free(orders);
    frazil_snowflake_free(ids);
}

static pthread_key_t ending;
static frazil_snowflake *minter;
static frazil_status at_the_end[7];

/* glibc calls this function after it has destroyed the thread-local variables of C++ and Rust. */
static void mint_at_the_end(void *unused) {
    frazil_stats stats;
    frazil_lease lease;
    int64_t buffer[100];
    uint8_t uuid[FRAZIL_UUID_SIZE];
    size_t written;
    (void)unused;
    at_the_end[0] = frazil_snowflake_fill(minter, buffer, 100, &written);
    at_the_end[1] = frazil_snowflake_stats(minter, &stats, sizeof stats);
    at_the_end[2] = stats.issued >= 100 && stats.spec != NULL ? FRAZIL_OK : FRAZIL_INTERNAL;
    at_the_end[3] = frazil_snowflake_lease(minter, &lease, sizeof lease);
    at_the_end[4] = frazil_uuid7(uuid);
    at_the_end[5] = frazil_snowflake_release_node(minter);
    at_the_end[6] = frazil_snowflake_fill(minter, buffer, 100, &written);
}

static void *end_a_thread(void *unused) {
    frazil_stats stats;
    frazil_lease lease;
    uint8_t uuid[FRAZIL_UUID_SIZE];
    /* Thread-local state of the library is created at its first use in this thread. */
    if (pthread_setspecific(ending, &ending) != 0 || frazil_snowflake_stats(minter, &stats, sizeof stats) != FRAZIL_OK ||
        frazil_snowflake_lease(minter, &lease, sizeof lease) != FRAZIL_OK || frazil_uuid7(uuid) != FRAZIL_OK ||
        frazil_layout_parse("no layout", NULL) == FRAZIL_OK)
        return unused;
    return NULL;
}

CASE(threads_mint_to_their_very_end) {
    pthread_t thread;
    void *failed = NULL;
    OK(frazil_snowflake_open("standard store=memory namespace=c-ends", &minter));
    CHECK(pthread_key_create(&ending, mint_at_the_end) == 0);
    CHECK(pthread_create(&thread, NULL, end_a_thread, &ending) == 0 && pthread_join(thread, &failed) == 0 && failed == NULL);
    for (size_t i = 0; i < COUNT(at_the_end); ++i) OK(at_the_end[i]);
    pthread_key_delete(ending);
    frazil_snowflake_free(minter);
}

struct seen {
    const char *name, *field;
    size_t field_count;
    char value[40];
    bool is_warning;
    volatile bool called;
};

static void see(const frazil_event *event, void *data) {
    struct seen *seen = data;
    if (strcmp(event->name, seen->name) != 0) return;
    for (size_t n = 0; n < event->field_count; n++) {
        if (strcmp(event->fields[n].name, seen->field) == 0) snprintf(seen->value, sizeof seen->value, "%s", event->fields[n].value);
    }
    seen->field_count = event->field_count;
    seen->is_warning = event->is_warning;
    seen->called = true;
}

/* After frazil_on_event(NULL, NULL) returns, the program can read what the hook has stored. */
CASE(hook_receives_events) {
    static struct seen seen = {.name = "clock.rollback", .field = "back_ms"};
    frazil_snowflake *ids;
    int64_t id;
    OK(frazil_on_event(see, &seen));
    OK(frazil_snowflake_open("standard node=8 clock=manual rollback=error detached=true", &ids));
    OK(frazil_snowflake_set_time(ids, 1900000000000));
    OK(frazil_snowflake_next(ids, &id));
    OK(frazil_snowflake_set_time(ids, 1899999997000));
    CHECK(frazil_snowflake_next(ids, &id) == FRAZIL_CLOCK_BACK);
    frazil_stats stats = {0};
    OK(frazil_snowflake_stats(ids, &stats, sizeof stats));
    CHECK(stats.rollbacks == 1 && stats.largest_rollback_seconds == 3.0 && stats.refused == 1);
    for (int tries = 0; !seen.called && tries < 6000; tries++) pause_ms(10);
    OK(frazil_on_event(NULL, NULL));
    CHECK(seen.called && seen.is_warning && strcmp(seen.value, "3000") == 0);
    frazil_snowflake_free(ids);
}

CASE(layout_ending_is_reported) {
    static struct seen seen = {.name = "layout.ending", .field = "ends"};
    frazil_snowflake *ids;
    int64_t id;
    OK(frazil_on_event(see, &seen));
    OK(frazil_snowflake_open("standard node=9 clock=manual detached=true", &ids));
    OK(frazil_snowflake_set_time(ids, 3910000000000));
    OK(frazil_snowflake_next(ids, &id));
    for (int tries = 0; !seen.called && tries < 6000; tries++) pause_ms(10);
    /* A call with NULL and data removes only the hook that was set with these data. */
    OK(frazil_on_event(NULL, &id));
    OK(frazil_on_event(NULL, &seen));
    CHECK(seen.called && seen.is_warning && seen.field_count == 2 && strncmp(seen.value, "2094-09-07", 10) == 0);
    frazil_stats stats = {0};
    OK(frazil_snowflake_stats(ids, &stats, sizeof stats));
    CHECK(stats.layout_seconds_left > 0 && stats.layout_seconds_left < 365 * 86400.0);
    frazil_snowflake_free(ids);
}

struct taken {
    pid_t by;
    uint64_t node;
    volatile bool called;
};

static void take(const frazil_event *event, void *data) {
    struct taken *taken = data;
    if (strcmp(event->name, "lease.taken") != 0 || event->field_count < 3 || taken->called) return;
    taken->node = strtoull(event->fields[2].value, NULL, 10);
    taken->by = getpid();
    taken->called = true;
}

/* A child keeps its parent's hook, reports its own events and counts from zero; it does not report its parent's events. */
CASE(forked_child_reports_its_own_events) {
    static struct taken taken;
    struct folder folder = make_folder();
    char line[200];
    frazil_snowflake *ids;
    frazil_stats stats = {0};
    int64_t buffer[10];
    size_t written;
    snprintf(line, sizeof line, "standard store=file:%s", folder.path);
    OK(frazil_on_event(take, &taken));
    OK(frazil_snowflake_open(line, &ids));
    OK(frazil_snowflake_fill(ids, buffer, 10, &written));
    for (int tries = 0; !taken.called && tries < 6000; tries++) pause_ms(10);
    CHECK(taken.called && taken.by == getpid());
    uint64_t mine = taken.node;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int failed = frazil_snowflake_stats(ids, &stats, sizeof stats) != FRAZIL_OK || stats.issued != 0 || stats.is_leased;
        taken.called = false;
        failed += 2 * (frazil_snowflake_fill(ids, buffer, 3, &written) != FRAZIL_OK);
        for (int tries = 0; !taken.called && tries < 6000; tries++) pause_ms(10);
        failed += 4 * !(taken.called && taken.by == getpid() && taken.node != mine);
        failed += 8 * (frazil_snowflake_stats(ids, &stats, sizeof stats) != FRAZIL_OK || stats.issued != 3 || stats.lease_node != taken.node);
        end_child(failed);
    }
    CHECK(ended_well(child));
    OK(frazil_snowflake_stats(ids, &stats, sizeof stats));
    CHECK(stats.issued == 10 && stats.lease_node == mine);
    OK(frazil_on_event(NULL, NULL));
    frazil_snowflake_free(ids);
    remove_folder(folder);
}

static volatile sig_atomic_t signals;

static void count_signal(int number) {
    (void)number;
    ++signals;
}

/* A signal whose handler returns does not end a wait, even if it interrupts system calls. */
CASE(wait_continues_after_signals) {
    frazil_snowflake *slow;
    int64_t ids[40];
    struct sigaction counts, ignores;
    memset(&counts, 0, sizeof counts);
    memset(&ignores, 0, sizeof ignores);
    counts.sa_handler = count_signal;
    ignores.sa_handler = SIG_IGN;
    OK(frazil_snowflake_open(SLOW " node=5", &slow));
    CHECK(sigaction(SIGALRM, &counts, NULL) == 0);
    const struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    frazil_status filled = frazil_snowflake_fill(slow, ids, 40, NULL);
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    /* A pending signal would end the process by the default action. */
    sigaction(SIGALRM, &ignores, NULL);
    CHECK(filled == FRAZIL_OK && ascending(ids, 40) && signals > 1);
    frazil_snowflake_free(slow);
}

static void *close_on_sigint(void *data) {
    sigset_t set;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    for (int i = 0; i < 2; ++i) {
        if (sigwait(&set, &number) != 0 || frazil_snowflake_close(data) != FRAZIL_OK) abort();
    }
    return NULL;
}

/* The guide's way: a thread of the program takes Ctrl-C and closes the generator. A second Ctrl-C finds it closed. The case runs in its own
   process, without threads of earlier cases. */
CASE(wait_ends_with_ctrl_c) {
    static struct batch batch;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        frazil_snowflake *slow;
        pthread_t threads[2];
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0 || frazil_snowflake_open(SLOW " node=6", &slow) != FRAZIL_OK) end_child(__LINE__);
        batch.ids = slow;
        if (pthread_create(&threads[0], NULL, fill, &batch) != 0) end_child(__LINE__);
        if (pthread_create(&threads[1], NULL, close_on_sigint, slow) != 0) end_child(__LINE__);
        pause_ms(200);
        kill(getpid(), SIGINT);
        pthread_join(threads[0], NULL);
        kill(getpid(), SIGINT);
        pthread_join(threads[1], NULL);
        end_child(batch.status == FRAZIL_CLOSED ? 0 : __LINE__);
    }
    CHECK(ended_well(child));
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
