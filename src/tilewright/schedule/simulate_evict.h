/* The compiled simulation, second part: where roots are, and what may leave at what price.
   Names follow state.py and evict.py; a run in which something is computed again is left to
   Python. */
#pragma once
#include "simulate_state.h"

/* Roots */

static Pad *pad_of(State *s, i64 root) { return s->pads + IN(pad_of)[root]; }

static i64 next_use(State *s, i64 root) {
    i64 end = IN(uses_at)[root + 1], *index = s->use_index + root;
    while (*index < end && s->start[IN(uses)[*index]] >= 0) ++*index;
    return *index < end ? IN(uses)[*index] : -1;
}

/* A root that nobody needs counts as needed by the last task of all, as in state.py. */
static i64 next_position(State *s, i64 root) {
    i64 task = next_use(s, root);
    return s->position[task < 0 ? s->n_all - 1 : task];
}

static void note_live(State *s, i64 root, i64 until, i64 sign) {
    i64 *live = s->live + IN(pad_of)[root] * (s->n_steps + 1);
    for (i64 step = s->current; step < until; step++) live[step] += sign * IN(aligned)[root];
}

static int has_room_until(State *s, i64 root, i64 position) {
    if (position <= s->current) return 1;
    i64 pad = IN(pad_of)[root], most = 0;
    if (!RULE(GUARDED)) return pad != s->blocked_pad;
    if (pad == s->blocked_pad && s->awaited_root < 0) return 0;
    const i64 *live = s->live + pad * (s->n_steps + 1);
    for (i64 step = s->current; step < position; step++)
        if (live[step] > most) most = live[step];
    return most + IN(aligned)[root] <= IN(planned)[pad];
}

static int place(State *s, i64 root, i64 position, int from_top, int stacked) {
    Pad *pad = pad_of(s, root);
    i64 size = IN(size)[root] ? IN(size)[root] : 1, address = 0, gap = -1;
    if (pad->is_counted) gap = place_counted(pad, &size, &address);
    else if (size <= pad->largest_gap)
        gap = stacked || !RULE(BY_LIFE)
                  ? best_fit(pad, size, from_top, &address)
                  : beside_lasting(s, pad, size, IN(last_step)[root], &address);
    if (gap < 0) {
        s->is_short = 1;
        return 0;
    }
    take(s, pad, gap, (Block){address, address + size, root, 0});
    s->address[root] = address;
    if (s->where[root] == EVICTED) s->next_copy[root]++;
    s->copy[root] = s->next_copy[root];
    s->where[root] = RESERVED;
    note_live(s, root, position, 1);
    return 1;
}

static void vacate(State *s, i64 root, i64 where) {
    Pad *pad = pad_of(s, root);
    i64 i = 0;
    while (pad->blocks[i].root != root) i++;
    give_back(pad, i);
    if (s->where[root] != RESERVED) s->copies[s->copy_index[root]].end = s->now;
    s->where[root] = where;
}

static void settle(State *s, i64 root) {
    s->where[root] = RESIDENT;
    s->copies = grown(s, s->copies, s->n_copies, &s->room_copies, sizeof(Copy));
    s->copies[s->n_copies] = (Copy){root, s->copy[root], s->address[root], s->now, -1};
    s->copy_index[root] = s->n_copies++;
}

/* What leaves, and what that costs */

static const Price *price(State *s, i64 made) {
    Price *p = s->prices + made;
    if (made >= s->room_made) stop(s, NOT_CARRIED);
    if (p->known) return p;
    PyObject *answer = PyObject_CallFunction(s->price_of, "L", (long long)made);
    i64 *numbers = (i64 *)p;
    if (!answer) stop(s, FAILED);
    for (Py_ssize_t i = 0; i < (Py_ssize_t)(sizeof(Price) / sizeof(i64)); i++)
        numbers[i] = PyLong_AsLongLong(PyTuple_GetItem(answer, i));
    Py_DECREF(answer);
    if (PyErr_Occurred()) stop(s, FAILED);
    return p;
}

static void hold(State *s, Contents *held, Piece piece) {
    held->pieces = grown(s, held->pieces, held->n, &held->room, sizeof(Piece));
    held->pieces[held->n++] = piece;
}

static PyObject *list_of_made(const Contents *held) {
    PyObject *list = PyList_New(held->n);
    for (i64 i = 0; list && i < held->n; i++)
        PyList_SET_ITEM(list, i, PyLong_FromLongLong(held->pieces[i].made));
    return list;
}

static int is_clean(State *s, Piece piece) {
    return !piece.is_part && (piece.writer >= s->n_tasks || price(s, piece.made)->is_clean);
}

/* Leave only what is not overwritten, in parts if need be; whether it can be told. */
static int survivors(State *s, i64 root) {
    Contents *held = s->contents + root;
    if (held->n == 1 || held->n == held->settled) return 1;
    PyObject *made = list_of_made(held), *answer = NULL;
    long long number = root, settled = held->settled;
    if (made) answer = PyObject_CallFunction(s->survivors_of, "LNL", number, made, settled);
    if (!answer) stop(s, FAILED);
    if (answer == Py_None) {
        Py_DECREF(answer);
        return 0;
    }
    /* Numbers in threes: which piece it was, what it is now, whether that is only a part. */
    i64 n = PyList_GET_SIZE(answer) / 3;
    s->kept.n = 0;
    for (i64 i = 0; i < n; i++) {
        Piece piece = held->pieces[PyLong_AsLongLong(PyList_GET_ITEM(answer, 3 * i))];
        i64 number = PyLong_AsLongLong(PyList_GET_ITEM(answer, 3 * i + 1));
        i64 is_part = piece.is_part || PyLong_AsLongLong(PyList_GET_ITEM(answer, 3 * i + 2));
        append(s, &s->kept, (Item){number, piece.writer, is_part});
    }
    Py_DECREF(answer);
    held->n = 0;
    for (i64 i = 0; i < n; i++) {
        Item piece = s->kept.items[i];
        hold(s, held, (Piece){piece.a, piece.b, piece.c});
    }
    held->settled = n;
    return 1;
}

static Like again_like(State *s, Piece piece) {
    i64 task = piece.writer;
    if (task < s->n_tasks) return price(s, piece.made)->again;
    if (s->added[task - s->n_tasks].out) return price(s, piece.made)->back;
    return (Like){s->engine[task], s->cycles[task], s->setup[task], s->ports[task]};
}

static int stays(State *s, i64 root, i64 reader, i64 until) {
    if (s->where[root] != RESIDENT || s->missing[root] || !s->waiting[root]) return 0;
    if (IN(last_step)[root] < until) return 0;
    EACH(user, uses, root)
        if (s->start[user] < 0 || s->start[user] + s->cycles[user] > s->start[reader])
            EACH(other, written, user)
                if (other == root) return 0;
    return 1;
}

static int can_recompute(State *s, i64 root) {
    const Contents *held = s->contents + root;
    int has_spill = IN(has_spill)[IN(pad_of)[root]] != 0;
    if ((s->forced >= 0 && has_spill) || held->n != 1) return 0;
    Piece piece = held->pieces[0];
    if (piece.is_part || piece.writer >= s->n_tasks) return 0;
    const Price *p = price(s, piece.made);
    if (!p->is_repeatable) return 0;
    if (has_spill && s->cycles[piece.writer] >= p->out.cycles + p->back.cycles) return 0;
    i64 until = next_position(s, root);
    EACH(other, touched, piece.writer)
        if (other != root && !stays(s, other, piece.writer, until)) return 0;
    return 1;
}

static i64 moving_cycles(State *s, i64 root) {
    i64 total = 0;
    Contents *held = s->contents + root;
    int has_spill = IN(has_spill)[IN(pad_of)[root]] != 0;
    if (RULE(RECOMPUTE)) {
        if (!survivors(s, root)) return MUST_STAY;
        if (can_recompute(s, root)) stop(s, NOT_CARRIED);
    }
    if (s->moving[root] != UNKNOWN) return s->moving[root];
    if (!has_spill && held->n && !is_clean(s, held->pieces[held->n - 1]))
        return s->moving[root] = MUST_STAY;
    if (!survivors(s, root)) return s->moving[root] = MUST_STAY;
    for (i64 i = 0; i < held->n && total != MUST_STAY; i++) {
        const Price *p = price(s, held->pieces[i].made);
        if (is_clean(s, held->pieces[i])) total += again_like(s, held->pieces[i]).cycles;
        else if (!has_spill) total = MUST_STAY;
        else total += p->out.cycles + p->back.cycles;
    }
    return s->moving[root] = total;
}

static i64 leaving_cost(State *s, i64 root, i64 step) {
    if (s->where[root] == LEAVING || !s->waiting[root]) return 0;
    if (s->writing[root]) return MUST_STAY;
    i64 distance = next_position(s, root) - step;
    if (distance <= 0) return MUST_STAY;
    i64 cycles = s->where[root] == RESERVED ? 0 : moving_cycles(s, root);
    if (cycles <= 0) return cycles;
    if (RULE(BY_DISTANCE)) return SCALE / distance * SCALE + cycles;
    if (cycles >= NEVER / SCALE) stop(s, NOT_CARRIED);
    return cycles * SCALE / distance + 1;
}

static int is_cheaper(i64 cost, i64 taken, i64 floor, Window best) {
    if (best.cost < 0) return 1;
    if (cost != best.cost) return cost < best.cost;
    return taken != best.taken ? taken < best.taken : floor < best.floor;
}

/* The cheapest window in blocks [first, last), all of which may leave. */
static Window window_in(State *s, const Pad *pad, i64 size, i64 first, i64 last, Window best) {
    i64 low = first, spent = 0, taken = 0;
    i64 floor = rounded_up(gap_begin(pad, first), pad->alignment);
    for (i64 high = first; high <= last; high++) {
        while (floor + size <= gap_end(pad, high)) {
            if (is_cheaper(spent, taken, floor, best))
                best = (Window){spent, taken, floor, low, high};
            if (low == high) break;
            spent -= pad->blocks[low].price;
            taken -= pad->blocks[low].end - pad->blocks[low].address;
            floor = rounded_up(pad->blocks[low].end, pad->alignment);
            low++;
        }
        if (high == last) break;
        if (spent >= NEVER - pad->blocks[high].price) stop(s, NOT_CARRIED);
        spent += pad->blocks[high].price;
        taken += pad->blocks[high].end - pad->blocks[high].address;
    }
    return best;
}

/* As in counted.py: the cheapest blocks that free so many bytes, none in vain. */
static i64 cheapest_counted(State *s, const Pad *pad, i64 size) {
    i64 short_bytes = rounded_up(size, pad->alignment) - pad->largest_gap, freed = 0, cost = 0;
    Items *sorted = &s->doomed;
    for (i64 i = 0; i < pad->n; i++) {
        Block block = pad->blocks[i];
        if (block.price != MUST_STAY)
            insert_sorted(s, sorted, (Item){block.price, block.end - block.address, block.root});
    }
    i64 n = 0;
    for (; n < sorted->n && freed < short_bytes; n++) freed += sorted->items[n].b;
    sorted->n = n;
    if (freed < short_bytes) return -1;
    for (i64 i = n - 1; i >= 0; i--)
        if (freed - sorted->items[i].b >= short_bytes) {
            freed -= sorted->items[i].b;
            remove_at(sorted, i);
        }
    for (i64 i = 0; i < sorted->n; i++) {
        cost += sorted->items[i].a;
        if (cost >= NEVER) stop(s, NOT_CARRIED);
    }
    return cost;
}

/* The least cost at which a root gets room at a step, or -1; in `doomed` whoever leaves for it. */
static i64 cheapest_window(State *s, i64 root, i64 step) {
    Pad *pad = pad_of(s, root);
    i64 size = IN(size)[root] ? IN(size)[root] : 1;
    Window best = {-1, 0, 0, 0, 0};
    s->doomed.n = 0;
    for (Block *block = pad->blocks; block < pad->blocks + pad->n; block++)
        block->price = block->root < 0 ? MUST_STAY : leaving_cost(s, block->root, step);
    if (pad->is_counted) return cheapest_counted(s, pad, size);
    for (i64 first = 0, last; first <= pad->n; first = last + 1) {
        for (last = first; last < pad->n && pad->blocks[last].price != MUST_STAY;) last++;
        best = window_in(s, pad, size, first, last, best);
    }
    for (i64 i = best.low; i < best.high; i++)
        append(s, &s->doomed, (Item){0, 0, pad->blocks[i].root});
    return best.cost;
}

static int is_in_the_way(State *s) {
    if (s->awaited_root < 0) return 0;
    i64 cost = cheapest_window(s, s->awaited_root, s->awaited_step);
    return cost < 0 || cost > s->awaited_cost;
}

static i64 add_task(State *s, Added added, Like like, i64 kind) {
    i64 task = s->n_all++;
    if (s->n_all > s->room_tasks) stop(s, NOT_CARRIED);
    s->engine[task] = like.engine;
    s->cycles[task] = like.cycles;
    s->added_cycles += like.cycles;
    s->setup[task] = like.setup;
    s->ports[task] = like.ports;
    s->kind[task] = kind;
    s->start[task] = -1;
    s->instance[task] = s->position[task] = s->key[task] = 0;
    s->added[task - s->n_tasks] = added;
    return task;
}

static void bring_back_later(State *s, i64 root, Piece piece, i64 user) {
    Added added = {root, piece.made, piece.writer, piece.is_part, 0, 0, -1, piece.writer};
    if (piece.writer >= s->n_tasks) {
        const Added *before = s->added + piece.writer - s->n_tasks;
        added.saved = before->saved;
        if (!before->out) added.origin = before->origin;
    }
    i64 task = add_task(s, added, again_like(s, piece), LOAD);
    s->missing[root]++;
    s->position[task] = next_position(s, root);
    s->key[task] = s->key[user < 0 ? s->n_all - 1 : user] - (RULE(BY_SLACK) ? s->cycles[task] : 0);
    push(s, &s->later, (Item){s->position[task] - RULE(LOOKAHEAD), s->key[task], task});
}

static void leave(State *s, i64 root) {
    Contents *held = s->contents + root;
    i64 user = next_use(s, root), n = held->n;
    for (i64 i = 0; i < n; i++)
        if (!is_clean(s, held->pieces[i])) stop(s, NOT_CARRIED);
    note_live(s, root, next_position(s, root), -1);
    vacate(s, root, EVICTED);
    held->n = held->settled = 0;
    s->moving[root] = UNKNOWN;
    for (i64 i = 0; i < n; i++) bring_back_later(s, root, held->pieces[i], user);
}

static void evict(State *s, i64 root, int may_drop) {
    if (s->where[root] == RESERVED) {
        note_live(s, root, next_position(s, root), -1);
        vacate(s, root, s->missing[root] ? EVICTED : ABSENT);
        return;
    }
    if (s->where[root] != RESIDENT) return;
    Contents *held = s->contents + root;
    if (!survivors(s, root) || (RULE(RECOMPUTE) && can_recompute(s, root))) stop(s, NOT_CARRIED);
    i64 dirty = 0;
    for (i64 i = 0; i < held->n; i++) dirty += !is_clean(s, held->pieces[i]);
    if ((!dirty && !may_drop) || (dirty && !IN(has_spill)[IN(pad_of)[root]])) return;
    if (!dirty && !s->running[root]) {
        leave(s, root);
        return;
    }
    s->where[root] = LEAVING;
    s->leaving[root] = dirty;
    s->n_saved += dirty > 0;
    for (i64 i = 0; i < held->n; i++) {
        Piece piece = held->pieces[i];
        if (is_clean(s, piece)) continue;
        Added added = {root, piece.made, piece.writer, piece.is_part, 1, s->copy[root],
                       s->n_saved - 1, piece.writer};
        i64 task = add_task(s, added, price(s, piece.made)->out, STORE);
        s->key[task] = FIRST;
        insert_sorted(s, s->going + s->engine[task], (Item){FIRST, task, 0});
    }
}

static int make_room(State *s, i64 root, i64 step, int may_drop) {
    i64 cost = cheapest_window(s, root, step);
    if (cost < 0) return 0;
    s->awaited_root = root;
    s->awaited_step = step;
    s->awaited_cost = cost;
    for (i64 i = 0; i < s->doomed.n; i++)
        if (s->waiting[s->doomed.items[i].c]) evict(s, s->doomed.items[i].c, may_drop);
    return 1;
}
