/* Joining tracks that a conflict keeps apart: sync/tracks/join.py. */
#include "kernels.h"

#include <math.h>

/* Points of which there are so many times fewer than matches are looked up, others marked. */
#define FEW 8

/* Matches a, b of n points, sorted by a: those of point p as a are first[p], first[p] + 1, ..., as
   b as_second[second[p]], ... */
typedef struct {
    const int32_t *a, *b;
    const double *weight;
    int64_t matches, n;
    int32_t *first, *second, *as_second;
} Matches;

/* Bundles of matches between tracks A < B, sorted. */
typedef struct {
    int32_t *A, *B;
    double *weight;
    int64_t size;
} Bundles;

/* The bundles tried so far, round after round, sorted within a round, which is from start[round]
   on. */
typedef struct {
    int32_t *A, *B;
    int64_t *start, size, room;
} Tried;

typedef struct {
    int32_t A, B, match;
} Edge;

/* A point and its object. */
typedef struct {
    int32_t point, object;
} Member;

/* What joining works on; the size[name] points of a track, ascending, are member[begin[name]], ...
 */
typedef struct {
    Matches of;
    Member *member;
    int64_t members, room;
    const int32_t *objects;
    const double *places;
    double copy, rounding;
    int64_t least;
    int32_t *track, *begin, *size, *seen, *trial, trials, *points, *one, *two, *inner, *moved;
    int32_t round, *changed; /* the last round that changed a track, by name, or a point's track */
    double *held, *from, *into;
    uint8_t *touched, *gone, *inside;
    Edge *edges, *sorted;
    int32_t *cells;
    int64_t *best;
} Joining;

static int by_tracks(const void *one, const void *two) {
    const Edge *x = one, *y = two;
    if (x->A != y->A) return x->A < y->A ? -1 : 1;
    if (x->B != y->B) return x->B < y->B ? -1 : 1;
    return x->match < y->match ? -1 : x->match > y->match;
}

static void sort_edges(const Edge *from, Edge *to, int64_t size, int32_t *cells, int64_t n,
                       int high) {
    memset(cells, 0, (size_t)(n + 1) * 4);
    for (int64_t t = 0; t < size; t++) cells[(high ? from[t].B : from[t].A) + 1]++;
    for (int64_t c = 0; c < n; c++) cells[c + 1] += cells[c];
    for (int64_t t = 0; t < size; t++) to[cells[high ? from[t].B : from[t].A]++] = from[t];
}

static int64_t add_edge(Joining *j, int64_t size, int64_t match) {
    const int32_t A = j->track[j->of.a[match]], B = j->track[j->of.b[match]];
    if (A == B) return size;
    j->edges[size] = (Edge){A < B ? A : B, A < B ? B : A, (int32_t)match};
    return size + 1;
}

/* The bundles that matches of touched points belong to, all where there are none, into `into`. */
static void find_bundles(Joining *j, const int32_t *points, int64_t count, Bundles *into) {
    const Matches *of = &j->of;
    const int few = points && count * FEW <= of->matches;
    int64_t size = 0;
    if (few) {
        for (int64_t t = 0; t < count; t++) {
            const int32_t p = points[t];
            for (int32_t e = of->first[p]; e < of->first[p + 1]; e++) size = add_edge(j, size, e);
            for (int32_t s = of->second[p]; s < of->second[p + 1]; s++)
                if (!j->touched[j->track[of->a[of->as_second[s]]]])
                    size = add_edge(j, size, of->as_second[s]);
        }
        qsort(j->edges, (size_t)size, sizeof(Edge), by_tracks);
    } else {
        for (int64_t e = 0; e < of->matches; e++)
            if (!points || j->touched[j->track[of->a[e]]] || j->touched[j->track[of->b[e]]])
                size = add_edge(j, size, e);
        sort_edges(j->edges, j->sorted, size, j->cells, of->n, 1);
        sort_edges(j->sorted, j->edges, size, j->cells, of->n, 0);
    }
    into->size = 0;
    for (int64_t t = 0; t < size;) {
        const int64_t start = t;
        double sum = 0;
        for (; t < size && j->edges[t].A == j->edges[start].A && j->edges[t].B == j->edges[start].B;
             t++)
            sum += of->weight[j->edges[t].match];
        if (t - start < j->least) continue;
        into->A[into->size] = j->edges[start].A;
        into->B[into->size] = j->edges[start].B;
        into->weight[into->size++] = sum;
    }
}

/* The weight of the matches that a point has in its track. */
static double held_by(const Joining *j, int32_t p) {
    const Matches *of = &j->of;
    double sum = 0;
    for (int32_t e = of->first[p]; e < of->first[p + 1]; e++)
        if (j->track[of->b[e]] == j->track[p]) sum += of->weight[e];
    for (int32_t s = of->second[p]; s < of->second[p + 1]; s++)
        if (j->track[of->a[of->as_second[s]]] == j->track[p]) sum += of->weight[of->as_second[s]];
    return sum;
}

/* What is left of the weight of the matches inside a pair without the points that are gone, and
   whether any of these is between its tracks. */
static double kept_weight(const Joining *j, int64_t inner, int *linked) {
    double sum = 0;
    *linked = 0;
    for (int64_t t = 0; t < inner; t++) {
        const int32_t e = j->inner[t], a = j->of.a[e], b = j->of.b[e];
        if (j->gone[a] || j->gone[b]) continue;
        sum += j->of.weight[e];
        *linked |= j->track[a] != j->track[b];
    }
    return sum;
}

/* Mark the points to be expelled by a choice: of each two the one with less weight (0), those of A
   (1), or those of B (2). */
static void expel(const Joining *j, int64_t twice, int choice) {
    for (int64_t t = 0; t < twice; t++) {
        const int32_t one = j->one[t], two = j->two[t];
        const int first = choice == 1 || (choice == 0 && j->from[one] + j->into[one] <
                                                             j->from[two] + j->into[two]);
        j->gone[one] = (uint8_t)first;
        j->gone[two] = (uint8_t)!first;
    }
}

/* The best choice of points to expel from `count` points of a pair, -1 if nothing is gained; it is
   left in `gone`. */
static int best_choice(Joining *j, int64_t count, int64_t twice, double earned) {
    const Matches *of = &j->of;
    int64_t inner = 0;
    double before = 0, gain = 0;
    int best = -1, linked;
    for (int64_t t = 0; t < count; t++) j->from[j->points[t]] = j->into[j->points[t]] = 0;
    for (int64_t t = 0; t < count; t++)
        for (int32_t p = j->points[t], e = of->first[p]; e < of->first[p + 1]; e++) {
            const int32_t b = of->b[e];
            if (!j->inside[b]) continue;
            j->inner[inner++] = e;
            j->from[p] += of->weight[e];
            j->into[b] += of->weight[e];
            if (j->track[p] == j->track[b]) before += of->weight[e];
        }
    for (int choice = 0; choice < 3; choice++) {
        expel(j, twice, choice);
        const double kept = kept_weight(j, inner, &linked) - before + (linked ? earned : 0.0);
        if (kept > gain + j->rounding) {
            gain = kept;
            best = choice;
        }
    }
    if (best >= 0) expel(j, twice, best);
    return best;
}

/* The points of one object in tracks A and B into `one` and `two`; how many of either, or -1 as
   soon as expelling one of two costs more than `most`. `loss` is what it costs at least. */
static int64_t find_twice(Joining *j, int32_t A, int32_t B, double most, double *loss) {
    const Member *a = j->member + j->begin[A], *b = j->member + j->begin[B];
    const int32_t trial = ++j->trials; /* what was seen in others does not count */
    int64_t twice = 0;
    *loss = -INFINITY;
    for (const Member *end = a + j->size[A]; a < end; a++) {
        j->seen[a->object] = a->point;
        j->trial[a->object] = trial;
    }
    for (const Member *end = b + j->size[B]; b < end; b++) {
        if (j->trial[b->object] != trial) continue;
        const int32_t other = j->seen[b->object];
        const double less = j->held[other] < j->held[b->point] ? j->held[other] : j->held[b->point];
        if (less >= most) return -1;
        *loss = less > *loss ? less : *loss;
        j->one[twice] = other;
        j->two[twice++] = b->point;
    }
    return twice;
}

/* The points of tracks A and B, ascending, into `points`; how many there are. */
static int64_t pair_points(Joining *j, int32_t A, int32_t B) {
    const Member *a = j->member + j->begin[A], *b = j->member + j->begin[B],
                 *a_end = a + j->size[A], *b_end = b + j->size[B];
    int64_t count = 0;
    while (a < a_end || b < b_end) {
        const int32_t p =
            b == b_end || (a < a_end && a->point < b->point) ? a++->point : b++->point;
        j->points[count++] = p;
        j->inside[p] = 1;
    }
    return count;
}

/* Points of an object in the same place, if a join makes a longer track. */
static int64_t copies(const Joining *j, int64_t twice, int32_t A, int32_t B) {
    const int64_t smaller = j->size[A] < j->size[B] ? j->size[A] : j->size[B];
    int64_t found = 0;
    if (!j->places || twice >= smaller) return 0;
    for (int64_t t = 0; t < twice; t++) {
        const double *x = j->places + 2 * (int64_t)j->one[t],
                     *y = j->places + 2 * (int64_t)j->two[t];
        found += (x[0] - y[0]) * (x[0] - y[0]) + (x[1] - y[1]) * (x[1] - y[1]) < 1;
    }
    return found;
}

/* Give a point, the largest so far, to a track, the last one that points were given to. */
static void give(Joining *j, int32_t p, int32_t track) {
    if (track == p) {
        j->begin[p] = (int32_t)j->members;
        j->size[p] = 0;
    }
    j->member[j->members++] = (Member){p, j->objects[p]};
    j->size[track]++;
    j->touched[j->track[p]] = j->touched[track] = 1;
    if (j->track[p] != track) j->changed[p] = j->changed[track] = j->round;
    j->track[p] = track;
}

/* Join a pair of tracks without the points that are gone, which are alone from now on; -1 without
   memory. */
static int join_points(Joining *j, int64_t count) {
    int32_t name = -1;
    if (j->members + count > j->room) {
        const int64_t room = 2 * j->room + count;
        Member *more = room < INT32_MAX ? realloc(j->member, (size_t)room * sizeof(Member)) : 0;
        if (!more) return -1;
        j->member = more;
        j->room = room;
    }
    for (int64_t t = 0; t < count; t++)
        if (!j->gone[j->points[t]]) {
            name = name < 0 ? j->points[t] : name;
            give(j, j->points[t], name);
        }
    for (int64_t t = 0; t < count; t++)
        if (j->gone[j->points[t]]) give(j, j->points[t], j->points[t]);
    return 0;
}

/* Join a pair of tracks if that keeps more weight; how many points that moves, which are added to
   `moved`, -1 without memory. */
static int64_t try_pair(Joining *j, int32_t A, int32_t B, double weight, int64_t moved) {
    double loss;
    const int64_t twice = find_twice(j, A, B, j->places ? INFINITY : weight, &loss);
    if (twice < 0) return 0;
    const double earned = j->copy * (double)copies(j, twice, A, B);
    if (!(weight + earned > loss)) return 0;
    const int64_t count = pair_points(j, A, B);
    const int better = best_choice(j, count, twice, earned) >= 0;
    if (better) {
        if (join_points(j, count)) return -1;
        memcpy(j->moved + moved, j->points, (size_t)count * 4);
    }
    for (int64_t t = 0; t < count; t++) j->inside[j->points[t]] = j->gone[j->points[t]] = 0;
    return better ? count : 0;
}

/* Note that a bundle was tried; -1 without memory. */
static int note(Tried *tried, int32_t A, int32_t B) {
    if (tried->size == tried->room) {
        const int64_t room = 2 * tried->room + 64;
        int32_t *one = realloc(tried->A, (size_t)room * 4);
        if (one) tried->A = one;
        int32_t *two = realloc(tried->B, (size_t)room * 4);
        if (two) tried->B = two;
        if (!one || !two) return -1;
        tried->room = room;
    }
    tried->A[tried->size] = A;
    tried->B[tried->size++] = B;
    return 0;
}

/* Whether a bundle was tried since its tracks changed. */
static int was_tried(const Joining *j, const Tried *tried, int32_t A, int32_t B) {
    const int32_t since = j->changed[A] > j->changed[B] ? j->changed[A] : j->changed[B];
    for (int32_t round = since + 1; round <= j->round; round++) {
        int64_t low = tried->start[round], high = tried->start[round + 1];
        while (low < high) {
            const int64_t t = low + (high - low) / 2;
            if (tried->A[t] < A || (tried->A[t] == A && tried->B[t] < B))
                low = t + 1;
            else
                high = t;
        }
        if (low < tried->start[round + 1] && tried->A[low] == A && tried->B[low] == B) return 1;
    }
    return 0;
}

/* Try the bundles that are the best of both their tracks, heaviest first and then by a shuffled
   number, as clusters.py has it, and keep the others; how many points that moves, and how many
   `joins` there are. -1 without memory. */
static int64_t try_bundles(Joining *j, Bundles *untried, Tried *tried, int64_t *priority,
                           int64_t *joins) {
    int64_t moved = 0, kept = 0;
    memset(j->best, 0xff, (size_t)j->of.n * 8); /* -1 */
    for (int64_t t = 0; t < untried->size; t++) {
        const float weight = (float)untried->weight[t];
        int64_t *A = j->best + untried->A[t], *B = j->best + untried->B[t];
        int32_t bits;
        memcpy(&bits, &weight, 4);
        const int64_t own = priority[t] = (int64_t)bits << 31 | ((t * 2654435761) & 0x7fffffff);
        *A = own > *A ? own : *A;
        *B = own > *B ? own : *B;
    }
    for (int64_t t = 0; t < untried->size; t++) {
        const int32_t A = untried->A[t], B = untried->B[t];
        if (j->best[A] == priority[t] && j->best[B] == priority[t]) {
            const int64_t more = try_pair(j, A, B, untried->weight[t], moved);
            if (more < 0 || note(tried, A, B)) return -1;
            moved += more;
            *joins += more > 0;
        } else {
            untried->A[kept] = A;
            untried->B[kept] = B;
            untried->weight[kept++] = untried->weight[t];
        }
    }
    untried->size = kept;
    tried->start[j->round + 1] = tried->size;
    return moved;
}

static void put(Bundles *into, const Bundles *from, int64_t t) {
    into->A[into->size] = from->A[t];
    into->B[into->size] = from->B[t];
    into->weight[into->size++] = from->weight[t];
}

/* The bundles to be tried: those before that touch no track which was touched, and the `new` ones
   not tried as they are. */
static void merge_bundles(const Joining *j, const Bundles *before, const Bundles *new,
                          const Tried *tried, Bundles *now) {
    int64_t t = 0;
    now->size = 0;
    for (int64_t s = 0; s <= new->size; s++) {
        const int last = s == new->size;
        for (; t < before->size; t++) {
            const int32_t A = before->A[t], B = before->B[t];
            if (!last && (A > new->A[s] || (A == new->A[s] && B > new->B[s]))) break;
            if (!j->touched[A] && !j->touched[B]) put(now, before, t);
        }
        if (!last && !was_tried(j, tried, new->A[s], new->B[s])) put(now, new, s);
    }
}

/* Where matches of points begin, the points of tracks, and what these hold. */
static void set_up(Joining *j) {
    Matches *of = &j->of;
    const int64_t n = of->n;
    for (int64_t e = 0; e < of->matches; e++) {
        of->first[of->a[e] + 1]++;
        of->second[of->b[e] + 1]++;
    }
    for (int64_t p = 0; p < n; p++) {
        of->first[p + 1] += of->first[p];
        of->second[p + 1] += of->second[p];
    }
    memcpy(j->cells, of->second, (size_t)n * 4);
    for (int64_t e = 0; e < of->matches; e++) of->as_second[j->cells[of->b[e]]++] = (int32_t)e;
    for (int64_t p = 0; p < n; p++) {
        j->size[j->track[p]]++;
        j->changed[p] = -1;
    }
    for (int64_t p = 0, begin = 0; p < n; begin += j->size[p++])
        j->begin[p] = j->cells[p] = (int32_t)begin;
    for (int64_t p = 0; p < n; p++)
        j->member[j->cells[j->track[p]]++] = (Member){(int32_t)p, j->objects[p]};
    int64_t inner = 0; /* as held_by, but in the order of memory */
    for (int64_t e = 0; e < of->matches; e++)
        if (j->track[of->a[e]] == j->track[of->b[e]]) {
            j->held[of->a[e]] += of->weight[e];
            j->inner[inner++] = (int32_t)e;
        }
    for (int64_t t = 0; t < inner; t++) j->held[of->b[j->inner[t]]] += of->weight[j->inner[t]];
}

/* All arrays, one after the other from `memory` on; how many bytes they take. */
static size_t lay_out(Joining *j, Bundles *bundles, Tried *tried, int64_t **priority, char *memory,
                      int64_t k, int64_t rounds) {
    Room room = {memory, 0};
    const int64_t n = j->of.n, M = j->of.matches;
    int32_t **of_points[] = {&j->begin, &j->size,  &j->points, &j->one,
                             &j->two,   &j->moved, &j->changed};
    uint8_t **flags[] = {&j->touched, &j->gone, &j->inside};
    double **numbers[] = {&j->held, &j->from, &j->into};
    for (size_t t = 0; t < sizeof of_points / sizeof *of_points; t++)
        *of_points[t] = take(&room, n, 4);
    for (size_t t = 0; t < sizeof flags / sizeof *flags; t++) *flags[t] = take(&room, n, 1);
    for (size_t t = 0; t < sizeof numbers / sizeof *numbers; t++) *numbers[t] = take(&room, n, 8);
    j->best = take(&room, n, 8);
    j->seen = take(&room, k, 4);
    j->trial = take(&room, k, 4);
    j->cells = take(&room, n + 1, 4);
    j->of.first = take(&room, n + 1, 4);
    j->of.second = take(&room, n + 1, 4);
    j->of.as_second = take(&room, M, 4);
    j->inner = take(&room, M, 4);
    j->edges = take(&room, M, sizeof(Edge));
    j->sorted = take(&room, M, sizeof(Edge));
    *priority = take(&room, M, 8);
    for (int t = 0; t < 3; t++)
        bundles[t] = (Bundles){take(&room, M, 4), take(&room, M, 4), take(&room, M, 8), 0};
    tried->start = take(&room, rounds + 1, 8);
    return room.taken;
}

int64_t join_along(const int32_t *a, const int32_t *b, const double *weight, int64_t matches,
                   int64_t n, int32_t *track, const int32_t *objects, int64_t k,
                   const double *places, double copy, double rounding, int64_t least,
                   int64_t rounds) {
    Joining j = {.of = {.a = a, .b = b, .weight = weight, .matches = matches, .n = n},
                 .objects = objects,
                 .places = places};
    Bundles bundles[3], *untried = bundles, *other = bundles + 1;
    Tried tried = {0};
    int64_t *priority, joins = 0;
    char *memory = zeros_for(lay_out(&j, bundles, &tried, &priority, 0, k, rounds), 1);
    j.member = room_for((size_t)n, sizeof(Member));
    if (!memory || !j.member) {
        free(memory);
        free(j.member);
        return -1;
    }
    j.members = j.room = n;
    lay_out(&j, bundles, &tried, &priority, memory, k, rounds);
    j.copy = copy;
    j.rounding = rounding;
    j.least = least;
    j.track = track;
    set_up(&j);
    find_bundles(&j, 0, 0, untried);
    for (; j.round < rounds && untried->size; j.round++) {
        const int64_t moved = try_bundles(&j, untried, &tried, priority, &joins);
        if (moved < 0) joins = -1;
        if (moved < 0) break;
        if (!moved) continue;
        find_bundles(&j, j.moved, moved, &bundles[2]);
        merge_bundles(&j, untried, &bundles[2], &tried, other);
        Bundles *swap = untried;
        untried = other;
        other = swap;
        for (int64_t t = 0; t < moved; t++) {
            j.held[j.moved[t]] = held_by(&j, j.moved[t]);
            j.touched[j.moved[t]] = 0; /* tracks are named by their points */
        }
    }
    free(tried.A);
    free(tried.B);
    free(j.member);
    free(memory);
    return joins;
}
