/* Accesses, energy and cycles of a candidate: the same as cost.py, which says what it means. */
#ifndef TILEWRIGHT_KERNEL_COST_H
#define TILEWRIGHT_KERNEL_COST_H

#include "kernel_movement.h"

/* Decides which levels load ahead, and so in which cycles of a period a link may work. */
static void allow(const Setup *s, Candidate *c)
{
    double need[OPERANDS][LEVELS] = {{0}}, shared[MEMORIES] = {0};
    for (int m = 0; m < s->n_memories; m++) {
        const Memory *memory = &s->memories[m];
        for (int i = 0; i < memory->n_held; i++) {
            int operand = memory->held[i], level = memory->level[i];
            const Stay *stay = &c->stay[operand];
            double bits = stay->elements[level + 1] * stay->bits[level + 1];
            double share = down(bits / stay->top_relevant[level + 1]) / memory->capacity;
            need[operand][level] = share;
            shared[m] += share;
        }
    }
    for (int operand = 0; operand < s->n_operands; operand++) {
        Stay *stay = &c->stay[operand];
        stay->allowed[0] = up(s->op_cycles * stay->window[0]);
        for (int level = 0; level < s->operands[operand].depth; level++) {
            double *taken = &shared[s->operands[operand].memory[level]];
            int ahead = *taken <= 0.5;
            if (!ahead && need[operand][level] <= 1 - *taken) {
                *taken += need[operand][level];
                ahead = 1;
            }
            double window = ahead ? stay->period[level + 1] : stay->window[level + 1];
            stay->allowed[level + 1] = up(s->op_cycles * window);
        }
    }
}

/* Accesses and energy of a link; 0 if something has to move where there is no port. */
static int access_link(const Setup *s, Candidate *c, int row)
{
    const Link *link = &s->links[row];
    const Stay *stay = &c->stay[link->operand];
    int arch = link->arch, exists = !link->comes_back || stay->partial[arch];
    c->exists[row] = !link->comes_back || stay->whole_partial[arch];
    c->amount[row] = stay->elements[arch] * link->boost;
    c->accesses[row] = 0;
    if (exists && c->amount[row] > 0 && stay->bits[arch] > 0) {
        if (link->width == 0) return 0;
        double granules = up(c->amount[row] * stay->bits[arch] / link->granule);
        c->accesses[row] =
            down(granules * link->granule_share * stay->periods[arch] * link->copies);
    }
    c->link_pj[row] = c->accesses[row] * link->pj;
    c->memory_pj = row ? c->memory_pj + c->link_pj[row] : c->link_pj[row];
    double bits = stay->whole_elements[arch] * link->whole_boost * stay->whole_bits[arch];
    c->real[row] = link->width > 0 && c->exists[row] ? up(bits / link->width) : 0;
    return 1;
}

typedef struct {
    double period[LINKS], allowed[LINKS], in_window[LINKS], per_period[LINKS];
} Windows;

/* Cycles before x that the first `upto` windows leave free: u_k(x) of cost.py. */
static double free_cycles(const Windows *w, int upto, double x)
{
    double total = 0;
    for (int k = upto - 1; k >= 0; k--) {
        double rest, whole = quotient(x, w->period[k], &rest);
        int beyond = rest > w->allowed[k];
        total = total + whole * w->per_period[k] - (beyond ? w->in_window[k] : 0);
        x = beyond ? rest : 0;
    }
    return total + x;
}

/* Cycles of the whole run that lie in the window of at least one link of a port. */
static double covered(const Setup *s, const Candidate *c, const Group *group)
{
    Windows w;
    int n = 0;
    double longest = -1, periods = 0;
    for (int i = 0; i < group->n_rows; i++) {
        int row = group->rows[i], arch = s->links[row].arch, at = n;
        const Stay *stay = &c->stay[s->links[row].operand];
        if (!c->exists[row]) continue;
        double period = stay->period_cycles[arch], allowed = stay->allowed[arch];
        if (allowed == period) return period * stay->periods[arch];
        if (period > longest) {
            longest = period;
            periods = stay->periods[arch];
        }
        for (; at > 0 && w.period[at - 1] > period; at--) {
            w.period[at] = w.period[at - 1];
            w.allowed[at] = w.allowed[at - 1];
        }
        w.period[at] = period;
        w.allowed[at] = allowed;
        n++;
    }
    if (n == 0) return 0;
    for (int k = 0; k < n; k++) {
        w.in_window[k] = free_cycles(&w, k, smaller(w.allowed[k], w.period[k]));
        w.per_period[k] = free_cycles(&w, k, w.period[k]) - w.in_window[k];
    }
    return (longest - free_cycles(&w, n, longest)) * periods;
}

static double port_stall(const Setup *s, const Candidate *c, const Group *group)
{
    double overrun = 0, slack_and_windows = 0;
    for (int i = 0; i < group->n_rows; i++) {
        int row = group->rows[i], arch = s->links[row].arch;
        const Stay *stay = &c->stay[s->links[row].operand];
        double again = c->exists[row] ? stay->periods[arch] - 1 : 0;
        double late = (c->real[row] - stay->allowed[arch]) * again;
        overrun += larger(late, 0);
        slack_and_windows += smaller(late, 0) + stay->allowed[arch] * again;
    }
    if (group->n_rows == 1) return overrun;
    return overrun + larger(0, slack_and_windows - covered(s, c, group));
}

/* Shortens what a port loads or stores only once, the longest first, by its spare cycles. */
static void hide(const Setup *s, Candidate *c, const Group *group, double busy)
{
    int n = 0, once[LINKS];
    double steady = 0;
    for (int i = 0; i < group->n_rows; i++) {
        int row = group->rows[i], at = n, arch = s->links[row].arch;
        const Stay *stay = &c->stay[s->links[row].operand];
        if (s->links[row].comes_back || !c->exists[row]) continue;
        if (stay->periods[arch] > 1)
            steady += up(down(stay->average[arch] * s->links[row].whole_boost) / s->op_cycles);
        if (stay->periods[arch] != 1) continue;
        for (; at > 0 && c->times[once[at - 1]] < c->times[row]; at--) once[at] = once[at - 1];
        once[at] = row;
        n++;
    }
    if (n == 0) return;
    double surplus = larger(0, (group->width - steady) / group->width * busy);
    for (int i = 0; i < n; i++) {
        const Stay *stay = &c->stay[s->links[once[i]].operand];
        double least = up(stay->whole_elements[1] * stay->whole_bits[1] / group->width);
        double gain = smaller(larger(c->times[once[i]] - least, 0), surplus);
        c->times[once[i]] -= gain;
        surplus -= gain;
    }
}

/* Cycles until the first multiplication: inputs on ports of their own load side by side. */
static double onload(const Setup *s, const Candidate *c)
{
    double own[OPERANDS] = {0}, half[OPERANDS] = {0}, both[OPERANDS] = {0};
    for (int input = 0; input < s->n_inputs; input++) {
        const Path *path = &s->loads[input];
        for (int i = 0; i < path->n_steps; i++) {
            double time = larger(c->times[path->lower[i]], c->times[path->upper[i]]);
            if (path->shared[i] == 0) own[input] += time;
            else if (path->shared[i] == 2) both[input] += time;
            else half[input] = time;
        }
    }
    if (s->n_inputs == 1) return own[0];
    double after_first = larger(both[1] + half[1] + own[1], half[0] + own[0]);
    double after_second = larger(both[0] + half[0] + own[0], half[1] + own[1]);
    return smaller(both[0] + after_first, both[1] + after_second);
}

/* What a candidate moves, and the energy of that; 0 if its data cannot move, or if it takes more
 * energy than `most_pj` together with `other_pj`: sums only grow, so the rest is then left out. */
static int transfer(const Setup *s, Candidate *c, double other_pj, double most_pj)
{
    unsigned char is_known[OPERANDS] = {0};
    for (int row = 0; row < s->n_links; row++) {
        int operand = s->links[row].operand;
        if (!is_known[operand]) move(s, c, operand);
        is_known[operand] = 1;
        if (!access_link(s, c, row) || c->memory_pj + other_pj > most_pj) return 0;
    }
    for (int operand = 0; operand < s->n_operands; operand++)
        if (!is_known[operand]) move(s, c, operand);
    return 1;
}

/* How long a candidate takes whose transfers are known. */
static void time_of(const Setup *s, Candidate *c)
{
    allow(s, c);
    c->stall = 0;
    for (int i = 0; i < s->n_groups; i++) {
        c->port_stalls[i] = port_stall(s, c, &s->groups[i]);
        c->stall = larger(c->stall, c->port_stalls[i]);
    }
    c->compute = c->iterations[c->length] * s->op_cycles;
    memcpy(c->times, c->real, sizeof(double) * (size_t)s->n_links);
    for (int i = 0; i < s->n_groups; i++) hide(s, c, &s->groups[i], up(c->compute) + c->stall);
    c->onload = onload(s, c);
    c->offload = 0;
    for (int i = 0; i < s->store.n_steps; i++)
        c->offload += larger(c->times[s->store.lower[i]], c->times[s->store.upper[i]]);
    c->cycles = c->compute + c->stall + c->onload + (c->offload + s->drain_cycles);
}

/* Costs a candidate whose levels are cut; 0 if its data cannot move. */
static int cost(const Setup *s, Candidate *c)
{
    if (!transfer(s, c, 0.0, INFINITY)) return 0;
    time_of(s, c);
    return 1;
}

#endif
