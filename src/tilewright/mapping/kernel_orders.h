/* Loop orders to try: the same as orders.py, which says what it means. */
#ifndef TILEWRIGHT_KERNEL_ORDERS_H
#define TILEWRIGHT_KERNEL_ORDERS_H

#include "kernel_unroll.h"

/* The arrangements of a multiset in cool-lex order, one after the other. */
typedef struct {
    int last, i, j;
    int64_t items[LOOPS]; /* in non-increasing order to begin with */
} Arrangement;

static void begin(Arrangement *a, int n_items)
{
    a->last = n_items - 1;
    a->i = a->last > 0 ? a->last - 1 : 0;
    a->j = a->last;
}

/* Goes on to the next one; how many of the first items changed, 0 if there is no other. */
static int go_on(Arrangement *a)
{
    if (a->j >= a->last && a->items[a->j] >= a->items[0]) return 0;
    int moved = a->j < a->last && a->items[a->i] >= a->items[a->j + 1] ? a->j + 1 : a->j;
    int64_t value = a->items[moved];
    memmove(a->items + 1, a->items, sizeof(int64_t) * (size_t)moved);
    a->items[0] = value;
    a->i = a->last > 0 && value < a->items[1] ? 0 : a->i + 1;
    a->j = a->i + 1;
    return moved + 1;
}

/* Factors of one loop, smallest first. */
typedef struct {
    int n;
    double parts[LOOPS];
} Factors;

static void set_primes(double size, Factors *to)
{
    int64_t left = (int64_t)size;
    to->n = 0;
    for (int64_t divisor = 2; divisor * divisor <= left; divisor++)
        for (; left % divisor == 0; left /= divisor) to->parts[to->n++] = (double)divisor;
    if (left > 1) to->parts[to->n++] = (double)left;
}

/* Replaces the two smallest factors by their product. */
static void merge(Factors *factors)
{
    double product = factors->parts[0] * factors->parts[1];
    int at = 0;
    for (; at + 2 < factors->n && factors->parts[at + 2] <= product; at++)
        factors->parts[at] = factors->parts[at + 2];
    factors->parts[at] = product;
    for (at++; at + 1 < factors->n; at++) factors->parts[at] = factors->parts[at + 1];
    factors->n--;
}

/* Factors of the iterations left of each loop, at most `limit` in all if it is not negative. */
static int set_factors(const double *left, int n_dims, int limit, Factors *to)
{
    int total = 0, loops = 0;
    for (int dim = 0; dim < n_dims; dim++) {
        set_primes(left[dim], &to[dim]);
        total += to[dim].n;
        loops += left[dim] > 1;
    }
    for (; limit >= 0 && total > limit && total > loops; total--) {
        int most = 0;
        for (int dim = 1; dim < n_dims; dim++)
            if (to[dim].n > to[most].n) most = dim;
        if (to[most].n < 2) break;
        merge(&to[most]);
    }
    return total;
}

/* The orders in which the factors of each loop stand smallest first. */
typedef struct {
    int n, dim[LOOPS], first[LOOPS]; /* of each factor: its loop, and the loop's first factor */
    double size[LOOPS];
} Ascending;

/* Factors by the names of their loops; 0 if they are too many. */
static int set_ascending(const Frame *frame, const Setup *s, const double *left, int limit,
                         Ascending *to)
{
    Factors factors[DIMS];
    int total = set_factors(left, s->n_dims, limit, factors);
    if (total > LOOPS) return 0;
    to->n = 0;
    for (int rank = 0; rank < s->n_dims; rank++)
        for (int dim = 0; dim < s->n_dims; dim++) {
            if (frame->rank[dim] != rank) continue;
            for (int i = 0; i < factors[dim].n; i++) {
                to->dim[to->n] = dim;
                to->first[to->n] = to->n - i;
                to->size[to->n++] = factors[dim].parts[i];
            }
        }
    if (to->n == 0) {
        to->dim[0] = to->first[0] = 0;
        to->size[to->n++] = 1.0;
    }
    return 1;
}

/* Takes over the first places of an arrangement, those that changed. */
static void load_ascending(
    const Setup *s, const Ascending *orders, const Arrangement *a, int changed, Candidate *c)
{
    int met[LOOPS] = {0};
    for (int place = 0; place < changed; place++) {
        int first = (int)a->items[place], factor = first + met[first]++;
        c->loop[place] = (unsigned char)orders->dim[factor];
        c->size[place] = orders->size[factor];
        c->iterations[place + 1] = c->iterations[place] * c->size[place];
        memcpy(c->extent[place + 1], c->extent[place], sizeof(double) * (size_t)s->n_dims);
        c->extent[place + 1][c->loop[place]] *= c->size[place];
    }
}

#endif
