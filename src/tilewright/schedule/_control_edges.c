/* The walk of control_edges.py with the clocks of clocks.py and the segments of place_edges.py,
   compiled: the same steps in the same order, so the same edges. Read those files first. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t i64;

#include "control_edges_places.h"

/* By turn: the queue, the start and the end. By turn too: where its list of turns that it waits for
   begins. Two lists of places for each turn: what it reads, what it writes. By place: the space, the
   addresses, the holder, and where its box begins, or ends, among the corners; a place that is all of
   its holder has no box. */
enum {
    QUEUE, START, END, AFTER_AT, AFTER, ROWS_AT, ROWS,
    SPACE, BEGIN, STOP, HOLDER, HAS_BOX, BOX_AT, CORNERS, N_INPUTS
};

/* Turns of one queue, ascending, and the places whose boxes they used. */
typedef struct { i64 *turns, *places, count, room; } Log;

typedef struct {
    i64 holder, n_uses, hull_axes;
    int has_one_use, has_hull;
    i64 *before, *hull;
    Log *logs;
} Segment;

/* The segments of an address space, and where each of them starts. */
typedef struct { i64 *starts; Segment *segments; i64 count, room; } Space;

typedef struct { i64 *numbers, count, room; } List;

typedef struct {
    const i64 *in[N_INPUTS];
    i64 n_turns, n_queues, n_spaces, n_axes;
    Space *spaces;
    i64 *clocks, *newest;
    List met, edges;
    jmp_buf no_memory;
} State;

static void *more(State *s, void *old, i64 count, size_t size) {
    void *made = realloc(old, (size_t)(count > 0 ? count : 1) * size);
    if (!made) longjmp(s->no_memory, 1);
    return made;
}

static void push(State *s, List *list, i64 number) {
    if (list->count == list->room) {
        i64 room = 2 * list->room + 64;
        list->numbers = more(s, list->numbers, room, sizeof(i64));
        list->room = room;
    }
    list->numbers[list->count++] = number;
}

/* Boxes */

static i64 axes_of(const State *s, i64 place) {
    return (s->in[BOX_AT][place + 1] - s->in[BOX_AT][place]) / 2;
}

static const i64 *box_of(const State *s, i64 place) {
    return s->in[CORNERS] + s->in[BOX_AT][place];
}

static int is_same_box(const State *s, i64 one, i64 other) {
    i64 axes = axes_of(s, one);
    if (!s->in[HAS_BOX][one] || !s->in[HAS_BOX][other])
        return s->in[HAS_BOX][one] == s->in[HAS_BOX][other];
    return axes == axes_of(s, other) &&
           !memcmp(box_of(s, one), box_of(s, other), 2 * axes * sizeof(i64));
}

static int boxes_meet(const State *s, i64 one, i64 other) {
    const i64 *a = box_of(s, one), *b = box_of(s, other);
    i64 axes = axes_of(s, one);
    if (!s->in[HAS_BOX][one] || !s->in[HAS_BOX][other]) return 1;
    for (i64 k = 0; k < 2 * axes; k += 2)
        if (a[k] >= b[k + 1] || b[k] >= a[k + 1]) return 0;
    return 1;
}

static int covers_hull(const State *s, i64 place, const Segment *segment) {
    const i64 *box = box_of(s, place);
    if (!s->in[HAS_BOX][place]) return 1;
    if (!segment->has_hull) return 0;
    for (i64 k = 0; k < 2 * segment->hull_axes; k += 2)
        if (segment->hull[k] < box[k] || box[k + 1] < segment->hull[k + 1]) return 0;
    return 1;
}

static void set_hull(const State *s, Segment *segment, i64 place) {
    segment->has_hull = (int)s->in[HAS_BOX][place];
    segment->hull_axes = axes_of(s, place);
    memcpy(segment->hull, box_of(s, place), 2 * segment->hull_axes * sizeof(i64));
}

static void widen_hull(const State *s, Segment *segment, i64 place) {
    const i64 *box = box_of(s, place);
    if (!segment->has_hull || !s->in[HAS_BOX][place]) {
        segment->has_hull = 0;
        return;
    }
    for (i64 k = 0; k < 2 * segment->hull_axes; k += 2) {
        if (box[k] < segment->hull[k]) segment->hull[k] = box[k];
        if (box[k + 1] > segment->hull[k + 1]) segment->hull[k + 1] = box[k + 1];
    }
}

/* Segments: the logs of all queues that write, then of all that read. */

static Segment new_segment(State *s) {
    Segment made;
    memset(&made, 0, sizeof made);
    made.holder = -1;
    made.before = more(s, NULL, s->n_queues, sizeof(i64));
    made.hull = more(s, NULL, 2 * s->n_axes, sizeof(i64));
    made.logs = more(s, NULL, 2 * s->n_queues, sizeof(Log));
    for (i64 q = 0; q < s->n_queues; q++) made.before[q] = -1;
    memset(made.logs, 0, 2 * s->n_queues * sizeof(Log));
    return made;
}

static Segment copy_of(State *s, const Segment *old) {
    Segment twin = new_segment(s);
    twin.holder = old->holder;
    twin.n_uses = old->n_uses;
    twin.hull_axes = old->hull_axes;
    twin.has_one_use = old->has_one_use;
    twin.has_hull = old->has_hull;
    memcpy(twin.before, old->before, s->n_queues * sizeof(i64));
    memcpy(twin.hull, old->hull, 2 * s->n_axes * sizeof(i64));
    for (i64 q = 0; q < 2 * s->n_queues; q++) {
        i64 count = old->logs[q].count;
        if (!count) continue;
        twin.logs[q].turns = more(s, NULL, count, sizeof(i64));
        twin.logs[q].places = more(s, NULL, count, sizeof(i64));
        memcpy(twin.logs[q].turns, old->logs[q].turns, count * sizeof(i64));
        memcpy(twin.logs[q].places, old->logs[q].places, count * sizeof(i64));
        twin.logs[q].count = twin.logs[q].room = count;
    }
    return twin;
}

static void drop(const State *s, Segment *segment) {
    for (i64 q = 0; segment->logs && q < 2 * s->n_queues; q++) {
        free(segment->logs[q].turns);
        free(segment->logs[q].places);
    }
    free(segment->logs);
    free(segment->before);
    free(segment->hull);
}

static void forget_uses(const State *s, Segment *segment) {
    for (i64 q = 0; q < 2 * s->n_queues; q++) segment->logs[q].count = 0;
    segment->n_uses = 0;
}

static void give_to(const State *s, Segment *segment, i64 holder) {
    segment->holder = holder;
    if (!segment->n_uses) return;
    for (i64 q = 0; q < s->n_queues; q++) {
        const Log *writes = &segment->logs[q], *reads = &segment->logs[s->n_queues + q];
        i64 wrote = writes->count ? writes->turns[writes->count - 1] : -1;
        i64 read = reads->count ? reads->turns[reads->count - 1] : -1;
        segment->before[q] = wrote > read ? wrote : read;
    }
    forget_uses(s, segment);
}

static void find_waits(State *s, const Segment *segment, i64 place, int is_write, const i64 *known) {
    i64 n_logs = is_write ? 2 * s->n_queues : s->n_queues;
    for (i64 q = 0; q < s->n_queues; q++)
        if (segment->before[q] > known[q]) push(s, &s->met, segment->before[q]);
    for (i64 q = 0; q < n_logs; q++) {
        const Log *log = &segment->logs[q];
        i64 after = known[q % s->n_queues];
        for (i64 at = log->count - 1; at >= 0 && log->turns[at] > after; at--)
            if (boxes_meet(s, log->places[at], place)) {
                push(s, &s->met, log->turns[at]);
                break;
            }
    }
}

static int is_replaced(const State *s, const Segment *segment, i64 queue, i64 place, int is_write) {
    if (!is_write)
        for (i64 q = 0; q < 2 * s->n_queues; q++)
            if (q != s->n_queues + queue && segment->logs[q].count) return 0;
    return !segment->n_uses || covers_hull(s, place, segment);
}

static void note(State *s, Segment *segment, i64 turn, i64 place, int is_write) {
    i64 queue = s->in[QUEUE][turn];
    Log *log = &segment->logs[is_write ? queue : s->n_queues + queue];
    if (is_replaced(s, segment, queue, place, is_write)) {
        forget_uses(s, segment);
        set_hull(s, segment, place);
        segment->has_one_use = 1;
    } else {
        widen_hull(s, segment, place);
        segment->has_one_use = 0;
    }
    segment->n_uses = 1;
    if (log->count && is_same_box(s, log->places[log->count - 1], place)) {
        log->turns[log->count - 1] = turn;
        return;
    }
    if (log->count == log->room) {
        i64 room = 2 * log->room + 4;
        log->turns = more(s, log->turns, room, sizeof(i64));
        log->places = more(s, log->places, room, sizeof(i64));
        log->room = room;
    }
    log->turns[log->count] = turn;
    log->places[log->count++] = place;
}

/* Address spaces */

static i64 split(State *s, Space *space, i64 at) {
    i64 low = 0, high = space->count;
    while (low < high) {
        i64 middle = (low + high) / 2;
        if (space->starts[middle] < at) low = middle + 1;
        else high = middle;
    }
    if (low < space->count && space->starts[low] == at) return low;
    if (space->count == space->room) {
        i64 room = 2 * space->room + 16;
        space->starts = more(s, space->starts, room, sizeof(i64));
        space->segments = more(s, space->segments, room, sizeof(Segment));
        space->room = room;
    }
    Segment twin = low ? copy_of(s, &space->segments[low - 1]) : new_segment(s);
    memmove(space->starts + low + 1, space->starts + low, (space->count - low) * sizeof(i64));
    memmove(space->segments + low + 1, space->segments + low,
            (space->count - low) * sizeof(Segment));
    space->starts[low] = at;
    space->segments[low] = twin;
    space->count++;
    return low;
}

static void join(const State *s, Space *space, i64 first, i64 last) {
    i64 kept = first;
    for (i64 index = first + 1; index < last; index++) {
        Segment *segment = &space->segments[kept], *other = &space->segments[index];
        if (segment->has_one_use && other->has_one_use) {
            for (i64 q = 0; q < s->n_queues; q++)
                if (other->before[q] > segment->before[q]) segment->before[q] = other->before[q];
            drop(s, other);
        } else {
            kept++;
            space->starts[kept] = space->starts[index];
            space->segments[kept] = *other;
        }
    }
    kept++;
    memmove(space->starts + kept, space->starts + last, (space->count - last) * sizeof(i64));
    memmove(space->segments + kept, space->segments + last,
            (space->count - last) * sizeof(Segment));
    space->count -= last - kept;
}

static void use(State *s, i64 turn, i64 place, int is_write, const i64 *known) {
    Space *space = &s->spaces[s->in[SPACE][place]];
    i64 first, last;
    if (s->in[BEGIN][place] >= s->in[STOP][place]) return;
    first = split(s, space, s->in[BEGIN][place]);
    last = split(s, space, s->in[STOP][place]);
    for (i64 k = first; k < last; k++) {
        Segment *segment = &space->segments[k];
        if (segment->holder != s->in[HOLDER][place]) give_to(s, segment, s->in[HOLDER][place]);
        find_waits(s, segment, place, is_write, known);
        note(s, segment, turn, place, is_write);
    }
    if (last > first + 1) join(s, space, first, last);
}

/* Clocks */

static int is_later(const void *one, const void *other) {
    i64 a = *(const i64 *)one, b = *(const i64 *)other;
    return (a < b) - (a > b);
}

/* The turn waits for those in `met` too that have ended by its start; what it did not wait for yet
   becomes an edge if it is asked for. */
static void add_waits(State *s, i64 turn, int are_edges) {
    i64 *clock = s->clocks + turn * s->n_queues;
    if (s->met.count > 1) qsort(s->met.numbers, s->met.count, sizeof(i64), is_later);
    for (i64 k = 0; k < s->met.count; k++) {
        i64 first = s->met.numbers[k];
        const i64 *other = s->clocks + first * s->n_queues;
        if (s->in[END][first] > s->in[START][turn] || clock[s->in[QUEUE][first]] >= first) continue;
        for (i64 q = 0; q < s->n_queues; q++)
            if (other[q] > clock[q]) clock[q] = other[q];
        if (are_edges) {
            push(s, &s->edges, first);
            push(s, &s->edges, turn);
        }
    }
    s->met.count = 0;
}

static void run_turn(State *s, i64 turn) {
    i64 queue = s->in[QUEUE][turn], ahead = s->newest[queue];
    i64 *clock = s->clocks + turn * s->n_queues;
    for (i64 q = 0; q < s->n_queues; q++)
        clock[q] = ahead >= 0 ? s->clocks[ahead * s->n_queues + q] : -1;
    for (i64 q = s->in[AFTER_AT][turn]; q < s->in[AFTER_AT][turn + 1]; q++)
        push(s, &s->met, s->in[AFTER][q]);
    add_waits(s, turn, 0);
    clock[queue] = s->newest[queue] = turn;
    for (int is_write = 0; is_write < 2; is_write++)
        for (i64 q = s->in[ROWS_AT][2 * turn + is_write]; q < s->in[ROWS_AT][2 * turn + is_write + 1];
             q++)
            use(s, turn, s->in[ROWS][q], is_write, clock);
    add_waits(s, turn, 1);
}

static void run(State *s) {
    s->clocks = more(s, NULL, s->n_turns * s->n_queues, sizeof(i64));
    s->newest = more(s, NULL, s->n_queues, sizeof(i64));
    s->spaces = more(s, NULL, s->n_spaces, sizeof(Space));
    memset(s->spaces, 0, s->n_spaces * sizeof(Space));
    memset(s->clocks, -1, s->n_turns * s->n_queues * sizeof(i64));
    for (i64 q = 0; q < s->n_queues; q++) s->newest[q] = -1;
    for (i64 k = 0; k < s->n_spaces; k++) split(s, &s->spaces[k], 0);
    for (i64 turn = 0; turn < s->n_turns; turn++) run_turn(s, turn);
}

static void release(State *s) {
    for (i64 k = 0; s->spaces && k < s->n_spaces; k++) {
        for (i64 j = 0; j < s->spaces[k].count; j++) drop(s, &s->spaces[k].segments[j]);
        free(s->spaces[k].segments);
        free(s->spaces[k].starts);
    }
    free(s->spaces);
    free(s->clocks);
    free(s->newest);
    free(s->met.numbers);
    free(s->edges.numbers);
}

static PyObject *edges(PyObject *self, PyObject *args) {
    Py_buffer in[N_INPUTS];
    State *s = calloc(1, sizeof(State));
    PyObject *found = NULL;
    long long n_queues, n_spaces, n_axes;
    (void)self;
    if (!s) return PyErr_NoMemory();
    if (!PyArg_ParseTuple(args, "(y*y*y*y*y*y*y*y*y*y*y*y*y*y*)LLL", &in[0], &in[1], &in[2], &in[3],
                          &in[4], &in[5], &in[6], &in[7], &in[8], &in[9], &in[10], &in[11], &in[12],
                          &in[13], &n_queues, &n_spaces, &n_axes)) {
        free(s);
        return NULL;
    }
    for (int a = 0; a < N_INPUTS; a++) s->in[a] = in[a].buf;
    s->n_turns = in[QUEUE].len / (Py_ssize_t)sizeof(i64);
    s->n_queues = n_queues;
    s->n_spaces = n_spaces;
    s->n_axes = n_axes;
    if (setjmp(s->no_memory)) PyErr_NoMemory();
    else {
        run(s);
        found = PyBytes_FromStringAndSize((const char *)s->edges.numbers,
                                          s->edges.count * (Py_ssize_t)sizeof(i64));
    }
    release(s);
    free(s);
    for (int a = 0; a < N_INPUTS; a++) PyBuffer_Release(&in[a]);
    return found;
}

static PyMethodDef methods[] = {
    {"places", places, METH_VARARGS, "The compiled twin of touched_places, in turns."},
    {"edges", edges, METH_VARARGS, "The compiled twin of the walk of control_edges."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_control_edges", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__control_edges(void) {
    return intern_names() ? PyModule_Create(&module) : NULL;
}
