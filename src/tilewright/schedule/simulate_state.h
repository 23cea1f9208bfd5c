/* The compiled simulation, first part: its state, sorted lists and heaps, and the scratchpads.
   Names follow state.py and scratchpad.py; read those first. */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t i64;

enum { DONE, TOO_SLOW, STUCK, NOT_CARRIED, FAILED };
enum { COMPUTE, LOAD, STORE, MOVE };
enum { ABSENT, RESIDENT, RESERVED, LEAVING, EVICTED };
#define MOST_OWNED 64
#define MOST_LANES 62
#define WAKE (-1)
#define UNKNOWN (-1)
#define MUST_STAY (-2)
#define NEVER ((i64)1 << 62)
#define FIRST (-((i64)1 << 62))
#define SCALE ((i64)1 << 24)

/* By task or root; lists of lists are flat, with the begin of each list in the array before. */
#define INPUTS(X)                                                                                \
    X(engine) X(cycles) X(setup) X(kind) X(ports) X(pending) X(position) X(key) X(release)        \
    X(left_cycles) X(instances) X(work) X(sequence) X(steps) X(queues_at) X(queues)                \
    X(touched_at) X(touched) X(written_at) X(written) X(sources_at) X(sources) X(after_at)        \
    X(after) X(followers_at) X(followers) X(made_at) X(made_root) X(uses_at) X(uses)              \
    X(port_list_at) X(port_list) X(pad_of) X(size) X(aligned) X(rolling) X(last_step)             \
    X(transfer_engines) X(pad_size) X(pad_alignment) X(has_spill) X(walls) X(planned) X(live)     \
    X(rules)
enum {
#define X(name) IN_##name,
    INPUTS(X)
#undef X
        N_INPUTS
};
enum { PREFETCH, GUARDED, STORES_FIRST, BY_LIFE, BOTH_ENDS, BY_DISTANCE, BY_SLACK, COUNTED,
       RECOMPUTE, WINDOW, LOOKAHEAD, LIMIT_CYCLES, LIMIT_ADDED };

typedef struct { i64 a, b, c; } Item;
typedef struct { Item *items; i64 n, room; } Items;
typedef struct { i64 address, end, root, price; } Block;
typedef struct { Block *blocks; i64 n, room, is_counted, size, alignment, largest_gap, next; } Pad;
typedef struct { i64 made, writer, is_part; } Piece;
typedef struct { Piece *pieces; i64 n, room, settled; } Contents;
typedef struct { i64 engine, cycles, setup, ports; } Like;
typedef struct { i64 known, is_clean, is_repeatable; Like again, out, back; } Price;
typedef struct { i64 root, made, writer, is_part, out, copy, saved, origin; } Added;
typedef struct { i64 root, copy, address, begin, end; } Copy;
typedef struct { i64 cost, taken, floor, low, high; } Window;

typedef struct {
    const i64 *in[N_INPUTS];
    i64 n_tasks, n_roots, n_engines, n_pads, n_steps, n_transfer_engines, n_walls;
    i64 room_tasks, room_made;
    PyObject *price_of, *survivors_of;
    jmp_buf leave;
    int status;
    i64 now, current, unfinished, n_all, added_cycles, is_short, n_saved;
    i64 forced, forced_for, is_clearing, forced_times, forced_at, first_waiting, stuck_task;
    i64 blocked_pad, awaited_root, awaited_step, awaited_cost;
    i64 *engine, *cycles, *setup, *kind, *ports, *position, *key, *start, *instance;
    i64 *pending, *work, *is_seen;
    i64 *where, *missing, *running, *writing, *left, *waiting, *use_index, *address, *copy;
    i64 *next_copy, *copy_index, *moving, *leaving, *live, *head, *idle;
    i64 *lanes, *lane_at, *last_wake;
    Contents *contents;
    Price *prices;
    Added *added;
    Pad *pads;
    void *owned[MOST_OWNED];
    i64 n_owned;
    Items events, later, choices, doomed, kept, used_copies, *coming, *going;
    Copy *copies;
    i64 n_copies, room_copies;
} State;

#define IN(name) (s->in[IN_##name])
#define RULE(name) (s->in[IN_rules][name])
#define EACH(item, list, index)                                                                  \
    for (i64 q_ = IN(list##_at)[index], item;                                                     \
         q_ < IN(list##_at)[(index) + 1] && (item = IN(list)[q_], 1); q_++)

static void stop(State *s, int status) {
    s->status = status;
    longjmp(s->leave, 1);
}

static void *grown(State *s, void *old, i64 n, i64 *room, size_t size) {
    if (n < *room) return old;
    i64 more = *room ? 2 * *room : 16;
    void *block = realloc(old, (size_t)more * size);
    if (!block) {
        PyErr_NoMemory();
        stop(s, FAILED);
    }
    *room = more;
    return block;
}

static i64 rounded_up(i64 address, i64 alignment) {
    return (address + alignment - 1) / alignment * alignment;
}

/* Sorted lists and heaps */

static int comes_before(Item x, Item y) {
    if (x.a != y.a) return x.a < y.a;
    return x.b != y.b ? x.b < y.b : x.c < y.c;
}

static void append(State *s, Items *list, Item item) {
    list->items = grown(s, list->items, list->n, &list->room, sizeof(Item));
    list->items[list->n++] = item;
}

static void insert_sorted(State *s, Items *list, Item item) {
    append(s, list, item);
    i64 i = list->n - 1;
    for (; i > 0 && comes_before(item, list->items[i - 1]); i--)
        list->items[i] = list->items[i - 1];
    list->items[i] = item;
}

static void remove_at(Items *list, i64 i) {
    list->n--;
    memmove(list->items + i, list->items + i + 1, (size_t)(list->n - i) * sizeof(Item));
}

static void push(State *s, Items *heap, Item item) {
    append(s, heap, item);
    i64 i = heap->n - 1;
    while (i && comes_before(item, heap->items[(i - 1) / 2])) {
        heap->items[i] = heap->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap->items[i] = item;
}

static Item pop(Items *heap) {
    Item top = heap->items[0], last = heap->items[--heap->n];
    i64 i = 0;
    for (i64 child = 1; child < heap->n; child = 2 * i + 1) {
        const Item *items = heap->items;
        if (child + 1 < heap->n && comes_before(items[child + 1], items[child])) child++;
        if (!comes_before(items[child], last)) break;
        heap->items[i] = items[child];
        i = child;
    }
    heap->items[i] = last;
    return top;
}

/* Scratchpads: blocks by address, reserved ranges among them with root -1. If bytes are only
   counted, an address is a number that grows from block to block, and all gaps are one. */

static i64 gap_begin(const Pad *pad, i64 i) { return i ? pad->blocks[i - 1].end : 0; }

static i64 gap_end(const Pad *pad, i64 i) {
    return i < pad->n ? pad->blocks[i].address : pad->size;
}

static void measure(Pad *pad) {
    pad->largest_gap = 0;
    for (i64 i = 0; i <= pad->n; i++)
        if (gap_end(pad, i) - gap_begin(pad, i) > pad->largest_gap)
            pad->largest_gap = gap_end(pad, i) - gap_begin(pad, i);
}

static void take(State *s, Pad *pad, i64 i, Block block) {
    pad->blocks = grown(s, pad->blocks, pad->n, &pad->room, sizeof(Block));
    memmove(pad->blocks + i + 1, pad->blocks + i, (size_t)(pad->n - i) * sizeof(Block));
    pad->blocks[i] = block;
    pad->n++;
    if (pad->is_counted) pad->largest_gap -= block.end - block.address;
    else measure(pad);
}

static void give_back(Pad *pad, i64 i) {
    i64 size = pad->blocks[i].end - pad->blocks[i].address;
    pad->n--;
    memmove(pad->blocks + i, pad->blocks + i + 1, (size_t)(pad->n - i) * sizeof(Block));
    if (pad->is_counted) pad->largest_gap += size;
    else measure(pad);
}

static i64 place_counted(Pad *pad, i64 *size, i64 *address) {
    *size = rounded_up(*size, pad->alignment);
    *address = pad->next;
    if (*size > pad->largest_gap) return -1;
    pad->next += *size;
    return pad->n;
}

static i64 address_in(const Pad *pad, i64 i, i64 size, int from_top) {
    if (from_top) {
        i64 address = gap_end(pad, i) - size;
        if (address < 0) return -1;
        address -= address % pad->alignment;
        return address >= gap_begin(pad, i) ? address : -1;
    }
    i64 address = rounded_up(gap_begin(pad, i), pad->alignment);
    return address + size <= gap_end(pad, i) ? address : -1;
}

/* The gap and the address that FreeList would choose; the gap is -1 if none fits. */
static i64 best_fit(const Pad *pad, i64 size, int from_top, i64 *address) {
    i64 last_resort = -1, best = -1, best_gap = 0;
    for (i64 i = 0; i <= pad->n; i++)
        if (gap_end(pad, i) > gap_begin(pad, i)) {
            last_resort = i;
            if (from_top) break;
        }
    for (i64 i = 0; i <= pad->n; i++) {
        i64 gap = gap_end(pad, i) - gap_begin(pad, i);
        if (i == last_resort || gap < size || address_in(pad, i, size, from_top) < 0) continue;
        if (best < 0 || gap < best_gap || (gap == best_gap && from_top)) {
            best = i;
            best_gap = gap;
        }
    }
    if (best < 0) best = last_resort;
    if (best >= 0) *address = address_in(pad, best, size, from_top);
    return best >= 0 && *address >= 0 ? best : -1;
}

/* The end of a gap beside what lasts as long as the new block, or a little longer. */
static i64 beside_lasting(const State *s, const Pad *pad, i64 size, i64 until, i64 *address) {
    i64 best = -1, best_key[4] = {0};
    for (i64 i = 0; i <= pad->n; i++) {
        i64 begin = gap_begin(pad, i), end = gap_end(pad, i);
        if (begin + size > end || rounded_up(begin, pad->alignment) + size > end) continue;
        for (int above = 0; above < 2; above++) {
            i64 other = above ? i : i - 1;
            i64 root = other < 0 || other >= pad->n ? -1 : pad->blocks[other].root;
            i64 step = root < 0 ? NEVER : IN(last_step)[root];
            i64 distance = step < until ? until - step : step - until;
            i64 at = address_in(pad, i, size, above);
            i64 key[4] = {step < until, distance, end - begin, at};
            int k = 0;
            while (k < 3 && key[k] == best_key[k]) k++;
            if (best < 0 || key[k] < best_key[k]) {
                best = i;
                memcpy(best_key, key, sizeof key);
            }
        }
    }
    *address = best_key[3];
    return best;
}
