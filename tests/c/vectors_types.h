/* The types that vectors.py fills from each file of tests/vectors. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vector_field {
    const char *name;
    uint64_t value;
};

struct known_id {
    const char *layout;
    int64_t id;
    bool has_time;
    int64_t unix_ms;
    uint64_t sequence;
    size_t field_count;
    struct vector_field fields[8];
};

struct valid_text {
    int64_t id;
    /* In the order of FRAZIL_DECIMAL and so on. */
    const char *forms[5];
};

struct invalid_text {
    int32_t format;
    const char *text;
};

/* A text after a prefix, and its ID, or what the refusal must mention. */
struct prefixed_text {
    int32_t format;
    const char *prefix;
    const char *text;
    const char *gives;
};

struct valid_layout {
    const char *text;
    const char *canonical;
    uint32_t time_bits;
    uint64_t tick_ms;
    int64_t epoch_ms;
    size_t field_count;
    struct vector_field fields[8];
    uint32_t sequence_bits;
    uint64_t nodes;
    double ids_per_second;
    int64_t expires_at_ms;
};

struct valid_spec {
    const char *spec;
    const char *canonical;
};

/* A layout or a spec line that is refused, and words that the error must contain; NULL ends them. */
struct refusal {
    const char *text;
    int32_t code;
    const char *says[8];
};

/* STEP_OPEN begins a replay; `number` is a time, a count or an error. */
enum step_kind { STEP_OPEN, STEP_SET_TIME, STEP_NEXT, STEP_BATCH, STEP_CREDIT, STEP_ERROR };

struct step {
    enum step_kind kind;
    int64_t number;
    const char *spec;
    const char *name;
    int64_t first;
    int64_t last;
};

struct takeover {
    const char *system;
    const char *spec;
    const char *layout;
    int64_t last;
    int64_t unix_ms;
    uint64_t sequence;
    size_t field_count;
    struct vector_field fields[8];
    /* An index into TAKEOVER_STEPS. */
    size_t first_step;
    size_t step_count;
};

struct object_id_parts {
    const char *text;
    int64_t unix_ms;
    uint64_t random;
    uint32_t counter;
    uint32_t machine;
    uint16_t process;
};

/* The first and the last ObjectId of the second that holds an instant. */
struct object_id_bound {
    int64_t unix_ms;
    const char *min;
    const char *max;
};

struct instant_refusal {
    int64_t unix_ms;
    int32_t code;
};

struct known_uuid {
    const char *text;
    const char *canonical;
    int version;
    bool has_time;
    int64_t unix_ms;
};

struct error_row {
    int32_t code;
    int32_t constant;
    const char *name;
    const char *meaning;
};
