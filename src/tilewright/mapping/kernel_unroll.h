/* An unrolling spread over the levels of every operand: the same as attach.py and what kernel.py
 * describes of it, which say what it means. One loop runs along an array dim, or none. */
#ifndef TILEWRIGHT_KERNEL_UNROLL_H
#define TILEWRIGHT_KERNEL_UNROLL_H

#include "kernel_candidate.h"

enum { ARRAY_DIMS = 16 };

/* What is fixed while unrollings of a nest are tried, beside the setup without any. */
typedef struct {
    int n_array_dims, serving[ARRAY_DIMS][OPERANDS]; /* levels at which array dims are served */
    double size[DIMS], width[ARRAY_DIMS];
    int rank[DIMS];                  /* of loops by their names */
    int systolic[ARRAY_DIMS];
    int level[LINKS], below[LINKS];  /* of links; whether they join it with the one below */
    int joined[OPERANDS][LEVELS];    /* relations along which units share, as bits: see wires.py */
} Frame;

/* Loops along array dims, in the order of the unrolling. */
typedef struct {
    int n, array_dim[ARRAY_DIMS], loop[ARRAY_DIMS];
    double factor[ARRAY_DIMS], fine[ARRAY_DIMS], whole[ARRAY_DIMS];
} Places;

/* Loops that are unrolled at one arch level, each once. */
typedef struct {
    int n, loop[DIMS];
    double factor[DIMS];
} Shelf;

static int read_frame(const double *values, ptrdiff_t length, const Setup *s, Frame *to)
{
    Reader from = {values, values + length, 0};
    to->n_array_dims = number(&from, ARRAY_DIMS);
    for (int dim = 0; dim < s->n_dims; dim++) {
        to->size[dim] = real(&from);
        if (!(to->size[dim] >= 1 && to->size[dim] < EXACT)) return 0;
        to->rank[dim] = number(&from, s->n_dims - 1);
    }
    for (int dim = 0; dim < to->n_array_dims; dim++) {
        to->width[dim] = real(&from);
        to->systolic[dim] = number(&from, 1);
        for (int operand = 0; operand < s->n_operands; operand++)
            to->serving[dim][operand] = number(&from, s->operands[operand].depth);
    }
    for (int row = 0; row < s->n_links; row++) {
        to->level[row] = number(&from, s->operands[s->links[row].operand].depth - 1);
        to->below[row] = number(&from, 1);
    }
    for (int operand = 0; operand < s->n_operands; operand++)
        for (int level = 0; level < s->operands[operand].depth; level++)
            to->joined[operand][level] = number(&from, (1 << RELATIONS) - 1);
    return !from.failed && from.at == from.end;
}

/* Fine and whole factors of all places; the widest of each loop takes up the remainder. */
static void share_out(const Frame *frame, Places *to)
{
    int widest[DIMS];
    double most[DIMS] = {0}, done[DIMS];
    for (int i = 0; i < to->n; i++) {
        int loop = to->loop[i];
        to->fine[i] = smaller(to->factor[i], frame->width[to->array_dim[i]]);
        done[loop] = 1.0;
        if (to->fine[i] > most[loop]) {
            most[loop] = to->fine[i];
            widest[loop] = i;
        }
    }
    for (int i = 0; i < to->n; i++) {
        int loop = to->loop[i];
        if (widest[loop] == i) {
            double size = frame->size[loop];
            to->fine[i] = size / up(size / (to->fine[i] * done[loop])) / done[loop];
        }
        done[loop] *= to->fine[i];
        to->whole[i] = down(to->fine[i]);
    }
}

/* Places from triples of an array dim, a loop and its factor. */
static int read_places(
    const double *values, ptrdiff_t length, const Setup *s, const Frame *frame, Places *to)
{
    Reader from = {values, values + length, 0};
    int taken[ARRAY_DIMS] = {0};
    if (length % 3 || length > 3 * ARRAY_DIMS) return 0;
    to->n = (int)(length / 3);
    for (int i = 0; i < to->n; i++) {
        to->array_dim[i] = number(&from, frame->n_array_dims - 1);
        to->loop[i] = number(&from, s->n_dims - 1);
        to->factor[i] = real(&from);
        if (taken[to->array_dim[i]]++ || !(to->factor[i] >= 1)) return 0;
    }
    if (from.failed) return 0;
    share_out(frame, to);
    return 1;
}

/* The loops unrolled at each arch level of an operand; one on several array dims: the product. */
static void spread(
    const Frame *frame, const Places *places, const double *factors, int operand, Shelf *shelves)
{
    for (int i = 0; i < places->n; i++) {
        Shelf *shelf = &shelves[frame->serving[places->array_dim[i]][operand]];
        int at = 0;
        while (at < shelf->n && shelf->loop[at] != places->loop[i]) at++;
        if (at == shelf->n) {
            shelf->loop[shelf->n] = places->loop[i];
            shelf->factor[shelf->n++] = 1.0;
        }
        shelf->factor[at] *= factors[i];
    }
}

static void set_unrolled(const Operand *o, const Shelf *shelves, Unrolled *to)
{
    double product[DIMS];
    int last = 0;
    for (int dim = 0; dim < DIMS; dim++) product[dim] = 1.0;
    for (int level = 0; level <= o->depth; level++)
        for (int i = 0; i < shelves[level].n; i++)
            if (shelves[level].factor[i] > 1 && has(o->irrelevant, shelves[level].loop[i]))
                last = level;
    for (int level = 0; level < o->depth; level++) {
        to->summed_above[level] = level < last;
        for (int i = 0; i < shelves[level].n; i++)
            product[shelves[level].loop[i]] *= shelves[level].factor[i];
        memcpy(to->factor[level], product, sizeof product);
    }
}

/* Loops with a fractional factor at some level, and their factors at every level. */
static void set_uneven(const Shelf *shelves, Operand *to)
{
    to->n_uneven = 0;
    for (int level = 0; level <= to->depth; level++)
        for (int i = 0; i < shelves[level].n; i++) {
            int loop = shelves[level].loop[i], at = 0;
            if (shelves[level].factor[i] == down(shelves[level].factor[i])) continue;
            while (at < to->n_uneven && to->uneven[at] != loop) at++;
            if (at < to->n_uneven) continue;
            to->uneven[to->n_uneven++] = loop;
            for (int other = 0; other < to->depth; other++) {
                to->uneven_factor[at][other] = 1.0;
                for (int j = 0; j < shelves[other].n; j++)
                    if (shelves[other].loop[j] == loop)
                        to->uneven_factor[at][other] = shelves[other].factor[j];
            }
        }
}

/* Elements along the windows of an operand whose loops have these sizes: see window_elements.
 * Along relations that are not joined, every unit asks for its own. */
static double asked(const Operand *o, const double *sizes, int joined)
{
    double result = 1.0;
    for (int i = 0; i < o->n_relations; i++) {
        const Relation *r = &o->relations[i];
        double first = down(sizes[r->first]), second = down(sizes[r->second]);
        double overlap = larger(0, second - r->second_step) * (first - r->first_step);
        int is_joined = joined >> i & 1;
        result *= is_joined ? smaller(first * second - overlap, r->size) : first * second;
    }
    return result;
}

/* How many elements the instances below each arch level ask for, per instance. */
static void set_boosts(
    const Operand *o, const Shelf *shelves, const int *joined, double *boosts)
{
    double sizes[DIMS];
    uint32_t related = 0;
    for (int dim = 0; dim < DIMS; dim++) sizes[dim] = 1.0;
    for (int i = 0; i < o->n_relations; i++)
        related |= 1u << o->relations[i].first | 1u << o->relations[i].second;
    for (int level = 0; level < o->depth; level++) {
        double share = 1.0, before = asked(o, sizes, joined[level]);
        boosts[level] = 1.0;
        if (shelves[level].n == 0) continue;
        for (int i = 0; i < shelves[level].n; i++) {
            int loop = shelves[level].loop[i];
            if (has(o->relevant, loop)) share *= shelves[level].factor[i];
            if (has(related, loop)) sizes[loop] *= shelves[level].factor[i];
        }
        boosts[level] = nearest(share * asked(o, sizes, joined[level]) / before);
    }
}

/* A positive number to three decimals and then to a whole one, as Python rounds. */
static double rounded(double x)
{
    if (x == nearest(x)) return x;
    char *digits = PyOS_double_to_string(x, 'f', 3, 0, NULL);
    if (digits != NULL) x = PyOS_string_to_double(digits, NULL, NULL);
    PyMem_Free(digits);
    return nearest(x);
}

/* Copies of the memory of each level that are at work. */
static void set_copies(const Operand *o, const Shelf *shelves, double *copies)
{
    double above = 1.0;
    for (int level = o->depth; level > 0; level--) {
        if (shelves[level].n) {
            double product = 1.0;
            for (int up_to = level; up_to <= o->depth; up_to++)
                for (int i = 0; i < shelves[up_to].n; i++) product *= shelves[up_to].factor[i];
            above = rounded(product);
        }
        copies[level - 1] = above;
    }
}

static int same(const Shelf *a, const Shelf *b, int n_shelves)
{
    for (int level = 0; level < n_shelves; level++) {
        if (a[level].n != b[level].n) return 0;
        for (int i = 0; i < a[level].n; i++)
            if (a[level].loop[i] != b[level].loop[i] || a[level].factor[i] != b[level].factor[i])
                return 0;
    }
    return 1;
}

static void unroll_operand(const Frame *frame, const Places *places, int operand, Setup *to)
{
    Operand *o = &to->operands[operand];
    Shelf fine[LEVELS + 1] = {{0}}, whole[LEVELS + 1] = {{0}};
    double boosts[LEVELS], whole_boosts[LEVELS], copies[LEVELS];
    int one_width = !o->is_result || o->bits == o->final_bits, summed = 0;
    spread(frame, places, places->fine, operand, fine);
    spread(frame, places, places->whole, operand, whole);
    for (int level = o->depth - 1; level >= 0; level--) {
        for (int i = 0; i < fine[level + 1].n; i++)
            summed = summed || has(o->irrelevant, fine[level + 1].loop[i]);
        o->stays_wide[level] = (unsigned char)(one_width || summed);
    }
    o->whole_differs = !same(fine, whole, o->depth + 1);
    set_unrolled(o, fine, &o->fine);
    if (o->whole_differs) set_unrolled(o, whole, &o->whole);
    set_uneven(fine, o);
    set_boosts(o, fine, frame->joined[operand], boosts);
    set_boosts(o, whole, frame->joined[operand], whole_boosts);
    set_copies(o, fine, copies);
    for (int row = 0; row < to->n_links; row++) {
        Link *link = &to->links[row];
        if (link->operand != operand) continue;
        link->copies = copies[frame->level[row]];
        link->boost = frame->below[row] ? boosts[frame->level[row]] : 1.0;
        link->whole_boost = frame->below[row] ? whole_boosts[frame->level[row]] : 1.0;
    }
}

/* The setup with an unrolling, and the iterations of each loop that are left to time. */
static void unroll(const Frame *frame, const Places *places, Setup *to, double *left)
{
    Shelf first_input[LEVELS + 1] = {{0}};
    to->drain_cycles = 0;
    for (int i = 0; i < places->n; i++)
        if (frame->systolic[places->array_dim[i]]) to->drain_cycles += places->factor[i] - 1;
    for (int operand = 0; operand < to->n_operands; operand++)
        unroll_operand(frame, places, operand, to);
    memcpy(left, frame->size, sizeof frame->size);
    spread(frame, places, places->fine, 1, first_input);
    for (int level = 0; level <= to->operands[1].depth; level++)
        for (int i = 0; i < first_input[level].n; i++) {
            double *size = &left[first_input[level].loop[i]];
            if (*size > 1) *size = up(*size / first_input[level].factor[i] - 1e-9);
        }
}

#endif
