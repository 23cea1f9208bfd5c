/* How long an operation of the Ethos-U takes. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "ethos_u_cycles.h"

enum { OPERATION_FIGURES = sizeof(Operation) / sizeof(int64_t) };

/* Below this, doubles hold every whole number that is multiplied here. */
static const double MOST_POINTS = (double)(1LL << 44);

static int is_shape(Shape s) { return s.height > 0 && s.width > 0 && s.depth > 0; }

static int is_operation(const Operation *o)
{
    return o->engine >= 0 && o->engine < ENGINES && is_shape(o->input) && is_shape(o->output) &&
           (is_shape(o->second) || !(o->second.height | o->second.width | o->second.depth)) &&
           o->input_bits >= 8 && o->output_bits >= 8 && o->weight_bits >= 0 &&
           o->weight_bits <= 64 && o->taps_high > 0 && o->taps_wide > 0 &&
           o->stride_high >= 0 && o->stride_wide >= 0 && o->dilation_high >= 0 &&
           o->dilation_wide >= 0 && o->second_memory >= 0 && o->second_memory < MEMORIES &&
           o->weights_memory >= 0 && o->weights_memory < MEMORIES;
}

static int is_small(const Operation *o)
{
    double outputs = (double)o->output.height * (double)o->output.width * (double)o->output.depth;
    double inputs = (double)o->input.height * (double)o->input.width * (double)o->input.depth;
    double second = (double)o->second.height * (double)o->second.width * (double)o->second.depth;
    double taps = (double)o->taps_high * (double)o->taps_wide;
    double deepest = larger((double)o->input.depth, (double)o->second.depth);
    return outputs * taps * deepest < MOST_POINTS && inputs * taps < MOST_POINTS &&
           second < MOST_POINTS && taps * deepest * (double)o->output.depth < MOST_POINTS;
}

static int read_operation(PyObject *figures, Operation *to)
{
    union {
        Operation operation;
        int64_t values[OPERATION_FIGURES];
    } given;
    if (!PyTuple_Check(figures) || PyTuple_GET_SIZE(figures) != OPERATION_FIGURES) {
        PyErr_Format(PyExc_TypeError, "expected a tuple of %d numbers", OPERATION_FIGURES);
        return 0;
    }
    for (int i = 0; i < OPERATION_FIGURES; i++) {
        given.values[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(figures, i));
        if (given.values[i] == -1 && PyErr_Occurred()) return 0;
    }
    if (!is_operation(&given.operation)) {
        PyErr_SetString(PyExc_ValueError, "these are no figures of an operation");
        return 0;
    }
    if (!is_small(&given.operation)) {
        PyErr_SetString(PyExc_OverflowError, "the operation is too large");
        return 0;
    }
    *to = given.operation;
    return 1;
}

static int is_member(const Member *m)
{
    int good = is_shape(m->micro) && m->input_granule > 0 && m->wide_input_granule > 0 &&
               m->accumulator_granule > 0 && m->wide_accumulator_granule > 0 && m->cores > 0 &&
               m->elements > 0;
    for (int i = 0; i < MEMORIES; i++)
        good = good && m->memories[i].bytes > 0 && m->memories[i].cycles > 0 &&
               m->memories[i].burst_bytes > 0;
    return good;
}

static int read_member(PyObject *figures, Member *to)
{
    Py_buffer view;
    if (PyObject_GetBuffer(figures, &view, PyBUF_SIMPLE) < 0) return 0;
    int good = view.len == (Py_ssize_t)sizeof *to;
    if (good) memcpy(to, view.buf, sizeof *to);
    PyBuffer_Release(&view);
    if (good && is_member(to)) return 1;
    PyErr_SetString(PyExc_ValueError, "these are no figures of a member of the family");
    return 0;
}

/* cycles(operation, member): with the best block, of computing, or of the busiest memory if that is
 * slower; None if no block fits. */
static PyObject *cycles(PyObject *module, PyObject *const *args, Py_ssize_t n_args)
{
    Operation o;
    Member m;
    if (n_args != 2) {
        PyErr_SetString(PyExc_TypeError, "cycles takes 2 arguments");
        return NULL;
    }
    if (!read_operation(args[0], &o) || !read_member(args[1], &m)) return NULL;
    double best = best_cycles(&o, &m);
    if (isinf(best)) Py_RETURN_NONE;
    return PyLong_FromDouble(best);
}

static PyMethodDef methods[] = {
    {"cycles", (PyCFunction)(void (*)(void))cycles, METH_FASTCALL, "Cycles of an operation."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_ethos_u", .m_size = 0, .m_methods = methods,
};

PyMODINIT_FUNC PyInit__ethos_u(void) { return PyModuleDef_Init(&definition); }
