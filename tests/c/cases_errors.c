/* Cases of tests/vectors/cases.json for the C API, in C99: errors, and bad input. */
#define _GNU_SOURCE
#include "helpers.h"
#include "vectors_types.h"
#include "vectors.h"

#include <pthread.h>

/* Not a bool, because code of GCC's UBSan reads a volatile bool only once. */
static volatile int asks;

static void *ask_first(void *data) {
    (void)data;
    asks = 1;
    frazil_error_name(FRAZIL_SPEC);
    return NULL;
}

/* One thread makes the process's first use of the error table while another thread forks. The child must not wait for the first thread, which it
   does not have. */
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

/* The status that a forked child gets from a generator of its parent. */
static frazil_status status_in_child(frazil_snowflake *ids) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int64_t id;
        end_child(frazil_snowflake_next(ids, &id) == FRAZIL_FORKED ? 0 : __LINE__);
    }
    return ended_well(child) ? FRAZIL_FORKED : FRAZIL_OK;
}

/* The status that a copied process gets. */
static frazil_status status_in_copy(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int64_t id;
        frazil_snowflake *ids;
        if (frazil_snowflake_open("standard node=301 detached=true", &ids) || frazil_snowflake_next(ids, &id)) end_child(__LINE__);
        if (frazil_restored()) end_child(__LINE__);
        end_child(frazil_snowflake_next(ids, &id) == FRAZIL_COPIED ? 0 : __LINE__);
    }
    return ended_well(child) ? FRAZIL_COPIED : FRAZIL_OK;
}

CASE(every_error) {
    frazil_snowflake *ids = NULL, *other = NULL, *third = NULL;
    frazil_layout *layout;
    int64_t id;
    OK(frazil_layout_parse("twitter", &layout));
    STATUS(frazil_snowflake_open("twitter datacenter=1 7", &ids), FRAZIL_SPEC);
    STATUS(frazil_snowflake_open("twitter datacenter=1 wroker=7", &ids), FRAZIL_UNKNOWN_KEY);
    STATUS(frazil_snowflake_open("twitter datacenter=1 worker=32", &ids), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_snowflake_open("layout='time:99@1ms sequence:1 epoch:1970-01-01'", &ids), FRAZIL_LAYOUT_INVALID);
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
    OK(frazil_snowflake_release_node(ids));
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
    STATUS(status_in_copy(), FRAZIL_COPIED);
    frazil_snowflake_free(ids);
    frazil_layout_free(layout);
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
    OK(frazil_snowflake_open_for(NULL, 5000, &ids));
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

/* In C, options are the keys of the spec line: in any order, quoted or not, each once. */
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
    REFUSED(frazil_snowflake_open_for("standard node=313", 1, NULL), "ids");
    REFUSED(frazil_snowflake_next(NULL, &id), "ids");
    REFUSED(frazil_snowflake_next(ids, NULL), "id");
    REFUSED(frazil_snowflake_next_for(NULL, 1, &id), "ids");
    REFUSED(frazil_snowflake_next_for(ids, 1, NULL), "id");
    REFUSED(frazil_snowflake_fill(NULL, &id, 1, &written), "ids");
    CHECK(written == 0);
    REFUSED(frazil_snowflake_fill(ids, NULL, 1, &written), "buffer");
    REFUSED(frazil_snowflake_fill_for(NULL, 1, &id, 1, NULL), "ids");
    REFUSED(frazil_snowflake_fill_for(ids, 1, NULL, 1, NULL), "buffer");
    REFUSED(frazil_snowflake_batch(NULL, &id, 1), "ids");
    REFUSED(frazil_snowflake_batch(ids, NULL, 1), "buffer");
    REFUSED(frazil_snowflake_text(NULL, FRAZIL_HEX, text, sizeof text), "ids");
    REFUSED(frazil_snowflake_text(ids, FRAZIL_HEX, NULL, sizeof text), "buffer");
    REFUSED(frazil_snowflake_credit(NULL, &number), "ids");
    REFUSED(frazil_snowflake_credit(ids, NULL), "credit");
    REFUSED(frazil_snowflake_set_time(NULL, NOW), "ids");
    REFUSED(frazil_snowflake_observe(NULL, 1), "ids");
    REFUSED(frazil_snowflake_release_node(NULL), "ids");
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

    STATUS(frazil_snowflake_open_for("standard node=314", -1, &none), FRAZIL_OUT_OF_RANGE);
    CHECK(none == NULL && error_has("max_wait_ms=-1"));
    STATUS(frazil_snowflake_next_for(ids, -1, &id), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_snowflake_next_for(ids, INT64_MIN, &id), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_snowflake_fill_for(ids, -1, &id, 1, &written), FRAZIL_OUT_OF_RANGE);
    CHECK(written == 0 && id == -5);
    OK(frazil_snowflake_next_for(ids, INT64_MAX, &id));
    STATUS(frazil_snowflake_fill(ids, &id, (size_t)-1, &written), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_snowflake_fill(ids, &id, SIZE_MAX / 8, NULL), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_snowflake_batch(ids, &id, (size_t)-1), FRAZIL_OUT_OF_RANGE);
    STATUS(frazil_snowflake_batch(ids, &id, FRAZIL_MAX_BATCH + 1), FRAZIL_OUT_OF_RANGE);
    CHECK(error_has("16777216"));

    const int32_t formats[] = {-1, FRAZIL_CHECK + 1, INT32_MAX, INT32_MIN};
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
    STATUS(frazil_snowflake_next_for(ids, 0, &id), FRAZIL_CLOSED);
    STATUS(frazil_snowflake_fill(ids, &id, 1, &written), FRAZIL_CLOSED);
    CHECK(written == 0);
    STATUS(frazil_snowflake_fill(ids, &id, 0, NULL), FRAZIL_CLOSED);
    STATUS(frazil_snowflake_fill_for(ids, 0, &id, 1, NULL), FRAZIL_CLOSED);
    STATUS(frazil_snowflake_batch(ids, &id, 1), FRAZIL_CLOSED);
    STATUS(frazil_snowflake_text(ids, FRAZIL_HEX, text, sizeof text), FRAZIL_CLOSED);
    STATUS(frazil_snowflake_credit(ids, &value), FRAZIL_CLOSED);
    STATUS(frazil_snowflake_set_time(ids, NOW), FRAZIL_CLOSED);
    STATUS(frazil_snowflake_observe(ids, 1), FRAZIL_CLOSED);
    STATUS(frazil_snowflake_release_node(ids), FRAZIL_CLOSED);
    CHECK(id == -5);
    /* The spec can still be read. */
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
    STATUS(frazil_snowflake_fill_for(ids, 0, odd, 1, NULL), FRAZIL_WRONG_TYPE);
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
    /* The refused calls have minted nothing. */
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

/* Room for a caller's struct of any size, between bytes that must not change. */
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

/* A larger struct, of a newer program, keeps its further fields, and the call writes nothing else. The library's own tests show that a smaller
   struct, of an older program, is filled up to its size. */
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
        /* In a packed record, fields are not aligned. */                                                              \
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
