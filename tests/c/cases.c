/* The cases of tests/vectors/cases.json for the C API, in C99. */
#define _GNU_SOURCE
#include "helpers.h"
#include "vectors_types.h"
#include "vectors.h"

#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define NOW INT64_C(1800000000000)

/* Whether a number is held is told after 1.5 x renew. */
#define QUICK "window=4s renew=1s rollback=error"
/* Two node numbers, and generators that share none. */
#define TWO "layout='time:41@1ms node:1 sequence:12 epoch:2025-01-01' store=memory window=8s renew=2s rollback=error detached=true"

CASE(known_ids) {
    for (size_t i = 0; i < COUNT(KNOWN_IDS); ++i) {
        const struct known_id *known = &KNOWN_IDS[i];
        frazil_layout *layout;
        frazil_parts parts;
        frazil_field fields[8];
        int64_t id;
        OK(frazil_layout_parse(known->layout, &layout));
        OK(frazil_layout_decode(layout, known->id, &parts, sizeof parts));
        CHECK(parts.id == known->id);
        CHECK(parts.sequence == known->sequence);
        if (known->has_time) CHECK(parts.unix_ms == known->unix_ms);
        uint64_t node = 0;
        for (size_t j = 0; j < known->field_count; ++j) {
            uint64_t value;
            OK(frazil_layout_decode_field(layout, known->id, known->fields[j].name, &value));
            CHECK(value == known->fields[j].value);
            fields[j].name = known->fields[j].name;
            fields[j].value = value;
        }
        frazil_layout_info info;
        OK(frazil_layout_describe(layout, &info, sizeof info));
        CHECK(info.field_count == known->field_count);
        for (size_t j = 0; j < info.field_count; ++j) {
            const char *name;
            uint32_t bits;
            uint64_t value;
            OK(frazil_layout_field(layout, j, &name, &bits));
            OK(frazil_layout_decode_field(layout, known->id, name, &value));
            node = node << bits | value;
        }
        CHECK(parts.node == node);
        OK(frazil_layout_compose(layout, parts.unix_ms, fields, known->field_count, parts.sequence, &id));
        CHECK(id == known->id);
        frazil_layout_free(layout);
    }
}

CASE(texts) {
    char text[FRAZIL_ID_TEXT_SIZE];
    int64_t id;
    for (size_t i = 0; i < COUNT(VALID_TEXTS); ++i) {
        for (int32_t format = FRAZIL_DECIMAL; format <= FRAZIL_HEX; ++format) {
            OK(frazil_id_format(VALID_TEXTS[i].id, format, text, sizeof text));
            CHECK(strcmp(text, VALID_TEXTS[i].forms[format]) == 0);
            OK(frazil_id_parse(text, format, &id));
            CHECK(id == VALID_TEXTS[i].id);
        }
        snprintf(text, sizeof text, "%" PRId64, VALID_TEXTS[i].id);
        OK(frazil_id_parse(text, FRAZIL_DECIMAL, &id));
        CHECK(id == VALID_TEXTS[i].id);
    }
    for (size_t i = 0; i < COUNT(INVALID_TEXTS); ++i) {
        id = -5;
        STATUS(frazil_id_parse(INVALID_TEXTS[i].text, INVALID_TEXTS[i].format, &id), FRAZIL_ID_INVALID);
        CHECK(id == -5);
    }
}

CASE(layouts) {
    for (size_t i = 0; i < COUNT(VALID_LAYOUTS); ++i) {
        const struct valid_layout *valid = &VALID_LAYOUTS[i];
        frazil_layout *layout, *again;
        frazil_layout_info info;
        const char *text;
        bool equal = false;
        OK(frazil_layout_parse(valid->text, &layout));
        OK(frazil_layout_text(layout, &text));
        CHECK(strcmp(text, valid->canonical) == 0);
        OK(frazil_layout_parse(text, &again));
        OK(frazil_layout_equal(layout, again, &equal));
        CHECK(equal);
        OK(frazil_layout_describe(layout, &info, sizeof info));
        CHECK(info.time_bits == valid->time_bits);
        CHECK(info.tick_ms == valid->tick_ms);
        CHECK(info.epoch_ms == valid->epoch_ms);
        CHECK(info.sequence_bits == valid->sequence_bits);
        CHECK(info.nodes == valid->nodes);
        CHECK(info.ids_per_second - valid->ids_per_second < 0.001 && valid->ids_per_second - info.ids_per_second < 0.001);
        CHECK(info.expires_at_ms == valid->expires_at_ms);
        CHECK(info.field_count == valid->field_count);
        for (size_t j = 0; j < info.field_count; ++j) {
            const char *name;
            uint32_t bits;
            OK(frazil_layout_field(layout, j, &name, &bits));
            CHECK(strcmp(name, valid->fields[j].name) == 0);
            CHECK(bits == valid->fields[j].value);
        }
        if (i > 0) {
            frazil_layout *first;
            OK(frazil_layout_parse(VALID_LAYOUTS[0].text, &first));
            OK(frazil_layout_equal(layout, first, &equal));
            CHECK(equal == (strcmp(valid->canonical, VALID_LAYOUTS[0].canonical) == 0));
            frazil_layout_free(first);
        }
        frazil_layout_free(again);
        frazil_layout_free(layout);
    }
    for (size_t i = 0; i < COUNT(INVALID_LAYOUTS); ++i) {
        frazil_layout *layout = NULL;
        STATUS(frazil_layout_parse(INVALID_LAYOUTS[i].text, &layout), INVALID_LAYOUTS[i].code);
        CHECK(layout == NULL);
        CHECK(says(INVALID_LAYOUTS[i].says));
    }
}

CASE(specs) {
    for (size_t i = 0; i < COUNT(VALID_SPECS); ++i) {
        frazil_snowflake *ids;
        const char *spec;
        OK(frazil_snowflake_open(VALID_SPECS[i].spec, &ids));
        OK(frazil_snowflake_spec(ids, &spec));
        CHECK(strcmp(spec, VALID_SPECS[i].canonical) == 0);
        frazil_snowflake_free(ids);
    }
    for (size_t i = 0; i < COUNT(INVALID_SPECS); ++i) {
        frazil_snowflake *ids = NULL;
        STATUS(frazil_snowflake_open(INVALID_SPECS[i].text, &ids), INVALID_SPECS[i].code);
        CHECK(ids == NULL);
        CHECK(says(INVALID_SPECS[i].says));
    }
}

/* Does what one step says; whether it came out so. */
static bool take_step(frazil_snowflake *ids, const struct step *step) {
    static int64_t batch[1 << 17];
    int64_t id = -1;
    uint64_t credit;
    const size_t count = (size_t)step->number;
    switch (step->kind) {
    case STEP_OPEN:
        return false;
    case STEP_SET_TIME:
        return frazil_snowflake_set_time(ids, step->number) == FRAZIL_OK;
    case STEP_NEXT:
        return frazil_snowflake_next(ids, &id) == FRAZIL_OK && id == step->first;
    case STEP_BATCH:
        return count <= COUNT(batch) && frazil_snowflake_batch(ids, batch, count) == FRAZIL_OK && ascending(batch, count) &&
               batch[0] == step->first && batch[count - 1] == step->last;
    case STEP_CREDIT:
        return frazil_snowflake_credit(ids, &credit) == FRAZIL_OK && credit == (uint64_t)step->number;
    case STEP_ERROR:
        return frazil_snowflake_next(ids, &id) == step->number && id == -1;
    }
    return false;
}

CASE(replays) {
    frazil_snowflake *ids = NULL;
    for (size_t i = 0; i < COUNT(STEPS); ++i) {
        const struct step *step = &STEPS[i];
        if (step->kind == STEP_OPEN) {
            frazil_snowflake_free(ids);
            OK(frazil_snowflake_open(step->spec, &ids));
        } else {
            CHECK(take_step(ids, step));
        }
    }
    frazil_snowflake_free(ids);
}

CASE(takeover) {
    for (size_t i = 0; i < COUNT(TAKEOVERS); ++i) {
        const struct takeover *row = &TAKEOVERS[i];
        frazil_snowflake *opened, *told;
        frazil_layout *layout;
        frazil_parts parts;
        const char *text;
        char spec[512];
        snprintf(spec, sizeof spec, "%s after=%" PRId64, row->spec, row->last);
        OK(frazil_snowflake_open(spec, &opened));
        OK(frazil_snowflake_open(row->spec, &told));
        OK(frazil_snowflake_layout(opened, &layout));
        OK(frazil_layout_text(layout, &text));
        CHECK(strcmp(text, row->layout) == 0);
        OK(frazil_layout_decode(layout, row->last, &parts, sizeof parts));
        CHECK(parts.unix_ms == row->unix_ms && parts.sequence == row->sequence);
        for (size_t j = 0; j < row->field_count; ++j) {
            uint64_t value;
            OK(frazil_layout_decode_field(layout, row->last, row->fields[j].name, &value));
            CHECK(value == row->fields[j].value);
        }
        OK(frazil_snowflake_set_time(told, row->unix_ms));
        OK(frazil_snowflake_observe(told, row->last));
        for (size_t j = 0; j < row->step_count; ++j) {
            CHECK(take_step(opened, &TAKEOVER_STEPS[row->first_step + j]));
            CHECK(take_step(told, &TAKEOVER_STEPS[row->first_step + j]));
        }
        frazil_layout_free(layout);
        frazil_snowflake_free(told);
        frazil_snowflake_free(opened);
    }
}

static volatile bool asks;

static void *ask_first(void *data) {
    (void)data;
    asks = true;
    frazil_error_name(FRAZIL_SPEC);
    return NULL;
}

/* A process's first question about errors, in one thread, while another one forks: the child does not wait for the thread that it has not. */
CASE(error_table_after_fork) {
    fflush(stdout);
    for (int i = 0; i < 64; ++i) {
        pid_t parent = fork();
        if (parent == 0) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, ask_first, NULL) != 0) end_child(__LINE__);
            while (!asks) {}
            for (volatile int n = 0; n < 20 * i; ++n) {}
            pid_t child = fork();
            if (child == 0) {
                alarm(20);
                end_child(strcmp(frazil_error_name(FRAZIL_CLOSED), "CLOSED") == 0 ? 0 : __LINE__);
            }
            end_child(ended_well(child) ? 0 : __LINE__);
        }
        CHECK(ended_well(parent));
    }
}

CASE(error_table) {
    CHECK(frazil_error_count() == COUNT(ERRORS));
    for (size_t i = 0; i < COUNT(ERRORS); ++i) {
        CHECK(frazil_error_at(i) == ERRORS[i].code);
        CHECK(ERRORS[i].constant == ERRORS[i].code);
        CHECK(strcmp(frazil_error_name(ERRORS[i].code), ERRORS[i].name) == 0);
        CHECK(strcmp(frazil_error_meaning(ERRORS[i].code), ERRORS[i].meaning) == 0);
    }
    CHECK(frazil_error_at(COUNT(ERRORS)) == FRAZIL_OK && frazil_error_at(SIZE_MAX) == FRAZIL_OK);
    CHECK(strcmp(frazil_error_name(FRAZIL_OK), "OK") == 0 && strcmp(frazil_error_meaning(FRAZIL_OK), "The call succeeded.") == 0);
    const int32_t unknown[] = {1, -1, 100, 900, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < COUNT(unknown); ++i) {
        CHECK(frazil_error_name(unknown[i]) == NULL && frazil_error_meaning(unknown[i]) == NULL);
    }
}

/* What a forked child is told by a generator of its parent. */
static frazil_status status_in_child(frazil_snowflake *ids) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int64_t id;
        end_child(frazil_snowflake_next(ids, &id) == FRAZIL_FORKED ? 0 : __LINE__);
    }
    return ended_well(child) ? FRAZIL_FORKED : FRAZIL_OK;
}

CASE(every_error) {
    frazil_snowflake *ids = NULL, *other = NULL, *third = NULL;
    frazil_layout *layout;
    int64_t id;
    OK(frazil_layout_parse("twitter", &layout));
    STATUS(frazil_snowflake_open("twitter datacenter=1 7", &ids), FRAZIL_SPEC);
    STATUS(frazil_snowflake_open("twitter datacenter=1 wroker=7", &ids), FRAZIL_UNKNOWN_KEY);
    STATUS(frazil_snowflake_open("twitter datacenter=1 worker=32", &ids), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_snowflake_open("layout='time:99@1ms sequence:1 epoch:0'", &ids), FRAZIL_LAYOUT_INVALID);
    STATUS(frazil_layout_decode(layout, -1, &(frazil_parts){0}, sizeof(frazil_parts)), FRAZIL_ID_INVALID);
    STATUS(frazil_snowflake_next(NULL, &id), FRAZIL_WRONG_TYPE);
    STATUS(frazil_snowflake_open("baidu worker=1", &ids), FRAZIL_LAYOUT_EXPIRED);
    STATUS(frazil_layout_min_id(layout, 0, &id), FRAZIL_BEFORE_EPOCH);
    STATUS(frazil_snowflake_open("twitter", &ids), FRAZIL_NODE_MISSING);
    STATUS(frazil_snowflake_open("standard store=redis://127.0.0.1:1/0 window=4s renew=1s", &ids), FRAZIL_STORE_UNREACHABLE);
    STATUS(frazil_snowflake_open("standard store=redis://127.0.0.1:1/0 lease=disposable", &ids), FRAZIL_STORE_UNSUITABLE);
    CHECK(ids == NULL);

    OK(frazil_snowflake_open("twitter datacenter=1 worker=1 clock=manual detached=true", &ids));
    STATUS(frazil_snowflake_next(ids, &id), FRAZIL_CLOCK_NOT_SET);
    OK(frazil_snowflake_set_time(ids, NOW));
    int64_t all[4096];
    OK(frazil_snowflake_fill(ids, all, 4096, NULL));
    OK(frazil_snowflake_set_time(ids, NOW - 7));
    STATUS(frazil_snowflake_next(ids, &id), FRAZIL_CLOCK_BACK);
    CHECK(error_has("7 ms"));
    OK(frazil_snowflake_set_time(ids, NOW));
    STATUS(frazil_snowflake_next(ids, &id), FRAZIL_WOULD_BLOCK);
    CHECK(frazil_retry_after_ms() == 1);
    OK(frazil_snowflake_close(ids));
    STATUS(frazil_snowflake_next(ids, &id), FRAZIL_CLOSED);
    CHECK(frazil_retry_after_ms() == -1);
    frazil_snowflake_free(ids);

    OK(frazil_snowflake_open("game16 server=1 clock=manual detached=true lag=0ms", &ids));
    OK(frazil_snowflake_set_time(ids, NOW));
    while (frazil_snowflake_next(ids, &id) == FRAZIL_OK) {}
    STATUS(frazil_snowflake_next(ids, &id), FRAZIL_EXHAUSTED);
    CHECK(frazil_retry_after_ms() == 1000);
    frazil_snowflake_free(ids);

    char line[300];
    snprintf(line, sizeof line, "%s namespace=c-every node=1", TWO);
    OK(frazil_snowflake_open(line, &ids));
    STATUS(frazil_snowflake_open(line, &third), FRAZIL_NODE_IN_USE);
    snprintf(line, sizeof line, "%s namespace=c-every", TWO);
    OK(frazil_snowflake_open(line, &other));
    STATUS(frazil_snowflake_open(line, &third), FRAZIL_NO_FREE_NODE);
    STATUS(frazil_snowflake_open("standard store=memory namespace=c-every", &third), FRAZIL_LAYOUT_MISMATCH);
    CHECK(third == NULL);
    OK(frazil_snowflake_renew(ids));
    OK(frazil_snowflake_open(TWO " namespace=c-every node=1", &third));
    STATUS(frazil_snowflake_next(ids, &id), FRAZIL_LEASE_EXHAUSTED);
    frazil_snowflake_free(third);
    third = NULL;
    frazil_snowflake_free(other);
    frazil_snowflake_free(ids);

    frazil_numbers *numbers, *none = NULL;
    OK(frazil_segment_open("c-every store=memory start=9223372036854775807", &numbers));
    OK(frazil_numbers_next(numbers, &id));
    CHECK(id == INT64_MAX);
    STATUS(frazil_numbers_next(numbers, &id), FRAZIL_SEGMENT_EXHAUSTED);
    STATUS(frazil_segment_open("c-every store=memory increment=2 offset=1", &none), FRAZIL_SEGMENT_MISMATCH);
    CHECK(none == NULL);
    frazil_numbers_free(numbers);

    OK(frazil_snowflake_open("standard node=300", &ids));
    STATUS(frazil_snowflake_open("standard node=300 rollback=error", &third), FRAZIL_CONFLICT);
    CHECK(third == NULL);
    STATUS(status_in_child(ids), FRAZIL_FORKED);
    frazil_snowflake_free(ids);
    frazil_layout_free(layout);
}

CASE(next_increases) {
    frazil_snowflake *ids;
    frazil_layout *layout;
    frazil_parts parts;
    int64_t before = -1, id;
    uint64_t value;
    OK(frazil_snowflake_open("twitter datacenter=3 worker=9", &ids));
    OK(frazil_snowflake_layout(ids, &layout));
    OK(frazil_snowflake_field(ids, "worker", &value));
    CHECK(value == 9);
    for (int i = 0; i < 20000; ++i) {
        OK(frazil_snowflake_next(ids, &id));
        CHECK(id > before);
        before = id;
    }
    OK(frazil_snowflake_try_next(ids, 1000, &id));
    CHECK(id > before);
    OK(frazil_layout_decode(layout, id, &parts, sizeof parts));
    CHECK(parts.unix_ms <= wall_ms() && parts.unix_ms > wall_ms() - 60000);
    OK(frazil_snowflake_node(ids, &value));
    CHECK(value == 3 * 32 + 9 && parts.node == value);
    OK(frazil_layout_decode_field(layout, id, "datacenter", &value));
    CHECK(value == 3);
    OK(frazil_layout_decode_field(layout, id, "worker", &value));
    CHECK(value == 9);
    frazil_snowflake_free(ids);
    OK(frazil_layout_decode(layout, id, &parts, sizeof parts));
    frazil_layout_free(layout);
}

CASE(batch_and_fill) {
    static int64_t buffer[20000];
    frazil_snowflake *ids;
    size_t written = 0;
    OK(frazil_snowflake_open("standard node=301", &ids));
    OK(frazil_snowflake_batch(ids, buffer, 10000));
    OK(frazil_snowflake_fill(ids, buffer + 10000, 5000, &written));
    CHECK(written == 5000);
    OK(frazil_snowflake_try_fill(ids, 1000, buffer + 15000, 5000, NULL));
    CHECK(ascending(buffer, COUNT(buffer)));
    frazil_snowflake_free(ids);

    OK(frazil_snowflake_open("twitter datacenter=1 worker=1 clock=manual detached=true exhausted=error", &ids));
    OK(frazil_snowflake_set_time(ids, NOW));
    memset(buffer, 0x55, sizeof buffer);
    STATUS(frazil_snowflake_batch(ids, buffer, 5000), FRAZIL_EXHAUSTED);
    CHECK(buffer[0] == INT64_C(0x5555555555555555));
    OK(frazil_snowflake_set_time(ids, NOW + 1));
    STATUS(frazil_snowflake_fill(ids, buffer, 5000, &written), FRAZIL_EXHAUSTED);
    CHECK(written == 4096 && ascending(buffer, written) && buffer[written] == INT64_C(0x5555555555555555));
    STATUS(frazil_snowflake_try_fill(ids, 0, buffer, 5000, &written), FRAZIL_EXHAUSTED);
    CHECK(written == 0);
    frazil_snowflake_free(ids);
}

CASE(zero_length) {
    frazil_snowflake *ids;
    int64_t id = -5;
    size_t written = 7;
    OK(frazil_snowflake_open("standard node=302", &ids));
    OK(frazil_snowflake_fill(ids, &id, 0, &written));
    CHECK(written == 0 && id == -5);
    OK(frazil_snowflake_fill(ids, NULL, 0, NULL));
    OK(frazil_snowflake_try_fill(ids, 0, NULL, 0, NULL));
    OK(frazil_snowflake_batch(ids, NULL, 0));
    frazil_snowflake_free(ids);
}

CASE(iteration) {
    frazil_snowflake *ids;
    int64_t id, before = -1;
    int count = 0;
    OK(frazil_snowflake_open("standard node=303", &ids));
    while (count < 1000 && frazil_snowflake_next(ids, &id) == FRAZIL_OK) {
        CHECK(id > before);
        before = id;
        ++count;
    }
    CHECK(count == 1000);
    frazil_snowflake_free(ids);
}

struct waiter {
    frazil_snowflake *ids;
    int64_t id;
    frazil_status status;
    bool quiet;
};

static void *wait_for_next(void *argument) {
    struct waiter *waiter = argument;
    waiter->quiet = frazil_last_error()[0] == '\0' && frazil_retry_after_ms() == -1;
    waiter->status = frazil_snowflake_next(waiter->ids, &waiter->id);
    return NULL;
}

CASE(async_forms) {
    frazil_snowflake *ids;
    int64_t both[2], id;
    OK(frazil_snowflake_open("layout='time:31@1s node:4 sequence:1 epoch:2025-01-01' node=3 exhausted=wait:60s", &ids));
    OK(frazil_snowflake_fill(ids, both, 2, NULL));
    /* One thread waits for the next second; this one is told that it would, and does not. */
    struct waiter waiter = {ids, -1, FRAZIL_OK, false};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_for_next, &waiter) == 0);
    frazil_status status = FRAZIL_OK;
    for (int i = 0; i < 100 && status == FRAZIL_OK; ++i) status = frazil_snowflake_try_next(ids, 0, &id);
    int64_t retry = frazil_retry_after_ms();
    pthread_join(thread, NULL);
    CHECK(status == FRAZIL_WOULD_BLOCK && retry >= 1 && retry <= 1000);
    CHECK(waiter.status == FRAZIL_OK && waiter.id > both[1]);
    CHECK(waiter.quiet);
    frazil_snowflake_free(ids);
}

CASE(new_text) {
    static const size_t widths[] = {19, 11, 13, 16};
    frazil_snowflake *ids;
    int64_t before = -1, id;
    OK(frazil_snowflake_open("standard node=304", &ids));
    for (int32_t format = FRAZIL_DECIMAL; format <= FRAZIL_HEX; ++format) {
        char text[FRAZIL_ID_TEXT_SIZE], exact[FRAZIL_ID_TEXT_SIZE];
        OK(frazil_snowflake_text(ids, format, text, sizeof text));
        CHECK(strlen(text) == widths[format]);
        OK(frazil_id_parse(text, format, &id));
        CHECK(id > before);
        before = id;
        memset(exact, '~', sizeof exact);
        OK(frazil_snowflake_text(ids, format, exact, widths[format] + 1));
        CHECK(strcmp(text, exact) < 0);
        for (size_t at = widths[format] + 1; at < sizeof exact; ++at) CHECK(exact[at] == '~');
        OK(frazil_id_parse(exact, format, &before));
    }
    frazil_snowflake_free(ids);
}

CASE(min_max) {
    frazil_layout *layout;
    frazil_layout_info info;
    frazil_parts parts;
    int64_t low, high, id;
    OK(frazil_layout_parse("twitter", &layout));
    OK(frazil_layout_describe(layout, &info, sizeof info));
    OK(frazil_layout_min_id(layout, NOW, &low));
    OK(frazil_layout_max_id(layout, NOW, &high));
    const frazil_field fields[] = {{"worker", 7}, {"datacenter", 1}};
    OK(frazil_layout_compose(layout, NOW, fields, 2, 9, &id));
    CHECK(low < id && id < high);
    OK(frazil_layout_decode(layout, low, &parts, sizeof parts));
    CHECK(parts.unix_ms == NOW && parts.node == 0 && parts.sequence == 0);
    OK(frazil_layout_decode(layout, high, &parts, sizeof parts));
    CHECK(parts.unix_ms == NOW && parts.node == 1023 && parts.sequence == 4095);
    STATUS(frazil_layout_min_id(layout, info.epoch_ms - 1, &id), FRAZIL_BEFORE_EPOCH);
    STATUS(frazil_layout_max_id(layout, info.epoch_ms - 1, &id), FRAZIL_BEFORE_EPOCH);
    OK(frazil_layout_max_id(layout, info.expires_at_ms - 1, &id));
    CHECK(id == INT64_MAX);
    STATUS(frazil_layout_min_id(layout, info.expires_at_ms, &id), FRAZIL_LAYOUT_EXPIRED);
    STATUS(frazil_layout_max_id(layout, info.expires_at_ms, &id), FRAZIL_LAYOUT_EXPIRED);
    frazil_layout_free(layout);
}

CASE(manual_clock) {
    frazil_snowflake *ids;
    frazil_layout *layout;
    frazil_parts parts;
    int64_t id;
    uint64_t credit;
    OK(frazil_snowflake_open("standard node=5 clock=manual detached=true", &ids));
    STATUS(frazil_snowflake_next(ids, &id), FRAZIL_CLOCK_NOT_SET);
    STATUS(frazil_snowflake_credit(ids, &credit), FRAZIL_CLOCK_NOT_SET);
    OK(frazil_snowflake_set_time(ids, NOW));
    OK(frazil_snowflake_next(ids, &id));
    OK(frazil_snowflake_layout(ids, &layout));
    OK(frazil_layout_decode(layout, id, &parts, sizeof parts));
    CHECK(parts.unix_ms == NOW);
    OK(frazil_snowflake_set_time(ids, NOW + 12345));
    OK(frazil_snowflake_next(ids, &id));
    OK(frazil_layout_decode(layout, id, &parts, sizeof parts));
    CHECK(parts.unix_ms == NOW + 12345);
    frazil_layout_free(layout);
    frazil_snowflake_free(ids);
    OK(frazil_snowflake_open("standard node=305", &ids));
    STATUS(frazil_snowflake_set_time(ids, NOW), FRAZIL_SPEC);
    frazil_snowflake_free(ids);
}

CASE(observe) {
    frazil_snowflake *ids, *other;
    frazil_layout *layout;
    int64_t first, theirs, id;
    OK(frazil_snowflake_open("standard node=1 start=zero clock=manual detached=true", &ids));
    STATUS(frazil_snowflake_observe(ids, INT64_C(1) << 40), FRAZIL_CLOCK_NOT_SET);
    OK(frazil_snowflake_set_time(ids, NOW));
    OK(frazil_snowflake_layout(ids, &layout));
    OK(frazil_snowflake_next(ids, &first));
    OK(frazil_snowflake_observe(ids, 0));
    OK(frazil_snowflake_next(ids, &id));
    CHECK(id == first + 1);
    OK(frazil_layout_max_id(layout, NOW + 1000, &theirs));
    OK(frazil_snowflake_observe(ids, theirs));
    OK(frazil_snowflake_observe(ids, first));
    OK(frazil_snowflake_set_time(ids, NOW + 1001));
    OK(frazil_snowflake_next(ids, &id));
    CHECK(id > theirs);
    OK(frazil_layout_min_id(layout, NOW + 2002, &theirs));
    STATUS(frazil_snowflake_observe(ids, theirs), FRAZIL_OUT_OF_RANGE);
    CHECK(error_has("id=") && error_has("1001 ms ahead of the clock") && error_has("allow 1s"));
    STATUS(frazil_snowflake_observe(ids, -1), FRAZIL_ID_INVALID);
    frazil_layout_info info;
    OK(frazil_layout_describe(layout, &info, sizeof info));
    OK(frazil_snowflake_set_time(ids, info.expires_at_ms - 1));
    STATUS(frazil_snowflake_observe(ids, INT64_MAX), FRAZIL_LAYOUT_EXPIRED);
    OK(frazil_snowflake_open("js53 node=1 clock=manual detached=true", &other));
    OK(frazil_snowflake_set_time(other, NOW));
    STATUS(frazil_snowflake_observe(other, INT64_C(1) << 53), FRAZIL_ID_INVALID);
    frazil_snowflake_free(other);
    OK(frazil_snowflake_open("standard node=318 rollback=ahead:1h exhausted=ahead:1h", &other));
    OK(frazil_layout_max_id(layout, wall_ms() + 60000, &theirs));
    OK(frazil_snowflake_observe(other, theirs));
    OK(frazil_snowflake_next(other, &id));
    CHECK(id > theirs);
    frazil_snowflake_free(other);
    frazil_layout_free(layout);
    frazil_snowflake_free(ids);
}

CASE(burst_credit) {
    static int64_t loot[65536];
    frazil_snowflake *ids;
    frazil_layout *layout;
    frazil_parts parts;
    uint64_t credit;
    int64_t id;
    OK(frazil_snowflake_open("game server=4711 start=zero clock=manual detached=true", &ids));
    OK(frazil_snowflake_layout(ids, &layout));
    OK(frazil_snowflake_set_time(ids, NOW));
    OK(frazil_snowflake_credit(ids, &credit));
    CHECK(credit == 4096);
    OK(frazil_snowflake_set_time(ids, NOW + 15000));
    OK(frazil_snowflake_credit(ids, &credit));
    CHECK(credit == 65536);
    OK(frazil_snowflake_fill(ids, loot, COUNT(loot), NULL));
    CHECK(ascending(loot, COUNT(loot)));
    OK(frazil_layout_decode(layout, loot[COUNT(loot) - 1], &parts, sizeof parts));
    CHECK(parts.unix_ms == NOW + 15000);
    OK(frazil_snowflake_credit(ids, &credit));
    CHECK(credit == 0);
    STATUS(frazil_snowflake_next(ids, &id), FRAZIL_EXHAUSTED);
    frazil_layout_free(layout);
    frazil_snowflake_free(ids);
}

CASE(registry) {
    int64_t before = -1, id;
    frazil_snowflake *ids, *other = NULL;
    for (int i = 0; i < 2000; ++i) {
        OK(frazil_snowflake_open("standard node=306", &ids));
        OK(frazil_snowflake_next(ids, &id));
        frazil_snowflake_free(ids);
        CHECK(id > before);
        before = id;
    }
    OK(frazil_snowflake_open("standard node=306", &ids));
    STATUS(frazil_snowflake_open("standard node=306 exhausted=error", &other), FRAZIL_CONFLICT);
    CHECK(other == NULL);
    frazil_snowflake_free(ids);
}

#define THREADS 4
#define PER_THREAD 50000
static int64_t minted[THREADS * PER_THREAD];

struct worker {
    const frazil_snowflake *ids;
    int64_t *place;
    bool failed;
};

static void *mint(void *argument) {
    struct worker *worker = argument;
    for (int i = 0; i < PER_THREAD / 2; ++i) worker->failed |= frazil_snowflake_next(worker->ids, &worker->place[i]) != FRAZIL_OK;
    worker->failed |= frazil_snowflake_fill(worker->ids, worker->place + PER_THREAD / 2, PER_THREAD / 2, NULL) != FRAZIL_OK;
    worker->failed |= !ascending(worker->place, PER_THREAD);
    return NULL;
}

CASE(threads) {
    frazil_snowflake *ids;
    struct worker workers[THREADS];
    pthread_t handles[THREADS];
    OK(frazil_snowflake_open("standard node=307 exhausted=wait:60s", &ids));
    for (int i = 0; i < THREADS; ++i) {
        workers[i] = (struct worker){ids, minted + i * PER_THREAD, false};
        CHECK(pthread_create(&handles[i], NULL, mint, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; ++i) pthread_join(handles[i], NULL);
    for (int i = 0; i < THREADS; ++i) CHECK(!workers[i].failed);
    qsort(minted, COUNT(minted), sizeof minted[0], compare);
    CHECK(ascending(minted, COUNT(minted)));
    frazil_snowflake_free(ids);
}

/* What a child of any kind must see; 0 when it does, else the line that it did not. */
static int child_of(frazil_snowflake *ids, frazil_snowflake *leased) {
    int64_t id;
    uint64_t credit;
    char text[FRAZIL_ID_TEXT_SIZE];
    frazil_snowflake *mine = NULL;
    if (frazil_snowflake_next(ids, &id) != FRAZIL_FORKED) return 1;
    if (frazil_snowflake_fill(ids, &id, 1, NULL) != FRAZIL_FORKED) return 2;
    if (frazil_snowflake_text(ids, FRAZIL_HEX, text, sizeof text) != FRAZIL_FORKED) return 3;
    if (frazil_snowflake_credit(ids, &credit) != FRAZIL_FORKED) return 4;
    if (frazil_snowflake_open("standard node=308", &mine) != FRAZIL_FORKED || mine != NULL) return 5;
    if (frazil_snowflake_next(leased, &id) != FRAZIL_FORKED) return 6;
    frazil_snowflake_free(leased);
    if (frazil_snowflake_open("standard node=309", &mine) != FRAZIL_OK) return 7;
    if (frazil_snowflake_next(mine, &id) != FRAZIL_OK) return 8;
    frazil_snowflake_free(mine);
    frazil_snowflake_free(ids);
    return 0;
}

CASE(fork) {
    frazil_snowflake *ids, *leased;
    int64_t before, id;
    OK(frazil_snowflake_open("standard node=308", &ids));
    OK(frazil_snowflake_open("standard store=memory namespace=c-fork", &leased));
    OK(frazil_snowflake_next(ids, &before));
    fflush(stdout);
    for (int raw = 0; raw < 2; ++raw) {
        pid_t child = raw ? (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) : fork();
        CHECK(child >= 0);
        if (child == 0) end_child(child_of(ids, leased));
        CHECK(ended_well(child));
        OK(frazil_snowflake_next(ids, &id));
        CHECK(id > before);
        OK(frazil_snowflake_next(leased, &id));
    }
    frazil_snowflake_free(leased);
    frazil_snowflake_free(ids);
}

CASE(memory_store) {
    const char *spec = "standard store=memory namespace=c-memory detached=true " QUICK;
    frazil_snowflake *one, *two, *given, *again = NULL;
    uint64_t a, b;
    int64_t before, id;
    OK(frazil_snowflake_open(spec, &one));
    OK(frazil_snowflake_open(spec, &two));
    OK(frazil_snowflake_node(one, &a));
    OK(frazil_snowflake_node(two, &b));
    CHECK(a != b);
    OK(frazil_snowflake_next(one, &before));
    OK(frazil_snowflake_renew(one));
    OK(frazil_snowflake_next(one, &id));
    CHECK(id > before);
    OK(frazil_snowflake_node(one, &a));
    CHECK(a != b);
    frazil_snowflake_free(two);

    char line[160];
    snprintf(line, sizeof line, "%s node=%" PRIu64, spec, a);
    STATUS(frazil_snowflake_open(line, &again), FRAZIL_NODE_IN_USE);
    CHECK(again == NULL);
    OK(frazil_snowflake_close(one));
    OK(frazil_snowflake_open(line, &again));
    OK(frazil_snowflake_next(again, &before));
    CHECK(before > id);
    frazil_snowflake_free(again);
    frazil_snowflake_free(one);

    OK(frazil_snowflake_open("standard node=310", &given));
    STATUS(frazil_snowflake_renew(given), FRAZIL_SPEC);
    frazil_snowflake_free(given);
}

/* Opens a generator of the folder's store: `rest` is what the spec line says beside that. */
static frazil_status open_in(struct folder folder, const char *rest, frazil_snowflake **ids) {
    char line[300];
    snprintf(line, sizeof line, "standard store=file:%s %s", folder.path, rest);
    return frazil_snowflake_open(line, ids);
}

CASE(lease_info) {
    struct folder folder = make_folder();
    frazil_snowflake *ids, *given, *counted;
    frazil_lease lease, later;
    char store[80];
    uint64_t node;
    OK(frazil_snowflake_open("standard node=320", &given));
    memset(&lease, 7, sizeof lease);
    OK(frazil_snowflake_lease(given, &lease, sizeof lease));
    CHECK(!lease.leased && lease.healthy && lease.node == 320 && lease.bound_ms == INT64_MAX && lease.left == -1);
    CHECK(lease.last_status == FRAZIL_OK && *lease.last_error == '\0' && *lease.store == '\0' && *lease.store_namespace == '\0');
    frazil_snowflake_free(given);

    int64_t before = wall_ms();
    OK(open_in(folder, "namespace=eu-items_2.1", &ids));
    OK(frazil_snowflake_lease(ids, &lease, sizeof lease));
    OK(frazil_snowflake_node(ids, &node));
    snprintf(store, sizeof store, "file:%s", folder.path);
    CHECK(lease.leased && lease.healthy && lease.node == node && lease.left == -1);
    CHECK(strcmp(lease.store, store) == 0 && strcmp(lease.store_namespace, "eu-items_2.1") == 0);
    CHECK(lease.last_status == FRAZIL_OK && *lease.last_error == '\0');
    CHECK(lease.bound_ms > before + 2000 && lease.bound_ms < wall_ms() + 5000);
    /* It is extended all the time. */
    later = lease;
    for (int i = 0; i < 6000 && later.bound_ms <= lease.bound_ms; ++i) {
        pause_ms(10);
        OK(frazil_snowflake_lease(ids, &later, sizeof later));
    }
    CHECK(later.bound_ms > lease.bound_ms);
    OK(frazil_snowflake_close(ids));
    OK(frazil_snowflake_lease(ids, &lease, sizeof lease));
    CHECK(strcmp(lease.store_namespace, "eu-items_2.1") == 0);
    frazil_snowflake_free(ids);
    remove_folder(folder);

    const char *disposable =
        "layout='time:41@1ms node:1 sequence:12 epoch:2025-01-01' store=memory lease=disposable namespace=c-counted detached=true";
    OK(frazil_snowflake_open(disposable, &counted));
    OK(frazil_snowflake_lease(counted, &lease, sizeof lease));
    CHECK(lease.leased && lease.node == 0 && lease.bound_ms == INT64_MAX && lease.left == 1);
    frazil_snowflake_free(counted);
}

CASE(lease_close_gives_back) {
    struct folder folder = make_folder();
    frazil_snowflake *one, *two;
    int64_t first, id;
    uint64_t node;
    OK(open_in(folder, "namespace=close", &one));
    OK(open_in(folder, "namespace=close", &two));
    OK(frazil_snowflake_node(one, &node));
    OK(frazil_snowflake_close(one));
    /* Another handle is open. */
    CHECK(!is_free(folder, "close", node));
    OK(frazil_snowflake_next(two, &first));
    OK(frazil_snowflake_close(two));
    CHECK(is_free(folder, "close", node));
    STATUS(frazil_snowflake_next(two, &id), FRAZIL_CLOSED);
    frazil_snowflake_free(two);
    frazil_snowflake_free(one);

    OK(open_in(folder, "namespace=free", &one));
    OK(frazil_snowflake_node(one, &node));
    frazil_snowflake_free(one);
    CHECK(is_given_back(folder, "free", node));

    OK(open_in(folder, "namespace=renew", &one));
    OK(frazil_snowflake_next(one, &first));
    OK(frazil_snowflake_node(one, &node));
    OK(frazil_snowflake_renew(one));
    OK(frazil_snowflake_renew(one));
    CHECK(is_free(folder, "renew", node));
    OK(frazil_snowflake_next(one, &id));
    CHECK(id > first);
    OK(frazil_snowflake_node(one, &node));
    CHECK(!is_free(folder, "renew", node));
    frazil_snowflake_free(one);

    /* The end of another process, which has freed what it had. */
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (open_in(folder, "namespace=child node=7", &one) != FRAZIL_OK) end_child(__LINE__);
        frazil_snowflake_free(one);
        end_child(is_given_back(folder, "child", 7) ? 0 : __LINE__);
    }
    CHECK(ended_well(child));
    remove_folder(folder);
}

CASE(lease_named_slot) {
    struct folder folder = make_folder();
    frazil_snowflake *ids = NULL;
    int64_t last = 0, id;
    int up[2], down[2];
    char pid[40];
    CHECK(pipe(up) == 0 && pipe(down) == 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(down[1]);
        if (open_in(folder, QUICK " node=7", &ids) != FRAZIL_OK || frazil_snowflake_next(ids, &id) != FRAZIL_OK) end_child(__LINE__);
        if (write(up[1], &id, sizeof id) != sizeof id) end_child(__LINE__);
        if (read(down[0], &id, sizeof id) != 0) end_child(__LINE__);
        frazil_snowflake_free(ids);
        end_child(0);
    }
    close(up[1]);
    CHECK(read(up[0], &last, sizeof last) == sizeof last);
    STATUS(open_in(folder, QUICK " node=7", &ids), FRAZIL_NODE_IN_USE);
    snprintf(pid, sizeof pid, ":%d until", (int)child);
    CHECK(ids == NULL && error_has("node number 7 is held by") && error_has(pid) && error_has(folder.path));
    OK(open_in(folder, QUICK " node=8", &ids));
    frazil_snowflake_free(ids);
    close(down[1]);
    CHECK(ended_well(child));
    OK(open_in(folder, QUICK " node=7", &ids));
    OK(frazil_snowflake_next(ids, &id));
    CHECK(id > last);
    frazil_snowflake_free(ids);
    close(down[0]);
    close(up[0]);
    remove_folder(folder);
}

#define EACH 20000

/* What one process of several mints, which the others can see. */
struct share {
    frazil_status status;
    uint64_t node;
    int64_t ids[EACH];
};

static void mint_share(frazil_snowflake *ids, struct share *share) {
    size_t half = EACH / 2;
    share->status = frazil_snowflake_fill(ids, share->ids, half, NULL);
    for (size_t i = half; i < EACH && share->status == FRAZIL_OK; ++i) share->status = frazil_snowflake_next(ids, &share->ids[i]);
    if (share->status == FRAZIL_OK) share->status = frazil_snowflake_node(ids, &share->node);
}

static struct share *map_shares(size_t count) {
    void *shares = mmap(NULL, count * sizeof(struct share), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shares == MAP_FAILED) abort();
    return shares;
}

/* Whether all minted, each with a number of its own, and nothing twice. */
static bool shares_differ(const struct share *shares, size_t count) {
    static int64_t all[4 * EACH];
    frazil_layout *layout;
    bool differ = count <= 4 && frazil_layout_parse("standard", &layout) == FRAZIL_OK;
    for (size_t i = 0; i < count && differ; ++i) {
        differ = shares[i].status == FRAZIL_OK && ascending(shares[i].ids, EACH);
        for (size_t j = 0; j < i; ++j) differ = differ && shares[j].node != shares[i].node;
        for (size_t j = 0; j < EACH && differ; ++j) {
            frazil_parts parts;
            differ = frazil_layout_decode(layout, shares[i].ids[j], &parts, sizeof parts) == FRAZIL_OK && parts.node == shares[i].node;
        }
        memcpy(all + i * EACH, shares[i].ids, sizeof shares[i].ids);
    }
    if (!differ) return false;
    frazil_layout_free(layout);
    qsort(all, count * EACH, sizeof all[0], compare);
    return ascending(all, count * EACH);
}

CASE(lease_file_store) {
    struct folder folder = make_folder();
    struct share *shares = map_shares(3);
    struct barrier all_have_theirs = make_barrier();
    frazil_snowflake *ids;
    pid_t children[2];
    fflush(stdout);
    for (int i = 0; i < 2; ++i) {
        children[i] = fork();
        CHECK(children[i] >= 0);
        if (children[i] == 0) {
            if (open_in(folder, "", &ids) != FRAZIL_OK) end_child(__LINE__);
            mint_share(ids, &shares[i]);
            meet(all_have_theirs);
            frazil_snowflake_free(ids);
            end_child(is_given_back(folder, "default", shares[i].node) ? 0 : __LINE__);
        }
    }
    OK(open_in(folder, "", &ids));
    mint_share(ids, &shares[2]);
    meet(all_have_theirs);
    for (int i = 0; i < 2; ++i) CHECK(ended_well(children[i]));
    CHECK(shares_differ(shares, 3));
    frazil_snowflake_free(ids);
    munmap(shares, 3 * sizeof *shares);
    remove_folder(folder);
}

/* A child of any kind leases anew on its first use, and both mint at once. */
CASE(fork_leases_anew) {
    struct folder folder = make_folder();
    struct share *shares = map_shares(4);
    struct barrier all_have_theirs = make_barrier();
    frazil_snowflake *ids;
    frazil_lease lease;
    uint64_t node;
    int64_t first, id;
    OK(open_in(folder, "", &ids));
    OK(frazil_snowflake_next(ids, &first));
    OK(frazil_snowflake_node(ids, &node));
    pid_t children[3];
    fflush(stdout);
    for (int i = 0; i < 3; ++i) {
        children[i] = i == 0 ? (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) : fork();
        CHECK(children[i] >= 0);
        if (children[i] == 0) {
            /* One that uses nothing gives nothing of its parent's back. */
            if (i == 2) {
                frazil_snowflake_free(ids);
                end_child(0);
            }
            mint_share(ids, &shares[i]);
            if (frazil_snowflake_lease(ids, &lease, sizeof lease) != FRAZIL_OK || lease.node != shares[i].node) end_child(__LINE__);
            meet(all_have_theirs);
            frazil_snowflake_free(ids);
            end_child(is_given_back(folder, "default", shares[i].node) ? 0 : __LINE__);
        }
    }
    mint_share(ids, &shares[2]);
    meet(all_have_theirs);
    for (int i = 0; i < 3; ++i) CHECK(ended_well(children[i]));
    CHECK(shares[2].node == node);
    CHECK(shares_differ(shares, 3));
    CHECK(!is_free(folder, "default", node));
    OK(frazil_snowflake_next(ids, &id));
    CHECK(id > first);
    frazil_snowflake_free(ids);
    munmap(shares, 4 * sizeof *shares);
    remove_folder(folder);
}

CASE(lease_errors) {
    struct folder folder = make_folder();
    frazil_snowflake *ids = NULL, *one, *two, *thief;
    frazil_lease lease;
    int64_t id;
    STATUS(open_in(folder, "namespace='two words'", &ids), FRAZIL_SPEC);
    CHECK(error_has("namespace") && error_has("a-z"));
    STATUS(open_in(folder, "lease=forever", &ids), FRAZIL_SPEC);
    STATUS(open_in(folder, "renew=99ms", &ids), FRAZIL_OUT_OF_RANGE);
    CHECK(error_has("renew=99ms") && error_has("100ms"));
    STATUS(open_in(folder, "window=2s renew=1s", &ids), FRAZIL_OUT_OF_RANGE);
    CHECK(error_has("window=2s") && error_has("4s"));
    STATUS(open_in(folder, "window=3s lease=disposable", &ids), FRAZIL_SPEC);
    STATUS(frazil_snowflake_open("standard node=1 window=3s", &ids), FRAZIL_SPEC);

    STATUS(frazil_snowflake_open("standard store=redis://:secret@127.0.0.1:1/0 window=4s renew=1s", &ids), FRAZIL_STORE_UNREACHABLE);
    CHECK(error_has("127.0.0.1:1") && !error_has("secret"));

    /* It takes connections, and never answers. */
    char line[200];
    struct sockaddr_in silent = {0};
    socklen_t size = sizeof silent;
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    silent.sin_family = AF_INET;
    silent.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(listening, (struct sockaddr *)&silent, size) == 0 && listen(listening, 5) == 0);
    CHECK(getsockname(listening, (struct sockaddr *)&silent, &size) == 0);
    /* No server is contacted for it. */
    snprintf(line, sizeof line, "standard store=redis://u:secret@127.0.0.1:%d/0 lease=disposable", ntohs(silent.sin_port));
    STATUS(frazil_snowflake_open(line, &ids), FRAZIL_STORE_UNSUITABLE);
    CHECK(error_has("127.0.0.1") && !error_has("secret"));
    CHECK(fcntl(listening, F_SETFL, O_NONBLOCK) == 0 && accept(listening, NULL, NULL) < 0 && errno == EAGAIN);
    snprintf(line, sizeof line, "standard store=redis://127.0.0.1:%d/0 " QUICK, ntohs(silent.sin_port));
    STATUS(frazil_snowflake_try_open(line, 0, &ids), FRAZIL_WOULD_BLOCK);
    CHECK(frazil_retry_after_ms() > 0);
    STATUS(frazil_snowflake_open(line, &ids), FRAZIL_STORE_UNREACHABLE);
    close(listening);

    OK(open_in(folder, "", &one));
    snprintf(line, sizeof line, "twitter store=file:%s", folder.path);
    STATUS(frazil_snowflake_open(line, &ids), FRAZIL_LAYOUT_MISMATCH);
    STATUS(open_in(folder, "rollback=error", &ids), FRAZIL_CONFLICT);
    frazil_snowflake_free(one);

    OK(frazil_snowflake_open(TWO " namespace=c-errors", &one));
    OK(frazil_snowflake_open(TWO " namespace=c-errors", &two));
    STATUS(frazil_snowflake_open(TWO " namespace=c-errors", &ids), FRAZIL_NO_FREE_NODE);
    CHECK(error_has("all 2 node numbers"));
    /* Whoever gave his number back finds that another has it, and is told why; once it is free, the next use has it. */
    OK(frazil_snowflake_renew(one));
    OK(frazil_snowflake_open(TWO " namespace=c-errors", &thief));
    STATUS(frazil_snowflake_next(one, &id), FRAZIL_LEASE_EXHAUSTED);
    CHECK(error_has("all 2 node numbers"));
    OK(frazil_snowflake_lease(one, &lease, sizeof lease));
    CHECK(!lease.healthy && lease.last_status == FRAZIL_NO_FREE_NODE && strstr(lease.last_error, "all 2 node numbers") != NULL);
    OK(frazil_snowflake_close(thief));
    frazil_snowflake_free(thief);
    for (int i = 0; i < 6000 && frazil_snowflake_next(one, &id) != FRAZIL_OK; ++i) pause_ms(10);
    OK(frazil_snowflake_lease(one, &lease, sizeof lease));
    CHECK(lease.healthy && lease.last_status == FRAZIL_OK && *lease.last_error == '\0');
    frazil_snowflake_free(two);
    frazil_snowflake_free(one);

    /* At the bound with the store away. */
    OK(open_in(folder, "namespace=away " QUICK, &one));
    char away[100], gone[100];
    snprintf(away, sizeof away, "%s/away", folder.path);
    snprintf(gone, sizeof gone, "%s/gone", folder.path);
    CHECK(rename(away, gone) == 0);
    FILE *file = fopen(away, "w");
    CHECK(file != NULL && fclose(file) == 0);
    frazil_status status = FRAZIL_OK;
    for (int i = 0; i < 60000 && status == FRAZIL_OK; ++i) {
        pause_ms(1);
        status = frazil_snowflake_next(one, &id);
    }
    CHECK(status == FRAZIL_LEASE_EXHAUSTED && error_has(" since "));
    OK(frazil_snowflake_lease(one, &lease, sizeof lease));
    CHECK(!lease.healthy && lease.last_status != FRAZIL_OK && *lease.last_error != '\0');
    frazil_snowflake_free(one);
    CHECK(ids == NULL);
    remove_folder(folder);
}

CASE(environment) {
    frazil_snowflake *ids = NULL;
    const char *spec;
    uint64_t node;
    unsetenv("FRAZIL");
    STATUS(frazil_snowflake_open(NULL, &ids), FRAZIL_NODE_MISSING);
    CHECK(ids == NULL && error_has("FRAZIL"));
    setenv("FRAZIL", "standard node=311", 1);
    OK(frazil_snowflake_open(NULL, &ids));
    OK(frazil_snowflake_node(ids, &node));
    CHECK(node == 311);
    frazil_snowflake_free(ids);
    OK(frazil_snowflake_try_open(NULL, 5000, &ids));
    frazil_snowflake_free(ids);
    setenv("FRAZIL", "standard node=x", 1);
    STATUS(frazil_snowflake_open(NULL, &ids), FRAZIL_SPEC);
    CHECK(error_has("node"));
    unsetenv("FRAZIL");
    setenv("C_TEST_NODE", "312", 1);
    OK(frazil_snowflake_open("standard node=env:C_TEST_NODE", &ids));
    OK(frazil_snowflake_node(ids, &node));
    OK(frazil_snowflake_spec(ids, &spec));
    CHECK(node == 312 && strcmp(spec, "standard node=env:C_TEST_NODE") == 0);
    frazil_snowflake_free(ids);
}

/* C's options are the keys of the line: in any order, quoted or not, each once. */
CASE(options) {
    static const char *const same[] = {
        "twitter datacenter=1 worker=7 start=zero detached=true",
        "twitter detached='true' worker=\"7\" start=zero datacenter=1",
    };
    for (size_t i = 0; i < COUNT(same); ++i) {
        frazil_snowflake *ids;
        uint64_t node;
        OK(frazil_snowflake_open(same[i], &ids));
        OK(frazil_snowflake_node(ids, &node));
        CHECK(node == 39);
        frazil_snowflake_free(ids);
    }
    frazil_snowflake *ids = NULL;
    STATUS(frazil_snowflake_open("twitter datacenter=1 worker=7 datacenter=1", &ids), FRAZIL_SPEC);
    CHECK(ids == NULL && error_has("datacenter") && error_has("twice"));
}

CASE(wrong_types) {
    frazil_snowflake *ids;
    frazil_layout *layout;
    frazil_layout_info info;
    frazil_lease lease;
    frazil_parts parts;
    const char *string;
    char text[FRAZIL_ID_TEXT_SIZE];
    uint64_t number;
    uint32_t bits;
    size_t written = 9;
    int64_t id;
    bool equal;
    OK(frazil_snowflake_open("standard node=313", &ids));
    OK(frazil_layout_parse("twitter", &layout));

    REFUSED(frazil_snowflake_open("standard node=313", NULL), "ids");
    REFUSED(frazil_snowflake_try_open("standard node=313", 1, NULL), "ids");
    REFUSED(frazil_snowflake_next(NULL, &id), "ids");
    REFUSED(frazil_snowflake_next(ids, NULL), "id");
    REFUSED(frazil_snowflake_try_next(NULL, 1, &id), "ids");
    REFUSED(frazil_snowflake_try_next(ids, 1, NULL), "id");
    REFUSED(frazil_snowflake_fill(NULL, &id, 1, &written), "ids");
    CHECK(written == 0);
    REFUSED(frazil_snowflake_fill(ids, NULL, 1, &written), "buffer");
    REFUSED(frazil_snowflake_try_fill(NULL, 1, &id, 1, NULL), "ids");
    REFUSED(frazil_snowflake_try_fill(ids, 1, NULL, 1, NULL), "buffer");
    REFUSED(frazil_snowflake_batch(NULL, &id, 1), "ids");
    REFUSED(frazil_snowflake_batch(ids, NULL, 1), "buffer");
    REFUSED(frazil_snowflake_text(NULL, FRAZIL_HEX, text, sizeof text), "ids");
    REFUSED(frazil_snowflake_text(ids, FRAZIL_HEX, NULL, sizeof text), "buffer");
    REFUSED(frazil_snowflake_credit(NULL, &number), "ids");
    REFUSED(frazil_snowflake_credit(ids, NULL), "credit");
    REFUSED(frazil_snowflake_set_time(NULL, NOW), "ids");
    REFUSED(frazil_snowflake_observe(NULL, 1), "ids");
    REFUSED(frazil_snowflake_renew(NULL), "ids");
    REFUSED(frazil_snowflake_lease(NULL, &lease, sizeof lease), "ids");
    REFUSED(frazil_snowflake_lease(ids, NULL, 64), "lease");
    REFUSED(frazil_snowflake_close(NULL), "ids");
    REFUSED(frazil_snowflake_node(NULL, &number), "ids");
    REFUSED(frazil_snowflake_node(ids, NULL), "node");
    REFUSED(frazil_snowflake_field(NULL, "node", &number), "ids");
    REFUSED(frazil_snowflake_field(ids, NULL, &number), "name");
    REFUSED(frazil_snowflake_field(ids, "node", NULL), "value");
    REFUSED(frazil_snowflake_layout(NULL, &layout), "ids");
    REFUSED(frazil_snowflake_layout(ids, NULL), "layout");
    REFUSED(frazil_snowflake_spec(NULL, &string), "ids");
    REFUSED(frazil_snowflake_spec(ids, NULL), "spec");

    REFUSED(frazil_layout_parse(NULL, &layout), "text");
    REFUSED(frazil_layout_parse("twitter", NULL), "layout");
    REFUSED(frazil_layout_text(NULL, &string), "layout");
    REFUSED(frazil_layout_text(layout, NULL), "text");
    REFUSED(frazil_layout_describe(NULL, &info, sizeof info), "layout");
    REFUSED(frazil_layout_describe(layout, NULL, 64), "info");
    REFUSED(frazil_layout_field(NULL, 0, &string, &bits), "layout");
    REFUSED(frazil_layout_field(layout, 0, NULL, &bits), "name");
    REFUSED(frazil_layout_field(layout, 0, &string, NULL), "bits");
    REFUSED(frazil_layout_equal(NULL, layout, &equal), "a");
    REFUSED(frazil_layout_equal(layout, NULL, &equal), "b");
    REFUSED(frazil_layout_equal(layout, layout, NULL), "equal");
    REFUSED(frazil_layout_decode(NULL, 1, &parts, sizeof parts), "layout");
    REFUSED(frazil_layout_decode(layout, 1, NULL, 64), "parts");
    REFUSED(frazil_layout_decode_field(NULL, 1, "worker", &number), "layout");
    REFUSED(frazil_layout_decode_field(layout, 1, NULL, &number), "name");
    REFUSED(frazil_layout_decode_field(layout, 1, "worker", NULL), "value");
    const frazil_field unnamed[] = {{"worker", 7}, {NULL, 1}};
    REFUSED(frazil_layout_compose(NULL, NOW, unnamed, 1, 0, &id), "layout");
    REFUSED(frazil_layout_compose(layout, NOW, NULL, 2, 0, &id), "fields");
    REFUSED(frazil_layout_compose(layout, NOW, unnamed, 2, 0, &id), "fields[1].name");
    REFUSED(frazil_layout_compose(layout, NOW, unnamed, 1, 0, NULL), "id");
    STATUS(frazil_layout_compose(layout, NOW, NULL, 0, 0, &id), FRAZIL_NODE_MISSING);
    REFUSED(frazil_layout_min_id(NULL, NOW, &id), "layout");
    REFUSED(frazil_layout_min_id(layout, NOW, NULL), "id");
    REFUSED(frazil_layout_max_id(NULL, NOW, &id), "layout");
    REFUSED(frazil_layout_max_id(layout, NOW, NULL), "id");

    REFUSED(frazil_id_format(1, FRAZIL_HEX, NULL, sizeof text), "buffer");
    REFUSED(frazil_id_parse(NULL, FRAZIL_HEX, &id), "text");
    REFUSED(frazil_id_parse("1", FRAZIL_DECIMAL, NULL), "id");
    frazil_snowflake_free(NULL);
    frazil_layout_free(NULL);
    frazil_layout_free(layout);
    frazil_snowflake_free(ids);
}

CASE(out_of_range) {
    frazil_snowflake *ids, *manual, *none = NULL;
    frazil_layout *layout;
    frazil_parts parts;
    char text[FRAZIL_ID_TEXT_SIZE];
    const char *name;
    uint32_t bits;
    int64_t id = -5;
    uint64_t value;
    size_t written = 9;
    OK(frazil_snowflake_open("standard node=314", &ids));
    OK(frazil_snowflake_open("standard node=5 clock=manual detached=true", &manual));
    OK(frazil_layout_parse("twitter", &layout));

    STATUS(frazil_snowflake_try_open("standard node=314", -1, &none), FRAZIL_OUT_OF_RANGE);
    CHECK(none == NULL && error_has("max_wait_ms=-1"));
    STATUS(frazil_snowflake_try_next(ids, -1, &id), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_snowflake_try_next(ids, INT64_MIN, &id), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_snowflake_try_fill(ids, -1, &id, 1, &written), FRAZIL_OUT_OF_RANGE);
    CHECK(written == 0 && id == -5);
    OK(frazil_snowflake_try_next(ids, INT64_MAX, &id));
    STATUS(frazil_snowflake_fill(ids, &id, (size_t)-1, &written), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_snowflake_fill(ids, &id, SIZE_MAX / 8, NULL), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_snowflake_batch(ids, &id, (size_t)-1), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_snowflake_batch(ids, &id, FRAZIL_MAX_BATCH + 1), FRAZIL_OUT_OF_RANGE);
    CHECK(error_has("16777216"));

    const int32_t formats[] = {-1, 4, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < COUNT(formats); ++i) {
        STATUS(frazil_snowflake_text(ids, formats[i], text, sizeof text), FRAZIL_OUT_OF_RANGE);
        STATUS(frazil_id_format(1, formats[i], text, sizeof text), FRAZIL_OUT_OF_RANGE);
        STATUS(frazil_id_parse("1", formats[i], &id), FRAZIL_OUT_OF_RANGE);
        CHECK(error_has("FRAZIL_BASE62"));
    }
    STATUS(frazil_id_format(-1, FRAZIL_HEX, text, sizeof text), FRAZIL_ID_INVALID);
    STATUS(frazil_id_format(INT64_MIN, FRAZIL_DECIMAL, text, sizeof text), FRAZIL_ID_INVALID);
    STATUS(frazil_layout_decode(layout, -1, &parts, sizeof parts), FRAZIL_ID_INVALID);
    STATUS(frazil_snowflake_observe(ids, INT64_MIN), FRAZIL_ID_INVALID);
    STATUS(frazil_snowflake_observe(ids, INT64_MAX), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_layout_decode_field(layout, INT64_MIN, "worker", &value), FRAZIL_ID_INVALID);

    STATUS(frazil_snowflake_set_time(manual, INT64_MIN), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_snowflake_set_time(manual, INT64_MAX), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_layout_min_id(layout, INT64_MIN, &id), FRAZIL_BEFORE_EPOCH);
    STATUS(frazil_layout_max_id(layout, INT64_MAX, &id), FRAZIL_LAYOUT_EXPIRED);
    STATUS(frazil_layout_field(layout, 2, &name, &bits), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_layout_field(layout, SIZE_MAX, &name, &bits), FRAZIL_OUT_OF_RANGE);

    frazil_field fields[] = {{"datacenter", 31}, {"worker", 31}, {"worker", 1}};
    OK(frazil_layout_compose(layout, NOW, fields, 2, 4095, &id));
    STATUS(frazil_layout_compose(layout, NOW, fields, 2, 4096, &id), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_layout_compose(layout, NOW, fields, 2, UINT64_MAX, &id), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_layout_compose(layout, NOW, fields, 3, 0, &id), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_layout_compose(layout, NOW, fields, SIZE_MAX, 0, &id), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_layout_compose(layout, NOW, fields, 1, 0, &id), FRAZIL_NODE_MISSING);
    STATUS(frazil_layout_compose(layout, NOW, fields + 1, 2, 0, &id), FRAZIL_SPEC);
    STATUS(frazil_layout_compose(layout, INT64_MIN, fields, 2, 0, &id), FRAZIL_BEFORE_EPOCH);
    STATUS(frazil_layout_compose(layout, INT64_MAX, fields, 2, 0, &id), FRAZIL_LAYOUT_EXPIRED);
    fields[1].value = 32;
    STATUS(frazil_layout_compose(layout, NOW, fields, 2, 0, &id), FRAZIL_OUT_OF_RANGE);
    CHECK(error_has("worker=32") && error_has("0 to 31"));
    fields[1].value = (uint64_t)-1;
    STATUS(frazil_layout_compose(layout, NOW, fields, 2, 0, &id), FRAZIL_OUT_OF_RANGE);
    frazil_layout_free(layout);
    frazil_snowflake_free(manual);
    frazil_snowflake_free(ids);
}

CASE(strange_strings) {
    static char huge[1 << 20];
    static const char *const strange[] = {"", " ", "\xff", "standard node=\xc3", "\xed\xa0\x80", "n\xc3\xb6", "\x01\x02", "%s%n", huge};
    frazil_snowflake *ids;
    frazil_layout *layout;
    uint64_t value;
    int64_t id;
    memset(huge, 'x', sizeof huge - 1);
    unsetenv("FRAZIL");
    OK(frazil_snowflake_open("standard node=315", &ids));
    OK(frazil_layout_parse("twitter", &layout));
    for (size_t i = 0; i < COUNT(strange); ++i) {
        frazil_snowflake *none = NULL;
        frazil_layout *nothing = NULL;
        frazil_status status = frazil_snowflake_open(strange[i], &none);
        CHECK(status == FRAZIL_SPEC || status == FRAZIL_NODE_MISSING);
        CHECK(none == NULL && strlen(frazil_last_error()) < 1000);
        status = frazil_layout_parse(strange[i], &nothing);
        CHECK(status == FRAZIL_LAYOUT_INVALID || status == FRAZIL_SPEC);
        CHECK(nothing == NULL && strlen(frazil_last_error()) < 1000);
        for (int32_t format = FRAZIL_DECIMAL; format <= FRAZIL_HEX; ++format) {
            STATUS(frazil_id_parse(strange[i], format, &id), FRAZIL_ID_INVALID);
            CHECK(strlen(frazil_last_error()) < 1000);
        }
        const frazil_field fields[] = {{"worker", 1}, {strange[i], 1}};
        STATUS(frazil_layout_compose(layout, NOW, fields, 2, 0, &id), FRAZIL_UNKNOWN_KEY);
        STATUS(frazil_layout_decode_field(layout, 1, strange[i], &value), FRAZIL_UNKNOWN_KEY);
        STATUS(frazil_snowflake_field(ids, strange[i], &value), FRAZIL_UNKNOWN_KEY);
    }
    frazil_snowflake *none = NULL;
    STATUS(frazil_snowflake_open("standard node=\xff", &none), FRAZIL_SPEC);
    CHECK(error_has("not UTF-8 at byte 14"));
    frazil_layout_free(layout);
    frazil_snowflake_free(ids);
}

CASE(closed_handle) {
    frazil_snowflake *ids, *open;
    frazil_layout *layout;
    const char *spec;
    char text[FRAZIL_ID_TEXT_SIZE];
    size_t written = 9;
    uint64_t value;
    int64_t id = -5;
    OK(frazil_snowflake_open("standard node=316", &ids));
    OK(frazil_snowflake_open("standard node=316", &open));
    OK(frazil_snowflake_close(ids));
    OK(frazil_snowflake_close(ids));
    STATUS(frazil_snowflake_next(ids, &id), FRAZIL_CLOSED);
    STATUS(frazil_snowflake_try_next(ids, 0, &id), FRAZIL_CLOSED);
    STATUS(frazil_snowflake_fill(ids, &id, 1, &written), FRAZIL_CLOSED);
    CHECK(written == 0);
    STATUS(frazil_snowflake_fill(ids, &id, 0, NULL), FRAZIL_CLOSED);
    STATUS(frazil_snowflake_try_fill(ids, 0, &id, 1, NULL), FRAZIL_CLOSED);
    STATUS(frazil_snowflake_batch(ids, &id, 1), FRAZIL_CLOSED);
    STATUS(frazil_snowflake_text(ids, FRAZIL_HEX, text, sizeof text), FRAZIL_CLOSED);
    STATUS(frazil_snowflake_credit(ids, &value), FRAZIL_CLOSED);
    STATUS(frazil_snowflake_set_time(ids, NOW), FRAZIL_CLOSED);
    STATUS(frazil_snowflake_observe(ids, 1), FRAZIL_CLOSED);
    STATUS(frazil_snowflake_renew(ids), FRAZIL_CLOSED);
    CHECK(id == -5);
    /* What it was can still be read. */
    OK(frazil_snowflake_node(ids, &value));
    OK(frazil_snowflake_spec(ids, &spec));
    OK(frazil_snowflake_layout(ids, &layout));
    OK(frazil_snowflake_next(open, &id));
    frazil_layout_free(layout);
    frazil_snowflake_free(ids);
    OK(frazil_snowflake_next(open, &id));
    frazil_snowflake_free(open);
}

CASE(wrong_buffers) {
    static int64_t buffer[4];
    frazil_snowflake *ids;
    char text[FRAZIL_ID_TEXT_SIZE] = "untouched";
    size_t written = 9;
    int64_t before, id;
    OK(frazil_snowflake_open("standard node=6 clock=manual detached=true start=zero", &ids));
    OK(frazil_snowflake_set_time(ids, NOW));
    OK(frazil_snowflake_next(ids, &before));
    int64_t *odd = (int64_t *)(void *)((char *)buffer + 1);
    STATUS(frazil_snowflake_fill(ids, odd, 1, &written), FRAZIL_WRONG_TYPE);
    CHECK(error_has("aligned") && written == 0);
    STATUS(frazil_snowflake_try_fill(ids, 0, odd, 1, NULL), FRAZIL_WRONG_TYPE);
    STATUS(frazil_snowflake_batch(ids, odd, 1), FRAZIL_WRONG_TYPE);
    static const size_t widths[] = {19, 11, 13, 16};
    for (int32_t format = FRAZIL_DECIMAL; format <= FRAZIL_HEX; ++format) {
        STATUS(frazil_snowflake_text(ids, format, text, 0), FRAZIL_OUT_OF_RANGE);
        STATUS(frazil_snowflake_text(ids, format, text, widths[format]), FRAZIL_OUT_OF_RANGE);
        STATUS(frazil_id_format(1, format, text, widths[format]), FRAZIL_OUT_OF_RANGE);
        char needed[20];
        snprintf(needed, sizeof needed, "%zu bytes", widths[format] + 1);
        CHECK(error_has(needed));
    }
    CHECK(strcmp(text, "untouched") == 0);
    /* Nothing was minted for them. */
    OK(frazil_snowflake_next(ids, &id));
    CHECK(id == before + 1);
    frazil_snowflake_free(ids);
}

CASE(last_error) {
    frazil_snowflake *ids;
    int64_t id;
    char before[200];
    OK(frazil_snowflake_open("standard node=317", &ids));
    STATUS(frazil_snowflake_next(NULL, &id), FRAZIL_WRONG_TYPE);
    snprintf(before, sizeof before, "%s", frazil_last_error());
    OK(frazil_snowflake_next(ids, &id));
    CHECK(strcmp(before, frazil_last_error()) == 0);
    STATUS(frazil_snowflake_next(ids, NULL), FRAZIL_WRONG_TYPE);
    CHECK(strcmp(before, frazil_last_error()) != 0);
    frazil_snowflake_free(ids);
}

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

static uint8_t made_ids[THREADS * PER_THREAD][FRAZIL_OBJECT_ID_SIZE];
static uint8_t made_uuids[THREADS * PER_THREAD][FRAZIL_UUID_SIZE];

/* Fills a thread's part of both; UUIDs must increase. */
static void *make_interop(void *argument) {
    struct worker *worker = argument;
    const size_t first = (size_t)(worker->place - minted);
    for (size_t i = first; i < first + PER_THREAD; ++i) {
        worker->failed |= frazil_object_id_new(made_ids[i]) != FRAZIL_OK;
        worker->failed |= frazil_uuid7(made_uuids[i]) != FRAZIL_OK;
        worker->failed |= i > first && memcmp(made_uuids[i - 1], made_uuids[i], FRAZIL_UUID_SIZE) >= 0;
    }
    return NULL;
}

static bool make_by_threads(void) {
    struct worker workers[THREADS];
    pthread_t handles[THREADS];
    bool failed = false;
    for (int i = 0; i < THREADS; ++i) {
        workers[i] = (struct worker){NULL, minted + i * PER_THREAD, false};
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

/* What a child makes: an ObjectId and two UUIDs. */
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
        /* Every other one skips libc's handlers. */
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

CASE(try_open) {
    const char *seconds = "game server=1 detached=true";
    frazil_snowflake *ids = NULL;
    frazil_status status = FRAZIL_OK;
    /* Once may be just when the second ends. */
    for (int i = 0; i < 10 && status == FRAZIL_OK; ++i) {
        status = frazil_snowflake_try_open(seconds, 0, &ids);
        if (status == FRAZIL_OK) frazil_snowflake_free(ids);
    }
    CHECK(status == FRAZIL_WOULD_BLOCK);
    CHECK(frazil_retry_after_ms() >= 1 && frazil_retry_after_ms() <= 1000);
    OK(frazil_snowflake_try_open(seconds, 60000, &ids));
    frazil_snowflake_free(ids);
}

CASE(versions) {
    char version[40];
    snprintf(version, sizeof version, "%d.%d.%d", FRAZIL_VERSION_MAJOR, FRAZIL_VERSION_MINOR, FRAZIL_VERSION_PATCH);
    CHECK(strcmp(version, frazil_version()) == 0);

    OK(frazil_version_check(FRAZIL_VERSION_MAJOR, FRAZIL_VERSION_MINOR, FRAZIL_VERSION_PATCH));
    const int others[][3] = {
        {FRAZIL_VERSION_MAJOR, FRAZIL_VERSION_MINOR, FRAZIL_VERSION_PATCH + 1},
        {FRAZIL_VERSION_MAJOR, FRAZIL_VERSION_MINOR + 1, 0},
        {FRAZIL_VERSION_MAJOR + 1, 0, 0},
        {FRAZIL_VERSION_MAJOR - 1, FRAZIL_VERSION_MINOR, FRAZIL_VERSION_PATCH},
    };
    for (size_t i = 0; i < COUNT(others); ++i) {
        STATUS(frazil_version_check(others[i][0], others[i][1], others[i][2]), FRAZIL_OUT_OF_RANGE);
        char header[40];
        snprintf(header, sizeof header, "frazil.h %d.%d.%d", others[i][0], others[i][1], others[i][2]);
        CHECK(error_has(header) && error_has(version) && error_has("install"));
    }
}

CASE(rounded_ids) {
    frazil_layout *layout;
    frazil_parts parts;
    OK(frazil_layout_parse("twitter", &layout));
    OK(frazil_layout_decode(layout, INT64_C(1541815603606036480), &parts, sizeof parts));
    const bool by_chance = parts.looks_rounded;
    OK(frazil_layout_decode(layout, INT64_C(1541815603606036481), &parts, sizeof parts));
    CHECK(!parts.looks_rounded);
    OK(frazil_layout_decode(layout, INT64_C(1541815603606036500), &parts, sizeof parts));
    CHECK(parts.looks_rounded || by_chance);
    frazil_layout_free(layout);
}

/* A program's struct, of whatever size, between bytes that nobody may touch. */
static unsigned char *room(void) {
    static int64_t room[(4096 + 64) / 8];
    memset(room, '~', sizeof room);
    return (unsigned char *)room + 32;
}

static bool untouched(const unsigned char *from, const unsigned char *to) {
    for (; from < to; ++from) {
        if (*from != '~') return false;
    }
    return true;
}

/* A struct of an older program is filled as far as it goes, which the library's own tests show with one that has grown; a newer program's keeps its further
   fields; and nothing else is written. */
#define SIZED(type, name, call)                                                                                        \
    do {                                                                                                               \
        const size_t wrong[] = {0, 1, sizeof(type) - 1, 4097, SIZE_MAX / 2, SIZE_MAX - 7, SIZE_MAX};                   \
        for (size_t n = 0; n < COUNT(wrong); ++n) {                                                                    \
            char text[100];                                                                                            \
            const size_t size = wrong[n];                                                                              \
            type *place = (void *)room();                                                                         \
            STATUS(call, FRAZIL_OUT_OF_RANGE);                                                                         \
            snprintf(text, sizeof text, "size=%zu is out of range: %zu to 4096: pass sizeof(" #type ")", size, sizeof(type)); \
            CHECK(error_has(text));                                                                                    \
            CHECK(untouched((unsigned char *)place - 32, (unsigned char *)place + 4096 + 32));                         \
        }                                                                                                              \
        const size_t right[] = {sizeof(type), sizeof(type) + 1, sizeof(type) + 8, 4096};                               \
        type first;                                                                                                    \
        for (size_t n = 0; n < COUNT(right); ++n) {                                                                    \
            const size_t size = right[n];                                                                              \
            type *place = (void *)room();                                                                      \
            OK(call);                                                                                                  \
            if (n == 0) memcpy(&first, place, sizeof first);                                                           \
            CHECK(first.name == place->name);                                                                          \
            CHECK(untouched((unsigned char *)place - 32, (unsigned char *)place));                                     \
            CHECK(untouched((unsigned char *)(place + 1), (unsigned char *)place + 4096 + 32));                        \
        }                                                                                                              \
        /* In a packed record nothing is aligned. */                                                                   \
        for (size_t by = 1; by < 8; ++by) {                                                                            \
            const size_t size = sizeof(type);                                                                          \
            unsigned char *bytes = room() + by;                                                                \
            type *place = (void *)bytes, whole;                                                                        \
            OK(call);                                                                                                  \
            memcpy(&whole, bytes, sizeof whole);                                                                       \
            CHECK(whole.name == first.name);                                                                           \
            CHECK(untouched(bytes - 32, bytes) && untouched(bytes + size, bytes + 4096));                                    \
        }                                                                                                              \
    } while (0)

CASE(struct_sizes) {
    frazil_snowflake *ids;
    frazil_layout *layout;
    uint8_t object_id[FRAZIL_OBJECT_ID_SIZE];
    OK(frazil_snowflake_open("twitter datacenter=1 worker=17", &ids));
    OK(frazil_snowflake_layout(ids, &layout));
    OK(frazil_object_id_new(object_id));
    SIZED(frazil_layout_info, epoch_ms, frazil_layout_describe(layout, place, size));
    SIZED(frazil_parts, unix_ms, frazil_layout_decode(layout, INT64_C(1541815603606036480), place, size));
    SIZED(frazil_lease, node, frazil_snowflake_lease(ids, place, size));
    SIZED(frazil_object_id_parts, random, frazil_object_id_decode(object_id, place, size));
    frazil_layout_free(layout);
    frazil_snowflake_free(ids);
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
