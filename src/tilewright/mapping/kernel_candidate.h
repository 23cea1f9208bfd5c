/* One candidate, an order of loops with its cuts, and the arithmetic that all steps share. */
#ifndef TILEWRIGHT_KERNEL_CANDIDATE_H
#define TILEWRIGHT_KERNEL_CANDIDATE_H

#include <float.h>
#include <math.h>

#include "kernel_setup.h"

#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error "intermediate results would be wider than doubles; NumPy serves instead"
#endif

/* One operand of one candidate, by arch level: 0 is the array, l + 1 the memory of level l. */
typedef struct {
    double elements[LEVELS + 1], whole_elements[LEVELS + 1];
    double bits[LEVELS + 1], whole_bits[LEVELS + 1];
    double period[LEVELS + 1], periods[LEVELS + 1], window[LEVELS + 1], average[LEVELS + 1];
    double top_relevant[LEVELS + 1], period_cycles[LEVELS + 1], allowed[LEVELS + 1];
    unsigned char partial[LEVELS + 1], whole_partial[LEVELS + 1];
} Stay;

typedef struct {
    int length;
    unsigned char loop[LOOPS];
    double size[LOOPS], iterations[LOOPS + 1], left[LOOPS + 1], extent[LOOPS + 1][DIMS];
    double uneven[OPERANDS][DIMS][LOOPS + 1];
    int ends[OPERANDS][LEVELS];
    Stay stay[OPERANDS];
    double accesses[LINKS], link_pj[LINKS], amount[LINKS], real[LINKS], times[LINKS];
    unsigned char exists[LINKS];
    double port_stalls[LINKS];
    double memory_pj, compute, stall, onload, offload, cycles;
} Candidate;

/* libm's rounding functions are calls on the oldest processors; these are not. No x is negative. */
#define EXACT 4503599627370496.0 /* 2^52: from here on every double is whole */

/* To the nearest whole number, ties to even. */
static inline double nearest(double x) { return x < EXACT ? (x + EXACT) - EXACT : x; }
static inline double down(double x) { double y = nearest(x); return y > x ? y - 1 : y; }
static inline double up(double x) { double y = nearest(x); return y < x ? y + 1 : y; }
static inline double larger(double a, double b) { return a > b ? a : b; }
static inline double smaller(double a, double b) { return a < b ? a : b; }
static inline int has(uint32_t dims, int dim) { return dims >> dim & 1; }

/* Quotient and remainder of whole numbers as NumPy's divmod has them; y is positive. */
static inline double quotient(double x, double y, double *rest)
{
    if (x >= 0 && x < EXACT && y >= 1 && y < EXACT) {
        int64_t whole = (int64_t)x / (int64_t)y;
        *rest = (double)((int64_t)x - whole * (int64_t)y);
        return (double)whole;
    }
    *rest = fmod(x, y);
    double ratio = (x - *rest) / y, floored = floor(ratio);
    return ratio - floored > 0.5 ? floored + 1 : floored;
}

/* Elements of an operand when its loops reach as far as `extent`, times what is unrolled. */
static double elements(const Operand *o, const double *extent, const double *factor)
{
    double size = 1.0;
    for (int i = 0; i < o->n_relevant; i++) size *= extent[o->axes[i]] * factor[o->axes[i]];
    for (int i = 0; i < o->n_relations; i++) {
        const Relation *r = &o->relations[i];
        double first = down(extent[r->first] * factor[r->first]);
        double second = down(extent[r->second] * factor[r->second]);
        double overlap = larger(0, second - r->second_step) * (first - r->first_step);
        size *= smaller(first * second - overlap, r->size);
    }
    return size;
}

/* Whether loops from a place on return to elements of the result that were met before: see
 * revisits.py. */
static int revisits(
    const Candidate *c, const Operand *o, const Unrolled *unrolled, int level, int begin)
{
    const double *extent = c->extent[begin], *factor = unrolled->factor[level];
    for (int i = 0; i < o->n_relations; i++) {
        const Relation *r = &o->relations[i];
        double first = extent[r->first] * factor[r->first];
        double second = extent[r->second] * factor[r->second], points = first * second;
        double again = larger(0, first - r->first_step) * larger(0, second - r->second_step);
        if (points / (points - again) < r->least_reuse) return 1;
    }
    return 0;
}

#endif
