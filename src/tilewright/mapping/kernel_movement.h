/* What moves between an operand's levels: the same as movement.py, which says what it means. */
#ifndef TILEWRIGHT_KERNEL_MOVEMENT_H
#define TILEWRIGHT_KERNEL_MOVEMENT_H

#include "kernel_candidate.h"

/* Iterations of the loops of a set that are outermost before `end`, down to `begin`. */
static double run(const Candidate *c, uint32_t dims, int begin, int end)
{
    int place = end;
    while (place > begin && has(dims, c->loop[place - 1])) place--;
    return c->iterations[end] / c->iterations[place < begin ? begin : place];
}

/* The first place from `end` on whose loop changes the operand. */
static int next_change(const Candidate *c, const Operand *o, int end)
{
    while (end < c->length && has(o->irrelevant, c->loop[end])) end++;
    return end;
}

static void contents(
    const Candidate *c, const Operand *o, const Unrolled *unrolled, const int *ends,
    int last_summed, double *to_elements, double *to_bits, unsigned char *partial)
{
    to_elements[0] = 1.0;
    for (int level = 0; level < o->depth; level++) {
        to_elements[level + 1] =
            nearest(elements(o, c->extent[ends[level]], unrolled->factor[level]));
        int begin = level ? ends[level - 1] : 0;
        partial[level] = o->is_result && (last_summed >= begin || unrolled->summed_above[level] ||
                                          revisits(c, o, unrolled, level, begin));
    }
    partial[o->depth] = 0;
    for (int arch = 0; arch <= o->depth; arch++)
        to_bits[arch] = !o->is_result || partial[arch] ? o->bits : o->final_bits;
}

static void move(const Setup *s, Candidate *c, int operand)
{
    const Operand *o = &s->operands[operand];
    Stay *stay = &c->stay[operand];
    int ends[LEVELS], last_summed = -1;
    for (int place = 0; place < c->length; place++)
        if (has(o->irrelevant, c->loop[place]) && c->size[place] > 1) last_summed = place;
    stay->period[0] = o->is_result ? 1.0 : c->iterations[next_change(c, o, 0)];
    stay->window[0] = down(stay->period[0]);
    for (int level = 0; level < o->depth; level++) {
        int end = next_change(c, o, c->ends[operand][level]), begin = level ? ends[level - 1] : 0;
        double period = c->iterations[end];
        ends[level] = end;
        stay->period[level + 1] = period;
        stay->window[level + 1] = down(period / run(c, o->irrelevant, begin, end));
        stay->top_relevant[level + 1] = run(c, o->relevant, begin, end);
    }
    contents(c, o, &o->fine, ends, last_summed, stay->elements, stay->bits, stay->partial);
    if (o->whole_differs) {
        contents(c, o, &o->whole, ends, last_summed, stay->whole_elements, stay->whole_bits,
                 stay->whole_partial);
    } else {
        memcpy(stay->whole_elements, stay->elements, sizeof stay->elements);
        memcpy(stay->whole_bits, stay->bits, sizeof stay->bits);
        memcpy(stay->whole_partial, stay->partial, sizeof stay->partial);
    }
    for (int arch = 0; arch <= o->depth; arch++) {
        double period = stay->period[arch];
        stay->periods[arch] = down(stay->period[o->depth] / period);
        stay->average[arch] = stay->whole_elements[arch] * stay->whole_bits[arch] / period;
        stay->period_cycles[arch] = up(period * s->op_cycles);
    }
}

#endif
