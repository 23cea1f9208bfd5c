/* An operation of the Ethos-U and the member of the family that runs it, as ethos_u/compiled.py
 * says them: numbers in the order of the structures here.
 */
#ifndef TILEWRIGHT_ETHOS_U_OPERATION_H
#define TILEWRIGHT_ETHOS_U_OPERATION_H

#include <stdint.h>

enum { SUB_KERNEL = 8, BRICK_DEPTH = 16, MEMORIES = 2 };
enum { CONVOLUTION, DEPTHWISE, VECTOR_PRODUCT, POOLING, REDUCE_SUM, ELEMENTWISE, ENGINES };
enum { PRODUCT, ADDITION, MAXIMUM, OTHER, ARITHMETICS };
enum { NO_ACTIVATION, CLAMP, TABLE, ACTIVATIONS };
enum { NO_UPSCALING, NEAREST, ZEROS, UPSCALINGS };

typedef struct {
    int64_t height, width, depth;
} Shape;

typedef struct {
    int64_t engine;
    Shape input, output;
    Shape second; /* of no elements: there is none */
    int64_t input_bits, output_bits;
    int64_t taps_high, taps_wide;
    int64_t stride_high, stride_wide;
    int64_t dilation_high, dilation_wide;
    int64_t arithmetic, activation, upscaling;
    int64_t has_scalar, is_scaled, weight_bits;
    int64_t input_in_bricks, output_in_bricks, second_in_bricks;
    int64_t second_memory;
    int64_t weights_memory; /* of weights and scales; the first one's are not counted */
} Operation;

typedef struct {
    int64_t bytes, cycles; /* so many bytes in so many cycles */
    int64_t burst_bytes, read_latency, write_latency;
} Memory;

typedef struct {
    Shape micro;
    int64_t banks, banks_beside_a_table;
    int64_t input_granule, wide_input_granule;
    int64_t accumulator_granule, wide_accumulator_granule;
    int64_t cores, macs_per_cycle;
    /* Cycles of the output unit for so many elements, by what it does to them. */
    int64_t elements;
    int64_t wide_binary, wide_unary, wide_product, product, addition, max_pool, other;
    int64_t table, clamp;
    Memory memories[MEMORIES];
} Member;

static inline int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t parts_of(int64_t value, int64_t step) { return (value + step - 1) / step; }

static inline int64_t up(int64_t value, int64_t step) { return parts_of(value, step) * step; }

static inline int64_t area_of(Shape s) { return s.height * s.width; }

static inline int64_t elements_of(Shape s) { return s.height * s.width * s.depth; }

static inline Shape within(Shape a, Shape b)
{
    return (Shape){
        least_of(a.height, b.height), least_of(a.width, b.width), least_of(a.depth, b.depth)};
}

static inline int has_second(const Operation *o) { return o->second.depth > 0; }

static inline int has_weights(const Operation *o) { return o->engine <= VECTOR_PRODUCT; }

static inline int keeps_depth(const Operation *o)
{
    return o->engine == ELEMENTWISE || o->engine == POOLING || o->engine == DEPTHWISE;
}

static inline int64_t kernel_elements(const Operation *o) { return o->taps_high * o->taps_wide; }

static inline int is_wide_sum(const Operation *o)
{
    return o->input_bits == 16 && o->engine != POOLING && o->is_scaled;
}

static inline int64_t accumulator_bits(const Operation *o) { return is_wide_sum(o) ? 40 : 32; }

#endif
