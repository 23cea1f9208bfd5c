/* The compiled simulation, third part: tasks become ready, start and end. Names follow state.py
   and simulate.py. */
#pragma once
#include "simulate_evict.h"

#define MOST_ROOTS 256 /* that a task touches and that have no place yet */

static const i64 *roots_of(State *s, i64 task, i64 *n) {
    if (task >= s->n_tasks) {
        *n = 1;
        return &s->added[task - s->n_tasks].root;
    }
    *n = IN(touched_at)[task + 1] - IN(touched_at)[task];
    return IN(touched) + IN(touched_at)[task];
}

/* Tasks */

static int lanes_free(State *s, i64 task) {
    i64 latest = 0;
    EACH(port, port_list, s->ports[task]) {
        i64 n = s->lane_at[port + 1] - s->lane_at[port], named = 0, sorted[MOST_LANES];
        EACH(other, port_list, s->ports[task]) named += other == port;
        for (i64 i = 0, j; i < n; i++) {
            i64 free = s->lanes[s->lane_at[port] + i];
            for (j = i; j > 0 && sorted[j - 1] > free; j--) sorted[j] = sorted[j - 1];
            sorted[j] = free;
        }
        if (sorted[named - 1] > latest) latest = sorted[named - 1];
    }
    if (latest <= s->now + s->setup[task]) return 1;
    i64 wake = latest - s->setup[task], engine = s->engine[task];
    if (s->last_wake[engine] != wake) push(s, &s->events, (Item){wake, WAKE, 0});
    s->last_wake[engine] = wake;
    return 0;
}

static void give_up_if_too_slow(State *s, i64 task) {
    i64 engine = s->engine[task], work = s->work[engine], left = IN(left_cycles)[task];
    s->work[engine] = work - s->cycles[task];
    if (work / IN(instances)[engine] > left) left = work / IN(instances)[engine];
    if (s->now + left > RULE(LIMIT_CYCLES) ||
        (s->now + left == RULE(LIMIT_CYCLES) && s->added_cycles >= RULE(LIMIT_ADDED)))
        stop(s, TOO_SLOW);
}

static void begin(State *s, i64 task) {
    i64 n, engine = s->engine[task], end = s->now + s->cycles[task];
    const i64 *roots = roots_of(s, task, &n);
    int is_added = task >= s->n_tasks;
    s->start[task] = s->now;
    if (!is_added) give_up_if_too_slow(s, task);
    if (task == s->forced) s->forced = s->forced_for = task == s->forced_for ? -1 : s->forced_for;
    i64 instance = 0;
    while (!(s->idle[engine] >> instance & 1)) instance++;
    s->idle[engine] &= ~((i64)1 << instance);
    s->instance[task] = instance;
    EACH(port, port_list, s->ports[task]) {
        i64 *least = s->lanes + s->lane_at[port];
        for (i64 *lane = least; lane < s->lanes + s->lane_at[port + 1]; lane++)
            if (*lane < *least) least = lane;
        *least = end;
    }
    for (i64 i = 0; i < n; i++) {
        i64 root = roots[i];
        s->running[root]++;
        if (is_added) continue;
        if (s->kind[task] != STORE) s->waiting[root]--;
        if (s->copy[root]) append(s, &s->used_copies, (Item){task, root, s->copy[root]});
    }
    if (!is_added) EACH(root, written, task) s->writing[root]++;
    else if (!s->added[task - s->n_tasks].out) s->writing[roots[0]]++;
    push(s, &s->events, (Item){end, task, 0});
}

static void make_ready(State *s, i64 task) {
    if (s->kind[task] == STORE) {
        EACH(root, touched, task) s->waiting[root]--;
        insert_sorted(s, s->going + s->engine[task], (Item){s->key[task], task, 0});
    } else if (s->kind[task] != COMPUTE) {
        i64 release = s->position[task] - RULE(LOOKAHEAD);
        if (IN(release)[task] > release) release = IN(release)[task];
        push(s, &s->later, (Item){release, s->key[task], task});
    }
}

static void after_use(State *s, i64 root) {
    if (s->running[root]) return;
    if (!s->left[root]) vacate(s, root, ABSENT);
    else if (s->where[root] == LEAVING && !s->leaving[root]) leave(s, root);
}

static void finish_added(State *s, i64 task) {
    const Added *added = s->added + task - s->n_tasks;
    i64 root = added->root;
    s->running[root]--;
    if (added->out) {
        Piece *piece = s->contents[root].pieces;
        while (piece->made != added->made || piece->writer != added->writer) piece++;
        *piece = (Piece){added->made, task, 0};
        s->leaving[root]--;
        s->moving[root] = UNKNOWN;
    } else {
        s->writing[root]--;
        s->missing[root]--;
        hold(s, s->contents + root, (Piece){added->made, task, 0});
        s->moving[root] = UNKNOWN;
    }
    after_use(s, root);
}

static void finish(State *s, i64 task) {
    s->idle[s->engine[task]] |= (i64)1 << s->instance[task];
    if (task >= s->n_tasks) {
        finish_added(s, task);
        return;
    }
    EACH(root, written, task) s->writing[root]--;
    s->unfinished--;
    for (i64 made = IN(made_at)[task]; made < IN(made_at)[task + 1]; made++) {
        hold(s, s->contents + IN(made_root)[made], (Piece){made, task, 0});
        s->moving[IN(made_root)[made]] = UNKNOWN;
    }
    EACH(root, touched, task) {
        s->running[root]--;
        s->left[root]--;
        after_use(s, root);
    }
    EACH(follower, followers, task)
        if (!--s->pending[follower]) make_ready(s, follower);
}

/* What starts */

static int place_all(State *s, const i64 *roots, i64 n, i64 position, int from_top) {
    i64 placed[MOST_ROOTS], n_placed = 0;
    if (n > MOST_ROOTS) stop(s, NOT_CARRIED);
    for (i64 i = 0; i < n; i++) {
        i64 root = roots[i];
        if (s->where[root] == RESERVED) continue;
        int fits = has_room_until(s, root, position) && place(s, root, position, from_top, 0);
        if (fits) {
            placed[n_placed++] = root;
            fits = IN(pad_of)[root] != s->blocked_pad || !is_in_the_way(s);
        }
        if (!fits) {
            for (i64 j = 0; j < n_placed; j++) evict(s, placed[j], 1);
            return 0;
        }
    }
    for (i64 i = 0; i < n; i++) settle(s, roots[i]);
    return 1;
}

static int can_compute(State *s, i64 task) {
    i64 fresh[MOST_ROOTS], n = 0;
    if (s->forced >= 0 && s->forced != task) return 0;
    EACH(root, touched, task) {
        i64 where = s->where[root];
        if (s->missing[root] || where == LEAVING || where == EVICTED) return 0;
        if (where == RESIDENT) continue;
        if (n == MOST_ROOTS) stop(s, NOT_CARRIED);
        fresh[n++] = root;
    }
    return lanes_free(s, task) && place_all(s, fresh, n, s->position[task], 0);
}

static int start_computes(State *s) {
    int started = 0;
    for (i64 engine = 0; engine < s->n_engines; engine++) {
        i64 end = IN(queues_at)[engine + 1] - IN(queues_at)[engine];
        while (s->idle[engine] && s->head[engine] < end) {
            i64 task = IN(queues)[IN(queues_at)[engine] + s->head[engine]];
            if (s->pending[task] || !can_compute(s, task)) break;
            s->head[engine]++;
            begin(s, task);
            started++;
            while (s->current < s->n_steps && s->start[IN(steps)[s->current]] >= 0) s->current++;
        }
    }
    return started;
}

static int can_transfer_added(State *s, i64 task) {
    Added *added = s->added + task - s->n_tasks;
    i64 root = added->root, where = s->where[root];
    if (!lanes_free(s, task)) return 0;
    if (added->out) return 1;
    if (where == LEAVING || !s->left[root]) return 0;
    if (where == EVICTED || where == RESERVED) {
        int from_top = RULE(BOTH_ENDS) && s->position[task] > s->current;
        if (!place_all(s, &root, 1, s->position[task], from_top)) return 0;
    }
    added->copy = s->copy[root];
    return 1;
}

static int can_transfer(State *s, i64 task) {
    i64 fresh[MOST_ROOTS], n = 0;
    int is_ahead = s->position[task] > s->current;
    if (is_ahead && !RULE(PREFETCH) && s->kind[task] != STORE) return 0;
    if (task >= s->n_tasks) return can_transfer_added(s, task);
    EACH(root, sources, task)
        if ((s->where[root] != RESIDENT && s->where[root] != LEAVING) || s->missing[root]) return 0;
    EACH(root, written, task) {
        if (s->where[root] == LEAVING || (s->missing[root] && IN(rolling)[root])) return 0;
        if (s->where[root] == RESIDENT) continue;
        if (n == MOST_ROOTS) stop(s, NOT_CARRIED);
        fresh[n++] = root;
    }
    if (!lanes_free(s, task)) return 0;
    int from_top = is_ahead && RULE(BOTH_ENDS) && s->kind[task] == LOAD;
    return place_all(s, fresh, n, s->position[task], from_top);
}

static int is_wanted(State *s, i64 root) {
    EACH(other, touched, s->forced)
        if (other == root) return 1;
    return 0;
}

static int serves_forced(State *s, i64 task) {
    if (task >= s->n_tasks) return is_wanted(s, s->added[task - s->n_tasks].root);
    if (task != s->forced)
        EACH(root, written, task)
            if (!is_wanted(s, root)) return 0;
    return 1;
}

static void list_choices(State *s, const Items *going, const Items *coming) {
    i64 window = RULE(WINDOW);
    Items *found = &s->choices;
    found->n = 0;
    if (s->forced >= 0) {
        for (i64 i = 0; i < going->n; i++) append(s, found, going->items[i]);
        for (i64 i = 0; i < coming->n; i++)
            if (serves_forced(s, coming->items[i].b)) append(s, found, coming->items[i]);
        return;
    }
    int is_mixed = !RULE(STORES_FIRST) && s->blocked_pad < 0;
    for (i64 i = 0; i < going->n && i < window; i++) append(s, found, going->items[i]);
    for (i64 i = 0; i < coming->n && i < window; i++)
        (is_mixed ? insert_sorted : append)(s, found, coming->items[i]);
    for (i64 i = window; i < coming->n; i++)
        if (s->position[coming->items[i].b] <= s->current) append(s, found, coming->items[i]);
}

static int start_one(State *s, i64 engine) {
    list_choices(s, s->going + engine, s->coming + engine);
    for (i64 i = 0; i < s->choices.n; i++) {
        i64 task = s->choices.items[i].b;
        if (!can_transfer(s, task)) continue;
        Items *list = s->kind[task] == STORE ? s->going + engine : s->coming + engine;
        i64 at = 0;
        while (list->items[at].b != task) at++;
        remove_at(list, at);
        begin(s, task);
        return 1;
    }
    return 0;
}
