/* The linear scan and the first fit of fit.py and the pairs of meetings.py, compiled: the same
   decisions in the same order, so the same addresses. Read those files first. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t i64;

typedef struct { i64 begin, end; } Range;

static i64 aligned(i64 address, i64 alignment) {
    i64 over = address % alignment;
    return over ? address + alignment - over : address;
}

static i64 length_of(const Py_buffer *numbers) {
    return numbers->len / (Py_ssize_t)sizeof(i64);
}

/* Linear scan */

typedef struct { Range *gaps; i64 count; } FreeList;

/* The first gap that ends above an address. */
static i64 gap_above(const FreeList *list, i64 address) {
    i64 low = 0, high = list->count;
    while (low < high) {
        i64 middle = (low + high) / 2;
        if (list->gaps[middle].end > address) high = middle;
        else low = middle + 1;
    }
    return low;
}

static void insert_gap(FreeList *list, i64 at, Range gap) {
    memmove(list->gaps + at + 1, list->gaps + at, (list->count - at) * sizeof(Range));
    list->gaps[at] = gap;
    list->count++;
}

static void remove_gap(FreeList *list, i64 at) {
    list->count--;
    memmove(list->gaps + at, list->gaps + at + 1, (list->count - at) * sizeof(Range));
}

static void release(FreeList *list, i64 begin, i64 end) {
    i64 at = gap_above(list, begin);
    int joins_above = at < list->count && list->gaps[at].begin == end;
    int joins_below = at > 0 && list->gaps[at - 1].end == begin;
    if (joins_below && joins_above) {
        list->gaps[at - 1].end = list->gaps[at].end;
        remove_gap(list, at);
    } else if (joins_below) list->gaps[at - 1].end = end;
    else if (joins_above) list->gaps[at].begin = begin;
    else insert_gap(list, at, (Range){begin, end});
}

/* Where a buffer lies in a gap, at its bottom or its top; -1 if it does not fit. */
static i64 address_in(Range gap, i64 size, i64 alignment, int from_top) {
    i64 address;
    if (gap.end - gap.begin < size) return -1;
    if (from_top) {
        address = (gap.end - size) / alignment * alignment;
        return address >= gap.begin ? address : -1;
    }
    address = aligned(gap.begin, alignment);
    return address + size <= gap.end ? address : -1;
}

/* Take a range from the smallest gap that holds it, from the last at that end only if no other
   does; its address, or -1. */
static i64 allocate(FreeList *list, i64 size, i64 alignment, int from_top) {
    i64 best = -1, best_size = 0, address, last_resort = from_top ? 0 : list->count - 1;
    if (!list->count) return -1;
    for (i64 at = 0; at < list->count; at++) {
        i64 gap_size = list->gaps[at].end - list->gaps[at].begin;
        int is_better = best < 0 || gap_size < best_size || (from_top && gap_size == best_size);
        if (at == last_resort || gap_size < size || !is_better) continue;
        if (address_in(list->gaps[at], size, alignment, from_top) < 0) continue;
        best = at;
        best_size = gap_size;
    }
    if (best < 0) best = last_resort;
    Range gap = list->gaps[best];
    address = address_in(gap, size, alignment, from_top);
    if (address < 0) return -1;
    if (gap.begin < address) {
        list->gaps[best].end = address;
        if (address + size < gap.end) insert_gap(list, best + 1, (Range){address + size, gap.end});
    } else if (address + size < gap.end) list->gaps[best].begin = address + size;
    else remove_gap(list, best);
    return address;
}

enum { START, END, SIZE, ALIGNMENT, BY_START, BY_END, FROM_TOP, N_SCANNED };

static int scan_all(const i64 **in, i64 n, i64 capacity, FreeList *list, i64 *address) {
    i64 ended = 0;
    if (capacity > 0) insert_gap(list, 0, (Range){0, capacity});
    for (i64 k = 0; k < n; k++) {
        i64 j = in[BY_START][k];
        for (; in[END][in[BY_END][ended]] <= in[START][j]; ended++) {
            i64 gone = in[BY_END][ended];
            release(list, address[gone], address[gone] + in[SIZE][gone]);
        }
        address[j] = allocate(list, in[SIZE][j], in[ALIGNMENT][j], (int)in[FROM_TOP][j]);
        if (address[j] < 0) return 0;
    }
    return 1;
}

static PyObject *scan(PyObject *self, PyObject *args) {
    Py_buffer given[N_SCANNED], out;
    const i64 *in[N_SCANNED];
    long long capacity;
    int fits = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*y*w*L", &given[0], &given[1], &given[2], &given[3],
                          &given[4], &given[5], &given[6], &out, &capacity))
        return NULL;
    for (int a = 0; a < N_SCANNED; a++) in[a] = given[a].buf;
    i64 n = length_of(&given[SIZE]);
    /* Every buffer that is there adds at most one gap to the first. */
    FreeList list = {malloc((n + 2) * sizeof(Range)), 0};
    if (list.gaps) {
        Py_BEGIN_ALLOW_THREADS
        fits = scan_all(in, n, capacity, &list, out.buf);
        Py_END_ALLOW_THREADS
    }
    for (int a = 0; a < N_SCANNED; a++) PyBuffer_Release(&given[a]);
    PyBuffer_Release(&out);
    if (!list.gaps) return PyErr_NoMemory();
    free(list.gaps);
    return PyBool_FromLong(fits);
}

/* First fit */

static void sort_by_begin(Range *ranges, i64 count) {
    static const i64 steps[] = {701, 301, 132, 57, 23, 10, 4, 1};
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++)
        for (i64 i = steps[s]; i < count; i++) {
            Range moved = ranges[i];
            i64 at = i;
            for (; at >= steps[s] && ranges[at - steps[s]].begin > moved.begin; at -= steps[s])
                ranges[at] = ranges[at - steps[s]];
            ranges[at] = moved;
        }
}

static int is_free(const Range *taken, i64 count, i64 begin, i64 end) {
    for (i64 k = 0; k < count; k++)
        if (begin < taken[k].end && taken[k].begin < end) return 0;
    return 1;
}

static i64 lowest_free(Range *taken, i64 count, i64 size, i64 alignment) {
    i64 address = 0;
    sort_by_begin(taken, count);
    for (i64 k = 0; k < count && taken[k].begin < address + size; k++)
        if (taken[k].end > address) address = aligned(taken[k].end, alignment);
    return address;
}

enum { SIZES, ALIGNMENTS, HINTS, ORDER, AT, OTHERS, N_FITTED };

static void fit_all(const i64 **in, i64 n_order, i64 *address, Range *taken) {
    for (i64 k = 0; k < n_order; k++) {
        i64 j = in[ORDER][k], count = 0, hint = in[HINTS][j], size = in[SIZES][j];
        if (address[j] != INT64_MIN) continue;
        for (i64 q = in[AT][j]; q < in[AT][j + 1]; q++) {
            i64 other = in[OTHERS][q];
            if (address[other] != INT64_MIN)
                taken[count++] = (Range){address[other], address[other] + in[SIZES][other]};
        }
        if (hint != INT64_MIN && hint % in[ALIGNMENTS][j] == 0 &&
            is_free(taken, count, hint, hint + size))
            address[j] = hint;
        else address[j] = lowest_free(taken, count, size, in[ALIGNMENTS][j]);
    }
}

static PyObject *first_fit(PyObject *self, PyObject *args) {
    Py_buffer given[N_FITTED], out;
    const i64 *in[N_FITTED];
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*w*", &given[0], &given[1], &given[2], &given[3],
                          &given[4], &given[5], &out))
        return NULL;
    for (int a = 0; a < N_FITTED; a++) in[a] = given[a].buf;
    Range *taken = malloc((length_of(&given[SIZES]) + 1) * sizeof(Range));
    if (taken) {
        Py_BEGIN_ALLOW_THREADS
        fit_all(in, length_of(&given[ORDER]), out.buf, taken);
        Py_END_ALLOW_THREADS
    }
    for (int a = 0; a < N_FITTED; a++) PyBuffer_Release(&given[a]);
    PyBuffer_Release(&out);
    if (!taken) return PyErr_NoMemory();
    free(taken);
    Py_RETURN_NONE;
}

/* Who meets whom */

enum { STARTS, ENDS, BY_STARTS, BY_ENDS, N_MET };

/* Those alive are linked in the order of their starts, from entry n on. */
static void meet_all(const i64 **in, i64 n, i64 *at, i64 *others, i64 *links) {
    i64 *next = links, *previous = links + n + 1, *filled = links + 2 * (n + 1);
    for (int is_second_pass = 0; is_second_pass < 2; is_second_pass++) {
        i64 ended = 0;
        next[n] = previous[n] = n;
        for (i64 j = 0; j < n; j++) filled[j] = is_second_pass ? at[j] : 0;
        for (i64 k = 0; k < n; k++) {
            i64 j = in[BY_STARTS][k];
            for (; in[ENDS][in[BY_ENDS][ended]] <= in[STARTS][j]; ended++) {
                i64 gone = in[BY_ENDS][ended];
                next[previous[gone]] = next[gone];
                previous[next[gone]] = previous[gone];
            }
            for (i64 other = next[n]; other != n; other = next[other]) {
                if (is_second_pass) {
                    others[filled[j]] = other;
                    others[filled[other]] = j;
                }
                filled[j]++;
                filled[other]++;
            }
            next[previous[n]] = j;
            previous[j] = previous[n];
            previous[n] = j;
            next[j] = n;
        }
        if (!is_second_pass) {
            at[0] = 0;
            for (i64 j = 0; j < n; j++) at[j + 1] = at[j] + filled[j];
        }
    }
}

static PyObject *meetings(PyObject *self, PyObject *args) {
    Py_buffer given[N_MET], at, others;
    const i64 *in[N_MET];
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*w*", &given[0], &given[1], &given[2], &given[3], &at,
                          &others))
        return NULL;
    for (int a = 0; a < N_MET; a++) in[a] = given[a].buf;
    i64 n = length_of(&given[STARTS]);
    i64 *links = malloc(3 * (n + 1) * sizeof(i64));
    if (links) {
        Py_BEGIN_ALLOW_THREADS
        meet_all(in, n, at.buf, others.buf, links);
        Py_END_ALLOW_THREADS
    }
    for (int a = 0; a < N_MET; a++) PyBuffer_Release(&given[a]);
    PyBuffer_Release(&at);
    PyBuffer_Release(&others);
    if (!links) return PyErr_NoMemory();
    free(links);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"scan", scan, METH_VARARGS, "The compiled twin of fit.scan."},
    {"first_fit", first_fit, METH_VARARGS, "The compiled twin of fit.first_fit."},
    {"meetings", meetings, METH_VARARGS, "The compiled twin of meetings.meetings_of."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_fit", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__fit(void) { return PyModule_Create(&module); }
