/* Who waits for whom: the same answers as those of waits.py, from arrays instead of dictionaries.
 *
 * Whoever touches nothing, an empty box, waits for nobody there, and nobody for it.
 * A buffer is plain, lies in another one (shifted, or under another shape), or is a lap of a ring.
 * Writes to a plain buffer are kept in the order of tasks; a ring has them by row, with who read it.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "waits_writes.h"

#define RECENT 8 /* Tasks that were added last are not added again. */

typedef struct {
    int64_t lap;
    Writes made;
    Numbers readers; /* Lap, chain and task of each. */
} Row;

typedef enum { UNSEEN, PLAIN, SHIFTED, RESHAPED, LAP } Kind;

typedef struct {
    Kind kind;
    Py_ssize_t root;   /* The buffer that it lies in, or the ring. */
    int axis;          /* That of the rows of a lap. */
    int64_t number;    /* Of a lap. */
    int64_t *steps;    /* From places in this buffer to those in its root. */
    Writes written;    /* To a plain buffer. */
    Row *rows;         /* Of a ring. */
    size_t n_rows;
} Place;

typedef struct {
    PyObject_HEAD
    PyObject *buffers;
    Place **places;
    size_t n_places;
    Numbers found;
    Numbers stamps; /* By chain, the question for which it was last seen. */
    int64_t question;
} Waits;

static PyObject *name_view, *name_buffer, *name_origin, *name_box;

static Place *place_at(Waits *waits, Py_ssize_t buffer)
{
    if (buffer < 0) {
        PyErr_SetString(PyExc_IndexError, "buffers are counted from 0");
        return NULL;
    }
    size_t number = (size_t)buffer;
    if (number >= waits->n_places) {
        size_t n = 2 * number + 64;
        Place **places = realloc(waits->places, n * sizeof(Place *));
        if (!places) return (Place *)PyErr_NoMemory();
        memset(places + waits->n_places, 0, (n - waits->n_places) * sizeof(Place *));
        waits->places = places;
        waits->n_places = n;
    }
    if (!waits->places[number]) waits->places[number] = calloc(1, sizeof(Place));
    if (!waits->places[number]) PyErr_NoMemory();
    return waits->places[number];
}

/* Steps from places in a buffer to those in its root: from `starts` on if there are any. */
static int read_steps(Place *place, PyObject *steps, const int64_t *starts)
{
    Py_ssize_t n = PyTuple_GET_SIZE(steps);
    free(place->steps);
    place->steps = malloc((size_t)(n + 1) * sizeof(int64_t));
    if (!place->steps) {
        PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        place->steps[i] =
            PyLong_AsLongLong(PyTuple_GET_ITEM(steps, i)) - (starts ? starts[i] : 0);
    return !PyErr_Occurred();
}

/* How a buffer lies in its root: by how much its first element is ahead there. */
static int read_view(Place *place, PyObject *view, PyObject *buffer)
{
    PyObject *root = PyObject_GetAttr(view, name_buffer);
    PyObject *origin = root ? PyObject_GetAttr(view, name_origin) : NULL;
    PyObject *object = origin ? PyObject_GetAttr(buffer, name_box) : NULL;
    Box box;
    int good = object && read_box(object, &box);
    if (good && origin != Py_None && PyTuple_GET_SIZE(origin) != box.n_axes) {
        PyErr_SetString(PyExc_ValueError, "an origin has as many axes as its box");
        good = 0;
    }
    if (good && origin != Py_None) good = read_steps(place, origin, box.start);
    if (good) {
        place->root = PyLong_AsSsize_t(root);
        place->kind = origin == Py_None ? RESHAPED : SHIFTED;
    }
    Py_XDECREF(root);
    Py_XDECREF(origin);
    Py_XDECREF(object);
    return good && !PyErr_Occurred();
}

static Place *seen(Waits *waits, Py_ssize_t number)
{
    Place *place = place_at(waits, number);
    if (!place || place->kind != UNSEEN) return place;
    PyObject *buffer = PyList_GetItem(waits->buffers, number);
    PyObject *view = buffer ? PyObject_GetAttr(buffer, name_view) : NULL;
    int good = view != NULL;
    if (view == Py_None)
        place->kind = PLAIN;
    else if (view)
        good = read_view(place, view, buffer);
    Py_XDECREF(view);
    return good ? place : NULL;
}

/* Where an access lies in the end: a plain buffer or a lap, and the box there. */
static Place *read_access(Waits *waits, PyObject *access, Box *box)
{
    if (!PyTuple_Check(access) || PyTuple_GET_SIZE(access) != 2) {
        PyErr_SetString(PyExc_TypeError, "an access is a buffer and a box");
        return NULL;
    }
    Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GET_ITEM(access, 0));
    if (number == -1 && PyErr_Occurred()) return NULL;
    Place *place = seen(waits, number);
    if (!place || !read_box(PyTuple_GET_ITEM(access, 1), box)) return NULL;
    if (place->kind == PLAIN || place->kind == LAP) return place;
    box->is_anywhere = place->kind == RESHAPED;
    for (int axis = 0; !box->is_anywhere && axis < box->n_axes; axis++) {
        box->start[axis] += place->steps[axis];
        box->stop[axis] += place->steps[axis];
    }
    return place_at(waits, place->root);
}

/* The rows of a ring that a box takes, and the box without their axis. */
static Row *rows_of(Waits *waits, const Place *lap, Box *box, size_t *n)
{
    Place *ring = place_at(waits, lap->root);
    if (!ring) return NULL;
    int64_t first = box->start[lap->axis] + lap->steps[lap->axis];
    int64_t behind = box->stop[lap->axis] + lap->steps[lap->axis];
    if (first < 0 || behind < first) {
        PyErr_SetString(PyExc_ValueError, "a lap has no such rows");
        return NULL;
    }
    if ((size_t)behind > ring->n_rows) {
        Row *rows = realloc(ring->rows, (size_t)behind * sizeof(Row));
        if (!rows) return (Row *)PyErr_NoMemory();
        memset(rows + ring->n_rows, 0, ((size_t)behind - ring->n_rows) * sizeof(Row));
        ring->rows = rows;
        ring->n_rows = (size_t)behind;
    }
    int left = 0;
    for (int axis = 0; axis < box->n_axes; axis++)
        if (axis != lap->axis) {
            box->start[left] = box->start[axis] + lap->steps[axis];
            box->stop[left++] = box->stop[axis] + lap->steps[axis];
        }
    box->n_axes = left;
    *n = (size_t)(behind - first);
    return ring->rows + first;
}

/* Whether a chain is met for the first time since the question was asked. */
static int is_new_chain(Waits *waits, int64_t chain)
{
    Numbers *stamps = &waits->stamps;
    size_t number = (size_t)chain;
    if (number >= stamps->n) {
        size_t more = number + 1 - stamps->n;
        if (!make_room(stamps, more)) return -1;
        memset(stamps->items + stamps->n, 0, more * sizeof(int64_t));
        stamps->n += more;
    }
    if (stamps->items[number] == waits->question) return 0;
    stamps->items[number] = waits->question;
    return 1;
}

/* The last task of every chain that wrote to a box. */
static int find_last(Waits *waits, const Writes *writes, const Box *box)
{
    if (writes->n == 1) {
        const int64_t *only = entry_of(writes, 0);
        return !is_met(box, only) || push(&waits->found, only[0]);
    }
    waits->question++;
    size_t chains = 0;
    for (size_t number = writes->n; number-- > 0 && chains < writes->n_chains;) {
        const int64_t *entry = entry_of(writes, number);
        if (!is_met(box, entry)) continue;
        int is_new = is_new_chain(waits, entry[1]);
        if (is_new < 0 || (is_new && !push(&waits->found, entry[0]))) return 0;
        chains += (size_t)is_new;
    }
    return 1;
}

/* Add a task unless it was added just now: rows next to each other have mostly the same tasks. */
static int push_once(Numbers *found, int64_t task)
{
    size_t behind = found->n < RECENT ? 0 : found->n - RECENT;
    for (size_t at = found->n; at > behind; at--)
        if (found->items[at - 1] == task) return 1;
    return push(found, task);
}

static int find_makers(Waits *waits, const Row *rows, size_t n, const Box *box)
{
    for (size_t at = 0; at < n; at++)
        for (size_t number = 0; number < rows[at].made.n; number++) {
            const int64_t *entry = entry_of(&rows[at].made, number);
            if (is_met(box, entry) && !push_once(&waits->found, entry[0])) return 0;
        }
    return 1;
}

/* Tasks that made or read what a write takes the place of; readers of long ago are forgotten. */
static int find_replaced(Waits *waits, Row *row, int64_t lap)
{
    for (size_t number = 0; row->lap < lap && number < row->made.n; number++)
        if (!push_once(&waits->found, entry_of(&row->made, number)[0])) return 0;
    size_t left = 0;
    int64_t *readers = row->readers.items;
    for (size_t at = 0; at < row->readers.n; at += 3) {
        if (readers[at] < lap && !push_once(&waits->found, readers[at + 2])) return 0;
        if (readers[at] >= lap - 1) {
            memmove(readers + left, readers + at, 3 * sizeof(int64_t));
            left += 3;
        }
    }
    row->readers.n = left;
    return 1;
}

static int note_reader(Row *row, int64_t lap, int64_t chain, int64_t task)
{
    Numbers *readers = &row->readers;
    for (size_t at = readers->n; at > 0; at -= 3) {
        int64_t *reader = readers->items + at - 3;
        if (reader[0] == lap && reader[1] == chain) {
            reader[2] = task;
            return 1;
        }
    }
    return push(readers, lap) && push(readers, chain) && push(readers, task);
}

static int before_read(Waits *waits, PyObject *access)
{
    Box box;
    size_t n;
    Place *place = read_access(waits, access, &box);
    if (!place || box.is_empty) return place != NULL;
    if (place->kind != LAP) return find_last(waits, &place->written, &box);
    Row *rows = rows_of(waits, place, &box, &n);
    return rows && find_makers(waits, rows, n, &box);
}

static int before_write(Waits *waits, PyObject *access)
{
    Box box;
    size_t n;
    Place *place = read_access(waits, access, &box);
    if (!place || place->kind != LAP || box.is_empty) return place != NULL;
    Row *rows = rows_of(waits, place, &box, &n);
    for (size_t at = 0; rows && at < n; at++)
        if (!find_replaced(waits, rows + at, place->number)) return 0;
    return rows != NULL;
}

static int note_read(Waits *waits, PyObject *access, int64_t chain, int64_t task)
{
    Box box;
    size_t n;
    Place *place = read_access(waits, access, &box);
    if (!place || place->kind != LAP || box.is_empty) return place != NULL;
    Row *rows = rows_of(waits, place, &box, &n);
    for (size_t at = 0; rows && at < n; at++)
        if (!note_reader(rows + at, place->number, chain, task)) return 0;
    return rows != NULL;
}

static int note_write(Waits *waits, PyObject *access, int64_t chain, int64_t task)
{
    Box box;
    size_t n;
    Place *place = read_access(waits, access, &box);
    if (!place || box.is_empty) return place != NULL;
    if (place->kind != LAP) return add_write(&place->written, &box, chain, task);
    Row *rows = rows_of(waits, place, &box, &n);
    for (size_t at = 0; rows && at < n; at++) {
        if (rows[at].lap < place->number) {
            rows[at].lap = place->number;
            clear_writes(&rows[at].made);
        }
        if (!add_write(&rows[at].made, &box, chain, task)) return 0;
    }
    return rows != NULL;
}

static int ascending(const void *one, const void *other)
{
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

/* What was found, in ascending order and without repetitions. */
static PyObject *answer(Numbers *found)
{
    if (found->n > 1) qsort(found->items, found->n, sizeof(int64_t), ascending);
    size_t left = 0;
    for (size_t at = 0; at < found->n; at++)
        if (!left || found->items[left - 1] != found->items[at])
            found->items[left++] = found->items[at];
    PyObject *tuple = PyTuple_New((Py_ssize_t)left);
    for (size_t at = 0; tuple && at < left; at++) {
        PyObject *task = PyLong_FromLongLong(found->items[at]);
        if (!task) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, (Py_ssize_t)at, task);
    }
    return tuple;
}

/* before(reads, writes, known): the tasks that the next one waits for. */
static PyObject *waits_before(Waits *self, PyObject *const *args, Py_ssize_t n_args)
{
    if (n_args != 3) {
        PyErr_SetString(PyExc_TypeError, "before takes 3 arguments");
        return NULL;
    }
    PyObject *lists[3] = {NULL, NULL, NULL};
    int good = 1;
    self->found.n = 0;
    for (int i = 0; good && i < 3; i++)
        good = (lists[i] = PySequence_Fast(args[i], "a sequence is expected")) != NULL;
    for (Py_ssize_t i = 0; good && i < PySequence_Fast_GET_SIZE(lists[2]); i++) {
        int64_t task = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(lists[2], i));
        good = !(task == -1 && PyErr_Occurred()) && push(&self->found, task);
    }
    for (Py_ssize_t i = 0; good && i < PySequence_Fast_GET_SIZE(lists[0]); i++)
        good = before_read(self, PySequence_Fast_GET_ITEM(lists[0], i));
    for (Py_ssize_t i = 0; good && i < PySequence_Fast_GET_SIZE(lists[1]); i++)
        good = before_write(self, PySequence_Fast_GET_ITEM(lists[1], i));
    for (int i = 0; i < 3; i++) Py_XDECREF(lists[i]);
    return good ? answer(&self->found) : NULL;
}

/* note(reads, writes, chain, task): a task of a chain reads and writes. */
static PyObject *waits_note(Waits *self, PyObject *const *args, Py_ssize_t n_args)
{
    if (n_args != 4) {
        PyErr_SetString(PyExc_TypeError, "note takes 4 arguments");
        return NULL;
    }
    int64_t chain = PyLong_AsLongLong(args[2]), task = PyLong_AsLongLong(args[3]);
    if (PyErr_Occurred()) return NULL;
    if (chain < 0) {
        PyErr_SetString(PyExc_ValueError, "chains are counted from 0");
        return NULL;
    }
    PyObject *reads = PySequence_Fast(args[0], "a sequence is expected");
    PyObject *writes = reads ? PySequence_Fast(args[1], "a sequence is expected") : NULL;
    int good = writes != NULL;
    for (Py_ssize_t i = 0; good && i < PySequence_Fast_GET_SIZE(reads); i++)
        good = note_read(self, PySequence_Fast_GET_ITEM(reads, i), chain, task);
    for (Py_ssize_t i = 0; good && i < PySequence_Fast_GET_SIZE(writes); i++)
        good = note_write(self, PySequence_Fast_GET_ITEM(writes, i), chain, task);
    Py_XDECREF(reads);
    Py_XDECREF(writes);
    return good ? Py_NewRef(Py_None) : NULL;
}

/* lap(buffer, ring, axis, steps, number): a buffer is a lap of a ring. */
static PyObject *waits_lap(Waits *self, PyObject *args)
{
    Py_ssize_t buffer, ring;
    int axis;
    long long number;
    PyObject *steps;
    if (!PyArg_ParseTuple(args, "nniO!L", &buffer, &ring, &axis, &PyTuple_Type, &steps, &number))
        return NULL;
    Place *place = place_at(self, buffer);
    if (!place) return NULL;
    if (PyTuple_GET_SIZE(steps) > AXES || axis < 0 || axis >= PyTuple_GET_SIZE(steps)) {
        PyErr_SetString(PyExc_ValueError, "a lap has at most 16 axes, its own among them");
        return NULL;
    }
    if (!read_steps(place, steps, NULL)) return NULL;
    place->kind = LAP;
    place->root = ring;
    place->axis = axis;
    place->number = number;
    return Py_NewRef(Py_None);
}

static int waits_init(Waits *self, PyObject *args, PyObject *keywords)
{
    PyObject *buffers;
    if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &buffers)) return -1;
    Py_XSETREF(self->buffers, Py_NewRef(buffers));
    return 0;
}

static void free_place(Place *place)
{
    for (size_t row = 0; row < place->n_rows; row++) {
        free(place->rows[row].made.numbers.items);
        free(place->rows[row].readers.items);
    }
    free(place->rows);
    free(place->steps);
    free(place->written.numbers.items);
    free(place);
}

static void waits_free(Waits *self)
{
    for (size_t number = 0; number < self->n_places; number++)
        if (self->places[number]) free_place(self->places[number]);
    free(self->places);
    free(self->found.items);
    free(self->stamps.items);
    Py_XDECREF(self->buffers);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef waits_methods[] = {
    {"before", (PyCFunction)(void (*)(void))waits_before, METH_FASTCALL, "Whom a task waits for."},
    {"note", (PyCFunction)(void (*)(void))waits_note, METH_FASTCALL, "A task reads and writes."},
    {"lap", (PyCFunction)waits_lap, METH_VARARGS, "A buffer is a lap of a ring."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject waits_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tilewright.program._waits.Waits",
    .tp_basicsize = sizeof(Waits),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Who wrote and read what lies in buffers.",
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)waits_init,
    .tp_dealloc = (destructor)waits_free,
    .tp_methods = waits_methods,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_waits", .m_size = -1,
};

PyMODINIT_FUNC PyInit__waits(void)
{
    name_view = PyUnicode_InternFromString("view");
    name_buffer = PyUnicode_InternFromString("buffer");
    name_origin = PyUnicode_InternFromString("origin");
    name_box = PyUnicode_InternFromString("box");
    if (!name_view || !name_buffer || !name_origin || !name_box) return NULL;
    if (PyType_Ready(&waits_type) < 0) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddObjectRef(module, "Waits", (PyObject *)&waits_type) < 0)
        Py_CLEAR(module);
    return module;
}
