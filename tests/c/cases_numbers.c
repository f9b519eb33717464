/* The cases of tests/vectors/cases.json on segments, tickets and rings for the C API, in C99. */
#define _GNU_SOURCE
#include "helpers.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

typedef frazil_status opening(const char *spec, frazil_numbers **numbers);

/* Opens numbers of the folder's store; the spec line begins with `rest`. */
static frazil_status open_in(opening *open, struct folder folder, const char *rest, frazil_numbers **numbers) {
    char line[300];
    snprintf(line, sizeof line, "%s store=file:%s", rest, folder.path);
    return open(line, numbers);
}

/* Opens numbers of two folders' stores. */
static frazil_status open_in_two(opening *open, struct folder a, struct folder b, const char *rest, frazil_numbers **numbers) {
    char line[300];
    snprintf(line, sizeof line, "%s store='file:%s file:%s'", rest, a.path, b.path);
    return open(line, numbers);
}

/* Makes a file or a folder beside the store's folder. `format` is a command, with %s for the folder's path and %s for the new path. */
static bool beside(const char *format, struct folder folder, char *path, size_t size) {
    char command[300];
    snprintf(path, size, "%s-beside", folder.path);
    snprintf(command, sizeof command, format, folder.path, path);
    return system(command) == 0;
}

/* Replaces the store's folder with a file. */
static bool take_away(struct folder folder) {
    char file[80];
    return beside("test -d '%s' && touch '%s'", folder, file, sizeof file) && exchange_folder(folder, file);
}

static bool are(const int64_t *numbers, size_t count, int64_t first, int64_t stride) {
    for (size_t i = 0; i < count; ++i) {
        if (numbers[i] != first + (int64_t)i * stride) return false;
    }
    return true;
}

static bool all_differ(int64_t *numbers, size_t count) {
    qsort(numbers, count, sizeof numbers[0], compare);
    return ascending(numbers, count);
}

/* Returns whether `wanted` numbers are prefetched, now or within a minute. */
static bool has_prepared(const frazil_numbers *numbers, uint64_t wanted) {
    uint64_t prepared = 0;
    for (int i = 0; i < 6000; ++i) {
        if (frazil_numbers_prepared(numbers, &prepared) != FRAZIL_OK) return false;
        if (prepared >= wanted) return true;
        pause_ms(10);
    }
    return false;
}

CASE(segment) {
    static int64_t got[10000];
    frazil_numbers *numbers, *other;
    frazil_status last_status;
    const char *text;
    int64_t number, theirs;
    size_t written = 9;
    OK(frazil_segment_open("c-plain store=memory start=100", &numbers));
    OK(frazil_numbers_fill(numbers, got, 50, &written));
    CHECK(written == 50 && are(got, 50, 100, 1));
    OK(frazil_numbers_next(numbers, &number));
    CHECK(number == 150);
    OK(frazil_numbers_next_for(numbers, 0, &number));
    CHECK(number == 151);
    OK(frazil_numbers_batch(numbers, got, 2));
    CHECK(are(got, 2, 152, 1));
    OK(frazil_numbers_fill_for(numbers, 1000, got, 3, &written));
    CHECK(written == 3 && are(got, 3, 154, 1));
    OK(frazil_numbers_spec(numbers, &text));
    CHECK(strcmp(text, "c-plain store=memory start=100") == 0);
    OK(frazil_numbers_last_error(numbers, &last_status, &text));
    CHECK(last_status == FRAZIL_OK && *text == '\0');
    /* An empty buffer gets no numbers. */
    OK(frazil_numbers_fill(numbers, NULL, 0, &written));
    CHECK(written == 0);
    OK(frazil_numbers_fill_for(numbers, 0, NULL, 0, NULL));
    OK(frazil_numbers_batch(numbers, NULL, 0));
    /* Another handle draws its own ranges. */
    OK(frazil_segment_open("c-plain store=memory", &other));
    OK(frazil_numbers_next(other, &theirs));
    OK(frazil_numbers_next(numbers, &number));
    CHECK(number == 157 && theirs > 1099);
    frazil_numbers_free(other);
    frazil_numbers_free(numbers);

    OK(frazil_segment_open("c-two store=memory step=7", &numbers));
    OK(frazil_segment_open("c-two store=memory step=7", &other));
    for (size_t i = 0; i < COUNT(got); ++i) OK(frazil_numbers_next(i % 2 == 0 ? numbers : other, &got[i]));
    CHECK(all_differ(got, COUNT(got)));
    frazil_numbers_free(other);
    frazil_numbers_free(numbers);

    OK(frazil_segment_open("c-parity store=memory namespace=odd increment=2 offset=1 step=3", &numbers));
    OK(frazil_numbers_fill(numbers, got, 500, NULL));
    CHECK(are(got, 500, 1, 2));
    frazil_numbers_free(numbers);
    OK(frazil_segment_open("c-parity store=memory namespace=even increment=2 offset=2 start=3", &numbers));
    OK(frazil_numbers_fill(numbers, got, 3, NULL));
    CHECK(are(got, 3, 4, 2));
    frazil_numbers_free(numbers);

    setenv("C_TEST_STORE", "memory", 1);
    OK(frazil_segment_open_for("c-ready store=env:C_TEST_STORE step=100", 5000, &numbers));
    OK(frazil_numbers_spec(numbers, &text));
    CHECK(strcmp(text, "c-ready step=100 store=env:C_TEST_STORE") == 0);
    CHECK(has_prepared(numbers, 100));
    /* After a tenth of the range, the next range is fetched. */
    for (int i = 0; i < 50; ++i) OK(frazil_numbers_next(numbers, &number));
    CHECK(has_prepared(numbers, 100));
    frazil_numbers_free(numbers);
}

CASE(segment_stores) {
    static int64_t got[202000];
    struct folder a = make_folder(), b = make_folder();
    frazil_numbers *numbers;
    frazil_status last_status;
    const char *text;
    size_t even = 0;
    OK(open_in_two(frazil_segment_open, a, b, "orders step=10", &numbers));
    OK(frazil_numbers_last_error(numbers, &last_status, &text));
    CHECK(last_status == FRAZIL_OK && *text == '\0');
    OK(frazil_numbers_fill(numbers, got, 2000, NULL));
    for (size_t i = 0; i < 2000; ++i) even += got[i] % 2 == 0;
    CHECK(even > 0 && even < 2000);
    CHECK(take_away(b));
    OK(frazil_numbers_fill(numbers, got + 2000, 200000, NULL));
    for (size_t i = 192000; i < 202000; ++i) CHECK(got[i] % 2 == 1);
    OK(frazil_numbers_last_error(numbers, &last_status, &text));
    CHECK(last_status != FRAZIL_OK && strstr(text, b.path) != NULL && frazil_error_name(last_status) != NULL);
    CHECK(all_differ(got, COUNT(got)));
    frazil_numbers_free(numbers);
    remove_folder(b);

    b = make_folder();
    OK(open_in_two(frazil_tickets_open, a, b, "photos", &numbers));
    OK(frazil_numbers_fill(numbers, got, 20, NULL));
    for (int i = 0; i < 20; i += 2) CHECK(got[i] % 2 != got[i + 1] % 2);
    CHECK(all_differ(got, 20) && are(got, 20, 1, 1));
    CHECK(take_away(a));
    OK(frazil_numbers_fill(numbers, got, 5, NULL));
    CHECK(are(got, 5, 22, 2));
    OK(frazil_numbers_last_error(numbers, &last_status, &text));
    CHECK(last_status != FRAZIL_OK && strstr(text, a.path) != NULL);
    frazil_numbers_free(numbers);
    remove_folder(b);
    remove_folder(a);
}

CASE(segment_errors) {
    static const struct {
        opening *open;
        const char *line;
        frazil_status status;
        const char *says;
    } bad[] = {
        {frazil_segment_open, "", FRAZIL_SPEC, "tag"},
        {frazil_segment_open, "store=memory", FRAZIL_SPEC, "tag"},
        {frazil_segment_open, "or/ders store=memory", FRAZIL_SPEC, "tag"},
        {frazil_segment_open, "orders", FRAZIL_SPEC, "store"},
        {frazil_segment_open, "orders store=nowhere", FRAZIL_SPEC, "nowhere"},
        {frazil_segment_open, "orders store='memory memory'", FRAZIL_SPEC, "twice"},
        {frazil_segment_open, "orders store=memory step=0", FRAZIL_OUT_OF_RANGE, "step=0"},
        {frazil_segment_open, "orders store=memory step=-1", FRAZIL_OUT_OF_RANGE, "step=-1"},
        {frazil_segment_open, "orders store=memory step=many", FRAZIL_SPEC, "many"},
        {frazil_segment_open, "orders store=memory start=9223372036854775808", FRAZIL_OUT_OF_RANGE, "start=9223372036854775808"},
        {frazil_segment_open, "orders store=memory increment=0", FRAZIL_OUT_OF_RANGE, "increment=0"},
        {frazil_segment_open, "orders store=memory increment=2 offset=3", FRAZIL_OUT_OF_RANGE, "offset=3"},
        {frazil_segment_open, "orders store='memory file:/x' offset='0 2'", FRAZIL_OUT_OF_RANGE, "two stores"},
        {frazil_segment_open, "orders store='memory file:/x' increment=4 offset=1", FRAZIL_SPEC, "one for each"},
        {frazil_segment_open, "orders store=memory wait=soon", FRAZIL_SPEC, "wait"},
        {frazil_segment_open, "orders store=memory worker=1", FRAZIL_UNKNOWN_KEY, "worker"},
        {frazil_tickets_open, "photos store=memory", FRAZIL_SPEC, "two stores"},
        {frazil_tickets_open, "photos store='memory file:/x' step=2", FRAZIL_SPEC, "step"},
        {frazil_buffered_open, "", FRAZIL_NODE_MISSING, "store=local"},
        {frazil_buffered_open, "standard node=1 size=0", FRAZIL_OUT_OF_RANGE, "size=0"},
        {frazil_buffered_open, "standard node=1 refill=101", FRAZIL_OUT_OF_RANGE, "refill=101"},
        {frazil_buffered_open, "standard node=1 empty=block", FRAZIL_SPEC, "block"},
        {frazil_buffered_open, "standard node=1 sise=1", FRAZIL_UNKNOWN_KEY, "sise"},
        {frazil_buffered_open, "baidu worker=1", FRAZIL_LAYOUT_EXPIRED, "2024"},
    };
    static int64_t got[100];
    frazil_numbers *numbers, *none = NULL;
    int64_t number = -5;
    size_t written = 9;
    /* Only generators read FRAZIL. */
    setenv("FRAZIL", "standard node=330", 1);
    for (size_t i = 0; i < COUNT(bad); ++i) {
        STATUS(bad[i].open(bad[i].line, &none), bad[i].status);
        CHECK(none == NULL && error_has(bad[i].says));
    }
    unsetenv("FRAZIL");

    OK(frazil_segment_open("c-errors store=memory increment=2 offset=1", &numbers));
    STATUS(frazil_segment_open("c-errors store=memory increment=3 offset=1", &none), FRAZIL_SEGMENT_MISMATCH);
    CHECK(error_has("increment=2 offset=1") && error_has("increment=3 offset=1"));
    STATUS(frazil_segment_open("c-errors store=memory", &none), FRAZIL_SEGMENT_MISMATCH);
    frazil_numbers_free(numbers);

    OK(frazil_segment_open("c-end store=memory start=9223372036854775805", &numbers));
    STATUS(frazil_numbers_fill(numbers, got, 5, &written), FRAZIL_SEGMENT_EXHAUSTED);
    CHECK(written == 3 && are(got, 3, INT64_MAX - 2, 1) && error_has("9223372036854775807"));
    got[0] = -5;
    STATUS(frazil_numbers_batch(numbers, got, 1), FRAZIL_SEGMENT_EXHAUSTED);
    STATUS(frazil_numbers_fill_for(numbers, 1000, got, 1, &written), FRAZIL_SEGMENT_EXHAUSTED);
    STATUS(frazil_numbers_next(numbers, &number), FRAZIL_SEGMENT_EXHAUSTED);
    CHECK(written == 0 && got[0] == -5 && number == -5);
    frazil_numbers_free(numbers);

    /* A missing store, and a store that accepts connections but never answers. */
    STATUS(frazil_segment_open("orders store=redis://u:secret@127.0.0.1:1/0 wait=10s", &none), FRAZIL_SEGMENT_EXHAUSTED);
    CHECK(error_has("127.0.0.1:1") && !error_has("secret"));
    char line[200];
    struct server silent = make_silent_server();
    snprintf(line, sizeof line, "orders store=redis://127.0.0.1:%u/0", silent.port);
    OK(frazil_segment_open_for(line, 0, &numbers));
    STATUS(frazil_numbers_next_for(numbers, 1, &number), FRAZIL_WOULD_BLOCK);
    CHECK(frazil_retry_after_ms() > 0 && number == -5);
    frazil_numbers_free(numbers);
    snprintf(line, sizeof line, "photos store='redis://127.0.0.1:%u/0 redis://127.0.0.1:1/0'", silent.port);
    OK(frazil_tickets_open_for(line, 0, &numbers));
    STATUS(frazil_numbers_next_for(numbers, 1, &number), FRAZIL_WOULD_BLOCK);
    CHECK(frazil_retry_after_ms() > 0 && number == -5);
    frazil_numbers_free(numbers);
    close(silent.socket);

    /* The folder is restored from a backup. */
    struct folder folder = make_folder();
    OK(open_in(frazil_segment_open, folder, "orders step=100 wait=10s", &numbers));
    char backup[80];
    CHECK(beside("cp -a '%s' '%s'", folder, backup, sizeof backup));
    OK(frazil_numbers_fill(numbers, got, 20, NULL));
    /* Once the next range is prefetched, the thread is idle, so no write is in progress. */
    for (uint64_t prepared = 0; prepared == 0;) OK(frazil_numbers_prepared(numbers, &prepared));
    CHECK(exchange_folder(folder, backup));
    frazil_status status = FRAZIL_OK;
    for (int i = 0; i < 100000 && status == FRAZIL_OK; ++i) {
        status = frazil_numbers_next(numbers, &number);
        if (status == FRAZIL_OK) CHECK(number > got[19]);
    }
    CHECK(status == FRAZIL_STORE_CHANGED && error_has("frazil segment file:"));
    frazil_numbers_free(numbers);
    remove_folder(folder);
}

#define EACH 20000
#define PROCESSES 5

struct share {
    frazil_status status;
    int64_t numbers[EACH];
};

static void take_share(const frazil_numbers *numbers, struct share *share) {
    share->status = frazil_numbers_fill(numbers, share->numbers, EACH / 2, NULL);
    for (size_t i = EACH / 2; i < EACH && share->status == FRAZIL_OK; ++i) {
        share->status = frazil_numbers_next(numbers, &share->numbers[i]);
    }
}

static void *map(size_t size) {
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) abort();
    return mapped;
}

/* Forks through libc, or directly through the kernel, without libc's handlers. */
static pid_t fork_by(bool raw) { return raw ? (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) : fork(); }

CASE(segment_processes) {
    static int64_t all[PROCESSES * EACH];
    struct folder folder = make_folder();
    struct share *shares = map(PROCESSES * sizeof *shares);
    frazil_numbers *numbers, *mine;
    int64_t first[6], next;
    pid_t children[4];
    OK(open_in(frazil_segment_open, folder, "orders step=50", &numbers));
    OK(frazil_numbers_fill(numbers, first, 6, NULL));
    CHECK(are(first, 6, 1, 1) && has_prepared(numbers, 50));
    fflush(stdout);
    for (int i = 0; i < 4; ++i) {
        children[i] = fork_by(i == 1);
        CHECK(children[i] >= 0);
        if (children[i] == 0) {
            /* The last child opens the tag itself; the others continue with the inherited handle. */
            if (i == 3) {
                if (open_in(frazil_segment_open, folder, "orders step=50", &mine) != FRAZIL_OK) end_child(__LINE__);
                take_share(mine, &shares[i]);
                frazil_numbers_free(mine);
            } else {
                take_share(numbers, &shares[i]);
            }
            if (shares[i].numbers[0] <= 50 || shares[i].status != FRAZIL_OK) end_child(__LINE__);
            frazil_numbers_free(numbers);
            end_child(0);
        }
    }
    take_share(numbers, &shares[4]);
    for (int i = 0; i < 4; ++i) CHECK(ended_well(children[i]));
    for (int i = 0; i < PROCESSES; ++i) {
        CHECK(shares[i].status == FRAZIL_OK && ascending(shares[i].numbers, EACH));
        memcpy(all + i * EACH, shares[i].numbers, sizeof shares[i].numbers);
    }
    /* The parent continues in its own range. */
    CHECK(shares[4].numbers[0] == 7 && all_differ(all, COUNT(all)) && all[0] == 7);
    OK(frazil_numbers_next(numbers, &next));
    CHECK(next > shares[4].numbers[EACH - 1]);
    frazil_numbers_free(numbers);

    /* A handle that a child inherits closed stays closed, and a handle that the child closes stays open in its parent. */
    OK(open_in(frazil_segment_open, folder, "closed", &numbers));
    OK(open_in(frazil_segment_open, folder, "open", &mine));
    OK(frazil_numbers_close(numbers));
    fflush(stdout);
    for (int raw = 0; raw < 2; ++raw) {
        pid_t child = fork_by(raw == 1);
        if (child == 0) {
            if (frazil_numbers_next(numbers, &next) != FRAZIL_CLOSED) end_child(__LINE__);
            if (frazil_numbers_close(mine) != FRAZIL_OK || frazil_numbers_next(mine, &next) != FRAZIL_CLOSED) end_child(__LINE__);
            frazil_numbers_free(numbers);
            frazil_numbers_free(mine);
            end_child(0);
        }
        CHECK(ended_well(child));
        OK(frazil_numbers_next(mine, &next));
    }
    frazil_numbers_free(mine);
    frazil_numbers_free(numbers);
    munmap(shares, PROCESSES * sizeof *shares);
    remove_folder(folder);
}

CASE(segment_closed) {
    frazil_numbers *numbers, *other;
    frazil_status last_status = -5;
    const char *text = NULL;
    size_t written = 9;
    uint64_t prepared = 7;
    int64_t number = -5;
    OK(frazil_segment_open("c-closed store=memory", &numbers));
    OK(frazil_segment_open("c-closed store=memory", &other));
    OK(frazil_numbers_close(numbers));
    OK(frazil_numbers_close(numbers));
    STATUS(frazil_numbers_next(numbers, &number), FRAZIL_CLOSED);
    STATUS(frazil_numbers_next_for(numbers, 0, &number), FRAZIL_CLOSED);
    STATUS(frazil_numbers_fill(numbers, &number, 1, &written), FRAZIL_CLOSED);
    CHECK(written == 0);
    STATUS(frazil_numbers_fill(numbers, NULL, 0, NULL), FRAZIL_CLOSED);
    STATUS(frazil_numbers_fill_for(numbers, 0, &number, 1, NULL), FRAZIL_CLOSED);
    STATUS(frazil_numbers_batch(numbers, &number, 1), FRAZIL_CLOSED);
    STATUS(frazil_numbers_prepared(numbers, &prepared), FRAZIL_CLOSED);
    STATUS(frazil_numbers_last_error(numbers, &last_status, &text), FRAZIL_CLOSED);
    STATUS(frazil_numbers_discard(numbers), FRAZIL_CLOSED);
    CHECK(number == -5 && prepared == 7 && last_status == -5 && text == NULL);
    /* The spec can still be read, and another handle continues. */
    OK(frazil_numbers_spec(numbers, &text));
    CHECK(strcmp(text, "c-closed store=memory") == 0);
    frazil_numbers_free(numbers);
    OK(frazil_numbers_next(other, &number));
    frazil_numbers_free(other);

    OK(frazil_segment_open("c-discard store=memory step=100", &numbers));
    OK(frazil_numbers_next(numbers, &number));
    CHECK(number == 1);
    OK(frazil_numbers_discard(numbers));
    OK(frazil_numbers_next(numbers, &number));
    CHECK(number > 100);
    frazil_numbers_free(numbers);

    frazil_layout *layout;
    OK(frazil_buffered_open("standard node=331 size=100", &numbers));
    OK(frazil_numbers_close(numbers));
    STATUS(frazil_numbers_next(numbers, &number), FRAZIL_CLOSED);
    STATUS(frazil_numbers_discard(numbers), FRAZIL_CLOSED);
    OK(frazil_numbers_layout(numbers, &layout));
    frazil_layout_free(layout);
    frazil_numbers_free(numbers);
}

#define THREADS 4
#define PER_THREAD 30000
static int64_t taken[THREADS * PER_THREAD];

struct worker {
    const frazil_numbers *numbers;
    int64_t *place;
    bool failed;
};

static void *take(void *argument) {
    struct worker *worker = argument;
    for (int i = 0; i < PER_THREAD / 2; ++i) worker->failed |= frazil_numbers_next(worker->numbers, &worker->place[i]) != FRAZIL_OK;
    worker->failed |= frazil_numbers_fill(worker->numbers, worker->place + PER_THREAD / 2, PER_THREAD / 2, NULL) != FRAZIL_OK;
    worker->failed |= !ascending(worker->place, PER_THREAD);
    return NULL;
}

/* Returns whether threads that share a handle never get the same number. */
static bool threads_differ(const frazil_numbers *numbers) {
    struct worker workers[THREADS];
    pthread_t handles[THREADS];
    bool good = true;
    for (int i = 0; i < THREADS; ++i) {
        workers[i] = (struct worker){numbers, taken + i * PER_THREAD, false};
        if (pthread_create(&handles[i], NULL, take, &workers[i]) != 0) abort();
    }
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(handles[i], NULL);
        good = good && !workers[i].failed;
    }
    return good && all_differ(taken, COUNT(taken));
}

CASE(segment_threads) {
    frazil_numbers *numbers;
    OK(frazil_segment_open("c-threads store=memory step=10", &numbers));
    CHECK(threads_differ(numbers));
    CHECK(are(taken, COUNT(taken), 1, 1));
    frazil_numbers_free(numbers);
}

/* Takes an ID of the ring and decodes its node number. */
static frazil_status next_node(const frazil_numbers *ring, uint64_t *node) {
    frazil_layout *layout = NULL;
    int64_t id;
    frazil_status status = frazil_numbers_next(ring, &id);
    if (status == FRAZIL_OK) status = frazil_numbers_layout(ring, &layout);
    if (status == FRAZIL_OK) status = frazil_layout_decode_field(layout, id, "node", node);
    frazil_layout_free(layout);
    return status;
}

CASE(buffered) {
    static int64_t got[30000];
    frazil_numbers *ring, *none = NULL;
    frazil_snowflake *clock;
    frazil_layout *layout;
    frazil_parts parts;
    const char *text;
    uint64_t prepared, node;
    int64_t id;
    OK(frazil_buffered_open("standard node=332 size=10000 refill=20", &ring));
    OK(frazil_numbers_prepared(ring, &prepared));
    CHECK(prepared >= 10000);
    OK(frazil_numbers_fill(ring, got, COUNT(got), NULL));
    CHECK(ascending(got, COUNT(got)));
    OK(frazil_numbers_layout(ring, &layout));
    for (size_t i = 0; i < COUNT(got); i += 100) {
        OK(frazil_layout_decode(layout, got[i], &parts, sizeof parts));
        CHECK(parts.node == 332 && parts.unix_ms > wall_ms() - 60000);
    }
    OK(frazil_numbers_spec(ring, &text));
    CHECK(strcmp(text, "standard node=332 size=10000 refill=20") == 0);
    frazil_layout_free(layout);
    frazil_numbers_free(ring);

    OK(frazil_buffered_open_for("standard node=333 size=500 refill=100 empty=wait:60s", 60000, &ring));
    CHECK(threads_differ(ring));
    frazil_numbers_free(ring);

    /* Under a manual clock the generator has the 8 IDs of one tick, and no more. */
#define EIGHT "layout='time:41@1ms node:10 sequence:3 epoch:2025-01-01' node=334 clock=manual exhausted=error start=zero"
    OK(frazil_snowflake_open(EIGHT, &clock));
    OK(frazil_snowflake_set_time(clock, NOW));
    OK(frazil_buffered_open(EIGHT " size=4 empty=error", &ring));
    size_t count = 0;
    for (int i = 0; i < 6000 && count < 8; ++i) {
        frazil_status status = frazil_numbers_next(ring, &got[count]);
        CHECK(status == FRAZIL_OK || status == FRAZIL_EXHAUSTED);
        if (status == FRAZIL_OK) ++count;
        else pause_ms(10);
    }
    CHECK(count == 8 && ascending(got, 8));
    STATUS(frazil_numbers_next(ring, &id), FRAZIL_EXHAUSTED);
    CHECK(error_has("ring is empty"));
    int64_t started = wall_ms();
    STATUS(frazil_buffered_open(EIGHT " size=4 empty=wait:200ms", &none), FRAZIL_EXHAUSTED);
    CHECK(none == NULL && wall_ms() - started >= 190);
    OK(frazil_snowflake_set_time(clock, NOW + 1));
    frazil_status status = FRAZIL_EXHAUSTED;
    for (int i = 0; i < 2000 && status == FRAZIL_EXHAUSTED; ++i) {
        pause_ms(10);
        status = frazil_numbers_next(ring, &id);
    }
    CHECK(status == FRAZIL_OK && id > got[7]);
    frazil_numbers_free(ring);
    frazil_snowflake_free(clock);

    /* If the clock goes back, the ring drops its IDs, and the call returns the generator's error. */
#define AHEAD "standard node=335 clock=manual rollback=error exhausted=ahead:1h start=zero"
    OK(frazil_snowflake_open(AHEAD, &clock));
    OK(frazil_snowflake_set_time(clock, NOW));
    OK(frazil_buffered_open(AHEAD " size=20000 empty=wait:200ms", &ring));
    OK(frazil_numbers_next(ring, &id));
    OK(frazil_snowflake_set_time(clock, NOW - 10000));
    for (count = 0; count < 20000 && (status = frazil_numbers_next(ring, &id)) == FRAZIL_OK; ++count) {}
    CHECK(status == FRAZIL_CLOCK_BACK && count < 4096);
    OK(frazil_snowflake_set_time(clock, NOW + 100000));
    OK(frazil_numbers_next(ring, &id));
    OK(frazil_numbers_layout(ring, &layout));
    OK(frazil_layout_decode(layout, id, &parts, sizeof parts));
    CHECK(parts.unix_ms == NOW + 100000);
    frazil_layout_free(layout);
    frazil_numbers_free(ring);
    frazil_snowflake_free(clock);

    /* A child cannot use its parent's fixed number or prepared IDs, and leases a number of its own. */
    struct folder folder = make_folder();
    uint64_t *theirs = map(2 * sizeof *theirs);
    frazil_numbers *leased;
    OK(frazil_buffered_open("standard node=336 size=100", &ring));
    OK(open_in(frazil_buffered_open, folder, "standard size=5000", &leased));
    OK(next_node(leased, &node));
    CHECK(!is_free(folder, "default", node));
    fflush(stdout);
    for (int raw = 0; raw < 2; ++raw) {
        pid_t child = fork_by(raw == 1);
        CHECK(child >= 0);
        if (child == 0) {
            if (frazil_numbers_next(ring, &id) != FRAZIL_FORKED) end_child(__LINE__);
            if (next_node(leased, &theirs[raw]) != FRAZIL_OK) end_child(__LINE__);
            frazil_numbers_free(ring);
            frazil_numbers_free(leased);
            end_child(is_released(folder, "default", theirs[raw]) ? 0 : __LINE__);
        }
        CHECK(ended_well(child));
        CHECK(theirs[raw] != node && !is_free(folder, "default", node));
        OK(frazil_numbers_next(ring, &id));
        OK(next_node(leased, &prepared));
        CHECK(prepared == node);
    }
    frazil_numbers_free(ring);

    /* discard(), close() and free() release the number. */
    OK(frazil_numbers_discard(leased));
    CHECK(is_free(folder, "default", node));
    for (int i = 0; i < 5000; ++i) {
        OK(next_node(leased, &prepared));
        CHECK(prepared != node);
    }
    OK(frazil_numbers_close(leased));
    CHECK(is_free(folder, "default", prepared));
    frazil_numbers_free(leased);
    OK(open_in(frazil_buffered_open, folder, "standard node=7 namespace=free size=100", &ring));
    CHECK(!is_free(folder, "free", 7));
    frazil_numbers_free(ring);
    CHECK(is_released(folder, "free", 7));
    munmap(theirs, 2 * sizeof *theirs);
    remove_folder(folder);
}

CASE(numbers_wrong_types) {
    static opening *const open[] = {frazil_segment_open, frazil_tickets_open, frazil_buffered_open};
    static frazil_status (*const open_for[])(const char *, int64_t, frazil_numbers **) = {
        frazil_segment_open_for, frazil_tickets_open_for, frazil_buffered_open_for};
    static int64_t buffer[4];
    frazil_numbers *numbers, *none = NULL;
    frazil_layout *layout = NULL;
    frazil_status last_status = -5;
    const char *text = NULL;
    uint64_t prepared;
    size_t written = 9;
    int64_t number;
    setenv("FRAZIL", "standard node=337", 1);
    for (size_t i = 0; i < COUNT(open); ++i) {
        REFUSED(open[i]("orders store=memory", NULL), "numbers");
        REFUSED(open[i](NULL, &none), "spec");
        REFUSED(open_for[i]("orders store=memory", 1, NULL), "numbers");
        REFUSED(open_for[i](NULL, 1, &none), "spec");
    }
    unsetenv("FRAZIL");
    OK(frazil_segment_open("c-types store=memory", &numbers));
    REFUSED(frazil_numbers_next(NULL, &number), "numbers");
    REFUSED(frazil_numbers_next(numbers, NULL), "number");
    REFUSED(frazil_numbers_next_for(NULL, 1, &number), "numbers");
    REFUSED(frazil_numbers_next_for(numbers, 1, NULL), "number");
    REFUSED(frazil_numbers_fill(NULL, buffer, 1, &written), "numbers");
    CHECK(written == 0);
    REFUSED(frazil_numbers_fill(numbers, NULL, 1, &written), "buffer");
    REFUSED(frazil_numbers_fill_for(NULL, 1, buffer, 1, NULL), "numbers");
    REFUSED(frazil_numbers_fill_for(numbers, 1, NULL, 1, NULL), "buffer");
    REFUSED(frazil_numbers_batch(NULL, buffer, 1), "numbers");
    REFUSED(frazil_numbers_batch(numbers, NULL, 1), "buffer");
    REFUSED(frazil_numbers_prepared(NULL, &prepared), "numbers");
    REFUSED(frazil_numbers_prepared(numbers, NULL), "prepared");
    REFUSED(frazil_numbers_last_error(NULL, &last_status, &text), "numbers");
    REFUSED(frazil_numbers_last_error(numbers, NULL, &text), "last_status");
    REFUSED(frazil_numbers_last_error(numbers, &last_status, NULL), "last_error");
    CHECK(last_status == -5 && text == NULL);
    REFUSED(frazil_numbers_discard(NULL), "numbers");
    REFUSED(frazil_numbers_close(NULL), "numbers");
    REFUSED(frazil_numbers_layout(NULL, &layout), "numbers");
    REFUSED(frazil_numbers_layout(numbers, NULL), "layout");
    STATUS(frazil_numbers_layout(numbers, &layout), FRAZIL_WRONG_TYPE);
    CHECK(layout == NULL && error_has("ring"));
    REFUSED(frazil_numbers_spec(NULL, &text), "numbers");
    REFUSED(frazil_numbers_spec(numbers, NULL), "spec");
    frazil_numbers_free(NULL);

    int64_t *odd = (int64_t *)(void *)((char *)buffer + 1);
    STATUS(frazil_numbers_fill(numbers, odd, 1, &written), FRAZIL_WRONG_TYPE);
    CHECK(error_has("aligned") && written == 0);
    STATUS(frazil_numbers_fill_for(numbers, 0, odd, 1, NULL), FRAZIL_WRONG_TYPE);
    STATUS(frazil_numbers_batch(numbers, odd, 1), FRAZIL_WRONG_TYPE);
    /* No number was taken for any of them. */
    OK(frazil_numbers_next(numbers, &number));
    CHECK(number == 1);
    frazil_numbers_free(numbers);
}

CASE(numbers_out_of_range) {
    frazil_numbers *numbers, *none = NULL;
    int64_t number = -5;
    size_t written = 9;
    STATUS(frazil_segment_open_for("c-range store=memory", -1, &none), FRAZIL_OUT_OF_RANGE);
    CHECK(none == NULL && error_has("max_wait_ms=-1"));
    STATUS(frazil_tickets_open_for("c-range store='memory file:/x'", -1, &none), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_buffered_open_for("standard node=338", INT64_MIN, &none), FRAZIL_OUT_OF_RANGE);
    OK(frazil_segment_open_for("c-range store=memory", INT64_MAX, &numbers));
    STATUS(frazil_numbers_next_for(numbers, -1, &number), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_numbers_fill_for(numbers, INT64_MIN, &number, 1, &written), FRAZIL_OUT_OF_RANGE);
    CHECK(written == 0);
    STATUS(frazil_numbers_fill(numbers, &number, (size_t)-1, &written), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_numbers_fill(numbers, &number, SIZE_MAX / 8, NULL), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_numbers_batch(numbers, &number, (size_t)-1), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_numbers_batch(numbers, &number, FRAZIL_MAX_BATCH + 1), FRAZIL_OUT_OF_RANGE);
    CHECK(error_has("16777216") && number == -5 && none == NULL);
    OK(frazil_numbers_next_for(numbers, INT64_MAX, &number));
    CHECK(number == 1);
    frazil_numbers_free(numbers);
}

CASE(numbers_strange_strings) {
    static char huge[1 << 20];
    static const char *const strange[] = {" ", "\xff", "orders store=\xc3", "\xed\xa0\x80", "n\xc3\xb6 store=memory", "\x01\x02", "%s%n", huge};
    frazil_numbers *none = NULL;
    memset(huge, 'x', sizeof huge - 1);
    for (size_t i = 0; i < COUNT(strange); ++i) {
        STATUS(frazil_segment_open(strange[i], &none), FRAZIL_SPEC);
        CHECK(strlen(frazil_last_error()) < 1000);
        STATUS(frazil_tickets_open(strange[i], &none), FRAZIL_SPEC);
        frazil_status status = frazil_buffered_open(strange[i], &none);
        CHECK(status == FRAZIL_SPEC || status == FRAZIL_NODE_MISSING || status == FRAZIL_UNKNOWN_KEY);
        CHECK(strlen(frazil_last_error()) < 1000);
    }
    STATUS(frazil_segment_open("orders store=\xff", &none), FRAZIL_SPEC);
    CHECK(error_has("not UTF-8 at byte 13") && none == NULL);
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
