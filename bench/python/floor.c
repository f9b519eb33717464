// The floor of an extension: functions that do the parts of an ID, and nothing else: no layout, policy or check.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdatomic.h>
#include <time.h>

static atomic_ullong counter;
static char pairs[100][2];

/// One clock reading and one atomic.
static unsigned long long parts(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const unsigned long long ms = now.tv_sec * 1000ULL + now.tv_nsec / 1000000;
    return ms << 20 | (atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed) & 0xfffff);
}

static PyObject *mint(PyObject *Py_UNUSED(self), PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count)) {
    return PyLong_FromLongLong((long long)parts());
}

/// 19 digits, which IDs of `parts` have from the year 2000 until their sign bit is set; written in place, two at a time.
static PyObject *text(PyObject *Py_UNUSED(self), PyObject *const *Py_UNUSED(args), Py_ssize_t Py_UNUSED(count)) {
    PyObject *result = PyUnicode_New(19, 127);
    if (result == NULL) return NULL;
    char *digits = (char *)PyUnicode_1BYTE_DATA(result);
    unsigned long long id = parts();
    for (int at = 17; at > 0; at -= 2, id /= 100) memcpy(digits + at, pairs[id % 100], 2);
    digits[0] = (char)('0' + id);
    return result;
}

static PyMethodDef functions[] = {
    {"mint", (PyCFunction)(void (*)(void))mint, METH_FASTCALL, NULL},
    {"text", (PyCFunction)(void (*)(void))text, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "frazil_bench_floor", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit_frazil_bench_floor(void) {
    for (int i = 0; i < 100; ++i) pairs[i][0] = (char)('0' + i / 10), pairs[i][1] = (char)('0' + i % 10);
    return PyModule_Create(&module);
}
