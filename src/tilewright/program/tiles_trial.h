/* What is tried, and how it is read from one array of whole numbers and one of others.
 *
 * tile_kernel.py writes them. Reading checks every number; what exceeds the limits below is left to
 * NumPy.
 */
#ifndef TILEWRIGHT_TILES_TRIAL_H
#define TILEWRIGHT_TILES_TRIAL_H

#include <stdint.h>
#include <string.h>

enum { DIMS = 16, LOOPS = 8, TENANTS = 12, MEMORIES = 8, ORDERS = 4, AXES = 8, TERMS = 4 };
enum { MOST_TOLD = 64, STREAMED = 4 };
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
    unsigned loops; /* Bits of those that its tiles depend on. */
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
    int n_streamed;
    Tenant streamed[STREAMED]; /* They lie in no memory. */
    int orders[ORDERS][LOOPS];
    double rate, partial_bytes_per_cycle, nearly, task_cycles;
    int64_t n;
} Trial;

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
                if (t->loop_dim[loop] == axis->dims[i]) tenant->loops |= 1u << loop;
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
    t->n_streamed = (int)take(r, 0, STREAMED);
    for (int i = 0; i < t->n_streamed; i++) read_tenant(r, t, &t->streamed[i]);
    int n_all = t->n_tenants + t->n_streamed;
    if (!r->is_good || r->next != r->end || n_figures != 4 + 3 * n_all) return 0;
    t->rate = *figures++;
    t->partial_bytes_per_cycle = *figures++;
    t->nearly = *figures++;
    t->task_cycles = *figures++;
    for (int i = 0; i < n_all; i++) {
        Tenant *tenant = i < t->n_tenants ? &t->tenants[i] : &t->streamed[i - t->n_tenants];
        tenant->bytes_per_cycle = *figures++;
        tenant->setup_cycles = *figures++;
        tenant->pj_per_byte = *figures++;
    }
    return t->n_tenants > 0 || !t->has_partial_sums;
}

#endif
