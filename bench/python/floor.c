// The floors of an extension: functions that do only the parts of an ID, without a layout, policies or checks.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdatomic.h>
#include <time.h>

static atomic_ullong counter;
static char pairs[100][2];
/// The processor's counter up to which `tick` lasts.
static unsigned long long until, tick;

static unsigned long long wall_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000ULL + now.tv_nsec / 1000000;
}

static unsigned long long processor_counter(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    unsigned long long count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return 0;
#endif
}

/// The millisecond, by the processor's counter until it shows that the tick is over.
static unsigned long long fresh_ms(void) {
    const unsigned long long count = processor_counter();
    if (count >= until) {
        tick = wall_ms();
        // About a tenth of a millisecond: a floor needs no calibration.
        until = count + 200000;
    }
    return tick;
}

static unsigned long long with(unsigned long long ms) {
    return ms << 20 | (atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed) & 0xfffff);
}

/// 19 digits, which these IDs have from the year 2000 until their sign bit is set; written in place, two at a time.
static PyObject *text_of(unsigned long long id) {
    PyObject *result = PyUnicode_New(19, 127);
    if (result == NULL) return NULL;
    char *digits = (char *)PyUnicode_1BYTE_DATA(result);
    for (int at = 17; at > 0; at -= 2, id /= 100) memcpy(digits + at, pairs[id % 100], 2);
    digits[0] = (char)('0' + id);
    return result;
}

#define FUNCTION(name, result) \
    static PyObject *name(PyObject *Py_UNUSED(self), PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count)) { return result; }

FUNCTION(mint, PyLong_FromLongLong((long long)with(fresh_ms())))
FUNCTION(mint_by_clock, PyLong_FromLongLong((long long)with(wall_ms())))
FUNCTION(text, text_of(with(fresh_ms())))

/// An object whose slots are C functions, for the cost of `next()`, of a call, and of a method with an argument.
typedef struct {
    PyObject_HEAD
} ids;

static PyObject *ids_next(PyObject *Py_UNUSED(self)) {
    return PyLong_FromLongLong((long long)with(fresh_ms()));
}

static PyObject *ids_call(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(names)) {
    return PyLong_FromLongLong((long long)with(fresh_ms()));
}

static PyObject *ids_text(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(format)) {
    return text_of(with(fresh_ms()));
}

static PyMethodDef ids_methods[] = {{"text", ids_text, METH_O, NULL}, {NULL, NULL, 0, NULL}};

static PyTypeObject ids_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "frazil_bench_floor.Ids",
    .tp_basicsize = sizeof(ids),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = ids_next,
    .tp_call = ids_call,
    .tp_methods = ids_methods,
};

#define METHOD(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}
static PyMethodDef functions[] = {METHOD(mint), METHOD(mint_by_clock), METHOD(text), {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "frazil_bench_floor", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit_frazil_bench_floor(void) {
    for (int i = 0; i < 100; ++i) pairs[i][0] = (char)('0' + i / 10), pairs[i][1] = (char)('0' + i % 10);
    if (PyType_Ready(&ids_type) < 0) return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made != NULL && PyModule_AddObjectRef(made, "Ids", (PyObject *)&ids_type) < 0) Py_CLEAR(made);
    return made;
}
