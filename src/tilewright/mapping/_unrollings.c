/* All ways to run one loop along each array dim: the same as tile_search.py, which says what it
 * means, faster. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { DIMS = 16, LOOPS = 32, COUNTERS = 16 };

typedef struct {
    int n_loops, n_dims, n_feeds, n_counters;
    long long size[LOOPS];
    int n_choices[DIMS], loop[DIMS][LOOPS]; /* no loop: -1 */
    long long most[DIMS][LOOPS];
    unsigned long long asks[COUNTERS][DIMS]; /* loops whose factors a counter is multiplied by */
    double elements[COUNTERS];               /* that a feed holds, or a door moves in a cycle */
} Nest;

typedef struct {
    int loop[DIMS];
    long long factor[DIMS], steps;
    double value; /* negative: a feed cannot serve it */
} Found;

/* Even steps along each array dim rather than a ragged last one. */
static void fill(const Nest *nest, const int *chosen, Found *to)
{
    long long left[LOOPS], total[LOOPS], asked[COUNTERS];
    memcpy(left, nest->size, sizeof left);
    for (int loop = 0; loop < nest->n_loops; loop++) total[loop] = 1;
    for (int counter = 0; counter < nest->n_counters; counter++) asked[counter] = 1;
    for (int dim = 0; dim < nest->n_dims; dim++) {
        int loop = to->loop[dim] = nest->loop[dim][chosen[dim]];
        if (loop < 0) continue;
        long long most = nest->most[dim][chosen[dim]];
        if (most > left[loop]) most = left[loop];
        long long passes = (left[loop] + most - 1) / most;
        to->factor[dim] = (left[loop] + passes - 1) / passes;
        left[loop] = passes;
        total[loop] *= to->factor[dim];
        for (int counter = 0; counter < nest->n_counters; counter++)
            if (nest->asks[counter][dim] >> loop & 1) asked[counter] *= to->factor[dim];
    }
    to->steps = 1;
    for (int loop = 0; loop < nest->n_loops; loop++)
        to->steps *= (nest->size[loop] + total[loop] - 1) / total[loop];
    double worst = 1.0;
    for (int counter = nest->n_feeds; counter < nest->n_counters; counter++) {
        double cycles = (double)asked[counter] / nest->elements[counter];
        if (cycles > worst) worst = cycles;
    }
    to->value = (double)to->steps * worst;
    for (int counter = 0; counter < nest->n_feeds; counter++)
        if ((double)asked[counter] > nest->elements[counter]) to->value = -1.0;
}

/* The unrolling as Python has it: per array dim, its loop with its factor, if it has one. */
static PyObject *unrolling(const Nest *nest, const Found *found, PyObject *dims, PyObject *loops)
{
    PyObject *all = PyTuple_New(nest->n_dims);
    for (int dim = 0; all && dim < nest->n_dims; dim++) {
        PyObject *name = PyTuple_GET_ITEM(dims, dim), *one;
        if (found->loop[dim] < 0)
            one = Py_BuildValue("(O())", name);
        else
            one = Py_BuildValue("(O((OL)))", name, PyTuple_GET_ITEM(loops, found->loop[dim]),
                                found->factor[dim]);
        if (one) PyTuple_SET_ITEM(all, dim, one);
        else Py_CLEAR(all);
    }
    return all;
}

static PyObject *listed(const Nest *nest, PyObject *dims, PyObject *loops)
{
    int chosen[DIMS] = {0};
    PyObject *list = PyList_New(0);
    for (int dim = 0; list && dim >= 0;) {
        Found found;
        fill(nest, chosen, &found);
        PyObject *one = unrolling(nest, &found, dims, loops);
        PyObject *entry =
            one ? Py_BuildValue("dLN", found.value, found.steps, one) : NULL;
        if (!entry || PyList_Append(list, entry) < 0) Py_CLEAR(list);
        Py_XDECREF(entry);
        /* The last array dim runs fastest. */
        dim = nest->n_dims - 1;
        while (dim >= 0 && ++chosen[dim] == nest->n_choices[dim]) chosen[dim--] = 0;
    }
    return list;
}

typedef struct { const long long *at, *end; int failed; } Reader;

/* A number from `least` to `most`; `least` and a failure if it is none. */
static long long number(Reader *from, long long least, long long most)
{
    if (from->at < from->end && *from->at >= least && *from->at <= most) return *from->at++;
    from->failed = 1;
    return least;
}

static int read_nest(const Py_buffer *numbers, const Py_buffer *figures, Nest *to)
{
    const long long *first = numbers->buf;
    Reader from = {first, first + numbers->len / (Py_ssize_t)sizeof *first, 0};
    double points = 1.0;
    to->n_loops = (int)number(&from, 1, LOOPS);
    to->n_dims = (int)number(&from, 1, DIMS);
    to->n_feeds = (int)number(&from, 0, COUNTERS);
    to->n_counters = (int)number(&from, to->n_feeds, COUNTERS);
    for (int loop = 0; loop < to->n_loops; loop++) {
        to->size[loop] = number(&from, 1, 1LL << 52);
        points *= (double)to->size[loop];
    }
    for (int dim = 0; dim < to->n_dims; dim++) {
        to->n_choices[dim] = (int)number(&from, 1, LOOPS);
        for (int i = 0; i < to->n_choices[dim]; i++) {
            to->loop[dim][i] = (int)number(&from, -1, to->n_loops - 1);
            to->most[dim][i] = number(&from, 1, 1LL << 52);
        }
    }
    for (int counter = 0; counter < to->n_counters; counter++)
        for (int dim = 0; dim < to->n_dims; dim++)
            to->asks[counter][dim] =
                (unsigned long long)number(&from, 0, (1LL << to->n_loops) - 1);
    size_t size = sizeof(double) * (size_t)to->n_counters;
    if (from.failed || from.at != from.end || (size_t)figures->len != size) return 0;
    memcpy(to->elements, figures->buf, size);
    return points < 4503599627370496.0; /* 2^52: steps and their multiples are exact */
}

/* single_loops(dims, loops, numbers, figures): for every way to run one loop along each array dim
 * its steps times what the doors make of them, its steps, and the unrolling; the first is negative
 * if a feed cannot serve it. tile_search.py says what the numbers are. */
static PyObject *single_loops(PyObject *module, PyObject *args)
{
    PyObject *dims, *loops, *found = NULL;
    Py_buffer numbers, figures;
    Nest nest;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!y*y*", &PyTuple_Type, &dims, &PyTuple_Type, &loops, &numbers,
                          &figures))
        return NULL;
    if (read_nest(&numbers, &figures, &nest) && PyTuple_GET_SIZE(dims) == nest.n_dims &&
        PyTuple_GET_SIZE(loops) == nest.n_loops)
        found = listed(&nest, dims, loops);
    else
        PyErr_SetString(PyExc_ValueError, "this is no nest with an array");
    PyBuffer_Release(&numbers);
    PyBuffer_Release(&figures);
    return found;
}

static PyMethodDef methods[] = {
    {"single_loops", single_loops, METH_VARARGS, "All unrollings of one loop per array dim."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_unrollings", .m_size = 0, .m_methods = methods,
};

PyMODINIT_FUNC PyInit__unrollings(void) { return PyModuleDef_Init(&definition); }
