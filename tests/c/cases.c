/* Cases of tests/vectors/cases.json for the C API, in C99: layouts, and minting. */
#define _GNU_SOURCE
#include "helpers.h"
#include "vectors_types.h"
#include "vectors.h"

#include <pthread.h>

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
        for (int32_t format = FRAZIL_DECIMAL; format <= FRAZIL_CHECK; ++format) {
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
    for (size_t i = 0; i < COUNT(SPELLED_TEXTS); ++i) {
        const struct prefixed_text *given = &SPELLED_TEXTS[i];
        OK(frazil_id_parse_prefixed(given->text, given->prefix, given->format, &id));
        snprintf(text, sizeof text, "%" PRId64, id);
        CHECK(strcmp(text, given->gives) == 0);
    }
    for (size_t i = 0; i < COUNT(REFUSED_TEXTS); ++i) {
        const struct prefixed_text *given = &REFUSED_TEXTS[i];
        STATUS(frazil_id_parse_prefixed(given->text, given->prefix, given->format, &id), FRAZIL_ID_INVALID);
        CHECK(strstr(frazil_last_error(), given->gives) != NULL);
    }
    STATUS(frazil_id_parse_prefixed("1", NULL, FRAZIL_DECIMAL, &id), FRAZIL_WRONG_TYPE);
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

CASE(mistakes) {
    for (size_t i = 0; i < COUNT(MISTAKES); ++i) {
        frazil_snowflake *ids = NULL;
        STATUS(frazil_snowflake_open(MISTAKES[i].text, &ids), MISTAKES[i].code);
        CHECK(ids == NULL);
        CHECK(says(MISTAKES[i].says));
    }
}

/* Does one step of a vector; returns whether the outcome is the vector's. */
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
        frazil_snowflake *opened, *observing;
        frazil_layout *layout;
        frazil_parts parts;
        const char *text;
        char spec[512];
        snprintf(spec, sizeof spec, "%s after=%" PRId64, row->spec, row->last);
        OK(frazil_snowflake_open(spec, &opened));
        OK(frazil_snowflake_open(row->spec, &observing));
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
        OK(frazil_snowflake_set_time(observing, row->unix_ms));
        OK(frazil_snowflake_observe(observing, row->last));
        for (size_t j = 0; j < row->step_count; ++j) {
            CHECK(take_step(opened, &TAKEOVER_STEPS[row->first_step + j]));
            CHECK(take_step(observing, &TAKEOVER_STEPS[row->first_step + j]));
        }
        frazil_layout_free(layout);
        frazil_snowflake_free(observing);
        frazil_snowflake_free(opened);
    }
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
    OK(frazil_snowflake_next_for(ids, 1000, &id));
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
    OK(frazil_snowflake_fill_for(ids, 1000, buffer + 15000, 5000, NULL));
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
    STATUS(frazil_snowflake_fill_for(ids, 0, buffer, 5000, &written), FRAZIL_EXHAUSTED);
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
    OK(frazil_snowflake_fill_for(ids, 0, NULL, 0, NULL));
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
    /* The other thread waits for the next second. This thread gets FRAZIL_WOULD_BLOCK and does not wait. */
    struct waiter waiter = {ids, -1, FRAZIL_OK, false};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_for_next, &waiter) == 0);
    frazil_status status = FRAZIL_OK;
    for (int i = 0; i < 100 && status == FRAZIL_OK; ++i) status = frazil_snowflake_next_for(ids, 0, &id);
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

static void *mint_alone(void *argument) {
    struct worker *worker = argument;
    frazil_local *local = NULL;
    worker->failed |= frazil_snowflake_local(worker->ids, &local) != FRAZIL_OK;
    for (int i = 0; i < PER_THREAD; ++i) worker->failed |= frazil_local_next(local, &worker->place[i]) != FRAZIL_OK;
    frazil_local_free(local);
    worker->failed |= !ascending(worker->place, PER_THREAD);
    return NULL;
}

/* Half of the threads use local handles, the others the generator itself. */
CASE(local_threads) {
    frazil_snowflake *ids;
    struct worker workers[THREADS];
    pthread_t handles[THREADS];
    OK(frazil_snowflake_open("standard node=317 exhausted=wait:60s", &ids));
    for (int i = 0; i < THREADS; ++i) {
        workers[i] = (struct worker){ids, minted + i * PER_THREAD, false};
        CHECK(pthread_create(&handles[i], NULL, i % 2 ? mint : mint_alone, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; ++i) pthread_join(handles[i], NULL);
    for (int i = 0; i < THREADS; ++i) CHECK(!workers[i].failed);
    qsort(minted, COUNT(minted), sizeof minted[0], compare);
    CHECK(ascending(minted, COUNT(minted)));
    frazil_snowflake_free(ids);
}

/* A local handle still mints after its generator is closed and freed. */
CASE(local_handles) {
    frazil_snowflake *ids;
    frazil_local *local = NULL, *none = NULL;
    int64_t id = 0, before;
    STATUS(frazil_snowflake_local(NULL, &local), FRAZIL_WRONG_TYPE);
    CHECK(local == NULL && error_has("ids is NULL"));
    STATUS(frazil_local_next(NULL, &id), FRAZIL_WRONG_TYPE);
    CHECK(id == 0 && error_has("local is NULL"));
    frazil_local_free(NULL);
    OK(frazil_snowflake_open("standard node=391", &ids));
    STATUS(frazil_snowflake_local(ids, NULL), FRAZIL_WRONG_TYPE);
    OK(frazil_snowflake_local(ids, &local));
    STATUS(frazil_local_next(local, NULL), FRAZIL_WRONG_TYPE);
    CHECK(error_has("id is NULL"));
    OK(frazil_local_next(local, &before));
    OK(frazil_snowflake_close(ids));
    OK(frazil_snowflake_local(ids, &none));
    STATUS(frazil_local_next(none, &id), FRAZIL_CLOSED);
    frazil_local_free(none);
    frazil_snowflake_free(ids);
    OK(frazil_local_next(local, &id));
    CHECK(id > before);
    frazil_local_free(local);
}

CASE(local_handle_after_fork) {
    frazil_snowflake *ids;
    frazil_local *local;
    int64_t before = 0, id = 0;
    OK(frazil_snowflake_open("standard node=392", &ids));
    OK(frazil_snowflake_local(ids, &local));
    frazil_snowflake_free(ids);
    OK(frazil_local_next(local, &before));
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) end_child(frazil_local_next(local, &id) == FRAZIL_FORKED ? 0 : __LINE__);
    CHECK(ended_well(child));
    OK(frazil_local_next(local, &id));
    CHECK(id > before);
    frazil_local_free(local);
}

CASE(open_for) {
    const char *seconds = "game server=1 detached=true";
    frazil_snowflake *ids = NULL;
    frazil_status status = FRAZIL_OK;
    /* An attempt succeeds if a second ends in it. */
    for (int i = 0; i < 10 && status == FRAZIL_OK; ++i) {
        status = frazil_snowflake_open_for(seconds, 0, &ids);
        if (status == FRAZIL_OK) frazil_snowflake_free(ids);
    }
    CHECK(status == FRAZIL_WOULD_BLOCK);
    CHECK(frazil_retry_after_ms() >= 1 && frazil_retry_after_ms() <= 1000);
    OK(frazil_snowflake_open_for(seconds, 60000, &ids));
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

int main(int argc, char **argv) { return run_cases(argc, argv); }
