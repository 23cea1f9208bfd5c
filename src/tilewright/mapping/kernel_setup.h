/* What is fixed while loop orders are costed, and how it is read from one array of doubles.
 *
 * kernel.py writes that array. Reading it checks every number, so that a wrong one is an error in
 * Python and never an access out of bounds; what exceeds the limits below is left to NumPy.
 */
#ifndef TILEWRIGHT_KERNEL_SETUP_H
#define TILEWRIGHT_KERNEL_SETUP_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { DIMS = 16, LOOPS = 64, OPERANDS = 3, LEVELS = 10, MEMORIES = 20, LINKS = 64, RELATIONS = 4 };

typedef struct {
    int first, second;
    double first_step, second_step, size, least_reuse;
} Relation;

typedef struct {
    double factor[LEVELS][DIMS];      /* unrolled up to and including the level */
    unsigned char summed_above[LEVELS];
} Unrolled;

typedef struct {
    int is_result, depth, n_relevant, n_relations, n_uneven, whole_differs;
    double bits, final_bits;
    uint32_t relevant, irrelevant, read; /* sets of dims; `read` also has those of relations */
    int axes[DIMS], memory[LEVELS], uneven[DIMS];
    unsigned char stays_wide[LEVELS];
    double uneven_factor[DIMS][LEVELS];
    Relation relations[RELATIONS];
    Unrolled fine, whole;
} Operand;

typedef struct {
    double capacity;
    int doubles, n_held, held[OPERANDS], level[OPERANDS];
} Memory;

typedef struct {
    int operand, arch, comes_back;
    double width, granule, granule_share, copies, pj, boost, whole_boost;
} Link;

typedef struct {
    double width;
    int n_rows, rows[LINKS];
} Group;

typedef struct {
    int n_steps, lower[LEVELS], upper[LEVELS], shared[LEVELS];
} Path;

typedef struct {
    int n_dims, n_operands, n_memories, n_links, n_groups, n_inputs, n_levels;
    double op_cycles, drain_cycles;
    Operand operands[OPERANDS];
    Memory memories[MEMORIES];
    Link links[LINKS];
    Group groups[LINKS];
    Path loads[OPERANDS], store;
} Setup;

typedef struct { const double *at, *end; int failed; } Reader;

static double real(Reader *from)
{
    if (from->at == from->end) { from->failed = 1; return 1.0; }
    return *from->at++;
}

/* A whole number of at most `most`; 0 and a failure if it is none, so that all loops stay short. */
static int number(Reader *from, int most)
{
    double value = real(from);
    if (value >= 0 && value <= most && value == (double)(int)value) return (int)value;
    from->failed = 1;
    return 0;
}

static uint32_t read_dims(Reader *from, int n_dims)
{
    uint32_t dims = 0;
    for (int left = number(from, n_dims); left > 0; left--) dims |= 1u << number(from, n_dims - 1);
    return dims;
}

static void read_unrolled(Reader *from, Unrolled *to, int depth, int n_dims)
{
    double product[DIMS];
    for (int dim = 0; dim < DIMS; dim++) product[dim] = 1.0;
    for (int level = 0; level < depth; level++) {
        to->summed_above[level] = (unsigned char)number(from, 1);
        for (int left = number(from, n_dims); left > 0; left--) {
            int dim = number(from, n_dims - 1);
            product[dim] *= real(from);
        }
        memcpy(to->factor[level], product, sizeof product);
    }
}

static void read_operand(Reader *from, Operand *to, const Setup *setup)
{
    int n_dims = setup->n_dims;
    to->is_result = number(from, 1);
    to->bits = real(from);
    to->final_bits = real(from);
    to->irrelevant = read_dims(from, n_dims);
    to->n_relevant = number(from, n_dims);
    for (int i = 0; i < to->n_relevant; i++) {
        to->axes[i] = number(from, n_dims - 1);
        to->relevant |= 1u << to->axes[i];
    }
    to->read = to->relevant;
    to->n_relations = number(from, RELATIONS);
    for (int i = 0; i < to->n_relations; i++) {
        Relation *r = &to->relations[i];
        r->first = number(from, n_dims - 1);
        r->second = number(from, n_dims - 1);
        r->first_step = real(from);
        r->second_step = real(from);
        r->size = real(from);
        r->least_reuse = real(from);
        to->read |= 1u << r->first | 1u << r->second;
    }
    to->depth = number(from, LEVELS);
    if (to->depth == 0) from->failed = 1;
    for (int level = 0; level < to->depth; level++) {
        to->memory[level] = number(from, setup->n_memories - 1);
        to->stays_wide[level] = (unsigned char)number(from, 1);
    }
    read_unrolled(from, &to->fine, to->depth, n_dims);
    to->whole_differs = number(from, 1);
    if (to->whole_differs) read_unrolled(from, &to->whole, to->depth, n_dims);
    to->n_uneven = number(from, n_dims);
    for (int i = 0; i < to->n_uneven; i++) {
        to->uneven[i] = number(from, n_dims - 1);
        for (int level = 0; level < to->depth; level++) to->uneven_factor[i][level] = real(from);
    }
}

static void read_memory(Reader *from, Memory *to, const Setup *setup)
{
    to->capacity = real(from);
    to->doubles = number(from, 1);
    to->n_held = number(from, setup->n_operands);
    for (int i = 0; i < to->n_held; i++) {
        to->held[i] = number(from, setup->n_operands - 1);
        to->level[i] = number(from, setup->operands[to->held[i]].depth - 1);
    }
}

static void read_link(Reader *from, Link *to, const Setup *setup)
{
    to->operand = number(from, setup->n_operands - 1);
    to->arch = number(from, setup->operands[to->operand].depth);
    to->comes_back = number(from, 1);
    to->width = real(from);
    to->granule = real(from);
    to->granule_share = real(from);
    to->pj = real(from);
}

static void read_path(Reader *from, Path *to, int n_links)
{
    to->n_steps = number(from, LEVELS);
    for (int i = 0; i < to->n_steps; i++) {
        to->lower[i] = number(from, n_links - 1);
        to->upper[i] = number(from, n_links - 1);
        to->shared[i] = number(from, 2);
    }
}

/* Whether all of the description was understood and nothing was left over. */
static int read_setup(const double *description, ptrdiff_t length, Setup *to)
{
    Reader from = {description, description + length, 0};
    memset(to, 0, sizeof *to);
    to->n_dims = number(&from, DIMS);
    to->n_operands = number(&from, OPERANDS);
    to->n_memories = number(&from, MEMORIES);
    to->n_links = number(&from, LINKS);
    to->n_groups = number(&from, LINKS);
    to->op_cycles = real(&from);
    to->drain_cycles = real(&from);
    if (!to->n_dims || to->n_operands < 2 || !to->n_memories || !to->n_links || !to->n_groups)
        return 0;
    for (int i = 0; i < to->n_operands; i++) {
        read_operand(&from, &to->operands[i], to);
        to->n_levels += to->operands[i].depth;
    }
    for (int i = 0; i < to->n_memories; i++) read_memory(&from, &to->memories[i], to);
    for (int i = 0; i < to->n_links; i++) read_link(&from, &to->links[i], to);
    for (int i = 0; i < to->n_groups; i++) {
        Group *group = &to->groups[i];
        group->width = real(&from);
        group->n_rows = number(&from, to->n_links);
        if (group->n_rows == 0) from.failed = 1;
        for (int j = 0; j < group->n_rows; j++) group->rows[j] = number(&from, to->n_links - 1);
    }
    to->n_inputs = to->n_operands - 1;
    for (int i = 0; i < to->n_inputs; i++) read_path(&from, &to->loads[i], to->n_links);
    read_path(&from, &to->store, to->n_links);
    for (int i = 0; i < to->n_links; i++) {
        to->links[i].copies = real(&from);
        to->links[i].boost = real(&from);
        to->links[i].whole_boost = real(&from);
    }
    return !from.failed && from.at == from.end;
}

#endif
