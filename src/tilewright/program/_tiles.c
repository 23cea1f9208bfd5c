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
    int64_t size, divisor, reach;
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

typedef struct {
    double moving, left, first, moved_bytes, energy;
} Moved;

/* The combinations: a row of `sizes` and of `counts` for each. */
typedef struct {
    int64_t *sizes, *counts;
    double *total, *computing;
    char *fits[2];
    Moved *moved[ORDERS];
    double *cycles, *values;
    int64_t *told;
    PyObject *ask;
} Tiles;

enum { UNKNOWN = -2, NOT_ITS_WORK = -1 };

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
        axis->reach = take(r, 0, INT64_MAX);
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
        int64_t reach = axis->reach;
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
        tiles->told[at] = UNKNOWN;
        tiles->fits[0][at] = (char)fits(t, size, count, 0);
        tiles->fits[1][at] = (char)(tiles->fits[0][at] && fits(t, size, count, 1));
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

/* Cycles of a combination as a model of the core has them, or as they are estimated; negative, and
 * an exception, if the model fails. */
static double known_cycles(
    const Trial *t, Tiles *tiles, int64_t at, const Moved *moved, int doubled)
{
    double computing = tiles->computing[at];
    if (t->is_told) {
        if (tiles->told[at] == UNKNOWN) {
            PyObject *answer = PyObject_CallFunction(tiles->ask, "L", (long long)at);
            if (!answer) return -1.0;
            tiles->told[at] = answer == Py_None ? NOT_ITS_WORK : PyLong_AsLongLong(answer);
            Py_DECREF(answer);
            if (PyErr_Occurred()) return -1.0;
        }
        if (tiles->told[at] != NOT_ITS_WORK)
            computing = tiles->total[at] * ((double)tiles->told[at] + t->task_cycles);
    }
    return overlapped(computing, moved, doubled);
}

/* The best of those a model of the core is asked about; -1, and an exception, if it fails. For
 * other goals than latency time only tells equals apart: no more are asked for than that takes. */
static int64_t best_told(const Trial *t, Tiles *tiles, int doubled, int order)
{
    const Moved *moved = tiles->moved[order];
    int64_t chosen[MOST_TOLD], best = -1;
    int n = promising(t, tiles, doubled, tiles->values, chosen);
    double least = INFINITY, fewest = INFINITY;
    for (int i = 0; i < n; i++) {
        int64_t at = chosen[i];
        if (t->goal == LATENCY) {
            tiles->values[at] = known_cycles(t, tiles, at, &moved[at], doubled);
            if (tiles->values[at] < 0.0) return -1;
        }
        if (tiles->values[at] < least) least = tiles->values[at];
    }
    for (int i = 0; i < n; i++)
        if (tiles->values[chosen[i]] <= t->nearly * least && tiles->total[chosen[i]] < fewest)
            fewest = tiles->total[chosen[i]];
    for (int i = 0; i < n; i++) {
        int64_t at = chosen[i];
        if (!(tiles->values[at] <= t->nearly * least) || tiles->total[at] != fewest) continue;
        tiles->cycles[at] = known_cycles(t, tiles, at, &moved[at], doubled);
        if (tiles->cycles[at] < 0.0) return -1;
        if (best < 0 || tiles->cycles[at] < tiles->cycles[best]) best = at;
    }
    return best;
}

/* Appends the best combination of an order to `found`, if any fits. */
static int add(PyObject *found, const Trial *t, Tiles *tiles, int doubled, int order)
{
    const Moved *moved = tiles->moved[order];
    int any = 0;
    for (int64_t at = 0; at < t->n; at++) {
        if (!tiles->fits[doubled][at]) continue;
        any = 1;
        tiles->cycles[at] = overlapped(tiles->computing[at], &moved[at], doubled);
        tiles->values[at] = t->goal == LATENCY  ? tiles->cycles[at]
                            : t->goal == ENERGY ? moved[at].energy
                                                : moved[at].moved_bytes;
    }
    if (!any) return 1;
    int64_t at = t->is_told ? best_told(t, tiles, doubled, order)
                            : best_of(t, tiles, doubled, tiles->values, tiles->cycles);
    if (at < 0) return 0;
    PyObject *entry = Py_BuildValue("(iiLdddd)", doubled, order, (long long)at, tiles->cycles[at],
                                    moved[at].moving, moved[at].moved_bytes, tiles->values[at]);
    int good = entry && PyList_Append(found, entry) == 0;
    Py_XDECREF(entry);
    return good;
}

/* Whether one order moves exactly what another one does: then it is no better. */
static int is_repeated(const Trial *t, const Tiles *tiles, int order)
{
    size_t size = (size_t)t->n * sizeof(Moved);
    for (int other = 0; other < order; other++)
        if (memcmp(tiles->moved[order], tiles->moved[other], size) == 0) return 1;
    return 0;
}

static PyObject *search(const Trial *t, PyObject *ask)
{
    size_t n = (size_t)t->n, tenants = (size_t)t->n_tenants, loops = (size_t)t->n_loops;
    Tiles tiles = {.ask = ask};
    int64_t *whole = malloc(n * (tenants + loops + 1) * sizeof(int64_t));
    double *figures = malloc(n * 4 * sizeof(double));
    char *fits = malloc(2 * n);
    Moved *moved = calloc(n * (size_t)t->n_orders, sizeof(Moved));
    PyObject *found = NULL;
    if (!whole || !figures || !fits || !moved) {
        PyErr_NoMemory();
    } else {
        tiles.sizes = whole;
        tiles.counts = whole + n * tenants;
        tiles.told = whole + n * (tenants + loops);
        tiles.total = figures;
        tiles.computing = figures + n;
        tiles.cycles = figures + 2 * n;
        tiles.values = figures + 3 * n;
        tiles.fits[0] = fits;
        tiles.fits[1] = fits + n;
        fill(t, &tiles);
        for (int order = 0; order < t->n_orders; order++) {
            tiles.moved[order] = moved + n * (size_t)order;
            for (int64_t at = 0; at < t->n; at++)
                if (tiles.fits[0][at])
                    tiles.moved[order][at] = transfers(t, &tiles, at, t->orders[order]);
        }
        found = PyList_New(0);
        for (int doubled = 1; found && doubled >= 0; doubled--)
            for (int order = 0; found && order < t->n_orders; order++)
                if (!is_repeated(t, &tiles, order) && !add(found, t, &tiles, doubled, order))
                    Py_CLEAR(found);
    }
    free(whole);
    free(figures);
    free(fits);
    free(moved);
    return found;
}

/* best(numbers, figures, ask): for every order of the tiles that fits, and is not as another one,
 * (doubled, order, combination, cycles, moving cycles, moved bytes, value); None if the trial is
 * too large, or none at all. `ask` tells the cycles of a combination's tiles, or None. */
static PyObject *best(PyObject *module, PyObject *const *args, Py_ssize_t n_args)
{
    Py_buffer numbers, figures;
    if (n_args != 3) {
        PyErr_SetString(PyExc_TypeError, "best takes 3 arguments");
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
    PyObject *found = good ? search(&trial, args[2]) : Py_NewRef(Py_None);
    PyBuffer_Release(&numbers);
    PyBuffer_Release(&figures);
    return found;
}

static PyMethodDef methods[] = {
    {"best", (PyCFunction)(void (*)(void))best, METH_FASTCALL, "The best tile lengths by order."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_tiles", .m_size = 0, .m_methods = methods,
};

PyMODINIT_FUNC PyInit__tiles(void) { return PyModuleDef_Init(&definition); }
