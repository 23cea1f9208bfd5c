/* Where the loops of an order go: the same as allocate.py, which says what it means. */
#ifndef TILEWRIGHT_KERNEL_ALLOCATE_H
#define TILEWRIGHT_KERNEL_ALLOCATE_H

#include "kernel_candidate.h"

typedef struct {
    int first, last; /* cuts that the operand may end its level at */
    double bits[LOOPS + 1], cost[LOOPS + 1];
} Choice;

typedef struct {
    int n_held, even, found, cuts[OPERANDS], best[OPERANDS];
    const int *starts[OPERANDS];
    double capacity, least_cost;
    Choice choices[OPERANDS];
} Pick;

/* Products of an uneven loop from `start` on, one factor after the other. */
static void grow(Candidate *c, const Operand *o, int operand, int level, int start)
{
    for (int i = 0; i < o->n_uneven; i++) {
        double *products = c->uneven[operand][i];
        double value = (level ? products[start] : 1.0) * o->uneven_factor[i][level];
        for (int place = 0; place <= c->length; place++) {
            if (place > start && c->loop[place - 1] == o->uneven[i]) value *= c->size[place - 1];
            products[place] = value;
        }
    }
}

static double elements_before(
    const Candidate *c, const Operand *o, int operand, int level, int place)
{
    if (o->n_uneven == 0) return elements(o, c->extent[place], o->fine.factor[level]);
    double extent[DIMS], factor[DIMS];
    memcpy(extent, c->extent[place], sizeof extent);
    memcpy(factor, o->fine.factor[level], sizeof factor);
    for (int i = 0; i < o->n_uneven; i++) {
        extent[o->uneven[i]] = c->uneven[operand][i][place];
        factor[o->uneven[i]] = 1.0;
    }
    return elements(o, extent, factor);
}

/* Bits per element: a result is wide as long as anything is still to be added to it. */
static double element_bits(const Candidate *c, const Operand *o, int level, int start)
{
    if (o->stays_wide[level]) return o->bits;
    for (int place = c->length - 1; place >= start; place--)
        if (has(o->irrelevant, c->loop[place])) return o->bits;
    return revisits(c, o, &o->fine, level, start) ? o->bits : o->final_bits;
}

/* The cuts an operand may take; 0 if there is none, or if its top memory cannot hold all of it. */
static int choose(
    Candidate *c, const Operand *o, int operand, const Memory *memory, int level, Choice *to)
{
    int start = level ? c->ends[operand][level - 1] : 0, is_top = level == o->depth - 1;
    if (o->n_uneven) grow(c, o, operand, level, start);
    double width = element_bits(c, o, level, start), held = 0, whole = 0;
    if (is_top || memory->doubles)
        whole = elements_before(c, o, operand, level, c->length) * width;
    if (is_top && !(whole <= memory->capacity)) return 0;
    /* What is held only grows from cut to cut, unless it is doubled: all of it fits, so all fit. */
    to->first = is_top && !memory->doubles ? c->length : start;
    to->last = to->first - 1;
    for (int place = to->first; place <= c->length; place++) {
        if (place == c->length && is_top) held = whole;
        else if (place == to->first || has(o->read, c->loop[place - 1]))
            held = elements_before(c, o, operand, level, place) * width;
        double bits = memory->doubles && place < c->length && held < whole ? held * 2 : held;
        if (!(bits <= memory->capacity)) break;
        to->bits[place] = bits;
        to->cost[place] = is_top ? 0 : bits * c->left[place];
        to->last = place;
    }
    if (is_top) to->first = to->last;
    return to->last >= start && (!is_top || to->last == c->length);
}

/* Whether no loop is taken for one operand and left for another. */
static int together(const Pick *pick)
{
    for (int i = 0; i < pick->n_held; i++)
        for (int j = 0; j < pick->n_held; j++)
            if (i != j && pick->cuts[i] > *pick->starts[i] && pick->cuts[i] > pick->cuts[j])
                return 0;
    return 1;
}

/* Tries all combinations of cuts, the last one first: it is often the best, and it is the one to
 * take among equals. Sums only grow, so one that is too large already is given up. */
static void combine(Pick *pick, int number, double bits, double cost)
{
    if (number == pick->n_held || number == OPERANDS) {
        if (pick->even && !together(pick)) return;
        pick->found = 1;
        pick->least_cost = cost;
        memcpy(pick->best, pick->cuts, sizeof pick->best);
        return;
    }
    const Choice *choice = &pick->choices[number];
    for (int cut = choice->last; cut >= choice->first; cut--) {
        double more_bits = bits + choice->bits[cut], more_cost = cost + choice->cost[cut];
        if (!(more_bits <= pick->capacity && more_cost < pick->least_cost)) continue;
        pick->cuts[number] = cut;
        combine(pick, number + 1, more_bits, more_cost);
    }
}

/* Whether the smallest of all choices would fit together: where they do, some combination does,
 * unless loops have to stay together. */
static int smallest_fit(const Pick *pick)
{
    double least = 0;
    for (int i = 0; i < pick->n_held; i++) {
        const Choice *choice = &pick->choices[i];
        double smallest = choice->bits[choice->first];
        for (int cut = choice->first; cut <= choice->last; cut++)
            smallest = smaller(smallest, choice->bits[cut]);
        least += smallest;
    }
    return least <= pick->capacity;
}

static int allocate(const Setup *s, Candidate *c, int even)
{
    static const int zero = 0;
    Pick pick;
    for (int place = 0; place <= c->length; place++)
        c->left[place] = c->iterations[c->length] / c->iterations[place];
    for (int m = 0; m < s->n_memories; m++) {
        const Memory *memory = &s->memories[m];
        for (int i = 0; i < memory->n_held; i++) {
            int operand = memory->held[i], level = memory->level[i];
            const Operand *o = &s->operands[operand];
            if (!choose(c, o, operand, memory, level, &pick.choices[i])) return 0;
            pick.starts[i] = level ? &c->ends[operand][level - 1] : &zero;
        }
        pick.n_held = memory->n_held;
        pick.even = even;
        pick.found = 0;
        pick.capacity = memory->capacity;
        pick.least_cost = INFINITY;
        combine(&pick, 0, 0.0, 0.0);
        if (!pick.found && !smallest_fit(&pick)) return 0;
        for (int i = 0; i < memory->n_held; i++) {
            int operand = memory->held[i], level = memory->level[i];
            int end = pick.found ? pick.best[i] : *pick.starts[i];
            c->ends[operand][level] = end;
            if (level == s->operands[operand].depth - 1 && end != c->length) return 0;
        }
    }
    return 1;
}

#endif
