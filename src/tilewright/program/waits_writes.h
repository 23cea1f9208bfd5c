/* Boxes, and the writes to one place in the order of tasks. Included by _waits.c. */
enum { AXES = 16, LOOKED_BACK = 8 };

/* A box; without axes known it is anywhere in its buffer. */
typedef struct {
    int n_axes, is_anywhere, is_empty;
    int64_t start[AXES], stop[AXES];
} Box;

typedef struct {
    int64_t *items;
    size_t n, room;
} Numbers;

/* Writes one behind another: task, chain, whether anywhere, then starts and stops of the axes. */
typedef struct {
    Numbers numbers;
    size_t n, n_chains;
    int n_axes;
} Writes;

static int make_room(Numbers *numbers, size_t more)
{
    if (numbers->n + more <= numbers->room) return 1;
    /* Most places are written once. */
    size_t room = numbers->n ? 2 * (numbers->n + more) : more;
    int64_t *items = realloc(numbers->items, room * sizeof(int64_t));
    if (!items) {
        PyErr_NoMemory();
        return 0;
    }
    numbers->items = items;
    numbers->room = room;
    return 1;
}

static int push(Numbers *numbers, int64_t value)
{
    if (!make_room(numbers, 1)) return 0;
    numbers->items[numbers->n++] = value;
    return 1;
}

static int read_box(PyObject *object, Box *box)
{
    box->is_anywhere = box->is_empty = 0;
    if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) > AXES) {
        PyErr_SetString(PyExc_TypeError, "a box is a tuple of at most 16 pairs");
        return 0;
    }
    box->n_axes = (int)PyTuple_GET_SIZE(object);
    for (int axis = 0; axis < box->n_axes; axis++) {
        PyObject *ends = PyTuple_GET_ITEM(object, axis);
        if (!PyTuple_Check(ends) || PyTuple_GET_SIZE(ends) != 2) {
            PyErr_SetString(PyExc_TypeError, "a box is a tuple of at most 16 pairs");
            return 0;
        }
        box->start[axis] = PyLong_AsLongLong(PyTuple_GET_ITEM(ends, 0));
        box->stop[axis] = PyLong_AsLongLong(PyTuple_GET_ITEM(ends, 1));
        if (box->start[axis] >= box->stop[axis]) box->is_empty = 1;
    }
    return !PyErr_Occurred();
}

static int64_t larger(int64_t one, int64_t other) { return one > other ? one : other; }
static int64_t smaller(int64_t one, int64_t other) { return one < other ? one : other; }

static int is_met(const Box *box, const int64_t *entry)
{
    if (box->is_anywhere || entry[2]) return 1;
    const int64_t *ends = entry + 3;
    for (int axis = 0; axis < box->n_axes; axis++) {
        int64_t start = larger(box->start[axis], ends[2 * axis]);
        if (start >= smaller(box->stop[axis], ends[2 * axis + 1])) return 0;
    }
    return 1;
}

static size_t stride(const Writes *writes) { return 3 + 2 * (size_t)writes->n_axes; }

static const int64_t *entry_of(const Writes *writes, size_t number)
{
    return writes->numbers.items + number * stride(writes);
}

/* Whether a chain is surely among the writes: if many chains take turns, it may not be noticed. */
static int is_known_chain(const Writes *writes, int64_t chain)
{
    for (size_t back = 1; back <= writes->n && back <= LOOKED_BACK; back++)
        if (entry_of(writes, writes->n - back)[1] == chain) return 1;
    return 0;
}

static int add_write(Writes *writes, const Box *box, int64_t chain, int64_t task)
{
    /* A box that is anywhere has no axes: there is room for those of others behind it. */
    if (!writes->n) writes->n_axes = box->is_anywhere ? AXES : box->n_axes;
    if (!is_known_chain(writes, chain)) writes->n_chains++;
    if (!make_room(&writes->numbers, stride(writes))) return 0;
    int64_t *entry = writes->numbers.items + writes->numbers.n;
    entry[0] = task;
    entry[1] = chain;
    entry[2] = box->is_anywhere;
    for (int axis = 0; !box->is_anywhere && axis < box->n_axes; axis++) {
        entry[3 + 2 * axis] = box->start[axis];
        entry[4 + 2 * axis] = box->stop[axis];
    }
    writes->numbers.n += stride(writes);
    writes->n++;
    return 1;
}

static void clear_writes(Writes *writes) { writes->numbers.n = writes->n = writes->n_chains = 0; }
