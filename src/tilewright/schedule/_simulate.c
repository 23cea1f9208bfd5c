/* The simulation of simulate.py and claims.py, compiled: the same decisions in the same order, so
   the same times and addresses; read those first. A run that needs what is not here (more tasks or
   roots than there is room for, copies that push each other out for ever) ends as NOT_CARRIED, and
   simulate.py makes it. */
#include "simulate_tasks.h"

#define MOST_IN_VAIN 20000
#define PATIENCE 64

/* Room for the next compute task */

static int is_placed_before(State *s, i64 root, i64 other) {
    i64 size = IN(aligned)[root], other_size = IN(aligned)[other];
    return size != other_size ? size > other_size : root < other;
}

static i64 lacking(State *s, i64 task, i64 *found) {
    i64 n = 0;
    EACH(root, touched, task) {
        if (s->where[root] != ABSENT && s->where[root] != EVICTED) continue;
        if (n == MOST_ROOTS) stop(s, NOT_CARRIED);
        i64 i = n++;
        for (; i > 0 && is_placed_before(s, root, found[i - 1]); i--) found[i] = found[i - 1];
        found[i] = root;
    }
    return n;
}

static int claim_one(State *s, i64 root, int now) {
    Pad *pad = pad_of(s, root);
    if (!now) {
        if (IN(aligned)[root] <= pad->largest_gap) return 1;
        s->is_short = 1;
        make_room(s, root, s->current, 0);
        return 1;
    }
    while (!place(s, root, s->current, 0, 0)) {
        i64 blocks = pad->n;
        if (!make_room(s, root, s->current, 1) || pad->n == blocks) return 0;
    }
    return 1;
}

/* Whether a task only starts because another one needs what it brings. */
static int is_pulled(State *s, i64 task) {
    return s->kind[task] != COMPUTE && s->kind[task] != STORE;
}

static int claim(State *s) {
    i64 roots[MOST_ROOTS], reserved = 0;
    s->blocked_pad = s->awaited_root = -1;
    if (s->current >= s->n_steps || s->forced >= 0) return 0;
    i64 task = IN(steps)[s->current], n = lacking(s, task, roots);
    if (!n) return 0;
    EACH(before, after, task)
        if (s->start[before] < 0 && !is_pulled(s, before)) return 0;
    for (i64 i = 0; i < n; i++) {
        int is_result = s->where[roots[i]] == ABSENT && next_use(s, roots[i]) == task;
        if (!claim_one(s, roots[i], s->idle[s->engine[task]] || !is_result)) {
            s->blocked_pad = IN(pad_of)[roots[i]];
            break;
        }
    }
    for (i64 i = 0; i < n; i++) reserved += s->where[roots[i]] == RESERVED;
    return (int)reserved;
}

static i64 first_waiting(State *s) {
    const i64 *sequence = IN(sequence);
    i64 index = s->first_waiting;
    while (index < s->n_tasks && (s->start[sequence[index]] >= 0 || is_pulled(s, sequence[index])))
        index++;
    s->first_waiting = index;
    if (index == s->n_tasks)
        for (index = 0; s->start[sequence[index]] >= 0;) index++;
    return sequence[index];
}

static int stack(State *s, i64 task) {
    i64 roots[MOST_ROOTS], n = lacking(s, task, roots);
#define PADDING(root) (IN(aligned)[root] - IN(size)[root])
    for (i64 i = 1; i < n; i++)
        for (i64 j = i; j > 0 && PADDING(roots[j - 1]) > PADDING(roots[j]); j--) {
            i64 root = roots[j];
            roots[j] = roots[j - 1];
            roots[j - 1] = root;
        }
    for (i64 i = 0; i < n; i++)
        if (!place(s, roots[i], s->position[task], 0, 1)) return 0;
    return 1;
}

static int clear_for(State *s, i64 task, i64 target, int keep_touched) {
    s->forced = target;
    s->forced_for = task;
    s->blocked_pad = -1;
    s->is_clearing = 0;
    for (Pad *pad = s->pads; pad < s->pads + s->n_pads; pad++) {
        s->doomed.n = 0;
        for (i64 i = 0; i < pad->n; i++) append(s, &s->doomed, (Item){0, 0, pad->blocks[i].root});
        for (i64 i = 0; i < s->doomed.n; i++) {
            i64 root = s->doomed.items[i].c;
            int is_kept = root < 0;
            if (keep_touched) EACH(other, touched, target) is_kept |= other == root;
            if (is_kept) continue;
            if (s->where[root] == RESERVED || moving_cycles(s, root) != MUST_STAY)
                evict(s, root, 1);
        }
    }
    for (Pad *pad = s->pads; pad < s->pads + s->n_pads; pad++)
        for (i64 i = 0; i < pad->n; i++)
            s->is_clearing |= pad->blocks[i].root >= 0 && s->where[pad->blocks[i].root] == LEAVING;
    return s->is_clearing || stack(s, target);
}

/* Nothing is computed again here, so only what tasks of the program wait for is in the way. */
static i64 first_obstacle(State *s, i64 task) {
    Items *open = &s->choices;
    i64 first = s->n_tasks;
    for (i64 i = 0; i < s->n_tasks; i++) s->is_seen[i] = 0;
    open->n = 0;
    append(s, open, (Item){task, 0, 0});
    while (open->n) {
        i64 current = open->items[--open->n].a;
        int is_waiting = 0;
        EACH(before, after, current) {
            if (s->start[before] >= 0) continue;
            is_waiting = 1;
            if (s->is_seen[before]) continue;
            s->is_seen[before] = 1;
            append(s, open, (Item){before, 0, 0});
        }
        if (!is_waiting && current < first) first = current;
    }
    return first;
}

static void force(State *s) {
    i64 task = first_waiting(s);
    s->is_short = 1;
    if (s->forced_at != s->unfinished) {
        s->forced_at = s->unfinished;
        s->forced_times = 0;
    } else if (!s->is_clearing) s->forced_times++;
    for (; s->forced_times < 2; s->forced_times++)
        if (clear_for(s, task, task, s->forced_times == 0)) return;
    if (s->forced_times <= PATIENCE && clear_for(s, task, first_obstacle(s, task), 0)) return;
    s->stuck_task = task;
    stop(s, STUCK);
}

/* The run */

static void start_all(State *s) {
    for (int started = 1; started;) {
        started = start_computes(s);
        while (s->later.n && s->later.items[0].a <= s->current) {
            Item item = pop(&s->later);
            insert_sorted(s, s->coming + s->engine[item.c], (Item){item.b, item.c, 0});
        }
        started += claim(s);
        for (i64 i = 0; i < s->n_transfer_engines; i++) {
            i64 engine = IN(transfer_engines)[i];
            while (s->idle[engine] && start_one(s, engine)) started++;
        }
    }
}

static void run(State *s) {
    i64 unfinished = s->unfinished, added = s->n_all;
    for (i64 task = 0; task < s->n_tasks; task++)
        if (!s->pending[task]) make_ready(s, task);
    while (1) {
        start_all(s);
        if (!s->unfinished) return;
        if (s->unfinished < unfinished) {
            unfinished = s->unfinished;
            added = s->n_all;
        } else if (s->n_all - added > MOST_IN_VAIN) stop(s, NOT_CARRIED);
        if (!s->events.n) {
            force(s);
            continue;
        }
        s->now = s->events.items[0].a;
        while (s->events.n && s->events.items[0].a == s->now) {
            i64 task = pop(&s->events).b;
            if (task != WAKE) finish(s, task);
        }
    }
}

/* From arrays to a state, and back to lists */

static i64 length(const Py_buffer *view) { return view->len / (Py_ssize_t)sizeof(i64); }

static i64 *filled(State *s, i64 room, const i64 *values, i64 n, i64 rest) {
    i64 *array = s->n_owned < MOST_OWNED ? malloc((size_t)(room + 1) * sizeof(i64)) : NULL;
    if (!array) {
        PyErr_NoMemory();
        stop(s, FAILED);
    }
    s->owned[s->n_owned++] = array;
    if (values) memcpy(array, values, (size_t)n * sizeof(i64));
    for (i64 i = values ? n : 0; i < room; i++) array[i] = rest;
    return array;
}

static void *zeroed(State *s, i64 n, size_t size) {
    void *array = s->n_owned < MOST_OWNED ? calloc((size_t)n + 1, size) : NULL;
    if (!array) {
        PyErr_NoMemory();
        stop(s, FAILED);
    }
    s->owned[s->n_owned++] = array;
    return array;
}

static void set_up_tasks(State *s) {
    i64 n = s->n_tasks, room = s->room_tasks;
    s->engine = filled(s, room, IN(engine), n, 0);
    s->cycles = filled(s, room, IN(cycles), n, 0);
    s->setup = filled(s, room, IN(setup), n, 0);
    s->kind = filled(s, room, IN(kind), n, 0);
    s->ports = filled(s, room, IN(ports), n, 0);
    s->position = filled(s, room, IN(position), n, 0);
    s->key = filled(s, room, IN(key), n, 0);
    s->start = filled(s, room, NULL, 0, -1);
    s->instance = filled(s, room, NULL, 0, 0);
    s->pending = filled(s, n, IN(pending), n, 0);
    s->is_seen = filled(s, n, NULL, 0, 0);
    s->added = zeroed(s, room - n, sizeof(Added));
    s->prices = zeroed(s, s->room_made, sizeof(Price));
}

static void set_up_roots(State *s) {
    i64 **zeros[] = {&s->where,     &s->missing,    &s->running, &s->writing, &s->address, &s->copy,
                     &s->next_copy, &s->copy_index, &s->leaving, &s->left,    &s->waiting};
    i64 n = s->n_roots;
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) *zeros[i] = filled(s, n, NULL, 0, 0);
    s->moving = filled(s, n, NULL, 0, UNKNOWN);
    s->use_index = filled(s, n, IN(uses_at), n, 0);
    for (i64 root = 0; root < n; root++)
        s->left[root] = s->waiting[root] = IN(uses_at)[root + 1] - IN(uses_at)[root];
    s->live = filled(s, s->n_pads * (s->n_steps + 1), IN(live), s->n_pads * (s->n_steps + 1), 0);
    s->contents = zeroed(s, n, sizeof(Contents));
    s->pads = zeroed(s, s->n_pads, sizeof(Pad));
    for (i64 i = 0; i < s->n_pads; i++) {
        s->pads[i].size = IN(pad_size)[i];
        s->pads[i].alignment = IN(pad_alignment)[i];
        s->pads[i].is_counted = RULE(COUNTED);
        if (RULE(COUNTED)) s->pads[i].largest_gap = IN(planned)[i];
        else measure(s->pads + i);
    }
    for (i64 i = 0; !RULE(COUNTED) && i < s->n_walls; i++) {
        const i64 *wall = IN(walls) + 3 * i;
        take(s, s->pads + wall[0], s->pads[wall[0]].n, (Block){wall[1], wall[2], -1, 0});
    }
}

static void set_up_engines(State *s) {
    i64 n = s->n_engines, lanes = 0;
    s->work = filled(s, n, IN(work), n, 0);
    s->head = filled(s, n, NULL, 0, 0);
    s->last_wake = filled(s, n, NULL, 0, -1);
    s->idle = filled(s, n, NULL, 0, 0);
    s->lane_at = filled(s, n + 1, NULL, 0, 0);
    for (i64 engine = 0; engine < n; engine++) {
        if (IN(instances)[engine] > MOST_LANES) stop(s, NOT_CARRIED);
        s->idle[engine] = ((i64)1 << IN(instances)[engine]) - 1;
        s->lane_at[engine] = lanes;
        lanes += IN(instances)[engine];
    }
    s->lane_at[n] = lanes;
    s->lanes = filled(s, lanes, NULL, 0, 0);
    s->coming = zeroed(s, n, sizeof(Items));
    s->going = zeroed(s, n, sizeof(Items));
}

static void simulated(State *s) {
    if (setjmp(s->leave)) return;
    set_up_tasks(s);
    set_up_roots(s);
    set_up_engines(s);
    s->unfinished = s->n_all = s->n_tasks;
    s->forced = s->forced_for = s->forced_at = s->blocked_pad = s->awaited_root = -1;
    run(s);
    s->status = DONE;
}

static void release(State *s) {
    for (i64 i = 0; s->contents && i < s->n_roots; i++) free(s->contents[i].pieces);
    for (i64 i = 0; s->pads && i < s->n_pads; i++) free(s->pads[i].blocks);
    for (i64 i = 0; s->going && i < s->n_engines; i++) {
        free(s->coming[i].items);
        free(s->going[i].items);
    }
    Items *lists[] = {&s->events, &s->later, &s->choices, &s->doomed, &s->kept, &s->used_copies};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) free(lists[i]->items);
    free(s->copies);
    for (i64 i = 0; i < s->n_owned; i++) free(s->owned[i]);
}

#define NUMBERS_IN(type) ((i64)(sizeof(type) / sizeof(i64)))

static PyObject *list_of(const void *numbers, i64 n) {
    const i64 *values = numbers;
    PyObject *list = PyList_New(n);
    for (i64 i = 0; list && i < n; i++) PyList_SET_ITEM(list, i, PyLong_FromLongLong(values[i]));
    return list;
}

/* Where a run got stuck: the task, and in pairs every scratchpad and root that lies in it. */
static PyObject *stuck_lists(State *s) {
    i64 n = 0;
    for (i64 pad = 0; pad < s->n_pads; pad++) n += s->pads[pad].n;
    i64 *pairs = filled(s, 2 * n, NULL, 0, 0), *end = pairs;
    for (i64 pad = 0; pad < s->n_pads; pad++)
        for (i64 i = 0; i < s->pads[pad].n; i++)
            if (s->pads[pad].blocks[i].root >= 0) {
                *end++ = pad;
                *end++ = s->pads[pad].blocks[i].root;
            }
    return Py_BuildValue("[NN]", list_of(&s->stuck_task, 1), list_of(pairs, end - pairs));
}

static PyObject *result_of(State *s) {
    i64 n_added = s->n_all - s->n_tasks;
    if (s->status == FAILED) return NULL;
    PyObject *is_short = s->is_short ? Py_True : Py_False;
    if (setjmp(s->leave)) return NULL;
    if (s->status == STUCK) return Py_BuildValue("iON", s->status, is_short, stuck_lists(s));
    if (s->status != DONE) return Py_BuildValue("iO[]", s->status, is_short);
    Item score = {s->now, s->added_cycles, 0};
    Like *likes = zeroed(s, n_added, sizeof(Like));
    for (i64 i = 0, task = s->n_tasks; i < n_added; i++, task++)
        likes[i] = (Like){s->engine[task], s->cycles[task], s->setup[task], s->ports[task]};
    return Py_BuildValue("iO[NNNNNNN]", s->status, is_short, list_of(&score, 2),
                         list_of(s->start, s->n_all), list_of(s->instance, s->n_all),
                         list_of(likes, n_added * NUMBERS_IN(Like)),
                         list_of(s->added, n_added * NUMBERS_IN(Added)),
                         list_of(s->copies, s->n_copies * NUMBERS_IN(Copy)),
                         list_of(s->used_copies.items, s->used_copies.n * NUMBERS_IN(Item)));
}

static PyObject *simulate(PyObject *self, PyObject *args) {
    PyObject *arrays, *price_of, *survivors_of, *result = NULL;
    Py_buffer views[N_INPUTS];
    int n_views = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!OO", &PyTuple_Type, &arrays, &price_of, &survivors_of))
        return NULL;
    State *s = calloc(1, sizeof(State));
    if (!s) return PyErr_NoMemory();
    if (PyTuple_GET_SIZE(arrays) == N_INPUTS)
        for (; n_views < N_INPUTS; n_views++) {
            PyObject *array = PyTuple_GET_ITEM(arrays, n_views);
            if (PyObject_GetBuffer(array, views + n_views, PyBUF_SIMPLE)) break;
            s->in[n_views] = views[n_views].buf;
        }
    else PyErr_SetString(PyExc_ValueError, "the arrays are not those of INPUTS");
    if (n_views == N_INPUTS) {
        s->n_tasks = length(views + IN_engine);
        s->n_roots = length(views + IN_pad_of);
        s->n_engines = length(views + IN_instances);
        s->n_pads = length(views + IN_pad_size);
        s->n_steps = length(views + IN_steps);
        s->n_transfer_engines = length(views + IN_transfer_engines);
        s->n_walls = length(views + IN_walls) / 3;
        s->room_tasks = 4 * s->n_tasks + 4096;
        s->room_made = 2 * length(views + IN_made_root) + 4096;
        s->price_of = price_of;
        s->survivors_of = survivors_of;
        simulated(s);
        result = result_of(s);
    }
    release(s);
    free(s);
    while (n_views) PyBuffer_Release(views + --n_views);
    return result;
}

static PyMethodDef methods[] = {
    {"simulate", simulate, METH_VARARGS, "The compiled twin of simulate.simulate."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_simulate", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__simulate(void) {
    static const char *const names[] = {
#define X(name) #name,
        INPUTS(X)
#undef X
    };
    PyObject *created = PyModule_Create(&module), *inputs = PyTuple_New(N_INPUTS);
    for (int i = 0; inputs && i < N_INPUTS; i++)
        PyTuple_SET_ITEM(inputs, i, PyUnicode_FromString(names[i]));
    if (!created || !inputs || PyModule_AddObject(created, "INPUTS", inputs) < 0) {
        Py_XDECREF(created);
        Py_XDECREF(inputs);
        return NULL;
    }
    return created;
}
