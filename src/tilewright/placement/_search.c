/* The complete search of search.py, compiled: the same decisions in the same order, so the same
   nodes and the same addresses. Names follow search.py; read that one first. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { EXHAUSTED = 0, FOUND = 1, OUT_OF_BUDGET = 2, OUT_OF_MEMORY = 3 };
enum { LOW = 0, SKIPPED = 1, PLACED = 2 };
#define RECENT 8

typedef struct { int64_t kind, index, value; } Change;
typedef struct { int64_t begin, count, retreat, next; } Part;
typedef struct { int64_t begin, count, retreat, next, mark, n_parts, arena_end, chosen; } Frame;

typedef struct {
    int64_t n, n_sections, capacity;
    const int64_t *size, *alignment, *fixed, *twin, *order;
    const int64_t *section_at, *section_buffers, *sections_at, *sections_of;
    const int64_t *neighbours_at, *neighbours;
    int lowest_section_first;
    int64_t *low, *skipped_at, *estimate, *remaining, *lowest, *rank, *address;
    int64_t *seen_section, *witness, *seen_buffer, *in_part, *section_list, *label, *label_count, *stack;
    char *placed;
    int64_t n_listed, stamp, flood_stamp, part_stamp;
    int64_t recent[RECENT];
    Change *trail;
    int64_t n_trail, trail_room;
    int64_t *arena;
    Part *parts;
    Frame *frames;
} Search;

static int64_t aligned(int64_t address, int64_t alignment) {
    int64_t over = address % alignment;
    return over ? address + alignment - over : address;
}

static int is_skipped(const Search *s, int64_t j) { return s->skipped_at[j] == s->low[j]; }

static int record(Search *s, int64_t kind, int64_t index, int64_t value) {
    if (s->n_trail == s->trail_room) {
        Change *more = realloc(s->trail, 2 * s->trail_room * sizeof(Change));
        if (!more) return 0;
        s->trail = more;
        s->trail_room *= 2;
    }
    s->trail[s->n_trail++] = (Change){kind, index, value};
    return 1;
}

static void undo(Search *s, int64_t mark) {
    while (s->n_trail > mark) {
        Change c = s->trail[--s->n_trail];
        if (c.kind == LOW) s->low[c.index] = c.value;
        else if (c.kind == SKIPPED) s->skipped_at[c.index] = c.value;
        else {
            s->placed[c.index] = 0;
            for (int64_t q = s->sections_at[c.index]; q < s->sections_at[c.index + 1]; q++)
                s->remaining[s->sections_of[q]] += s->size[c.index];
        }
    }
}

/* Sections that failed lately are looked at first: what fails here fails the full check too. */
static int recently_failed_fails(Search *s) {
    for (int a = 0; a < RECENT; a++) {
        int64_t section = s->recent[a], lowest = INT64_MAX;
        for (int64_t q = s->section_at[section]; q < s->section_at[section + 1]; q++) {
            int64_t j = s->section_buffers[q];
            if (s->placed[j]) continue;
            if (s->in_part[j] != s->part_stamp) break;
            if (s->estimate[j] < lowest) lowest = s->estimate[j];
        }
        if (lowest < INT64_MAX && lowest + s->remaining[section] > s->capacity) {
            if (a) { s->recent[a] = s->recent[a - 1]; s->recent[a - 1] = section; }
            return 1;
        }
    }
    return 0;
}

/* Raise the estimates of the skipped: 0 if one of them can no longer be supported. */
static int raise_skipped(Search *s, const int64_t *part, int64_t count) {
    for (int pass = 0; pass < 2; pass++) {
        int changed = 0;
        for (int64_t k = 0; k < count; k++) {
            int64_t j = part[k], support = INT64_MAX, begin = INT64_MAX;
            if (!is_skipped(s, j)) continue;
            for (int64_t q = s->neighbours_at[j]; q < s->neighbours_at[j + 1]; q++) {
                int64_t t = s->neighbours[q];
                if (s->placed[t]) continue;
                if (s->estimate[t] < begin) begin = s->estimate[t];
                if (s->estimate[t] + s->size[t] < support) support = s->estimate[t] + s->size[t];
            }
            if (begin == INT64_MAX || begin >= s->low[j] + s->size[j]) return 0;
            support = aligned(support, s->alignment[j]);
            if (support > s->estimate[j]) { s->estimate[j] = support; changed = 1; }
            if (s->estimate[j] + s->size[j] > s->capacity) return 0;
        }
        if (!changed) break;
    }
    return 1;
}

/* Whether a section is outside the part, or has nothing to come, or has a buffer that begins low
   enough; that one is the witness, which mostly serves the next time too. */
static int has_witness(Search *s, int64_t section, int64_t limit) {
    for (int64_t q = s->section_at[section]; q < s->section_at[section + 1]; q++) {
        int64_t j = s->section_buffers[q];
        if (s->placed[j]) continue;
        if (s->in_part[j] == s->part_stamp && s->estimate[j] > limit) continue;
        s->witness[section] = j;
        return 1;
    }
    return s->remaining[section] == 0;
}

static int may_fit(Search *s, const int64_t *part, int64_t count) {
    s->part_stamp++;
    for (int64_t k = 0; k < count; k++) {
        s->in_part[part[k]] = s->part_stamp;
        s->estimate[part[k]] = s->low[part[k]];
    }
    if (recently_failed_fails(s) || !raise_skipped(s, part, count)) return 0;
    for (int64_t section = 0; section < s->n_sections; section++) {
        int64_t witness = s->witness[section];
        int64_t limit = s->capacity - s->remaining[section];
        if (!s->placed[witness] &&
            (s->in_part[witness] != s->part_stamp || s->estimate[witness] <= limit))
            continue;
        if (!has_witness(s, section, limit)) {
            s->recent[RECENT - 1] = section;
            return 0;
        }
    }
    return 1;
}

/* The sections of a part in the order of its buffers, and the lowest begin in each. */
static void list_sections(Search *s, const int64_t *part, int64_t count) {
    s->stamp++;
    s->n_listed = 0;
    for (int64_t k = 0; k < count; k++) {
        int64_t j = part[k], estimate = s->estimate[j];
        for (int64_t q = s->sections_at[j]; q < s->sections_at[j + 1]; q++) {
            int64_t section = s->sections_of[q];
            if (s->seen_section[section] != s->stamp) {
                s->seen_section[section] = s->stamp;
                s->lowest[section] = estimate;
                s->section_list[s->n_listed++] = section;
            } else if (estimate < s->lowest[section]) s->lowest[section] = estimate;
        }
    }
}

static int64_t lowest_buffer(const Search *s, const int64_t *part, int64_t count) {
    int64_t best = -1;
    for (int64_t k = 0; k < count; k++) {
        int64_t j = part[k];
        if (!is_skipped(s, j) && (best < 0 || s->low[j] < s->low[best])) best = j;
    }
    return best;
}

static int before(const Search *s, int64_t a, int64_t b) {
    return b < 0 || s->low[a] < s->low[b] || (s->low[a] == s->low[b] && s->rank[a] < s->rank[b]);
}

static int64_t first_in_lowest_section(Search *s, const int64_t *part, int64_t count) {
    int64_t lowest = -1, best = -1;
    if (!may_fit(s, part, count)) return -1;
    list_sections(s, part, count);
    for (int64_t a = 0; a < s->n_listed; a++) {
        int64_t section = s->section_list[a];
        int open = 0;
        if (lowest >= 0 && s->lowest[section] >= s->lowest[lowest]) continue;
        for (int64_t q = s->section_at[section]; q < s->section_at[section + 1]; q++) {
            int64_t j = s->section_buffers[q];
            if (!s->placed[j] && !is_skipped(s, j)) { open = 1; break; }
        }
        if (open) lowest = section;
    }
    if (lowest < 0) return -1;
    for (int64_t q = s->section_at[lowest]; q < s->section_at[lowest + 1]; q++) {
        int64_t j = s->section_buffers[q];
        if (!s->placed[j] && !is_skipped(s, j) && before(s, j, best)) best = j;
    }
    for (;;) {
        int64_t below = -1;
        for (int64_t q = s->neighbours_at[best]; q < s->neighbours_at[best + 1]; q++) {
            int64_t j = s->neighbours[q];
            if (s->placed[j] || is_skipped(s, j)) continue;
            if (s->low[j] + s->size[j] <= s->low[best] && before(s, j, below)) below = j;
        }
        if (below < 0) return best;
        best = below;
    }
}

static int skip(Search *s, const int64_t *part, int64_t count, int64_t chosen) {
    for (int64_t k = 0; k < count; k++) {
        int64_t j = part[k];
        if (s->twin[j] != s->twin[chosen] || is_skipped(s, j)) continue;
        if (!record(s, SKIPPED, j, s->skipped_at[j])) return 0;
        s->skipped_at[j] = s->low[j];
    }
    return 1;
}

/* 1 placed, 0 a fixed neighbour is in the way, -1 no memory. */
static int place(Search *s, int64_t i) {
    int64_t end = s->low[i] + s->size[i];
    s->address[i] = s->low[i];
    s->placed[i] = 1;
    for (int64_t q = s->sections_at[i]; q < s->sections_at[i + 1]; q++)
        s->remaining[s->sections_of[q]] -= s->size[i];
    if (!record(s, PLACED, i, 0)) return -1;
    for (int64_t q = s->neighbours_at[i]; q < s->neighbours_at[i + 1]; q++) {
        int64_t j = s->neighbours[q];
        if (s->placed[j] || s->low[j] >= end) continue;
        if (s->fixed[j] >= 0) return 0;
        if (!record(s, LOW, j, s->low[j])) return -1;
        s->low[j] = aligned(end, s->alignment[j]);
    }
    return 1;
}

/* Split what is left of a part into parts that share no section; returns how many. */
static int64_t split(Search *s, const int64_t *part, int64_t count, int64_t at, Part *out) {
    int64_t n_labels = 0, total = 0;
    s->flood_stamp++;
    for (int64_t k = 0; k < count; k++) {
        int64_t root = part[k], top = 0;
        if (s->placed[root] || s->seen_buffer[root] == s->flood_stamp) continue;
        s->label_count[n_labels] = 0;
        s->seen_buffer[root] = s->flood_stamp;
        s->stack[top++] = root;
        while (top) {
            int64_t x = s->stack[--top];
            s->label[x] = n_labels;
            s->label_count[n_labels]++;
            for (int64_t q = s->neighbours_at[x]; q < s->neighbours_at[x + 1]; q++) {
                int64_t y = s->neighbours[q];
                if (s->placed[y] || s->seen_buffer[y] == s->flood_stamp) continue;
                s->seen_buffer[y] = s->flood_stamp;
                s->stack[top++] = y;
            }
        }
        n_labels++;
    }
    for (int64_t a = 0; a < n_labels; a++) {
        out[a] = (Part){at + total, s->label_count[a], 0, 0};
        total += s->label_count[a];
        s->label_count[a] = out[a].begin;
    }
    for (int64_t k = 0; k < count; k++)
        if (!s->placed[part[k]]) s->arena[s->label_count[s->label[part[k]]]++] = part[k];
    for (int64_t a = 1; a < n_labels; a++) {
        Part moved = out[a];
        int64_t b = a - 1;
        while (b >= 0 && out[b].count > moved.count) { out[b + 1] = out[b]; b--; }
        out[b + 1] = moved;
    }
    return n_labels;
}

/* Link new parts[n_parts ...] in front of `next`, smallest first; returns the new head. */
static int64_t chain(Search *s, int64_t n_parts, int64_t added, int64_t retreat, int64_t next) {
    for (int64_t a = n_parts + added - 1; a >= n_parts; a--) {
        s->parts[a].retreat = retreat;
        s->parts[a].next = next;
        next = a;
    }
    return next;
}

static int run(Search *s, int64_t budget, int64_t *nodes) {
    int64_t depth = -1, n_parts, head, arena_end = s->n;
    memcpy(s->arena, s->order, s->n * sizeof(int64_t));
    n_parts = split(s, s->arena, s->n, arena_end, s->parts);
    head = chain(s, 0, n_parts, -1, -1);
    arena_end += s->n;
    for (; head >= 0;) {
        Part p = s->parts[head];
        s->frames[++depth] =
            (Frame){p.begin, p.count, p.retreat, p.next, s->n_trail, n_parts, arena_end, -1};
        for (;;) {
            Frame *f = &s->frames[depth];
            int64_t *part = s->arena + f->begin, chosen = -1, added;
            int fits = 1, done;
            undo(s, f->mark);
            arena_end = f->arena_end;
            n_parts = f->n_parts;
            if (f->chosen >= 0) {
                fits = s->fixed[f->chosen] < 0;
                if (fits && !skip(s, part, f->count, f->chosen)) return OUT_OF_MEMORY;
                f->mark = s->n_trail;
                fits = fits && may_fit(s, part, f->count);
            }
            if (fits)
                chosen = s->lowest_section_first ? first_in_lowest_section(s, part, f->count)
                                                 : lowest_buffer(s, part, f->count);
            if (chosen < 0) {
                if (f->retreat < 0) return EXHAUSTED;
                depth = f->retreat;
                continue;
            }
            if (*nodes >= budget) return OUT_OF_BUDGET;
            ++*nodes;
            f->chosen = chosen;
            done = place(s, chosen);
            if (done < 0) return OUT_OF_MEMORY;
            if (!done) continue;
            added = 0;
            for (int64_t k = 0; k < f->count; k++)
                if (part[k] != chosen) s->arena[arena_end + added++] = part[k];
            if (!may_fit(s, s->arena + arena_end, added)) continue;
            arena_end += added;
            added = split(s, part, f->count, f->arena_end, s->parts + n_parts);
            head = chain(s, n_parts, added, depth, f->next);
            n_parts += added;
            break;
        }
    }
    return FOUND;
}

static int64_t *numbers(Search *s, int64_t count, int64_t value) {
    int64_t *made = malloc((count > 0 ? count : 1) * sizeof(int64_t));
    (void)s;
    if (made)
        for (int64_t k = 0; k < count; k++) made[k] = value;
    return made;
}

static int prepare(Search *s) {
    int64_t n = s->n, m = s->n_sections;
    int64_t **arrays[] = {&s->low, &s->skipped_at, &s->estimate, &s->rank, &s->seen_buffer,
                          &s->in_part, &s->label, &s->label_count, &s->stack};
    int64_t **by_section[] = {&s->remaining, &s->lowest, &s->seen_section, &s->section_list,
                              &s->witness};
    int fine = 1;
    for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++)
        fine &= (*arrays[a] = numbers(s, n, a == 1 ? -1 : 0)) != NULL;
    for (size_t a = 0; a < sizeof by_section / sizeof *by_section; a++)
        fine &= (*by_section[a] = numbers(s, m, 0)) != NULL;
    s->arena = malloc((n * (n + 1) / 2 + 3 * n + 1) * sizeof(int64_t));
    s->parts = malloc((3 * n + 2) * sizeof(Part));
    s->frames = malloc((n + 2) * sizeof(Frame));
    s->placed = calloc(n + 1, 1);
    s->trail_room = 4 * n + 16;
    s->trail = malloc(s->trail_room * sizeof(Change));
    if (!fine || !s->arena || !s->parts || !s->frames || !s->placed || !s->trail) return 0;
    for (int64_t k = 0; k < n; k++) s->rank[s->order[k]] = k;
    for (int64_t j = 0; j < n; j++) {
        if (s->fixed[j] >= 0) s->low[j] = s->fixed[j];
        for (int64_t q = s->sections_at[j]; q < s->sections_at[j + 1]; q++)
            s->remaining[s->sections_of[q]] += s->size[j];
    }
    for (int64_t k = 0; k < m; k++) s->witness[k] = s->section_buffers[s->section_at[k]];
    for (int a = 0; a < RECENT; a++) s->recent[a] = a % m;
    return 1;
}

static void release(Search *s) {
    int64_t *arrays[] = {s->low, s->skipped_at, s->estimate, s->rank, s->seen_buffer, s->in_part,
                         s->label, s->label_count, s->stack, s->remaining, s->lowest,
                         s->seen_section, s->section_list, s->witness, s->arena};
    for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++) free(arrays[a]);
    free(s->parts);
    free(s->frames);
    free(s->placed);
    free(s->trail);
}

#define N_INPUTS 11

static PyObject *search(PyObject *self, PyObject *args) {
    Py_buffer in[N_INPUTS], out;
    long long capacity, budget;
    int lowest_section_first, status = OUT_OF_MEMORY;
    int64_t nodes = 0;
    Search s;
    (void)self;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*y*y*y*y*y*w*LLp", &in[0], &in[1], &in[2], &in[3],
                          &in[4], &in[5], &in[6], &in[7], &in[8], &in[9], &in[10], &out, &capacity,
                          &budget, &lowest_section_first))
        return NULL;
    memset(&s, 0, sizeof s);
    s.n = in[0].len / (Py_ssize_t)sizeof(int64_t);
    s.n_sections = in[5].len / (Py_ssize_t)sizeof(int64_t) - 1;
    s.capacity = capacity;
    s.lowest_section_first = lowest_section_first;
    s.size = in[0].buf;
    s.alignment = in[1].buf;
    s.fixed = in[2].buf;
    s.twin = in[3].buf;
    s.order = in[4].buf;
    s.section_at = in[5].buf;
    s.section_buffers = in[6].buf;
    s.sections_at = in[7].buf;
    s.sections_of = in[8].buf;
    s.neighbours_at = in[9].buf;
    s.neighbours = in[10].buf;
    s.address = out.buf;
    Py_BEGIN_ALLOW_THREADS
    if (prepare(&s)) status = run(&s, budget, &nodes);
    release(&s);
    Py_END_ALLOW_THREADS
    for (int a = 0; a < N_INPUTS; a++) PyBuffer_Release(&in[a]);
    PyBuffer_Release(&out);
    if (status == OUT_OF_MEMORY) return PyErr_NoMemory();
    return Py_BuildValue("iL", status, (long long)nodes);
}

static PyMethodDef methods[] = {
    {"search", search, METH_VARARGS, "The compiled twin of search.search."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_search", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__search(void) { return PyModule_Create(&module); }
