/* The places of touched_places.py, compiled: the same, but one for every access of a task. */

#define MOST_AXES 8 /* What has more is left to Python. */

typedef struct { i64 *numbers; Py_ssize_t count, room; } Column;

enum { ROW_AT, OF_SPACE, FIRST, BEHIND, OWNER, IS_BOX, CORNER_AT, CORNER, N_COLUMNS };

/* What is known of a buffer once it was looked at. */
typedef struct {
    int is_known, n_axes, is_view, is_reshaped, has_gaps;
    int is_constant; /* Given, and never written: nobody waits for its readers. */
    i64 root, base, size;
    i64 box[2 * MOST_AXES];
    i64 shift[MOST_AXES]; /* From places in a view to those in its root. */
} Lying;

typedef struct {
    PyObject *buffers, *addresses;
    Lying *lying;
    Py_ssize_t n_buffers;
    const i64 *spaces;
    const char *is_shared; /* By buffer, whether it lies where others may come later. */
    Column columns[N_COLUMNS];
    int n_axes;
} Places;

static PyObject *name_reads, *name_writes, *name_box, *name_view, *name_size, *name_buffer,
    *name_origin;

static int intern_names(void) {
    return (name_reads = PyUnicode_InternFromString("reads")) &&
           (name_writes = PyUnicode_InternFromString("writes")) &&
           (name_box = PyUnicode_InternFromString("box")) &&
           (name_view = PyUnicode_InternFromString("view")) &&
           (name_size = PyUnicode_InternFromString("size_bytes")) &&
           (name_buffer = PyUnicode_InternFromString("buffer")) &&
           (name_origin = PyUnicode_InternFromString("origin"));
}

static int add(Column *column, i64 number) {
    if (column->count == column->room) {
        Py_ssize_t room = 2 * column->room + 1024;
        i64 *numbers = realloc(column->numbers, (size_t)room * sizeof(i64));
        if (!numbers) return PyErr_NoMemory() != NULL;
        column->numbers = numbers;
        column->room = room;
    }
    column->numbers[column->count++] = number;
    return 1;
}

static int read_number(PyObject *object, i64 *number) {
    *number = PyLong_AsLongLong(object);
    return *number != -1 || !PyErr_Occurred();
}

static int number_of(PyObject *object, PyObject *name, i64 *number) {
    PyObject *value = PyObject_GetAttr(object, name);
    int good = value && read_number(value, number);
    Py_XDECREF(value);
    return good;
}

static int fail_of_axes(void) {
    PyErr_SetString(PyExc_OverflowError, "a box has more axes than there is room for");
    return 0;
}

/* The corners of a box, and how many axes it has. */
static int read_box(PyObject *box, i64 *corners, int *n_axes) {
    if (!PyTuple_Check(box) || PyTuple_GET_SIZE(box) > MOST_AXES) return fail_of_axes();
    *n_axes = (int)PyTuple_GET_SIZE(box);
    for (int axis = 0; axis < *n_axes; axis++) {
        PyObject *ends = PyTuple_GET_ITEM(box, axis);
        if (!PyTuple_Check(ends) || PyTuple_GET_SIZE(ends) != 2) return fail_of_axes();
        if (!read_number(PyTuple_GET_ITEM(ends, 0), &corners[2 * axis])) return 0;
        if (!read_number(PyTuple_GET_ITEM(ends, 1), &corners[2 * axis + 1])) return 0;
    }
    return 1;
}

static int read_view(Lying *lying, PyObject *view) {
    PyObject *origin = PyObject_GetAttr(view, name_origin);
    int good = origin && number_of(view, name_buffer, &lying->root);
    lying->is_view = 1;
    lying->is_reshaped = origin == Py_None;
    if (good && !lying->is_reshaped)
        good = PyTuple_Check(origin) && PyTuple_GET_SIZE(origin) == lying->n_axes;
    for (int axis = 0; good && !lying->is_reshaped && axis < lying->n_axes; axis++) {
        good = read_number(PyTuple_GET_ITEM(origin, axis), &lying->shift[axis]);
        lying->shift[axis] -= lying->box[2 * axis];
    }
    Py_XDECREF(origin);
    if (!good && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "an origin has as many axes as its box");
    return good;
}

static Lying *lying_at(Places *places, i64 number) {
    if (number < 0 || number >= places->n_buffers) {
        PyErr_SetString(PyExc_IndexError, "there is no such buffer");
        return NULL;
    }
    Lying *lying = &places->lying[number];
    if (lying->is_known) return lying;
    PyObject *buffer = PyTuple_GET_ITEM(places->buffers, number);
    PyObject *box = PyObject_GetAttr(buffer, name_box);
    PyObject *view = box ? PyObject_GetAttr(buffer, name_view) : NULL;
    lying->root = number;
    int good = view && read_box(box, lying->box, &lying->n_axes) &&
               number_of(buffer, name_size, &lying->size) &&
               (view == Py_None || read_view(lying, view)) &&
               lying->root >= 0 && lying->root < places->n_buffers &&
               read_number(PyTuple_GET_ITEM(places->addresses, lying->root), &lying->base);
    Py_XDECREF(box);
    Py_XDECREF(view);
    if (!good && !PyErr_Occurred()) PyErr_SetString(PyExc_IndexError, "there is no such buffer");
    lying->is_known = good;
    return good ? lying : NULL;
}

static i64 floor_of(__int128 number, __int128 divisor) {
    __int128 found = number / divisor;
    return (i64)(number % divisor < 0 ? found - 1 : found);
}

/* The bytes of a root that a box takes; 0 if there are gaps between them. */
static int byte_range(const Lying *root, const i64 *box, int n_axes, i64 *first, i64 *behind) {
    if (root->n_axes == n_axes && !memcmp(box, root->box, 2 * (size_t)n_axes * sizeof(i64))) {
        *first = 0;
        *behind = root->size;
        return 1;
    }
    __int128 low = 0, high = 0, step = 1;
    int is_cut = 0;
    for (int axis = n_axes - 1; axis >= 0; axis--) {
        i64 begin = box[2 * axis], end = box[2 * axis + 1];
        i64 start = root->box[2 * axis], stop = root->box[2 * axis + 1];
        if (is_cut && end - begin != 1) return 0;
        is_cut = is_cut || begin != start || end != stop;
        low += (begin - start) * step;
        high += (end - 1 - start) * step;
        step *= stop - start;
    }
    if (step < 1) step = 1;
    *first = floor_of(low * root->size, step);
    *behind = -floor_of(-(high + 1) * root->size, step);
    return 1;
}

static int add_place(Places *places, i64 number, PyObject *box) {
    Lying *lying = lying_at(places, number);
    Lying *root = lying ? lying_at(places, lying->root) : NULL;
    i64 corners[2 * MOST_AXES], first = 0, behind = root ? root->size : 0;
    int n_axes = 0, is_box = root && !(lying->is_view && lying->is_reshaped);
    if (!root || (is_box && !read_box(box, corners, &n_axes))) return 0;
    if (is_box && (n_axes != lying->n_axes || n_axes != root->n_axes)) {
        PyErr_SetString(PyExc_ValueError, "a box has as many axes as its buffer");
        return 0;
    }
    for (int axis = 0; is_box && lying->is_view && axis < n_axes; axis++) {
        corners[2 * axis] += lying->shift[axis];
        corners[2 * axis + 1] += lying->shift[axis];
    }
    if (is_box && !byte_range(root, corners, n_axes, &first, &behind)) root->has_gaps = 1;
    Column *columns = places->columns;
    int good = add(&columns[OF_SPACE], places->spaces[lying->root]) &&
               add(&columns[FIRST], root->base + first) &&
               add(&columns[BEHIND], root->base + behind) &&
               add(&columns[OWNER], lying->root) && add(&columns[IS_BOX], is_box);
    for (int at = 0; good && at < 2 * n_axes; at++) good = add(&columns[CORNER], corners[at]);
    if (n_axes > places->n_axes) places->n_axes = n_axes;
    return good && add(&columns[CORNER_AT], columns[CORNER].count);
}

/* Do something with every access of a task on one side: what it reads, or what it writes. */
static int each(Places *places, PyObject *task, PyObject *side,
                int (*deal_with)(Places *, i64, PyObject *)) {
    PyObject *accesses = PyObject_GetAttr(task, side);
    int good = accesses && PyTuple_Check(accesses);
    for (Py_ssize_t k = 0; good && k < PyTuple_GET_SIZE(accesses); k++) {
        PyObject *access = PyTuple_GET_ITEM(accesses, k);
        i64 number;
        good = PyTuple_Check(access) && PyTuple_GET_SIZE(access) == 2 &&
               read_number(PyTuple_GET_ITEM(access, 0), &number) &&
               deal_with(places, number, PyTuple_GET_ITEM(access, 1));
    }
    Py_XDECREF(accesses);
    if (!good && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "accesses are pairs");
    return good;
}

static int note_written(Places *places, i64 number, PyObject *box) {
    const Lying *lying = lying_at(places, number);
    (void)box;
    if (lying) places->lying[lying->root].is_constant = 0;
    return lying != NULL;
}

static int add_shared(Places *places, i64 number, PyObject *box) {
    const Lying *lying = lying_at(places, number);
    if (!lying) return 0;
    if (!places->is_shared[number] || places->lying[lying->root].is_constant) return 1;
    return add_place(places, number, box);
}

static int add_side(Places *places, PyObject *task, PyObject *side) {
    return each(places, task, side, add_shared) &&
           add(&places->columns[ROW_AT], places->columns[OWNER].count);
}

static int find_constants(Places *places, PyObject *tasks, PyObject *given) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(given); k++) {
        i64 number;
        if (!read_number(PyTuple_GET_ITEM(given, k), &number)) return 0;
        const Lying *lying = lying_at(places, number);
        if (!lying) return 0;
        places->lying[lying->root].is_constant = 1;
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(tasks); k++)
        if (!each(places, PyTuple_GET_ITEM(tasks, k), name_writes, note_written)) return 0;
    return 1;
}

/* A root with a box that has gaps is taken as a whole everywhere: boxes tell its users apart. */
static void fill_gaps(Places *places) {
    const Column *owners = &places->columns[OWNER];
    for (Py_ssize_t k = 0; k < owners->count; k++) {
        const Lying *root = &places->lying[owners->numbers[k]];
        if (!root->has_gaps) continue;
        places->columns[FIRST].numbers[k] = root->base;
        places->columns[BEHIND].numbers[k] = root->base + root->size;
    }
}

static PyObject *answer_of(Places *places) {
    PyObject *answer = PyTuple_New(N_COLUMNS + 1);
    for (int at = 0; answer && at < N_COLUMNS; at++) {
        const Column *column = &places->columns[at];
        PyObject *bytes = PyBytes_FromStringAndSize((const char *)column->numbers,
                                                    column->count * (Py_ssize_t)sizeof(i64));
        if (bytes) PyTuple_SET_ITEM(answer, at, bytes);
        else Py_CLEAR(answer);
    }
    PyObject *n_axes = answer ? PyLong_FromLong(places->n_axes) : NULL;
    if (n_axes) PyTuple_SET_ITEM(answer, N_COLUMNS, n_axes);
    else Py_CLEAR(answer);
    return answer;
}

static PyObject *places(PyObject *self, PyObject *args) {
    Places found;
    PyObject *tasks, *given, *answer = NULL;
    Py_buffer order, spaces, is_shared;
    (void)self;
    memset(&found, 0, sizeof found);
    if (!PyArg_ParseTuple(args, "O!y*O!O!O!y*y*", &PyTuple_Type, &tasks, &order, &PyTuple_Type,
                          &found.buffers, &PyTuple_Type, &found.addresses, &PyTuple_Type, &given,
                          &spaces, &is_shared))
        return NULL;
    found.n_buffers = PyTuple_GET_SIZE(found.buffers);
    found.spaces = spaces.buf;
    found.is_shared = is_shared.buf;
    found.lying = calloc((size_t)found.n_buffers + 1, sizeof(Lying));
    int good = found.lying && find_constants(&found, tasks, given) &&
               add(&found.columns[ROW_AT], 0) && add(&found.columns[CORNER_AT], 0);
    const i64 *numbers = order.buf;
    for (Py_ssize_t k = 0; good && k < order.len / (Py_ssize_t)sizeof(i64); k++) {
        PyObject *task = PyTuple_GetItem(tasks, (Py_ssize_t)numbers[k]);
        good = task && add_side(&found, task, name_reads) && add_side(&found, task, name_writes);
    }
    if (!found.lying) PyErr_NoMemory();
    if (good) {
        fill_gaps(&found);
        answer = answer_of(&found);
    }
    for (int at = 0; at < N_COLUMNS; at++) free(found.columns[at].numbers);
    free(found.lying);
    PyBuffer_Release(&order);
    PyBuffer_Release(&spaces);
    PyBuffer_Release(&is_shared);
    return answer;
}
