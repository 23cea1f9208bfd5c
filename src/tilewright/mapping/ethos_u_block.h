/* Blocks of outputs of an operation of the Ethos-U, and whether they fit into its SHRAM. */
#ifndef TILEWRIGHT_ETHOS_U_BLOCK_H
#define TILEWRIGHT_ETHOS_U_BLOCK_H

#include "ethos_u_operation.h"

enum { BANK_BYTES = 1024, SPLIT_DEPTH = 16 };
static const Shape LARGEST_BLOCK = {32, 64, 128};

typedef struct {
    Shape output, input;
    int64_t part_kernel_first;
} Block;

/* What the search needs of an operation, worked out once. */
typedef struct {
    const Operation *o;
    const Member *m;
    Shape seen;
    int64_t input_depth; /* 0: as deep as the block */
    int64_t taps_high, taps_wide;
    int64_t input_granule, accumulator_granule;
    int64_t banks, has_one_row, maps;
} Search;

static int64_t walks_part_kernel_first(const Operation *o, int64_t depth)
{
    if (o->engine != CONVOLUTION && o->engine != DEPTHWISE) return 0;
    if (depth <= 8) return 1;
    int narrow = o->input_bits == 8;
    int64_t taps = kernel_elements(o);
    double by_depth = (double)depth / (double)up(depth, narrow ? 32 : 16);
    double by_kernel = (double)(depth * taps) / (double)(up(depth, 8) * up(taps, narrow ? 4 : 2));
    return by_kernel > by_depth;
}

static int64_t input_depth(const Operation *o, int64_t depth, int64_t part_kernel_first)
{
    if (keeps_depth(o)) return 0;
    if (o->input_bits == 16) return up(least_of(depth, 16), 4);
    return up(least_of(depth, part_kernel_first ? 16 : 32), 8);
}

static Search search_of(const Operation *o, const Member *m)
{
    Search s = {.o = o, .m = m, .seen = o->input};
    if (elements_of(o->second) > elements_of(o->input)) s.seen = o->second;
    s.input_depth = input_depth(o, s.seen.depth, walks_part_kernel_first(o, s.seen.depth));
    s.taps_high = least_of((o->taps_high - 1) * o->dilation_high + 1, SUB_KERNEL);
    s.taps_wide = least_of((o->taps_wide - 1) * o->dilation_wide + 1, SUB_KERNEL);
    s.input_granule = o->input_bits >= 32 ? m->wide_input_granule : m->input_granule;
    s.accumulator_granule =
        is_wide_sum(o) ? m->wide_accumulator_granule : m->accumulator_granule;
    s.banks = o->activation == TABLE ? m->banks_beside_a_table : m->banks;
    s.has_one_row = o->output.height == 1 && o->taps_high == 1 && m->micro.height == 2;
    s.maps = has_second(o) && !o->has_scalar ? 2 : 1;
    return s;
}

static int64_t reach(const Operation *o, int64_t size, int64_t stride, int64_t taps, int64_t step)
{
    int64_t inputs = (size - 1) * stride + taps;
    if (o->upscaling == NEAREST) inputs += 1;
    if (o->upscaling != NO_UPSCALING) inputs = parts_of(inputs, 2);
    return up(inputs, step);
}

/* Banks for two sets of so many bytes. */
static inline int64_t in_banks(int64_t size_bytes, int64_t granule)
{
    return up(2 * parts_of(size_bytes, BANK_BYTES), granule);
}

static int64_t banks(const Search *s, const Block *b)
{
    int64_t column_bytes = parts_of(b->input.depth * s->o->input_bits, 64) * 8;
    int64_t inputs = in_banks(area_of(b->input) * column_bytes, s->input_granule);
    if (s->o->engine == ELEMENTWISE) return s->maps * inputs;
    int64_t rows = s->has_one_row ? 1 : b->output.height;
    column_bytes = parts_of(b->output.depth, 8) * accumulator_bits(s->o);
    return inputs + in_banks(rows * b->output.width * column_bytes, s->accumulator_granule);
}

/* Whether no shorter block along an axis gives as few blocks. */
static inline int is_shortest(int64_t size, int64_t length, int64_t step)
{
    return length <= step || parts_of(size, length) < parts_of(size, length - step);
}

#endif
