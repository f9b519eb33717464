/*
 * A GDExtension for Godot 4.4 and later: the class FrazilSnowflake over frazil.h. It converts; the C library decides.
 *
 * This file declares the part of Godot's gdextension_interface.h that it uses, so it builds without Godot.
 */
#include <frazil.h>
#include <stdlib.h>
#include <string.h>

/* Types of a Variant. */
enum { NONE = 0, INT = 2, STRING = 4, STRING_NAME = 21, PACKED_INT64_ARRAY = 31 };
enum { INVALID_ARGUMENT = 2, TOO_MANY_ARGUMENTS = 3, TOO_FEW_ARGUMENTS = 4 };
enum { METHOD_DEFAULT = 1, METHOD_STATIC = 32, PROPERTY_DEFAULT = 6, LEVEL_SCENE = 2 };

typedef void (*any_function)(void);
typedef void *string_name;
typedef union {
    int64_t integer;
    void *string;
    void *packed_array[2];
} value;
typedef struct {
    int error;
    int32_t argument, expected;
} call_error;
typedef struct {
    int type;
    string_name *name, *class_name;
    uint32_t hint;
    void *hint_string;
    uint32_t usage;
} property_info;
typedef struct {
    string_name *name;
    void *userdata;
    void (*call)(void *userdata, void *self, const void *const *arguments, int64_t count, void *result, call_error *error);
    void (*ptrcall)(void *userdata, void *self, const void *const *arguments, void *result);
    uint32_t flags;
    uint8_t has_result;
    property_info *result;
    int result_metadata;
    uint32_t argument_count;
    property_info *arguments;
    int *arguments_metadata;
    uint32_t default_count;
    void **defaults;
} method_info;
typedef struct {
    uint8_t is_virtual, is_abstract, is_exposed, is_runtime;
    const void *icon_path;
    any_function unused[11];
    void *(*create)(void *userdata, uint8_t notify);
    void (*free)(void *userdata, void *self);
    any_function also_unused[4];
    void *userdata;
} class_info;
typedef struct {
    int minimum_level;
    void *userdata;
    void (*initialize)(void *userdata, int level);
    void (*deinitialize)(void *userdata, int level);
} initialization;

typedef void (*builtin_method)(void *self, const void *const *arguments, void *result, int count);
typedef void (*constructor)(void *to, const void *const *arguments);
typedef void (*conversion)(void *to, const void *from);
typedef void (*destructor)(void *of);

#define INTERFACE(f)                                                                                                    \
    f(void *, classdb_construct_object2, (const string_name *))                                                         \
    f(void, classdb_register_extension_class4, (void *, const string_name *, const string_name *, const class_info *))  \
    f(void, classdb_register_extension_class_method, (void *, const string_name *, const method_info *))                \
    f(void, classdb_unregister_extension_class, (void *, const string_name *))                                          \
    f(conversion, get_variant_from_type_constructor, (int))                                                             \
    f(conversion, get_variant_to_type_constructor, (int))                                                               \
    f(void, object_set_instance, (void *, const string_name *, void *))                                                 \
    f(int64_t *, packed_int64_array_operator_index, (void *, int64_t))                                                  \
    f(void, string_name_new_with_latin1_chars, (string_name *, const char *, uint8_t))                                  \
    f(void, string_new_with_utf8_chars, (void *, const char *))                                                         \
    f(int64_t, string_to_utf8_chars, (const void *, char *, int64_t))                                                   \
    f(builtin_method, variant_get_ptr_builtin_method, (int, const string_name *, int64_t))                              \
    f(constructor, variant_get_ptr_constructor, (int, int32_t))                                                         \
    f(destructor, variant_get_ptr_destructor, (int))                                                                    \
    f(int, variant_get_type, (const void *))
#define DECLARE(result, name, arguments) static result(*name) arguments;
INTERFACE(DECLARE)

static void *library;
static string_name class_name;

static string_name named(const char *text) {
    string_name name;
    string_name_new_with_latin1_chars(&name, text, 0);
    return name;
}

static void destroy(int type, void *of) {
    if (type == STRING || type == PACKED_INT64_ARRAY) variant_get_ptr_destructor(type)(of);
}

static void destroy_name(string_name *name) {
    variant_get_ptr_destructor(STRING_NAME)(name);
}

/* The methods. Godot constructs `result`. */

typedef struct {
    frazil_snowflake *ids;
} snowflake;

static void open_spec(snowflake *self, const void *spec, void *result) {
    const int64_t length = string_to_utf8_chars(spec, NULL, 0);
    char *text = malloc((size_t)length + 1);
    if (!text) abort();
    string_to_utf8_chars(spec, text, length);
    text[length] = 0;
    frazil_snowflake_free(self->ids);
    self->ids = NULL;
    *(int64_t *)result = -frazil_snowflake_open(text, &self->ids);
    free(text);
}

static void next(snowflake *self, const void *none, void *result) {
    (void)none;
    int64_t id;
    const frazil_status status = frazil_snowflake_next(self->ids, &id);
    *(int64_t *)result = status == FRAZIL_OK ? id : -status;
}

static int resize(void *array, int64_t count) {
    string_name name = named("resize");
    const void *arguments[] = {&count};
    int64_t error;
    variant_get_ptr_builtin_method(PACKED_INT64_ARRAY, &name, 848867239)(array, arguments, &error, 1);
    destroy_name(&name);
    return error == 0;
}

static void fill(snowflake *self, const void *count, void *result) {
    const int64_t wanted = *(const int64_t *)count;
    size_t written = 0;
    if (wanted > 0 && resize(result, wanted)) {
        int64_t *ids = packed_int64_array_operator_index(result, 0);
        if (frazil_snowflake_fill(self->ids, ids, (size_t)wanted, &written) == FRAZIL_OK) return;
    }
    resize(result, (int64_t)written);
}

static void unix_ms(snowflake *self, const void *id, void *result) {
    frazil_layout *layout = NULL;
    frazil_parts parts;
    frazil_status status = frazil_snowflake_layout(self->ids, &layout);
    if (status == FRAZIL_OK) status = frazil_layout_decode(layout, *(const int64_t *)id, &parts, sizeof parts);
    frazil_layout_free(layout);
    *(int64_t *)result = status == FRAZIL_OK ? parts.unix_ms : -status;
}

static void last_error(snowflake *none, const void *nothing, void *result) {
    (void)none, (void)nothing;
    destroy(STRING, result);
    string_new_with_utf8_chars(result, frazil_last_error());
}

typedef struct {
    const char *name;
    int result;
    const char *argument;
    int argument_type;
    void (*call)(snowflake *self, const void *argument, void *result);
} method;
static const method methods[] = {
    {"open", INT, "spec", STRING, open_spec},
    {"next", INT, "", NONE, next},
    {"fill", PACKED_INT64_ARRAY, "count", INT, fill},
    {"unix_ms", INT, "id", INT, unix_ms},
    {"last_error", STRING, "", NONE, last_error},
};

/* A call with typed values. */
static void ptrcall(void *userdata, void *self, const void *const *arguments, void *result) {
    const method *its = userdata;
    its->call(self, its->argument_type ? arguments[0] : NULL, result);
}

/* A call with variants. */
static void call(void *userdata, void *self, const void *const *arguments, int64_t count, void *result, call_error *error) {
    const method *its = userdata;
    const int wanted = its->argument_type != NONE;
    value argument, returned;
    if (count != wanted) {
        error->error = count < wanted ? TOO_FEW_ARGUMENTS : TOO_MANY_ARGUMENTS;
        error->expected = wanted;
        return;
    }
    if (wanted && variant_get_type(arguments[0]) != its->argument_type) {
        error->error = INVALID_ARGUMENT;
        error->argument = 0;
        error->expected = its->argument_type;
        return;
    }
    if (wanted) get_variant_to_type_constructor(its->argument_type)(&argument, arguments[0]);
    variant_get_ptr_constructor(its->result, 0)(&returned, NULL);
    its->call(self, &argument, &returned);
    get_variant_from_type_constructor(its->result)(result, &returned);
    destroy(its->result, &returned);
    destroy(its->argument_type, &argument);
}

static void *create(void *userdata, uint8_t notify) {
    (void)userdata, (void)notify;
    snowflake *self = calloc(1, sizeof *self);
    if (!self) abort();
    string_name base = named("RefCounted");
    void *object = classdb_construct_object2(&base);
    destroy_name(&base);
    object_set_instance(object, &class_name, self);
    return object;
}

static void free_snowflake(void *userdata, void *self) {
    (void)userdata;
    frazil_snowflake_free(((snowflake *)self)->ids);
    free(self);
}

static void register_method(const method *its) {
    string_name name = named(its->name), argument_name = named(its->argument), none = named("");
    void *hint;
    string_new_with_utf8_chars(&hint, "");
    property_info result = {its->result, &none, &none, 0, &hint, PROPERTY_DEFAULT};
    property_info argument = {its->argument_type, &argument_name, &none, 0, &hint, PROPERTY_DEFAULT};
    int metadata = 0;
    method_info info = {&name, (void *)its, call, ptrcall, METHOD_DEFAULT, 1, &result, 0, 0, &argument, &metadata, 0, NULL};
    info.argument_count = its->argument_type != NONE;
    if (its->call == last_error) info.flags |= METHOD_STATIC;
    classdb_register_extension_class_method(library, &class_name, &info);
    destroy_name(&name), destroy_name(&argument_name), destroy_name(&none);
    destroy(STRING, &hint);
}

static void initialize(void *userdata, int level) {
    (void)userdata;
    if (level != LEVEL_SCENE) return;
    class_info info;
    memset(&info, 0, sizeof info);
    info.is_exposed = 1;
    info.create = create;
    info.free = free_snowflake;
    string_name base = named("RefCounted");
    class_name = named("FrazilSnowflake");
    classdb_register_extension_class4(library, &class_name, &base, &info);
    destroy_name(&base);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; ++i) register_method(&methods[i]);
}

static void deinitialize(void *userdata, int level) {
    (void)userdata;
    if (level != LEVEL_SCENE) return;
    classdb_unregister_extension_class(library, &class_name);
    destroy_name(&class_name);
}

#ifdef _WIN32
__declspec(dllexport)
#endif
uint8_t frazil_godot_init(any_function (*get)(const char *), void *its_library, initialization *init);

/* The entry symbol. Returns 0 for a Godot without one of the functions. */
uint8_t frazil_godot_init(any_function (*get)(const char *), void *its_library, initialization *init) {
#define LOAD(result, name, arguments) &&(name = (result(*) arguments)get(#name))
    if (!(1 INTERFACE(LOAD))) return 0;
    library = its_library;
    init->minimum_level = LEVEL_SCENE;
    init->initialize = initialize;
    init->deinitialize = deinitialize;
    return 1;
}
