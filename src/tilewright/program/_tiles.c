/* Costs combinations of tile lengths one at a time, with everything they need in the cache.
 *
 * Every floating-point operation comes in the order of tile_grid.py, so that both find the same
 * combinations with the same figures.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

enum { DIMS = 16, LOOPS = 8, TENANTS = 12, MEMORIES = 8, ORDERS = 4, AXES = 8, TERMS = 4 };
enum { MOST_TOLD = 64 };
enum { LATENCY, ENERGY, TRAFFIC };

typedef struct {
    int64_t size, divisor;
    int n_terms;
    int64_t dims[TERMS], factors[TERMS];
} Axis;

typedef struct {
    int memory, is_constant, is_result, n_axes;
    int64_t bits, elements;
    Axis axes[AXES];
    int depends[LOOPS];
    double bytes_per_cycle, setup_cycles, pj_per_byte;
} Tenant;

/* What tile_kernel.py says of a trial. */
typedef struct {
    int n_dims, n_loops, n_tenants, n_memories, n_orders;
    int goal, is_told, has_partial_sums, told;
    int64_t alignment, lead_cycles;
    int64_t length[DIMS], unrolled[DIMS];
    int loop_dim[LOOPS];
    const int64_t *choices[LOOPS];
    int64_t n_choices[LOOPS];
    int64_t room[MEMORIES];
    Tenant tenants[TENANTS];
    int orders[ORDERS][LOOPS];
    double rate, partial_bytes_per_cycle, nearly, task_cycles;
    int64_t n;
} Trial;

/* The combinations: a row of `sizes` for each. */
typedef struct {
    int64_t *sizes, *counts;
    double *total, *computing;
    char *fits[2];
} Tiles;

typedef struct {
    double moving, left, first, moved_bytes, energy;
} Moved;

typedef struct {
    const int64_t *next, *end;
    int is_good;
} Reader;

static int64_t take(Reader *r, int64_t least, int64_t most)
{
    if (!r->is_good || r->next == r->end || *r->next < least || *r->next > most) {
        r->is_good = 0;
        return least;
    }
    return *r->next++;
}

static void read_tenant(Reader *r, const Trial *t, Tenant *tenant)
{
    tenant->memory = (int)take(r, 0, t->n_memories - 1);
    tenant->bits = take(r, 0, 1 << 20);
    tenant->is_constant = (int)take(r, 0, 1);
    tenant->is_result = (int)take(r, 0, 1);
    tenant->elements = take(r, 0, INT64_MAX);
    tenant->n_axes = (int)take(r, 0, AXES);
    for (int a = 0; a < tenant->n_axes; a++) {
        Axis *axis = &tenant->axes[a];
        axis->size = take(r, 0, INT64_MAX);
        axis->divisor = take(r, 1, INT64_MAX);
        axis->n_terms = (int)take(r, 0, TERMS);
        for (int i = 0; i < axis->n_terms; i++) {
            axis->dims[i] = take(r, 0, t->n_dims - 1);
            axis->factors[i] = take(r, 0, INT64_MAX);
            for (int loop = 0; loop < t->n_loops; loop++)
                if (t->loop_dim[loop] == axis->dims[i]) tenant->depends[loop] = 1;
        }
    }
}

static int read_trial(Reader *r, const double *figures, Py_ssize_t n_figures, Trial *t)
{
    memset(t, 0, sizeof *t);
    t->n_dims = (int)take(r, 1, DIMS);
    t->n_loops = (int)take(r, 0, LOOPS);
    t->n_tenants = (int)take(r, 0, TENANTS);
    t->n_memories = (int)take(r, 0, MEMORIES);
    t->n_orders = (int)take(r, 1, ORDERS);
    t->goal = (int)take(r, LATENCY, TRAFFIC);
    t->is_told = (int)take(r, 0, 1);
    t->has_partial_sums = (int)take(r, 0, 1);
    t->told = (int)take(r, 1, MOST_TOLD / 2);
    t->alignment = take(r, 1, INT64_MAX);
    t->lead_cycles = take(r, 0, INT64_MAX);
    for (int d = 0; d < t->n_dims; d++) t->length[d] = take(r, 0, INT64_MAX);
    for (int d = 0; d < t->n_dims; d++) t->unrolled[d] = take(r, 1, INT64_MAX);
    t->n = 1;
    for (int loop = 0; loop < t->n_loops; loop++) {
        t->loop_dim[loop] = (int)take(r, 0, t->n_dims - 1);
        t->n_choices[loop] = take(r, 1, 1 << 16);
        t->choices[loop] = r->next;
        for (int64_t i = 0; i < t->n_choices[loop]; i++) take(r, 1, INT64_MAX);
        t->n *= t->n_choices[loop];
        if (t->n > 1 << 20) r->is_good = 0;
    }
    for (int m = 0; m < t->n_memories; m++) t->room[m] = take(r, INT64_MIN, INT64_MAX);
    for (int i = 0; i < t->n_tenants; i++) read_tenant(r, t, &t->tenants[i]);
    for (int o = 0; o < t->n_orders; o++)
        for (int i = 0; i < t->n_loops; i++) t->orders[o][i] = (int)take(r, 0, t->n_loops - 1);
    if (!r->is_good || r->next != r->end || n_figures != 4 + 3 * t->n_tenants) return 0;
    t->rate = *figures++;
    t->partial_bytes_per_cycle = *figures++;
    t->nearly = *figures++;
    t->task_cycles = *figures++;
    for (int i = 0; i < t->n_tenants; i++) {
        t->tenants[i].bytes_per_cycle = *figures++;
        t->tenants[i].setup_cycles = *figures++;
        t->tenants[i].pj_per_byte = *figures++;
    }
    return t->n_tenants > 0 || !t->has_partial_sums;
}

static int64_t parts_of(int64_t value, int64_t step) { return (value + step - 1) / step; }

static int64_t tile_bytes(const Trial *t, const Tenant *tenant, const int64_t *length)
{
    int64_t elements = tenant->elements;
    for (int a = 0; a < tenant->n_axes; a++) {
        const Axis *axis = &tenant->axes[a];
        int64_t reach = 0;
        for (int i = 0; i < axis->n_terms; i++)
            reach += axis->factors[i] * (length[axis->dims[i]] - 1);
        int64_t extent = reach / axis->divisor + 1;
        elements *= extent < axis->size ? extent : axis->size;
    }
    return parts_of(parts_of(elements * tenant->bits, 8), t->alignment) * t->alignment;
}

static int is_cut(const Trial *t, const Tenant *tenant, const int64_t *count)
{
    for (int loop = 0; loop < t->n_loops; loop++)
        if (tenant->depends[loop] && count[loop] > 1) return 1;
    return 0;
}

static int fits(const Trial *t, const int64_t *size, const int64_t *count, int doubled)
{
    double need[MEMORIES] = {0.0};
    int is_used[MEMORIES] = {0};
    for (int i = 0; i < t->n_tenants; i++) {
        const Tenant *tenant = &t->tenants[i];
        int64_t copies = doubled && is_cut(t, tenant, count) ? 2 : 1;
        need[tenant->memory] += (double)(copies * size[i]);
        is_used[tenant->memory] = 1;
    }
    if (t->n_memories == 0) return 1;
    for (int m = 0; m < t->n_memories; m++) {
        if (t->room[m] < 0) return 0;
        int64_t room = doubled ? t->room[m] * 7 / 8 : t->room[m];
        if (is_used[m] && !(need[m] <= (double)room)) return 0;
    }
    return 1;
}

static void fill(const Trial *t, Tiles *tiles)
{
    int64_t length[DIMS], place[LOOPS] = {0};
    memcpy(length, t->length, sizeof length);
    for (int64_t at = 0; at < t->n; at++) {
        int64_t *count = tiles->counts + at * t->n_loops, *size = tiles->sizes + at * t->n_tenants;
        double total = 1.0, computing = 1.0;
        for (int loop = 0; loop < t->n_loops; loop++) {
            int dim = t->loop_dim[loop];
            length[dim] = t->choices[loop][place[loop]];
            count[loop] = parts_of(t->length[dim], length[dim]);
            total *= (double)count[loop];
        }
        for (int d = 0; d < t->n_dims; d++)
            computing *= (double)parts_of(length[d], t->unrolled[d]);
        for (int i = 0; i < t->n_tenants; i++) size[i] = tile_bytes(t, &t->tenants[i], length);
        computing = total * (computing / t->rate + t->task_cycles);
        if (t->has_partial_sums)
            computing += total * (double)size[t->n_tenants - 1] / t->partial_bytes_per_cycle;
        tiles->total[at] = total;
        tiles->computing[at] = computing;
        for (int doubled = 0; doubled < 2; doubled++)
            tiles->fits[doubled][at] = (char)fits(t, size, count, doubled);
        for (int loop = t->n_loops - 1; loop >= 0; loop--) {
            if (++place[loop] < t->n_choices[loop]) break;
            place[loop] = 0;
        }
    }
}

static double times_moved(
    const Trial *t, const Tenant *tenant, int64_t size, const int64_t *count, const int *order)
{
    double distinct = 1.0, again = 1.0, passes = 1.0;
    for (int i = 0; i < t->n_loops; i++) {
        passes *= (double)count[order[i]];
        if (tenant->depends[order[i]]) {
            distinct *= (double)count[order[i]];
            again = passes;
        }
    }
    if (tenant->is_result) return distinct;
    return distinct * (double)size <= (double)t->room[tenant->memory] / 2 ? distinct : again;
}

static Moved transfers(const Trial *t, const Tiles *tiles, int64_t at, const int *order)
{
    const int64_t *count = tiles->counts + at * t->n_loops, *size = tiles->sizes + at * t->n_tenants;
    Moved moved = {0.0, 0.0, 0.0, 0.0, 0.0};
    double early = 0.0, first_early = 0.0, lead = (double)t->lead_cycles;
    for (int i = 0; i < t->n_tenants; i++) {
        const Tenant *tenant = &t->tenants[i];
        if (tenant->bytes_per_cycle == 0.0) continue;
        double times = times_moved(t, tenant, size[i], count, order);
        double cycles = (double)size[i] / tenant->bytes_per_cycle + tenant->setup_cycles;
        moved.moving += times * cycles;
        moved.moved_bytes += times * (double)size[i];
        moved.energy += times * (double)size[i] * tenant->pj_per_byte;
        moved.first += cycles;
        if (tenant->is_constant) {
            early += times * cycles;
            first_early += cycles;
        }
    }
    moved.left = moved.moving - (early < lead ? early : lead);
    moved.first -= first_early < lead ? first_early : lead;
    return moved;
}

static double overlapped(double computing, const Moved *moved, int doubled)
{
    double moving = moved->left, first = moved->first;
    if (!doubled) return computing + moving;
    double longer = computing > moving ? computing : moving;
    double shorter = computing > moving ? moving : computing;
    return longer + shorter / 8 + (first < moving ? first : moving) / 2;
}

/* The first few of a list that grows, in the order of two values and of their coming. */
typedef struct {
    int64_t at[MOST_TOLD];
    double value[MOST_TOLD], second[MOST_TOLD];
    int n, most;
} Few;

static void insert(Few *few, int64_t at, double value, double second)
{
    int place = few->n;
    while (place > 0 && (value < few->value[place - 1] ||
                         (value == few->value[place - 1] && second < few->second[place - 1])))
        place--;
    if (place == few->most) return;
    if (few->n < few->most) few->n++;
    for (int i = few->n - 1; i > place; i--) {
        few->at[i] = few->at[i - 1];
        few->value[i] = few->value[i - 1];
        few->second[i] = few->second[i - 1];
    }
    few->at[place] = at;
    few->value[place] = value;
    few->second[place] = second;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* What seems best, and what has the fewest tiles, in ascending order without repetitions. */
static int promising(
    const Trial *t, const Tiles *tiles, int doubled, const double *values, int64_t *chosen)
{
    Few best = {.n = 0, .most = t->told}, fewest = {.n = 0, .most = t->told};
    for (int64_t at = 0; at < t->n; at++)
        if (tiles->fits[doubled][at]) {
            insert(&best, at, values[at], 0.0);
            insert(&fewest, at, tiles->total[at], values[at]);
        }
    int n = 0, kept = 0;
    for (int i = 0; i < best.n; i++) chosen[n++] = best.at[i];
    for (int i = 0; i < fewest.n; i++) chosen[n++] = fewest.at[i];
    qsort(chosen, (size_t)n, sizeof *chosen, ascending);
    for (int i = 0; i < n; i++)
        if (i == 0 || chosen[i] != chosen[kept - 1]) chosen[kept++] = chosen[i];
    return kept;
}

/* The fewest tiles among what is nearly as good as the best. */
static int64_t best_of(
    const Trial *t, const Tiles *tiles, int doubled, const double *values, const double *cycles)
{
    double least = INFINITY;
    int64_t best = -1;
    for (int64_t at = 0; at < t->n; at++)
        if (tiles->fits[doubled][at] && values[at] < least) least = values[at];
    for (int64_t at = 0; at < t->n; at++) {
        if (!tiles->fits[doubled][at] || !(values[at] <= t->nearly * least)) continue;
        if (best < 0 || tiles->total[at] < tiles->total[best] ||
            (tiles->total[at] == tiles->total[best] && cycles[at] < cycles[best]))
            best = at;
    }
    return best;
}

static PyObject *rows(
    const Trial *t, const Tiles *tiles, const int *order, const int64_t *chosen, int n)
{
    PyObject *found = PyTuple_New(n);
    for (int i = 0; found && i < n; i++) {
        int64_t at = chosen[i];
        Moved moved = transfers(t, tiles, at, order);
        PyObject *row = Py_BuildValue("(Lddddddd)", (long long)at, tiles->total[at],
                                      tiles->computing[at], moved.moving, moved.left, moved.first,
                                      moved.moved_bytes, moved.energy);
        if (!row) { Py_CLEAR(found); break; }
        PyTuple_SET_ITEM(found, i, row);
    }
    return found;
}

/* Appends (doubled, order, rows) to `found`. */
static int add(
    PyObject *found, const Trial *t, const Tiles *tiles, int doubled, int order, double *space)
{
    double *cycles = space, *values = space + t->n;
    int64_t chosen[MOST_TOLD];
    int any = 0, n = 1;
    for (int64_t at = 0; at < t->n; at++) {
        if (!tiles->fits[doubled][at]) continue;
        Moved moved = transfers(t, tiles, at, t->orders[order]);
        any = 1;
        cycles[at] = overlapped(tiles->computing[at], &moved, doubled);
        values[at] = t->goal == LATENCY  ? cycles[at]
                     : t->goal == ENERGY ? moved.energy
                                         : moved.moved_bytes;
    }
    if (!any) return 1;
    if (t->is_told)
        n = promising(t, tiles, doubled, values, chosen);
    else
        chosen[0] = best_of(t, tiles, doubled, values, cycles);
    PyObject *list = rows(t, tiles, t->orders[order], chosen, n);
    PyObject *entry = list ? Py_BuildValue("(iiN)", doubled, order, list) : NULL;
    int good = entry && PyList_Append(found, entry) == 0;
    Py_XDECREF(entry);
    return good;
}

static PyObject *search(const Trial *t)
{
    size_t n = (size_t)t->n;
    Tiles tiles;
    tiles.sizes = malloc(n * (size_t)(t->n_tenants + t->n_loops + 1) * sizeof(int64_t));
    double *space = malloc(n * 4 * sizeof(double));
    tiles.fits[0] = malloc(2 * n);
    PyObject *found = NULL;
    if (!tiles.sizes || !space || !tiles.fits[0]) {
        PyErr_NoMemory();
    } else {
        tiles.counts = tiles.sizes + n * (size_t)t->n_tenants;
        tiles.total = space + 2 * n;
        tiles.computing = space + 3 * n;
        tiles.fits[1] = tiles.fits[0] + n;
        fill(t, &tiles);
        found = PyList_New(0);
        for (int doubled = 1; found && doubled >= 0; doubled--)
            for (int order = 0; found && order < t->n_orders; order++)
                if (!add(found, t, &tiles, doubled, order, space)) Py_CLEAR(found);
    }
    free(tiles.sizes);
    free(space);
    free(tiles.fits[0]);
    return found;
}

/* candidates(numbers, figures): (doubled, order, rows) for whatever fits; None if the trial is too
 * large, or none at all. */
static PyObject *candidates(PyObject *module, PyObject *const *args, Py_ssize_t n_args)
{
    Py_buffer numbers, figures;
    if (n_args != 2) {
        PyErr_SetString(PyExc_TypeError, "candidates takes 2 arguments");
        return NULL;
    }
    if (PyObject_GetBuffer(args[0], &numbers, PyBUF_SIMPLE) < 0) return NULL;
    if (PyObject_GetBuffer(args[1], &figures, PyBUF_SIMPLE) < 0) {
        PyBuffer_Release(&numbers);
        return NULL;
    }
    Trial trial;
    const int64_t *first = numbers.buf;
    Reader reader = {first, first + numbers.len / (Py_ssize_t)sizeof(int64_t), 1};
    int good = read_trial(&reader, figures.buf, figures.len / (Py_ssize_t)sizeof(double), &trial);
    PyObject *found = good ? search(&trial) : Py_NewRef(Py_None);
    PyBuffer_Release(&numbers);
    PyBuffer_Release(&figures);
    return found;
}

static PyMethodDef methods[] = {
    {"candidates", (PyCFunction)(void (*)(void))candidates, METH_FASTCALL, "Cost tile lengths."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_tiles", .m_size = 0, .m_methods = methods,
};

PyMODINIT_FUNC PyInit__tiles(void) { return PyModuleDef_Init(&definition); }
