/* The times of order_times.py, compiled: the same steps in the same order, so the same times. Read
   that one first. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t i64;

enum {
    ENGINE, CYCLES, SETUP, PORTS_AT, PORTS, AFTER_AT, AFTER, TOUCHED_AT, TOUCHED,
    PAD, FIRST, LAST, BEGIN, END, LANES, N_INPUTS
};

/* Segments of a scratchpad: from which address on, and when its last user was done. */
typedef struct { i64 *starts, *times, count; } Pad;

typedef struct {
    const i64 *in[N_INPUTS];
    i64 n_tasks, n_roots, n_engines, n_pads;
    i64 *start, *instance;
    i64 *ends, *ready, *done, *lanes_at, *lanes, *sorted;
    Pad *pads;
} Run;

/* The first segment that starts at an address or behind it. */
static i64 segment_from(const Pad *pad, i64 address) {
    i64 low = 0, high = pad->count;
    while (low < high) {
        i64 middle = (low + high) / 2;
        if (pad->starts[middle] < address) low = middle + 1;
        else high = middle;
    }
    return low;
}

static i64 free_from(const Pad *pad, i64 begin, i64 end) {
    i64 first = segment_from(pad, begin + 1) - 1, last = segment_from(pad, end), latest = 0;
    for (i64 k = first; k < last; k++)
        if (pad->times[k] > latest) latest = pad->times[k];
    return latest;
}

static void leave(Pad *pad, i64 begin, i64 end, i64 time) {
    i64 first = segment_from(pad, begin), last = segment_from(pad, end);
    i64 behind = pad->times[last - 1], kept = pad->count - last;
    int splits = last == pad->count || pad->starts[last] != end;
    i64 next = first + 1 + splits;
    memmove(pad->starts + next, pad->starts + last, kept * sizeof(i64));
    memmove(pad->times + next, pad->times + last, kept * sizeof(i64));
    pad->starts[first] = begin;
    pad->times[first] = time;
    if (splits) {
        pad->starts[first + 1] = end;
        pad->times[first + 1] = behind;
    }
    pad->count = next + kept;
}

static i64 earliest(const Run *r, i64 engine) {
    i64 best = r->lanes_at[engine];
    for (i64 k = best + 1; k < r->lanes_at[engine + 1]; k++)
        if (r->lanes[k] < r->lanes[best]) best = k;
    return best;
}

/* When every port of a task has a free lane for each time that it is named, if it has more than
   one; -1 if it has not so many. */
static i64 lanes_free(const Run *r, i64 task) {
    i64 begin = r->in[PORTS_AT][task], end = r->in[PORTS_AT][task + 1], latest = 0;
    for (i64 p = begin; p < end; p++) {
        i64 port = r->in[PORTS][p], named = 0, count = 0;
        for (i64 q = begin; q < end; q++) named += r->in[PORTS][q] == port;
        for (i64 k = r->lanes_at[port]; k < r->lanes_at[port + 1]; k++) {
            i64 at = count++;
            for (; at > 0 && r->sorted[at - 1] > r->lanes[k]; at--) r->sorted[at] = r->sorted[at - 1];
            r->sorted[at] = r->lanes[k];
        }
        if (count == 1) named = 1;
        if (named > count) return -1;
        if (r->sorted[named - 1] > latest) latest = r->sorted[named - 1];
    }
    return latest;
}

#define EACH(item, list, of) \
    for (i64 q = r->in[list##_AT][of], item; \
         q < r->in[list##_AT][of + 1] && (item = r->in[list][q], 1); q++)

static int run_task(Run *r, i64 task) {
    i64 start = 0, end, lane;
    EACH(root, TOUCHED, task) {
        if (r->in[FIRST][root] == task)
            r->ready[root] =
                free_from(&r->pads[r->in[PAD][root]], r->in[BEGIN][root], r->in[END][root]);
        if (r->ready[root] > start) start = r->ready[root];
    }
    EACH(before, AFTER, task)
        if (r->ends[before] > start) start = r->ends[before];
    if (r->in[PORTS_AT][task] < r->in[PORTS_AT][task + 1]) {
        i64 time = lanes_free(r, task);
        if (time < 0) return 0;
        if (time - r->in[SETUP][task] > start) start = time - r->in[SETUP][task];
    }
    lane = earliest(r, r->in[ENGINE][task]);
    if (r->lanes[lane] > start) start = r->lanes[lane];
    end = start + r->in[CYCLES][task];
    r->lanes[lane] = end;
    EACH(port, PORTS, task) r->lanes[earliest(r, port)] = end;
    EACH(root, TOUCHED, task) {
        if (end > r->done[root]) r->done[root] = end;
        if (r->in[LAST][root] == task)
            leave(&r->pads[r->in[PAD][root]], r->in[BEGIN][root], r->in[END][root], r->done[root]);
    }
    r->start[task] = start;
    r->ends[task] = end;
    r->instance[task] = lane - r->lanes_at[r->in[ENGINE][task]];
    return 1;
}

static int prepare(Run *r) {
    i64 n_lanes = 0;
    int fine = 1;
    r->lanes_at = calloc(r->n_engines + 1, sizeof(i64));
    r->pads = calloc(r->n_pads + 1, sizeof(Pad));
    if (!r->lanes_at || !r->pads) return 0;
    for (i64 e = 0; e < r->n_engines; e++) {
        n_lanes += r->in[LANES][e];
        r->lanes_at[e + 1] = n_lanes;
    }
    r->lanes = calloc(n_lanes + 1, sizeof(i64));
    r->sorted = calloc(n_lanes + 1, sizeof(i64));
    r->ends = calloc(r->n_tasks + 1, sizeof(i64));
    r->ready = calloc(r->n_roots + 1, sizeof(i64));
    r->done = calloc(r->n_roots + 1, sizeof(i64));
    /* Who leaves adds at most two segments to the first. */
    for (i64 p = 0; p < r->n_pads; p++) {
        r->pads[p] = (Pad){calloc(2 * r->n_roots + 1, sizeof(i64)),
                           calloc(2 * r->n_roots + 1, sizeof(i64)), 1};
        fine = fine && r->pads[p].starts && r->pads[p].times;
    }
    return fine && r->lanes && r->sorted && r->ends && r->ready && r->done;
}

static void release(Run *r) {
    for (i64 p = 0; r->pads && p < r->n_pads; p++) {
        free(r->pads[p].starts);
        free(r->pads[p].times);
    }
    free(r->pads);
    free(r->lanes_at);
    free(r->lanes);
    free(r->sorted);
    free(r->ends);
    free(r->ready);
    free(r->done);
}

static i64 length_of(const Py_buffer *numbers) {
    return numbers->len / (Py_ssize_t)sizeof(i64);
}

static PyObject *times(PyObject *self, PyObject *args) {
    Py_buffer in[N_INPUTS], start, instance;
    Run r;
    long long n_pads;
    int has_memory, has_lanes = 1;
    (void)self;
    if (!PyArg_ParseTuple(args, "(y*y*y*y*y*y*y*y*y*y*y*y*y*y*y*)Lw*w*", &in[0], &in[1], &in[2],
                          &in[3], &in[4], &in[5], &in[6], &in[7], &in[8], &in[9], &in[10], &in[11],
                          &in[12], &in[13], &in[14], &n_pads, &start, &instance))
        return NULL;
    memset(&r, 0, sizeof r);
    for (int a = 0; a < N_INPUTS; a++) r.in[a] = in[a].buf;
    r.n_tasks = length_of(&start);
    r.n_roots = length_of(&in[PAD]);
    r.n_engines = length_of(&in[LANES]);
    r.n_pads = n_pads;
    r.start = start.buf;
    r.instance = instance.buf;
    Py_BEGIN_ALLOW_THREADS
    has_memory = prepare(&r);
    for (i64 task = 0; has_memory && has_lanes && task < r.n_tasks; task++)
        has_lanes = run_task(&r, task);
    release(&r);
    Py_END_ALLOW_THREADS
    for (int a = 0; a < N_INPUTS; a++) PyBuffer_Release(&in[a]);
    PyBuffer_Release(&start);
    PyBuffer_Release(&instance);
    if (!has_memory) return PyErr_NoMemory();
    if (!has_lanes) {
        PyErr_SetString(PyExc_IndexError, "a task names a port more often than that has lanes");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"times", times, METH_VARARGS, "The compiled twin of order_times._Clock."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_order_times", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__order_times(void) { return PyModule_Create(&module); }
