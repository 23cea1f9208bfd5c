/* Allocates and costs loop orders one candidate at a time, with everything it needs in the cache.
 *
 * Every floating-point operation comes in the order of allocate.py, movement.py and cost.py, so
 * that results agree to the last bit; work is only left out where its result is known.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "kernel_allocate.h"
#include "kernel_cost.h"
#include "kernel_orders.h"

enum { GIVEN, GREEDY, EVEN };
enum { LATENCY, ENERGY, PRODUCT };

typedef struct {
    Py_buffer views[8];
    int n_views;
} Views;

static void close_views(Views *views)
{
    while (views->n_views > 0) PyBuffer_Release(&views->views[--views->n_views]);
}

/* An aligned array of one of the `formats`; NULL and an exception if it is none. */
static Py_buffer *open_view(
    Views *views, PyObject *array, const char *formats, int dims, int writable)
{
    Py_buffer *view = &views->views[views->n_views];
    int flags = PyBUF_STRIDES | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(array, view, flags) < 0) return NULL;
    views->n_views++;
    const char *format = view->format ? view->format : "B";
    Py_ssize_t size = formats[0] == '?' || formats[0] == 'B' ? 1 : 8;
    int good = view->ndim == dims && strlen(format) == 1 && strchr(formats, format[0]) &&
               view->itemsize == size &&
               (view->len == 0 || (uintptr_t)view->buf % (uintptr_t)size == 0);
    for (int i = 0; good && i < dims; i++) good = view->strides[i] % size == 0;
    if (good) return view;
    PyErr_Format(PyExc_TypeError, "expected %d dims of %s, not %d of %s", dims, formats,
                 view->ndim, format);
    return NULL;
}

static inline char *at(const Py_buffer *view, Py_ssize_t row, Py_ssize_t column)
{
    return (char *)view->buf + row * view->strides[0] +
           (view->ndim > 1 ? column * view->strides[1] : 0);
}

static void load(const Setup *s, Candidate *c, const Py_buffer *const views[3], Py_ssize_t column)
{
    const unsigned char *dims = views[0]->buf;
    for (int place = 0; place < c->length; place++) {
        c->loop[place] = dims[*(const int64_t *)at(views[1], place, column)];
        c->size[place] = *(const double *)at(views[2], place, column);
        c->iterations[place + 1] = c->iterations[place] * c->size[place];
    }
    for (int dim = 0; dim < s->n_dims; dim++)
        for (int place = 0; place < c->length; place++)
            c->extent[place + 1][dim] =
                c->extent[place][dim] * (c->loop[place] == dim ? c->size[place] : 1.0);
}

/* The description, the numbers of the dims that loops stand for, loops, and their sizes. */
static int open_orders(
    Views *views, PyObject *const *args, Setup *setup, const Py_buffer *orders[3])
{
    const Py_buffer *description = open_view(views, args[0], "d", 1, 0);
    if (!description || !(orders[0] = open_view(views, args[1], "B", 1, 0))) return 0;
    if (!(orders[1] = open_view(views, args[2], "lq", 2, 0))) return 0;
    if (!(orders[2] = open_view(views, args[3], "d", 2, 0))) return 0;
    int good = description->strides[0] == 8 && orders[0]->strides[0] == 1 &&
               read_setup(description->buf, description->shape[0], setup);
    for (Py_ssize_t i = 0; good && i < orders[0]->shape[0]; i++)
        good = *(unsigned char *)at(orders[0], i, 0) < setup->n_dims;
    Py_ssize_t length = orders[1]->shape[0], count = orders[1]->shape[1];
    good = good && length <= LOOPS && orders[2]->shape[0] == length && orders[2]->shape[1] == count;
    for (Py_ssize_t place = 0; good && place < length; place++)
        for (Py_ssize_t column = 0; good && column < count; column++) {
            int64_t loop = *(const int64_t *)at(orders[1], place, column);
            good = loop >= 0 && loop < orders[0]->shape[0];
        }
    if (!good) PyErr_SetString(PyExc_ValueError, "these are no orders of the described loops");
    return good;
}

static void start(Candidate *c, Py_ssize_t length)
{
    memset(c, 0, sizeof *c);
    c->length = (int)length;
    c->iterations[0] = 1.0;
    for (int dim = 0; dim < DIMS; dim++) c->extent[0][dim] = 1.0;
}

/* Ends of all levels of all operands, one after the other; 0 if one lies outside the order. */
static int read_ends(const Setup *s, Candidate *c, const Py_buffer *ends, Py_ssize_t column)
{
    int row = 0, good = 1;
    for (int operand = 0; operand < s->n_operands; operand++)
        for (int level = 0; level < s->operands[operand].depth; level++) {
            int64_t end = *(const int64_t *)at(ends, row++, column);
            good = good && end >= 0 && end <= c->length;
            c->ends[operand][level] = good ? (int)end : 0;
        }
    return good;
}

static void write_ends(const Setup *s, const Candidate *c, const Py_buffer *ends, Py_ssize_t column)
{
    int row = 0;
    for (int operand = 0; operand < s->n_operands; operand++)
        for (int level = 0; level < s->operands[operand].depth; level++)
            *(int64_t *)at(ends, row++, column) = c->ends[operand][level];
}

/* costs(description, dims, loops, sizes, ends, fits, values, mode): fills values with the cycles
 * and the memories' energy of every candidate, infinite where it does not fit or cannot move. */
static PyObject *costs(PyObject *module, PyObject *const *args, Py_ssize_t n_args)
{
    Views views = {.n_views = 0};
    const Py_buffer *orders[3], *ends, *fits, *values;
    Setup setup;
    Candidate c;
    long mode = n_args == 8 ? PyLong_AsLong(args[7]) : -1;
    int good = mode >= GIVEN && mode <= EVEN;
    if (!good && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "costs takes 8 arguments");
    good = good && open_orders(&views, args, &setup, orders) &&
           (ends = open_view(&views, args[4], "lq", 2, mode != GIVEN)) &&
           (fits = open_view(&views, args[5], "?", 1, mode != GIVEN)) &&
           (values = open_view(&views, args[6], "d", 2, 1));
    if (!good) { close_views(&views); return NULL; }
    Py_ssize_t count = orders[1]->shape[1];
    good = ends->shape[0] == setup.n_levels && ends->shape[1] == count &&
           fits->shape[0] == count && values->shape[0] == 2 && values->shape[1] == count;
    start(&c, orders[1]->shape[0]);
    for (Py_ssize_t column = 0; good && column < count; column++) {
        char *fit = at(fits, column, 0);
        load(&setup, &c, orders, column);
        if (mode == GIVEN) {
            good = read_ends(&setup, &c, ends, column);
        } else {
            *fit = (char)allocate(&setup, &c, mode == EVEN);
            write_ends(&setup, &c, ends, column);
        }
        int possible = *fit && cost(&setup, &c);
        *(double *)at(values, 0, column) = possible ? c.cycles : INFINITY;
        *(double *)at(values, 1, column) = possible ? c.memory_pj : INFINITY;
    }
    close_views(&views);
    if (good) Py_RETURN_NONE;
    PyErr_SetString(PyExc_ValueError, "ends, fits or values do not belong to the orders");
    return NULL;
}

/* What a candidate is ranked by: smaller is better, the second decides between equals. */
typedef struct { double first, second; } Value;

static Value value_of(const Candidate *c, double mac_pj, long objective)
{
    double energy = c->memory_pj + mac_pj;
    if (objective == LATENCY) return (Value){c->cycles, energy};
    if (objective == ENERGY) return (Value){energy, c->cycles};
    return (Value){c->cycles * energy, 0.0};
}

static int is_less(Value a, Value b)
{
    return a.first < b.first || (a.first == b.first && a.second < b.second);
}

/* What orders are to be best at: `other_pj` is the energy beside that of the memories. */
typedef struct {
    int even;
    long objective;
    double other_pj;
} Wanted;

/* Whether a candidate, allocated here, is better than the least value so far, which it becomes. */
static int is_best(const Setup *s, Candidate *c, const Wanted *wanted, Value *least)
{
    /* Time only tells apart what takes the same energy. */
    double most_pj = wanted->objective == ENERGY ? least->first : INFINITY;
    if (!allocate(s, c, wanted->even) || !transfer(s, c, wanted->other_pj, most_pj)) return 0;
    time_of(s, c);
    Value value = value_of(c, wanted->other_pj, wanted->objective);
    if (!is_less(value, *least)) return 0;
    *least = value;
    return 1;
}

/* The first of the best orders that are not above `at_most`, and its ends and costs; -1: none. */
static Py_ssize_t best_order(
    const Setup *s, const Py_buffer *const orders[3], const Wanted *wanted, double at_most,
    const Py_buffer *ends, double *values)
{
    Candidate c;
    Py_ssize_t best = -1;
    Value least = {at_most, INFINITY};
    start(&c, orders[1]->shape[0]);
    for (Py_ssize_t column = 0; column < orders[1]->shape[1]; column++) {
        load(s, &c, orders, column);
        if (!is_best(s, &c, wanted, &least)) continue;
        best = column;
        write_ends(s, &c, ends, 0);
        values[0] = c.cycles;
        values[1] = c.memory_pj;
    }
    return best;
}

/* best(description, dims, loops, sizes, figures, mode, objective, ends, values): the column of the
 * best order, allocated in a mode, or None; fills its ends, and its cycles and memories' energy.
 * `figures` are the energy beside that of the memories, and what may not be exceeded. */
static PyObject *best(PyObject *module, PyObject *const *args, Py_ssize_t n_args)
{
    Views views = {.n_views = 0};
    const Py_buffer *orders[3], *figures, *ends, *values;
    Setup setup;
    Py_ssize_t column = -1;
    long how[2] = {-1, -1};
    for (int i = 0; n_args == 9 && i < 2; i++) how[i] = PyLong_AsLong(args[5 + i]);
    int good = how[0] >= GREEDY && how[0] <= EVEN && how[1] >= LATENCY && how[1] <= PRODUCT;
    if (!good && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "best takes 9 arguments");
    good = good && open_orders(&views, args, &setup, orders) &&
           (figures = open_view(&views, args[4], "d", 1, 0)) &&
           (ends = open_view(&views, args[7], "lq", 2, 1)) &&
           (values = open_view(&views, args[8], "d", 2, 1));
    if (good) {
        good = figures->shape[0] == 2 && figures->strides[0] == 8 && values->strides[0] == 8 &&
               ends->shape[0] == setup.n_levels && ends->shape[1] == 1 && values->shape[0] == 2;
        const double *given = figures->buf;
        Wanted wanted = {how[0] == EVEN, how[1], good ? given[0] : 0.0};
        if (good) column = best_order(&setup, orders, &wanted, given[1], ends, values->buf);
        else PyErr_SetString(PyExc_ValueError, "ends or values do not belong to the orders");
    }
    close_views(&views);
    if (!good) return NULL;
    if (column < 0) Py_RETURN_NONE;
    return PyLong_FromSsize_t(column);
}

static Py_ssize_t n_details(const Setup *s)
{
    return 4 + 5 * s->n_links + s->n_groups + s->n_levels;
}

/* Every part of the cost of a candidate, in the order that kernel.py gives. */
static void write_details(const Setup *s, const Candidate *c, double *to)
{
    double parts[] = {c->compute, c->stall, c->onload, c->offload};
    for (int i = 0; i < 4; i++) *to++ = parts[i];
    for (int row = 0; row < s->n_links; row++) {
        const Stay *stay = &c->stay[s->links[row].operand];
        int arch = s->links[row].arch;
        double figures[] = {c->accesses[row], c->link_pj[row], c->amount[row],
                            stay->periods[arch], stay->bits[arch]};
        for (int i = 0; i < 5; i++) *to++ = figures[i];
    }
    for (int i = 0; i < s->n_groups; i++) *to++ = c->port_stalls[i];
    for (int operand = 0; operand < s->n_operands; operand++)
        for (int arch = 1; arch <= s->operands[operand].depth; arch++)
            *to++ = c->stay[operand].elements[arch] * c->stay[operand].bits[arch];
}

/* details(description, dims, loops, sizes, ends, values): every part of the cost of the one
 * candidate that the arrays hold; False if its data cannot move. */
static PyObject *details(PyObject *module, PyObject *const *args, Py_ssize_t n_args)
{
    Views views = {.n_views = 0};
    const Py_buffer *orders[3], *ends, *values;
    Setup setup;
    Candidate c;
    int good = n_args == 6 && open_orders(&views, args, &setup, orders) &&
               (ends = open_view(&views, args[4], "lq", 2, 0)) &&
               (values = open_view(&views, args[5], "d", 1, 1));
    if (good) {
        start(&c, orders[1]->shape[0]);
        good = orders[1]->shape[1] == 1 && ends->shape[0] == setup.n_levels &&
               ends->shape[1] == 1 && values->shape[0] == n_details(&setup) && values->strides[0] == 8 &&
               read_ends(&setup, &c, ends, 0);
    }
    if (!good) {
        close_views(&views);
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "details needs one candidate");
        return NULL;
    }
    load(&setup, &c, orders, 0);
    int possible = cost(&setup, &c);
    write_details(&setup, &c, values->buf);
    close_views(&views);
    return PyBool_FromLong(possible);
}

/* arrange(items, out): all arrangements of a multiset in cool-lex order, see orders.py; `items` in
 * non-increasing order, a row of `out` for each of them. Returns how many there are. */
static PyObject *arrange(PyObject *module, PyObject *const *args, Py_ssize_t n_args)
{
    Views views = {.n_views = 0};
    const Py_buffer *given, *out;
    Arrangement a;
    int good = n_args == 2 && (given = open_view(&views, args[0], "lq", 1, 0)) &&
               (out = open_view(&views, args[1], "lq", 2, 1));
    good = good && given->shape[0] >= 1 && given->shape[0] <= LOOPS &&
           given->shape[0] == out->shape[0];
    if (!good) {
        close_views(&views);
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "nothing to arrange");
        return NULL;
    }
    int n_items = (int)given->shape[0], changed = 1;
    Py_ssize_t column = 0;
    for (int place = 0; place < n_items; place++) a.items[place] = *(int64_t *)at(given, place, 0);
    begin(&a, n_items);
    for (; changed && column < out->shape[1]; column++) {
        for (int place = 0; place < n_items; place++)
            *(int64_t *)at(out, place, column) = a.items[place];
        changed = go_on(&a);
    }
    close_views(&views);
    return PyLong_FromSsize_t(column);
}

enum { DETAILS = 4 + 5 * LINKS + LINKS + OPERANDS * LEVELS };

/* The first of the orders of least energy, in every part; and how many were tried. */
typedef struct {
    Py_ssize_t tried;
    int length, ends[OPERANDS][LEVELS]; /* no length: none fits */
    unsigned char loop[LOOPS];
    double size[LOOPS], memory_pj, details[DETAILS];
} Least;

static void keep(const Setup *s, const Candidate *c, Least *to)
{
    to->length = c->length;
    to->memory_pj = c->memory_pj;
    memcpy(to->ends, c->ends, sizeof to->ends);
    memcpy(to->loop, c->loop, sizeof to->loop);
    memcpy(to->size, c->size, sizeof to->size);
    write_details(s, c, to->details);
}

static void find_least(
    const Setup *s, const Ascending *orders, const Wanted *wanted, double at_most, Least *to)
{
    Candidate c;
    Arrangement a;
    Value least = {at_most, INFINITY};
    to->tried = to->length = 0;
    start(&c, orders->n);
    for (int place = 0; place < orders->n; place++)
        a.items[place] = orders->first[orders->n - 1 - place];
    begin(&a, orders->n);
    for (int changed = orders->n; changed; changed = go_on(&a)) {
        load_ascending(s, orders, &a, changed, &c);
        to->tried++;
        if (is_best(s, &c, wanted, &least)) keep(s, &c, to);
    }
}

static PyObject *numbers_of(const double *values, Py_ssize_t count, int is_whole)
{
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list && i < count; i++) {
        PyObject *item =
            is_whole ? PyLong_FromDouble(values[i]) : PyFloat_FromDouble(values[i]);
        if (item) PyList_SET_ITEM(list, i, item);
        else Py_CLEAR(list);
    }
    return list;
}

/* Orders tried, the memories' energy, the loops' dims and sizes, the ends of levels, details. */
static PyObject *told(const Setup *s, const Least *least)
{
    double flat[OPERANDS * LEVELS];
    int row = 0;
    for (int operand = 0; operand < s->n_operands; operand++)
        for (int level = 0; level < s->operands[operand].depth; level++)
            flat[row++] = least->ends[operand][level];
    PyObject *dims = PyBytes_FromStringAndSize((const char *)least->loop, least->length);
    PyObject *sizes = numbers_of(least->size, least->length, 1), *ends = numbers_of(flat, row, 1);
    PyObject *figures = numbers_of(least->details, n_details(s), 0);
    if (dims && sizes && ends && figures)
        return Py_BuildValue(
            "ndNNNN", least->tried, least->memory_pj, dims, sizes, ends, figures);
    Py_XDECREF(dims);
    Py_XDECREF(sizes);
    Py_XDECREF(ends);
    Py_XDECREF(figures);
    return NULL;
}

/* least(description, frame, places, limit, mode, figures): of the orders of an unrolled nest in
 * which the factors of each loop stand smallest first, that of the least energy, or None. The
 * description is that of the nest with nothing unrolled; `figures` are those of `best`. */
static PyObject *least(PyObject *module, PyObject *const *args, Py_ssize_t n_args)
{
    Views views = {.n_views = 0};
    const Py_buffer *given[4];
    Setup setup;
    Frame frame;
    Places places;
    Ascending orders;
    Least found = {.length = 0};
    double left[DIMS], points = 1.0;
    long limit = n_args == 6 ? PyLong_AsLong(args[3]) : -1;
    long mode = n_args == 6 ? PyLong_AsLong(args[4]) : -1;
    int good = mode >= GREEDY && mode <= EVEN && !PyErr_Occurred();
    for (int i = 0; good && i < 4; i++) {
        given[i] = open_view(&views, args[i < 3 ? i : 5], "d", 1, 0);
        good = given[i] && (given[i]->shape[0] == 0 || given[i]->strides[0] == 8);
    }
    good = good && given[3]->shape[0] == 2 &&
           read_setup(given[0]->buf, given[0]->shape[0], &setup) &&
           read_frame(given[1]->buf, given[1]->shape[0], &setup, &frame) &&
           read_places(given[2]->buf, given[2]->shape[0], &setup, &frame, &places);
    for (int dim = 0; good && dim < setup.n_dims; dim++) points *= frame.size[dim];
    if (good && points < EXACT) {
        const double *figures = given[3]->buf;
        Wanted wanted = {mode == EVEN, ENERGY, figures[0]};
        unroll(&frame, &places, &setup, left);
        good = set_ascending(&frame, &setup, left, (int)limit, &orders);
        if (good) find_least(&setup, &orders, &wanted, figures[1], &found);
    }
    close_views(&views);
    if (good && points < EXACT) {
        if (found.length) return told(&setup, &found);
        Py_RETURN_NONE;
    }
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "this is no unrolling of a nest");
    return NULL;
}

static PyObject *understands(PyObject *module, PyObject *array)
{
    Views views = {.n_views = 0};
    Setup setup;
    const Py_buffer *view = open_view(&views, array, "d", 1, 0);
    int good = view && view->strides[0] == 8 && read_setup(view->buf, view->shape[0], &setup);
    close_views(&views);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(good);
}

static PyMethodDef methods[] = {
    {"understands", understands, METH_O, "Whether a description is sound and within limits."},
    {"costs", (PyCFunction)(void (*)(void))costs, METH_FASTCALL, "Cost many orders."},
    {"best", (PyCFunction)(void (*)(void))best, METH_FASTCALL, "The best of many orders."},
    {"least", (PyCFunction)(void (*)(void))least, METH_FASTCALL, "The order of least energy."},
    {"details", (PyCFunction)(void (*)(void))details, METH_FASTCALL, "Cost one in every part."},
    {"arrange", (PyCFunction)(void (*)(void))arrange, METH_FASTCALL, "List all arrangements."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_kernel", .m_size = 0, .m_methods = methods,
};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&definition); }
