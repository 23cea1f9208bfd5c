/* Cycles of an operation of the Ethos-U: the same as ethos_u/cycles.py and accesses.py, which say
 * what it means, with every floating-point operation in their order.
 */
#ifndef TILEWRIGHT_ETHOS_U_CYCLES_H
#define TILEWRIGHT_ETHOS_U_CYCLES_H

#include <math.h>

#include "ethos_u_block.h"

/* A line of a block in bricks, of which upscaled inputs have half, has 8 B a column at least. */
enum { SCALE_BYTES = 10, LONGEST_WRITE = 64, LEAST_LINE = 8 };
static const double LEAST_SHARE = 0.25;

static inline double larger(double a, double b) { return a > b ? a : b; }

static inline double smaller(double a, double b) { return a < b ? a : b; }

static inline int64_t stored_depth(int64_t depth, int64_t in_bricks)
{
    return in_bricks ? up(depth, BRICK_DEPTH) : depth;
}

static double busy_cycles(int64_t size_bytes, const Memory *memory, int64_t length_bytes)
{
    int64_t useful = least_of(memory->burst_bytes, length_bytes);
    double bytes_per_cycle = (double)memory->bytes / (double)memory->cycles;
    return (double)(size_bytes * memory->burst_bytes) / (double)useful / bytes_per_cycle;
}

static int64_t read_length(Shape block, int64_t bits, int64_t in_bricks)
{
    int64_t element = bits / 8;
    return in_bricks ? BRICK_DEPTH * element * block.width : element * block.depth;
}

static int64_t write_length(const Operation *o, const Member *m, Shape block)
{
    int64_t element = o->output_bits / 8;
    if (o->output_in_bricks) return BRICK_DEPTH * element * block.width * m->cores;
    int64_t length = least_of(BRICK_DEPTH * element * m->cores, block.depth * element);
    return least_of(LONGEST_WRITE, length);
}

/* Cycles of the output unit for `m->elements` elements. */
static int64_t leaving_figure(const Operation *o, const Member *m)
{
    int64_t own = m->other, after = 0;
    if (o->engine == ELEMENTWISE && o->input_bits >= 32)
        own = has_second(o) ? m->wide_binary : m->wide_unary;
    else if (o->arithmetic == PRODUCT && o->output_bits >= 32)
        own = m->wide_product;
    else if (o->arithmetic == PRODUCT || is_wide_sum(o))
        own = m->product;
    else if (o->arithmetic == ADDITION)
        own = m->addition;
    else if (o->arithmetic == MAXIMUM && o->engine == POOLING)
        own = m->max_pool;
    if (o->activation == CLAMP) after = m->clamp;
    if (o->activation == TABLE) after = m->table;
    return own > after ? own : after;
}

static int64_t steps_of(const Operation *o, const Block *b, int64_t taps)
{
    if (o->engine == POOLING) return 1;
    if (o->engine == DEPTHWISE) return parts_of(taps, 4);
    if (o->engine == CONVOLUTION && b->part_kernel_first)
        return parts_of(taps, o->input_bits == 16 ? 2 : 4);
    return taps;
}

static int64_t delay(const Operation *o, const Member *m, Shape micro_blocks, int64_t steps)
{
    int wide = is_wide_sum(o), is_smallest = m->macs_per_cycle == 32;
    int64_t cycles = wide && m->macs_per_cycle <= 128 ? 3 : 2, layers = micro_blocks.depth;
    if (is_smallest) cycles = wide ? 7 : 3;
    if (area_of(micro_blocks) == 1)
        return layers == 1 ? cycles * steps : cycles * (steps - 1) * layers;
    if (is_smallest && wide && layers > 1 && (micro_blocks.width == 1 || micro_blocks.height == 1))
        return cycles * layers;
    return 0;
}

/* Cycles of the multipliers for one block. */
static double summing_cycles(const Operation *o, const Member *m, const Block *b)
{
    Shape part = within(b->output, o->output);
    Shape micro_blocks = {parts_of(part.height, m->micro.height),
                          parts_of(part.width, m->micro.width),
                          parts_of(part.depth, m->micro.depth)};
    int64_t area = area_of(micro_blocks), layers = micro_blocks.depth;
    int64_t decoding = 32 * m->micro.depth / 8, channels = 1, total = 0;
    int is_wide_pool = o->engine == POOLING && o->input_bits == 16 && m->macs_per_cycle > 32;
    int is_wide = is_wide_pool || (o->engine == DEPTHWISE && o->input_bits == 16);
    if (o->engine == CONVOLUTION && b->part_kernel_first)
        channels = parts_of(least_of(b->input.depth, o->input.depth), 8);
    for (int64_t high = o->taps_high; high > 0; high -= SUB_KERNEL)
        for (int64_t wide = o->taps_wide; wide > 0; wide -= SUB_KERNEL) {
            int64_t taps = least_of(high, SUB_KERNEL) * least_of(wide, SUB_KERNEL);
            int64_t steps = steps_of(o, b, taps), cycles = 4 * area * (is_wide ? 2 : 1);
            if (o->engine == POOLING)
                total += (taps > 4 ? taps : 4) * area * layers * (is_wide ? 2 : 1);
            else
                total += (decoding > cycles ? decoding : cycles) * steps * channels * layers;
            total += channels * delay(o, m, micro_blocks, steps);
        }
    if (!keeps_depth(o)) total *= parts_of(o->input.depth, b->input.depth);
    return (double)total / (double)m->cores;
}

/* Cycles in which a block's inputs come and its results go. */
static double moving_cycles(const Operation *o, const Member *m, const Block *b)
{
    const Memory *near = &m->memories[0];
    int64_t inputs = elements_of(within(b->input, o->input));
    int64_t results = elements_of(within(b->output, o->output));
    int64_t read = read_length(b->input, o->input_bits, o->input_in_bricks);
    double coming = (double)near->read_latency + busy_cycles(inputs, near, read);
    double going = (double)near->write_latency +
                   busy_cycles(results, near, write_length(o, m, b->output));
    return coming + going;
}

static double elementwise_cycles(const Operation *o, const Member *m, const Block *b)
{
    double per_output = (double)leaving_figure(o, m) / (double)m->elements;
    double elements = (double)elements_of(b->output);
    double least = (moving_cycles(o, m, b) + per_output * elements) * LEAST_SHARE / elements;
    int64_t depth = stored_depth(o->output.depth, o->output_in_bricks);
    return ceil(larger(per_output, least) * (double)area_of(o->output) * (double)depth);
}

/* Cycles of an operation, waiting for weights left out. */
static double computing_cycles(const Operation *o, const Member *m, const Block *b)
{
    if (o->engine == ELEMENTWISE) return elementwise_cycles(o, m, b);
    Shape part = within(b->output, o->output);
    double summing = summing_cycles(o, m, b);
    double leaving = (double)parts_of(leaving_figure(o, m) * elements_of(part), m->elements);
    if (has_weights(o)) {
        int64_t waiting = SCALE_BYTES * part.depth * m->memories[o->weights_memory].read_latency;
        leaving = larger(leaving, (double)waiting / 256);
    }
    double least = (moving_cycles(o, m, b) + leaving + summing) * LEAST_SHARE;
    int64_t blocks = parts_of(o->output.height, b->output.height) *
                     parts_of(o->output.width, b->output.width) *
                     parts_of(o->output.depth, b->output.depth);
    summing = larger(summing, least);
    leaving = larger(leaving, least);
    return floor(larger(summing, leaving) * (double)blocks + smaller(summing, leaving));
}

static int64_t elementwise_reads(const Operation *o, Shape shape)
{
    if (elements_of(shape) > 1)
        return area_of(o->output) * stored_depth(o->output.depth, o->input_in_bricks);
    if (elements_of(shape) == 0 || o->input_bits == 8) return 0;
    return stored_depth(1, o->input_in_bricks);
}

/* Bytes of the weights and scales that come from another memory than feature maps. */
static int64_t streamed_bytes(const Operation *o, const Block *b)
{
    if (!o->weights_memory || !has_weights(o)) return 0;
    int64_t blocks = parts_of(o->output.height, b->output.height) *
                     parts_of(o->output.width, b->output.width);
    int64_t weights = kernel_elements(o) * o->input.depth * blocks;
    if (!keeps_depth(o))
        weights *= least_of(b->output.depth, o->output.depth) *
                   parts_of(o->output.depth, b->output.depth);
    return weights * o->weight_bits / 8 + SCALE_BYTES * o->output.depth;
}

/* Cycles that the busiest memory needs for feature maps, and for weights that stream. */
static double access_cycles(const Operation *o, const Member *m, const Block *b)
{
    int64_t input, second = 0;
    if (o->engine == ELEMENTWISE) {
        input = elementwise_reads(o, o->input);
        second = elementwise_reads(o, o->second);
    } else {
        int64_t again = parts_of(o->output.height, b->output.height) *
                        parts_of(o->output.width, b->output.width) *
                        parts_of(o->taps_high, SUB_KERNEL) * parts_of(o->taps_wide, SUB_KERNEL);
        if (!keeps_depth(o)) again *= parts_of(o->output.depth, b->output.depth);
        input = area_of(within(b->input, o->input)) *
                stored_depth(o->input.depth, o->input_in_bricks) * again;
    }
    int64_t output = area_of(o->output) * stored_depth(o->output.depth, o->output_in_bricks);
    const Memory *near = &m->memories[0], *far = &m->memories[o->second_memory];
    double busy[MEMORIES] = {0.0};
    busy[0] += busy_cycles(input * o->input_bits / 8, near,
                           read_length(b->input, o->input_bits, o->input_in_bricks));
    busy[o->second_memory] +=
        busy_cycles(second * o->input_bits / 8, far,
                    read_length(b->input, o->input_bits, o->second_in_bricks));
    busy[0] += busy_cycles(output * o->output_bits / 8, near, write_length(o, m, b->output));
    const Memory *origin = &m->memories[o->weights_memory];
    busy[o->weights_memory] +=
        (double)streamed_bytes(o, b) / ((double)origin->bytes / (double)origin->cycles);
    return larger(ceil(busy[0]), ceil(busy[1]));
}

/* Whether a block is worth a look: a narrower one that gives as few blocks, and whose lines fill
 * bursts, takes no longer. Of element-wise operations only the widest blocks are. */
static int is_worth_a_look(const Search *s, const Block *b, int64_t widest)
{
    const Operation *o = s->o;
    int64_t step = s->m->micro.width, width = b->output.width;
    if (o->engine == ELEMENTWISE) {
        Block wider = *b;
        wider.output.width += step;
        wider.input.width = reach(o, wider.output.width, o->stride_wide, s->taps_wide, step);
        return wider.output.width > widest || banks(s, &wider) > s->banks;
    }
    return is_shortest(o->output.width, width, step) ||
           LEAST_LINE * (width - step) < s->m->memories[0].burst_bytes;
}

static void compare(const Search *s, const Block *b, double *best)
{
    double computing = computing_cycles(s->o, s->m, b);
    if (computing < *best)
        *best = smaller(*best, larger(computing, access_cycles(s->o, s->m, b)));
}

/* Cycles with the best of all blocks that fit, computing or of the busiest memory if that is
 * slower; infinite if none fits. */
static double best_cycles(const Operation *o, const Member *m)
{
    Search s = search_of(o, m);
    double best = INFINITY;
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
            if (o->engine != ELEMENTWISE &&
                !is_shortest(o->output.height, out->height, m->micro.height))
                continue;
            b.input.height =
                reach(o, out->height, o->stride_high, s.taps_high, m->micro.height);
            for (out->width = m->micro.width; out->width <= widest; out->width += m->micro.width) {
                b.input.width = reach(o, out->width, o->stride_wide, s.taps_wide, m->micro.width);
                /* A wider block takes no fewer banks. */
                if (banks(&s, &b) > s.banks) break;
                if (is_worth_a_look(&s, &b, widest)) compare(&s, &b, &best);
            }
        }
        out->depth += m->micro.depth;
        if (out->depth < o->output.depth) out->depth = up(out->depth, SPLIT_DEPTH);
    }
    return best;
}

#endif
