/* Cases of tests/vectors/cases.json for the C API, in C99: other systems' IDs. */
#define _GNU_SOURCE
#include "helpers.h"
#include "vectors_types.h"
#include "vectors.h"

#include <ctype.h>
#include <pthread.h>
#include <sys/syscall.h>

static bool parts_are(const uint8_t *id, const struct object_id_parts *known) {
    frazil_object_id_parts parts;
    if (frazil_object_id_decode(id, &parts, sizeof parts) != FRAZIL_OK) return false;
    return parts.unix_ms == known->unix_ms && parts.random == known->random && parts.counter == known->counter &&
           parts.machine == known->machine && parts.process == known->process;
}

static bool object_id_has_text(const uint8_t *id, const char *expected) {
    char text[FRAZIL_OBJECT_ID_TEXT_SIZE];
    return frazil_object_id_text(id, text) == FRAZIL_OK && strcmp(text, expected) == 0;
}

static int compare_counters(const void *a, const void *b) {
    const uint8_t *x = a, *y = b;
    return memcmp(x + 9, y + 9, 3);
}

#define THREADS 4
#define PER_THREAD 50000
static uint8_t made_ids[THREADS * PER_THREAD][FRAZIL_OBJECT_ID_SIZE];
static uint8_t made_uuids[THREADS * PER_THREAD][FRAZIL_UUID_SIZE];

struct worker {
    size_t first;
    bool failed;
};

/* Fills a thread's part of both arrays; UUIDs must increase. */
static void *make_interop(void *argument) {
    struct worker *worker = argument;
    for (size_t i = worker->first; i < worker->first + PER_THREAD; ++i) {
        worker->failed |= frazil_object_id_new(made_ids[i]) != FRAZIL_OK;
        worker->failed |= frazil_uuid7(made_uuids[i]) != FRAZIL_OK;
        worker->failed |= i > worker->first && memcmp(made_uuids[i - 1], made_uuids[i], FRAZIL_UUID_SIZE) >= 0;
    }
    return NULL;
}

static bool make_by_threads(void) {
    struct worker workers[THREADS];
    pthread_t handles[THREADS];
    bool failed = false;
    for (int i = 0; i < THREADS; ++i) {
        workers[i] = (struct worker){(size_t)i * PER_THREAD, false};
        failed |= pthread_create(&handles[i], NULL, make_interop, &workers[i]) != 0;
    }
    for (int i = 0; i < THREADS; ++i) pthread_join(handles[i], NULL);
    for (int i = 0; i < THREADS; ++i) failed |= workers[i].failed;
    return !failed;
}

CASE(object_id) {
    uint8_t id[FRAZIL_OBJECT_ID_SIZE], other[FRAZIL_OBJECT_ID_SIZE];
    for (size_t i = 0; i < COUNT(OBJECT_IDS); ++i) {
        char upper[FRAZIL_OBJECT_ID_TEXT_SIZE] = "";
        OK(frazil_object_id_parse(OBJECT_IDS[i].text, id));
        CHECK(object_id_has_text(id, OBJECT_IDS[i].text) && parts_are(id, &OBJECT_IDS[i]));
        for (size_t j = 0; j < strlen(OBJECT_IDS[i].text); ++j) upper[j] = (char)toupper((unsigned char)OBJECT_IDS[i].text[j]);
        OK(frazil_object_id_parse(upper, other));
        CHECK(memcmp(id, other, sizeof id) == 0);
    }
    for (size_t i = 0; i < COUNT(OBJECT_ID_BOUNDS); ++i) {
        OK(frazil_object_id_min_id(OBJECT_ID_BOUNDS[i].unix_ms, id));
        OK(frazil_object_id_max_id(OBJECT_ID_BOUNDS[i].unix_ms, other));
        CHECK(object_id_has_text(id, OBJECT_ID_BOUNDS[i].min) && object_id_has_text(other, OBJECT_ID_BOUNDS[i].max));
    }
    const int64_t before = wall_ms();
    CHECK(make_by_threads());
    OK(frazil_object_id_min_id(before, id));
    OK(frazil_object_id_max_id(wall_ms(), other));
    for (size_t i = 0; i < COUNT(made_ids); ++i) {
        CHECK(memcmp(id, made_ids[i], sizeof id) <= 0 && memcmp(made_ids[i], other, sizeof other) <= 0);
        CHECK(memcmp(made_ids[0] + 4, made_ids[i] + 4, 5) == 0);
    }
    qsort(made_ids, COUNT(made_ids), sizeof made_ids[0], compare_counters);
    for (size_t i = 1; i < COUNT(made_ids); ++i) CHECK(compare_counters(made_ids[i - 1], made_ids[i]) < 0);
}

CASE(object_id_bad_input) {
    uint8_t id[FRAZIL_OBJECT_ID_SIZE] = {7}, untouched[FRAZIL_OBJECT_ID_SIZE] = {7};
    char text[FRAZIL_OBJECT_ID_TEXT_SIZE];
    frazil_object_id_parts parts;
    for (size_t i = 0; i < COUNT(OBJECT_IDS_INVALID); ++i) {
        STATUS(frazil_object_id_parse(OBJECT_IDS_INVALID[i], id), FRAZIL_ID_INVALID);
    }
    STATUS(frazil_object_id_parse("507f1f77bcf86cd79943901\xff", id), FRAZIL_ID_INVALID);
    for (size_t i = 0; i < COUNT(OBJECT_ID_OUT_OF_BOUNDS); ++i) {
        STATUS(frazil_object_id_min_id(OBJECT_ID_OUT_OF_BOUNDS[i].unix_ms, id), OBJECT_ID_OUT_OF_BOUNDS[i].code);
        STATUS(frazil_object_id_max_id(OBJECT_ID_OUT_OF_BOUNDS[i].unix_ms, id), OBJECT_ID_OUT_OF_BOUNDS[i].code);
    }
    STATUS(frazil_object_id_min_id(INT64_MIN, id), FRAZIL_BEFORE_EPOCH);
    STATUS(frazil_object_id_max_id(INT64_MAX, id), FRAZIL_LAYOUT_EXPIRED);
    CHECK(memcmp(id, untouched, sizeof id) == 0);
    REFUSED(frazil_object_id_new(NULL), "id");
    REFUSED(frazil_object_id_parse(NULL, id), "text");
    REFUSED(frazil_object_id_parse("507f1f77bcf86cd799439011", NULL), "id");
    REFUSED(frazil_object_id_text(NULL, text), "id");
    REFUSED(frazil_object_id_text(id, NULL), "text");
    REFUSED(frazil_object_id_decode(NULL, &parts, sizeof parts), "id");
    REFUSED(frazil_object_id_decode(id, NULL, 64), "parts");
    REFUSED(frazil_object_id_min_id(0, NULL), "id");
    REFUSED(frazil_object_id_max_id(0, NULL), "id");
}

static int compare_uuids(const void *a, const void *b) { return memcmp(a, b, FRAZIL_UUID_SIZE); }

CASE(uuid) {
    uint8_t uuid[FRAZIL_UUID_SIZE], later[FRAZIL_UUID_SIZE];
    char text[FRAZIL_UUID_TEXT_SIZE];
    int64_t unix_ms;
    for (size_t i = 0; i < COUNT(UUIDS); ++i) {
        OK(frazil_uuid_parse(UUIDS[i].text, uuid));
        OK(frazil_uuid_text(uuid, text));
        CHECK(strcmp(text, UUIDS[i].canonical) == 0 && uuid[6] >> 4 == UUIDS[i].version);
        unix_ms = -5;
        STATUS(frazil_uuid_time(uuid, &unix_ms), UUIDS[i].has_time ? FRAZIL_OK : FRAZIL_ID_INVALID);
        CHECK(unix_ms == (UUIDS[i].has_time ? UUIDS[i].unix_ms : -5));
    }
    const int64_t before = wall_ms();
    OK(frazil_uuid7(uuid));
    CHECK(make_by_threads());
    OK(frazil_uuid7(later));
    qsort(made_uuids, COUNT(made_uuids), sizeof made_uuids[0], compare_uuids);
    CHECK(compare_uuids(uuid, made_uuids[0]) < 0 && compare_uuids(made_uuids[COUNT(made_uuids) - 1], later) < 0);
    for (size_t i = 1; i < COUNT(made_uuids); ++i) CHECK(compare_uuids(made_uuids[i - 1], made_uuids[i]) < 0);
    for (size_t i = 0; i < COUNT(made_uuids); ++i) CHECK(made_uuids[i][6] >> 4 == 7 && made_uuids[i][8] >> 6 == 2);
    OK(frazil_uuid_time(later, &unix_ms));
    CHECK(before <= unix_ms && unix_ms <= wall_ms());

    for (size_t i = 0; i < COUNT(made_uuids); ++i) OK(frazil_uuid4(made_uuids[i]));
    for (size_t i = 0; i < COUNT(made_uuids); ++i) CHECK(made_uuids[i][6] >> 4 == 4 && made_uuids[i][8] >> 6 == 2);
    qsort(made_uuids, COUNT(made_uuids), sizeof made_uuids[0], compare_uuids);
    for (size_t i = 1; i < COUNT(made_uuids); ++i) CHECK(compare_uuids(made_uuids[i - 1], made_uuids[i]) < 0);
}

CASE(uuid_bad_input) {
    uint8_t uuid[FRAZIL_UUID_SIZE] = {7}, untouched[FRAZIL_UUID_SIZE] = {7};
    char text[FRAZIL_UUID_TEXT_SIZE];
    int64_t unix_ms;
    for (size_t i = 0; i < COUNT(UUIDS_INVALID); ++i) STATUS(frazil_uuid_parse(UUIDS_INVALID[i], uuid), FRAZIL_ID_INVALID);
    STATUS(frazil_uuid_parse("017f22e2-79b0-7cc3-98c4-dc0c0c07398\xff", uuid), FRAZIL_ID_INVALID);
    CHECK(memcmp(uuid, untouched, sizeof uuid) == 0);
    REFUSED(frazil_uuid4(NULL), "uuid");
    REFUSED(frazil_uuid7(NULL), "uuid");
    REFUSED(frazil_uuid_text(NULL, text), "uuid");
    REFUSED(frazil_uuid_text(uuid, NULL), "text");
    REFUSED(frazil_uuid_parse(NULL, uuid), "text");
    REFUSED(frazil_uuid_parse("017f22e279b07cc398c4dc0c0c07398f", NULL), "uuid");
    REFUSED(frazil_uuid_time(NULL, &unix_ms), "uuid");
    REFUSED(frazil_uuid_time(uuid, NULL), "unix_ms");
}

/* The output of a child: an ObjectId and two UUIDs. */
struct interop {
    uint8_t id[FRAZIL_OBJECT_ID_SIZE];
    uint8_t first[FRAZIL_UUID_SIZE];
    uint8_t second[FRAZIL_UUID_SIZE];
};

static bool make_interop_once(struct interop *made) {
    return frazil_object_id_new(made->id) == FRAZIL_OK && frazil_uuid7(made->first) == FRAZIL_OK &&
           frazil_uuid7(made->second) == FRAZIL_OK && compare_uuids(made->first, made->second) < 0;
}

CASE(interop_after_fork) {
    struct interop made[10], last;
    CHECK(make_interop_once(&made[0]));
    for (size_t i = 1; i < COUNT(made); ++i) {
        int ends[2];
        CHECK(pipe(ends) == 0);
        fflush(stdout);
        /* Every other child is made without libc's fork handlers. */
        pid_t child = i % 2 ? (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) : fork();
        if (child == 0) {
            struct interop own;
            const bool good = make_interop_once(&own) && write(ends[1], &own, sizeof own) == (ssize_t)sizeof own;
            end_child(good ? 0 : __LINE__);
        }
        close(ends[1]);
        CHECK(read(ends[0], &made[i], sizeof made[i]) == (ssize_t)sizeof made[i]);
        close(ends[0]);
        CHECK(ended_well(child));
        for (size_t j = 0; j < i; ++j) {
            CHECK(memcmp(made[i].id + 4, made[j].id + 4, 5) != 0);
            CHECK(memcmp(made[i].first + 8, made[j].first + 8, 8) != 0);
        }
    }
    CHECK(make_interop_once(&last));
    CHECK(memcmp(last.id + 4, made[0].id + 4, 5) == 0 && compare_uuids(made[0].second, last.first) < 0);
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
