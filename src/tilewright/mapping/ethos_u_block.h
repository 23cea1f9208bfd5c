/* The block of outputs of an operation of the Ethos-U, among all that fit into its SHRAM.
 *
 * Every floating-point operation comes in the order of ethos_u/blocks.py, so that both choose the
 * same block: rounding alone tells many candidates apart.
 */
#ifndef TILEWRIGHT_ETHOS_U_BLOCK_H
#define TILEWRIGHT_ETHOS_U_BLOCK_H

#include <math.h>

#include "ethos_u_operation.h"

enum { BANK_BYTES = 1024, SPLIT_DEPTH = 16, LARGEST_TIE = 4 };
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
    int64_t banks, parts, weights, has_one_row, maps;
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
    s.parts = parts_of(o->taps_high, SUB_KERNEL) * parts_of(o->taps_wide, SUB_KERNEL);
    s.has_one_row = o->output.height == 1 && o->taps_high == 1 && m->micro.height == 2;
    s.maps = has_second(o) && !o->has_scalar ? 2 : 1;
    if (has_weights(o))
        s.weights = kernel_elements(o) * s.seen.depth *
                    (o->engine == DEPTHWISE ? 1 : o->output.depth);
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

static double cost(const Search *s, const Block *b)
{
    const Shape *whole = &s->o->output;
    double elements = (double)elements_of(*whole), value;
    if (s->o->engine == ELEMENTWISE) {
        double blocks = elements / (double)elements_of(b->output);
        value = blocks > 1.0 ? blocks : 1.0;
    } else {
        double blocks = ((double)whole->width / (double)b->output.width) *
                        ((double)whole->height / (double)b->output.height);
        int64_t window = b->input.width * b->input.height;
        double fetched = (double)(window * s->seen.depth * s->parts) * blocks;
        if (!keeps_depth(s->o))
            fetched = fetched * (double)parts_of(whole->depth, b->output.depth);
        int64_t areas =
            parts_of(whole->height, b->output.height) * parts_of(whole->width, b->output.width);
        value = (fetched + (double)(s->weights * areas)) / elements;
    }
    return 2 * elements_of(b->input) > elements_of(s->seen) ? value / 2 : value;
}

typedef struct {
    Block block;
    double cost, windows;
    int is_found;
} Best;

/* The first of the cheapest, or a small one as cheap whose inputs cover no less of the map. */
static void compare(const Search *s, const Block *b, Best *best)
{
    double value = cost(s, b);
    if (!best->is_found || value < best->cost) {
        *best = (Best){.block = *b, .cost = value, .windows = INFINITY, .is_found = 1};
    } else if (value == best->cost && b->output.height <= LARGEST_TIE &&
               b->output.width <= LARGEST_TIE) {
        double windows = (double)area_of(s->seen) / (double)area_of(b->input);
        if (windows < 1.0) windows = 1.0;
        if (windows <= best->windows) {
            best->block = *b;
            best->windows = windows;
        }
    }
}

/* Whether there is a block at all, and which one is the best. */
static int choose_block(const Operation *o, const Member *m, Block *chosen)
{
    Search s = search_of(o, m);
    Best best = {.is_found = 0};
    Block b = {.part_kernel_first = walks_part_kernel_first(o, s.seen.depth)};
    Shape space = within(o->output, LARGEST_BLOCK);
    int64_t deepest = up(space.depth, m->micro.depth);
    int64_t highest = up(space.height, m->micro.height);
    int64_t widest = up(space.width, m->micro.width);
    Shape *out = &b.output;
    out->depth = least_of(deepest, SPLIT_DEPTH);
    if (out->depth < m->micro.depth) out->depth = m->micro.depth;
    while (out->depth <= deepest) {
        b.input.depth = s.input_depth ? s.input_depth : out->depth;
        for (out->height = m->micro.height; out->height <= highest; out->height += m->micro.height) {
            b.input.height =
                reach(o, out->height, o->stride_high, s.taps_high, m->micro.height);
            for (out->width = m->micro.width; out->width <= widest; out->width += m->micro.width) {
                b.input.width = reach(o, out->width, o->stride_wide, s.taps_wide, m->micro.width);
                /* A wider block takes no fewer banks. */
                if (banks(&s, &b) > s.banks) break;
                compare(&s, &b, &best);
            }
        }
        out->depth += m->micro.depth;
        if (out->depth < o->output.depth) out->depth = up(out->depth, SPLIT_DEPTH);
    }
    if (best.is_found) *chosen = best.block;
    return best.is_found;
}

#endif
