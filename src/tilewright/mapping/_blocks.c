/* Chooses the block of outputs of an operation of the Ethos-U among all that fit into its SHRAM.
 *
 * Every floating-point operation comes in the order of ethos_u/blocks.py, so that both choose the
 * same block: rounding alone tells many candidates apart.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <stdint.h>

enum { BANK_BYTES = 1024, SPLIT_DEPTH = 16, LARGEST_TIE = 4 };
enum { ONE_MAP, TWO_MAPS, WINDOWS };
enum { NO_UPSCALING, NEAREST, ZEROS };

/* What blocks.py says of an operation, in the order in which it says it. */
typedef struct {
    int64_t height, width, depth;
    int64_t space_height, space_width, space_depth;
    int64_t micro_height, micro_width, micro_depth;
    int64_t taps_high, taps_wide;
    int64_t stride_high, stride_wide;
    int64_t upscaling;
    int64_t input_depth;
    int64_t input_bits, input_granule;
    int64_t accumulator_bits, accumulator_granule;
    int64_t one_row;
    int64_t kind;
    int64_t banks;
    int64_t seen_area, seen_depth;
    int64_t parts;
    int64_t sums_depth;
    int64_t weights;
} Operation;

enum { N_FIGURES = sizeof(Operation) / sizeof(int64_t) };

typedef struct {
    int64_t depth, height, width;
    int64_t input_depth, input_height, input_width;
} Block;

static inline int64_t parts_of(int64_t value, int64_t step) { return (value + step - 1) / step; }

static inline int64_t up(int64_t value, int64_t step) { return parts_of(value, step) * step; }

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

static int64_t banks(const Operation *o, const Block *b)
{
    int64_t column_bytes = parts_of(b->input_depth * o->input_bits, 64) * 8;
    int64_t inputs = in_banks(b->input_height * b->input_width * column_bytes, o->input_granule);
    if (o->kind != WINDOWS) return o->kind == TWO_MAPS ? 2 * inputs : inputs;
    int64_t rows = o->one_row ? 1 : b->height;
    column_bytes = parts_of(b->depth, 8) * o->accumulator_bits;
    return inputs + in_banks(rows * b->width * column_bytes, o->accumulator_granule);
}

static double cost(const Operation *o, const Block *b)
{
    double elements = (double)(o->height * o->width * o->depth), value;
    if (o->kind != WINDOWS) {
        double blocks = elements / (double)(b->height * b->width * b->depth);
        value = blocks > 1.0 ? blocks : 1.0;
    } else {
        double blocks = ((double)o->width / (double)b->width) *
                        ((double)o->height / (double)b->height);
        int64_t window = b->input_width * b->input_height;
        double fetched = (double)(window * o->seen_depth * o->parts) * blocks;
        if (o->sums_depth) fetched = fetched * (double)parts_of(o->depth, b->depth);
        int64_t areas = parts_of(o->height, b->height) * parts_of(o->width, b->width);
        value = (fetched + (double)(o->weights * areas)) / elements;
    }
    int64_t held = b->input_height * b->input_width * b->input_depth;
    return 2 * held > o->seen_area * o->seen_depth ? value / 2 : value;
}

typedef struct {
    Block block;
    double cost, windows;
    int is_found;
} Best;

/* The first of the cheapest, or a small one as cheap whose inputs cover no less of the map. */
static void compare(const Operation *o, const Block *b, Best *best)
{
    double value = cost(o, b);
    if (!best->is_found || value < best->cost) {
        *best = (Best){.block = *b, .cost = value, .windows = INFINITY, .is_found = 1};
    } else if (value == best->cost && b->height <= LARGEST_TIE && b->width <= LARGEST_TIE) {
        double windows = (double)o->seen_area / (double)(b->input_height * b->input_width);
        if (windows < 1.0) windows = 1.0;
        if (windows <= best->windows) {
            best->block = *b;
            best->windows = windows;
        }
    }
}

static Best search(const Operation *o)
{
    Best best = {.is_found = 0};
    Block b;
    int64_t deepest = up(o->space_depth, o->micro_depth);
    int64_t highest = up(o->space_height, o->micro_height);
    int64_t widest = up(o->space_width, o->micro_width);
    b.depth = deepest < SPLIT_DEPTH ? deepest : SPLIT_DEPTH;
    if (b.depth < o->micro_depth) b.depth = o->micro_depth;
    while (b.depth <= deepest) {
        b.input_depth = o->input_depth ? o->input_depth : b.depth;
        for (b.height = o->micro_height; b.height <= highest; b.height += o->micro_height) {
            b.input_height =
                reach(o, b.height, o->stride_high, o->taps_high, o->micro_height);
            for (b.width = o->micro_width; b.width <= widest; b.width += o->micro_width) {
                b.input_width = reach(o, b.width, o->stride_wide, o->taps_wide, o->micro_width);
                /* A wider block takes no fewer banks. */
                if (banks(o, &b) > o->banks) break;
                compare(o, &b, &best);
            }
        }
        b.depth += o->micro_depth;
        if (b.depth < o->depth) b.depth = up(b.depth, SPLIT_DEPTH);
    }
    return best;
}

/* best(figures): height, width and depth of the best block and of the inputs that it needs. */
static PyObject *best(PyObject *module, PyObject *figures)
{
    union {
        Operation operation;
        int64_t values[N_FIGURES];
    } given;
    if (!PyTuple_Check(figures) || PyTuple_GET_SIZE(figures) != N_FIGURES) {
        PyErr_Format(PyExc_TypeError, "expected a tuple of %d numbers", N_FIGURES);
        return NULL;
    }
    for (int i = 0; i < N_FIGURES; i++) {
        given.values[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(figures, i));
        if (given.values[i] == -1 && PyErr_Occurred()) return NULL;
    }
    const Operation *o = &given.operation;
    if (o->micro_height < 1 || o->micro_width < 1 || o->micro_depth < 1 || o->height < 1 ||
        o->width < 1 || o->depth < 1 || o->input_granule < 1 || o->accumulator_granule < 1) {
        PyErr_SetString(PyExc_ValueError, "these are no figures of an operation");
        return NULL;
    }
    Best found = search(o);
    if (!found.is_found) Py_RETURN_NONE;
    const Block *b = &found.block;
    return Py_BuildValue("(LLLLLL)", (long long)b->height, (long long)b->width,
                         (long long)b->depth, (long long)b->input_height,
                         (long long)b->input_width, (long long)b->input_depth);
}

static PyMethodDef methods[] = {
    {"best", best, METH_O, "The best block for an operation; None if none fits."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_blocks", .m_size = 0, .m_methods = methods,
};

PyMODINIT_FUNC PyInit__blocks(void) { return PyModuleDef_Init(&definition); }
