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

#include "tiles_trial.h"

typedef struct {
    double moving, left, first, moved_bytes, energy;
} Moved;

/* Numbers, one of which was compared: with all others all comparisons turn out the same. */
typedef struct {
    int64_t least, most;
} Range;

/* No size is compared beyond this, so that a few times as much is still a number. */
static const int64_t LARGEST = INT64_C(1) << 58;

/* The combinations: a row of `sizes` and of `counts` for each. */
typedef struct {
    int64_t *sizes, *counts;
    int64_t *divided, *parts[LOOPS], *steps[LOOPS];
    double *total, *computing, *streamed_bytes, *streamed_energy;
    char *fits[2];
    Moved *moved[ORDERS];
    double *cycles, *values;
    int64_t *told;
    Range room[MEMORIES];
    double early;
    PyObject *ask;
} Tiles;

enum { UNKNOWN = -2, NOT_ITS_WORK = -1 };

static int64_t parts_of(int64_t value, int64_t step) { return (value + step - 1) / step; }

static int64_t tile_bytes(const Trial *t, const Tenant *tenant, const int64_t *length)
{
    int64_t elements = tenant->elements;
    for (int a = 0; a < tenant->n_axes; a++) {
        const Axis *axis = &tenant->axes[a];
        int64_t reach = axis->reach;
        for (int i = 0; i < axis->n_terms; i++)
            reach += axis->factors[i] * (length[axis->dims[i]] - 1);
        /* Divisions take most of the time here, and these two are hardly ever needed. */
        int64_t extent = (axis->divisor == 1 ? reach : reach / axis->divisor) + 1;
        elements *= extent < axis->size ? extent : axis->size;
    }
    int64_t bytes = parts_of(elements * tenant->bits, 8), beyond = t->alignment - 1;
    if ((t->alignment & beyond) == 0) return (bytes + beyond) & ~beyond;
    return parts_of(bytes, t->alignment) * t->alignment;
}

/* Whether there is as much room as wanted, and for which other rooms the answer is the same. */
static int has_room(int64_t room, int64_t wanted, Range *range)
{
    if (room < wanted) {
        if (range->most >= wanted) range->most = wanted - 1;
        return 0;
    }
    if (range->least < wanted) range->least = wanted;
    return 1;
}

static int64_t whole(double size) { return size < (double)LARGEST ? (int64_t)size : LARGEST; }

/* Whether tiles fit, one of each tenant or two of each that is cut. `cut` has the bits of loops of
 * which there are several tiles. */
static int fits(const Trial *t, Range *ranges, const int64_t *size, unsigned cut, int doubled)
{
    double need[MEMORIES] = {0.0};
    int is_used[MEMORIES] = {0};
    for (int i = 0; i < t->n_tenants; i++) {
        const Tenant *tenant = &t->tenants[i];
        int64_t copies = doubled && (tenant->loops & cut) ? 2 : 1;
        need[tenant->memory] += (double)(copies * size[i]);
        is_used[tenant->memory] = 1;
    }
    if (t->n_memories == 0) return 1;
    for (int m = 0; m < t->n_memories; m++) {
        int64_t wanted = is_used[m] ? whole(need[m]) : 0;
        /* Two tiles of everything may take 7/8 of a memory, rounded down. */
        if (doubled) wanted = parts_of(8 * wanted, 7);
        if (!has_room(t->room[m], wanted, &ranges[m])) return 0;
    }
    return 1;
}

/* Steps of the array over the loops that are not cut: whole numbers, in whatever order. */
static double uncut_steps(const Trial *t)
{
    double steps = 1.0;
    for (int d = 0; d < t->n_dims; d++) {
        int is_cut = 0;
        for (int loop = 0; loop < t->n_loops; loop++) is_cut |= t->loop_dim[loop] == d;
        if (!is_cut) steps *= (double)parts_of(t->length[d], t->unrolled[d]);
    }
    return steps;
}

/* For each length of a loop that is tried: how many tiles that makes, and steps of the array. */
static void divide(const Trial *t, Tiles *tiles)
{
    int64_t *next = tiles->divided;
    for (int loop = 0; loop < t->n_loops; loop++) {
        int64_t length = t->length[t->loop_dim[loop]], unrolled = t->unrolled[t->loop_dim[loop]];
        tiles->parts[loop] = next;
        tiles->steps[loop] = next + t->n_choices[loop];
        for (int64_t i = 0; i < t->n_choices[loop]; i++) {
            tiles->parts[loop][i] = parts_of(length, t->choices[loop][i]);
            tiles->steps[loop][i] = parts_of(t->choices[loop][i], unrolled);
        }
        next += 2 * t->n_choices[loop];
    }
}

static void fill(const Trial *t, Tiles *tiles)
{
    int64_t length[DIMS], place[LOOPS] = {0};
    double uncut = uncut_steps(t);
    int changed = 0; /* The first loop whose length is not that of the combination before. */
    divide(t, tiles);
    memcpy(length, t->length, sizeof length);
    for (int64_t at = 0; at < t->n; at++) {
        int64_t *count = tiles->counts + at * t->n_loops, *size = tiles->sizes + at * t->n_tenants;
        double total = 1.0, computing = uncut;
        unsigned cut = 0;
        for (int loop = 0; loop < t->n_loops; loop++) {
            length[t->loop_dim[loop]] = t->choices[loop][place[loop]];
            count[loop] = tiles->parts[loop][place[loop]];
            cut |= (unsigned)(count[loop] > 1) << loop;
            total *= (double)count[loop];
            computing *= (double)tiles->steps[loop][place[loop]];
        }
        for (int i = 0; i < t->n_tenants; i++) {
            int is_same = at > 0 && t->tenants[i].loops >> changed == 0;
            size[i] = is_same ? size[i - t->n_tenants] : tile_bytes(t, &t->tenants[i], length);
        }
        double waiting = 0.0;
        tiles->streamed_bytes[at] = tiles->streamed_energy[at] = 0.0;
        for (int i = 0; i < t->n_streamed; i++) {
            double read = (double)tile_bytes(t, &t->streamed[i], length);
            waiting += read / t->streamed[i].bytes_per_cycle;
            tiles->streamed_bytes[at] += total * read;
            tiles->streamed_energy[at] += total * read * t->streamed[i].pj_per_byte;
        }
        computing /= t->rate;
        computing = total * ((computing > waiting ? computing : waiting) + t->task_cycles);
        if (t->has_partial_sums)
            computing += total * (double)size[t->n_tenants - 1] / t->partial_bytes_per_cycle;
        tiles->total[at] = total;
        tiles->computing[at] = computing;
        tiles->told[at] = UNKNOWN;
        tiles->fits[0][at] = (char)fits(t, tiles->room, size, cut, 0);
        tiles->fits[1][at] = (char)(tiles->fits[0][at] && fits(t, tiles->room, size, cut, 1));
        for (changed = t->n_loops - 1; changed >= 0; changed--) {
            if (++place[changed] < t->n_choices[changed]) break;
            place[changed] = 0;
        }
        if (changed < 0) changed = 0;
    }
}

static double times_moved(
    const Trial *t, Tiles *tiles, const Tenant *tenant, int64_t size, const int64_t *count,
    const int *order)
{
    double distinct = 1.0, again = 1.0, passes = 1.0;
    for (int i = 0; i < t->n_loops; i++) {
        passes *= (double)count[order[i]];
        if (tenant->loops >> order[i] & 1) {
            distinct *= (double)count[order[i]];
            again = passes;
        }
    }
    if (tenant->is_result || again == distinct) return distinct;
    int64_t wanted = 2 * whole(distinct * (double)size);
    int stays = has_room(t->room[tenant->memory], wanted, &tiles->room[tenant->memory]);
    return stays ? distinct : again;
}

/* What a combination moves in every order of the tiles. */
static void transfers(const Trial *t, Tiles *tiles, int64_t at)
{
    const int64_t *count = tiles->counts + at * t->n_loops, *size = tiles->sizes + at * t->n_tenants;
    double early[ORDERS] = {0.0}, first_early = 0.0, lead = (double)t->lead_cycles;
    for (int i = 0; i < t->n_tenants; i++) {
        const Tenant *tenant = &t->tenants[i];
        if (tenant->bytes_per_cycle == 0.0) continue;
        double cycles = (double)size[i] / tenant->bytes_per_cycle + tenant->setup_cycles;
        if (tenant->is_constant) first_early += cycles;
        for (int order = 0; order < t->n_orders; order++) {
            Moved *moved = &tiles->moved[order][at];
            double times = times_moved(t, tiles, tenant, size[i], count, t->orders[order]);
            moved->moving += times * cycles;
            moved->moved_bytes += times * (double)size[i];
            moved->energy += times * (double)size[i] * tenant->pj_per_byte;
            moved->first += cycles;
            if (tenant->is_constant) early[order] += times * cycles;
        }
    }
    for (int order = 0; order < t->n_orders; order++) {
        Moved *moved = &tiles->moved[order][at];
        moved->moved_bytes += tiles->streamed_bytes[at];
        moved->energy += tiles->streamed_energy[at];
        if (early[order] > tiles->early) tiles->early = early[order];
        moved->left = moved->moving - (early[order] < lead ? early[order] : lead);
        moved->first -= first_early < lead ? first_early : lead;
    }
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

/* What was found, and for which leads and rooms it is the same: the least and the most of each. */
static PyObject *with_scope(PyObject *found, const Trial *t, const Tiles *tiles)
{
    PyObject *scope = found ? PyTuple_New(2 + 2 * t->n_memories) : NULL;
    Range lead = {t->lead_cycles, t->lead_cycles};
    /* All that can come early does so: more time for it changes nothing. */
    if (tiles->early <= (double)t->lead_cycles)
        lead = (Range){(int64_t)ceil(tiles->early), INT64_MAX};
    for (int i = 0; scope && i <= t->n_memories; i++) {
        Range range = i ? tiles->room[i - 1] : lead;
        PyTuple_SET_ITEM(scope, 2 * i, PyLong_FromLongLong((long long)range.least));
        PyTuple_SET_ITEM(scope, 2 * i + 1, PyLong_FromLongLong((long long)range.most));
    }
    PyObject *both = scope && !PyErr_Occurred() ? PyTuple_Pack(2, found, scope) : NULL;
    Py_XDECREF(found);
    Py_XDECREF(scope);
    return both;
}

static PyObject *search(const Trial *t, PyObject *ask)
{
    size_t n = (size_t)t->n, tenants = (size_t)t->n_tenants, loops = (size_t)t->n_loops;
    Tiles tiles = {.ask = ask};
    for (int m = 0; m < t->n_memories; m++) tiles.room[m] = (Range){INT64_MIN, INT64_MAX};
    size_t n_choices = 0;
    for (size_t loop = 0; loop < loops; loop++) n_choices += (size_t)t->n_choices[loop];
    int64_t *whole = malloc((n * (tenants + loops + 1) + 2 * n_choices) * sizeof(int64_t));
    double *figures = malloc(n * 6 * sizeof(double));
    char *fits = malloc(2 * n);
    Moved *moved = calloc(n * (size_t)t->n_orders, sizeof(Moved));
    PyObject *found = NULL;
    if (!whole || !figures || !fits || !moved) {
        PyErr_NoMemory();
    } else {
        tiles.sizes = whole;
        tiles.counts = whole + n * tenants;
        tiles.told = whole + n * (tenants + loops);
        tiles.divided = whole + n * (tenants + loops + 1);
        tiles.total = figures;
        tiles.computing = figures + n;
        tiles.streamed_bytes = figures + 4 * n;
        tiles.streamed_energy = figures + 5 * n;
        tiles.cycles = figures + 2 * n;
        tiles.values = figures + 3 * n;
        tiles.fits[0] = fits;
        tiles.fits[1] = fits + n;
        fill(t, &tiles);
        for (int order = 0; order < t->n_orders; order++)
            tiles.moved[order] = moved + n * (size_t)order;
        for (int64_t at = 0; at < t->n; at++)
            if (tiles.fits[0][at]) transfers(t, &tiles, at);
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
    return with_scope(found, t, &tiles);
}

/* best(numbers, figures, ask): for every order of the tiles that fits, and is not as another one,
 * (doubled, order, combination, cycles, moving cycles, moved bytes, value), and the leads and rooms
 * for which all this is the same; None if the trial is too large, or none at all. `ask` tells the
 * cycles of a combination's tiles, or None. */
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
