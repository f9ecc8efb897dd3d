/* The nearest others of every position, by a tree whose leaves of LEAF positions ask together: each
   of them has a lane of the processor's registers, and the nearest so far are kept sorted by
   networks of minima and maxima, without a branch.

   What is sorted are keys: the bits of squares of distances in single precision, which have their
   order, the last of them replaced by a code that tells whose distance it is. Where keys differ by
   more than that and by what rounding does, so do distances; else one looks again, and exactly. On
   a grid, of the distances below some length no bit is lost, and codes are the numbers of
   positions: then the keys of equally near ones are in their order, too. */
#include "kernels.h"

#include <math.h>

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wpsabi" /* what takes or returns vectors is part of its callers   \
                                          */
#endif

#define LEAF 8              /* the networks below are for eight */
#define BRANCH 32           /* leaves whose boxes are looked at together */
#define VISITS 64           /* leaves that codes can tell apart */
#define MANY (1 << 20)      /* numbers that keys have no room for */
#define SAMPLE 16           /* positions that show which side of a part is the longer */
#define FEW 4               /* positions that are left in any order */
#define STEPS 8             /* of a grid, in one pixel */
#define FARTHEST 0x7f800000 /* the bits of infinity */
#define TINY                                                                                       \
    (27 << 23) /* the bits of 2^-100: squares below may have lost more than their last bits */

typedef float Reals __attribute__((vector_size(4 * LEAF), aligned(4), may_alias));
typedef int32_t Whole __attribute__((vector_size(4 * LEAF), aligned(4), may_alias));
typedef int64_t Longs __attribute__((vector_size(4 * LEAF)));

/* n positions, leaf after leaf: x, y, and their numbers. The boxes of leaves, and those of
   branches, are low x, high x, low y, high y. Keys end in a code, below `codes`, a power of two:
   the number of the position, or what tells leaf and place if not `named`. Squares whose bits are
   below `exact` have lost none. */
typedef struct {
    int64_t n, leaves, branches;
    float *x, *y, *leaf[4], *branch[4];
    int32_t *number, *code, codes, named,
        exact; /* the codes of leaves in the order of visits, if not named */
} Tree;

size_t nearest_cells(int64_t n) {
    return (size_t)(3 * (n + LEAF) + 4 * (BRANCH + 1) * (n / LEAF / BRANCH + 1) +
                    (VISITS + 1) * LEAF);
}

static Tree tree_in(float *memory, int64_t n) {
    Tree t = {.n = n, .leaves = (n + LEAF - 1) / LEAF};
    t.branches = (t.leaves + BRANCH - 1) / BRANCH;
    t.x = memory;
    t.y = t.x + n + LEAF;
    t.number = (int32_t *)(t.y + n + LEAF);
    t.code = t.number + n + LEAF;
    float *boxes = t.y + 2 * (n + LEAF) + (VISITS + 1) * LEAF;
    for (int c = 0; c < 4; c++) {
        t.leaf[c] = boxes + c * BRANCH * t.branches;
        t.branch[c] = boxes + 4 * BRANCH * t.branches + c * t.branches;
    }
    return t;
}

static inline float least(float a, float b) { return a < b ? a : b; }
static inline float most(float a, float b) { return a > b ? a : b; }

#if VECTOR == 4 * LEAF
ALWAYS_INLINE Whole lower(Whole a, Whole b) {
    Whole found;
    for (int l = 0; l < LEAF; l++) found[l] = a[l] < b[l] ? a[l] : b[l];
    return found;
}

ALWAYS_INLINE Whole higher(Whole a, Whole b) {
    Whole found;
    for (int l = 0; l < LEAF; l++) found[l] = a[l] > b[l] ? a[l] : b[l];
    return found;
}
#else /* without instructions for it; no key is negative */
ALWAYS_INLINE Whole lower(Whole a, Whole b) { return b + ((a - b) & (a - b) >> 31); }
ALWAYS_INLINE Whole higher(Whole a, Whole b) { return a - ((a - b) & (a - b) >> 31); }
#endif

/* Whether any of these, all bits or none, is set. */
ALWAYS_INLINE int any(Whole which) {
    const Longs set = (Longs)which;
    return (set[0] | set[1] | set[2] | set[3]) != 0;
}

static inline int32_t bits(float x) {
    int32_t found;
    memcpy(&found, &x, 4);
    return found;
}

static inline float single(int32_t bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

/* Move the `half` smallest of n different keys to the front; `other` is room for n. O(n) whatever
   their order, as the pivots are drawn. */
static void halve(uint64_t *restrict key, int64_t n, int64_t half, uint64_t *restrict other) {
    uint64_t draw = 1, some[3];
    while (half > 0 && half < n) {
        for (int t = 0; t < 3; t++) {
            draw = draw * 6364136223846793005u + 1442695040888963407u;
            some[t] = key[(draw >> 32) * (uint64_t)n >> 32];
        }
        const uint64_t low = some[0] < some[1] ? some[0] : some[1],
                       high = some[0] < some[1] ? some[1] : some[0];
        const uint64_t pivot = some[2] < low ? low : some[2] > high ? high : some[2];
        int64_t front = 0;
        for (int64_t t = 0; t < n; t++) {
            const uint64_t one = key[t];
            key[front] = other[t - front] = one;
            front += one <= pivot;
        }
        memcpy(key + front, other, (size_t)(n - front) * 8);
        if (front == n) { /* the pivot is the largest: put it last, so that there is less to do */
            int64_t t = 0;
            while (key[t] != pivot) t++;
            key[t] = key[--front];
            key[front] = pivot;
        }
        if (front > half) {
            n = front;
        } else {
            key += front;
            n -= front;
            half -= front;
        }
    }
}

/* Part n positions in the middle, as their `rank`, (n, 2), says on one side, turned round by `up`;
   return where. */
static int64_t part(uint64_t *key, int64_t n, const uint32_t *rank, int side, uint32_t up,
                    uint64_t *other) {
    for (int64_t s = 0; s < n; s++) {
        const uint64_t i = key[s] & UINT32_MAX;
        key[s] = (uint64_t)(rank[2 * i + (uint64_t)side] ^ up) << 32 | i;
    }
    halve(key, n, n / 2, other);
    return n / 2;
}

/* How much longer one side of n positions is than the other, by some of them. */
static float slender(const uint64_t *key, int64_t n, const float *place, int side) {
    float low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int64_t s = 0; s < n; s += (n + SAMPLE - 1) / SAMPLE)
        for (int c = 0; c < 2; c++) {
            const float at = place[2 * (key[s] & UINT32_MAX) + (uint64_t)c];
            low[c] = least(at, low[c]);
            high[c] = most(at, high[c]);
        }
    return (high[side] - low[side]) / (high[1 - side] - low[1 - side]);
}

/* Wind through n positions as Hilbert's curve does, so that what follows is near: halves along one
   side, quarters along the other. What is slender is halved along its longer side alone. */
static void wind(uint64_t *key, int64_t n, const float *place, const uint32_t *rank, int side,
                 uint32_t up, uint32_t over, uint64_t *other) {
    if (n <= FEW) return;
    const float ratio = n > SAMPLE ? slender(key, n, place, side) : 1;
    if (ratio < 0.5f) {
        wind(key, n, place, rank, 1 - side, over, up, other);
        return;
    }
    const int64_t half = part(key, n, rank, side, up, other);
    if (ratio > 2) {
        wind(key, half, place, rank, side, up, over, other);
        wind(key + half, n - half, place, rank, side, up, over, other);
        return;
    }
    const int64_t one = part(key, half, rank, 1 - side, over, other);
    const int64_t two = half + part(key + half, n - half, rank, 1 - side, ~over, other);
    wind(key, one, place, rank, 1 - side, over, up, other);
    wind(key + one, half - one, place, rank, side, up, over, other);
    wind(key + half, two - half, place, rank, side, up, over, other);
    wind(key + two, n - two, place, rank, 1 - side, ~over, ~up, other);
}

/* Give the points of every object, offsets[i], ..., offsets[i + 1] - 1 of `place`, (m, 2), numbers
   from 0 along a curve on which neighbours are near each other: `turn`, (m,). */
API int order_points(const float *place, const int64_t *offsets, int64_t k, int32_t *turn) {
    int64_t n = 0;
    for (int64_t i = 0; i < k; i++)
        n = offsets[i + 1] - offsets[i] > n ? offsets[i + 1] - offsets[i] : n;
    uint64_t *key = malloc((size_t)n * 24 + 1), *other = key + n;
    if (!key) return -1;
    uint32_t *rank = (uint32_t *)(other + n);
    for (int64_t i = 0; i < k; i++) {
        const int64_t first = offsets[i], count = offsets[i + 1] - first;
        for (int64_t p = 0; p < 2 * count; p++) {
            const uint32_t own = (uint32_t)bits(place[2 * first + p]);
            rank[p] = own & 0x80000000u ? ~own : own | 0x80000000u;
        }
        for (int64_t p = 0; p < count; p++) key[p] = (uint64_t)p;
        wind(key, count, place + 2 * first, rank, 0, 0, 0, other);
        for (int64_t p = 0; p < count; p++)
            turn[first + (int64_t)(key[p] & UINT32_MAX)] = (int32_t)p;
    }
    free(key);
    return 0;
}

/* How long a step of the grid is that all positions lie on, a power of two; 0 if there is none. */
static float step_of(const float *place, int64_t n) {
    int64_t all = 0;
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < 2; c++) {
            const double steps = (double)place[4 * i + c] * STEPS;
            if (!(fabs(steps) <= 0x1p52) || steps != (double)(int64_t)steps) return 0;
            all |= (int64_t)steps - (int64_t)((double)place[c] * STEPS);
        }
    return (float)(all & -all) / STEPS;
}

ALWAYS_INLINE void grow(const float *place, const int32_t *order, Tree t) {
    for (int32_t s = 0; s < (VISITS + 1) * LEAF && !t.named; s++) t.code[s] = s;
    for (int64_t s = 0; s < t.n; s++) {
        t.x[s] = place[4 * (int64_t)order[s]];
        t.y[s] = place[4 * (int64_t)order[s] + 1];
        t.number[s] = order[s];
    }
    for (int64_t s = t.n; s < t.leaves * LEAF; s++) {
        t.x[s] = t.y[s] = INFINITY;
        t.number[s] = 0;
    }
    for (int64_t l = 0; l < BRANCH * t.branches; l++) { /* those beyond the last are nowhere */
        float box[4] = {INFINITY, -INFINITY, INFINITY, -INFINITY};
        const int64_t from = l * LEAF, to = from + LEAF < t.n ? from + LEAF : t.n;
        for (int64_t s = from; s < to; s++) {
            box[0] = least(t.x[s], box[0]);
            box[1] = most(t.x[s], box[1]);
            box[2] = least(t.y[s], box[2]);
            box[3] = most(t.y[s], box[3]);
        }
        for (int c = 0; c < 4; c++) {
            float *around = t.branch[c] + l / BRANCH;
            t.leaf[c][l] = box[c];
            *around = l % BRANCH == 0 ? box[c]
                      : c & 1         ? most(*around, box[c])
                                      : least(*around, box[c]);
        }
    }
}

/* The square of the gap between two boxes: by rounding, too, no more than the distance of any two
   positions in them. */
static inline float gap(float *const *boxes, int64_t i, const float *box) {
    const float a = most(most(boxes[0][i] - box[1], box[0] - boxes[1][i]), 0.0f);
    const float b = most(most(boxes[2][i] - box[3], box[2] - boxes[3][i]), 0.0f);
    return a * a + b * b;
}

/* The same for the `i`-th box and a position, in double precision. */
static inline double exact_gap(float *const *boxes, int64_t i, double x, double y) {
    const double left = boxes[0][i] - x, right = x - boxes[1][i], below = boxes[2][i] - y,
                 above = y - boxes[3][i];
    const double a = left > right ? left : right, b = below > above ? below : above;
    return (a > 0 ? a * a : 0.0) + (b > 0 ? b * b : 0.0);
}

/* The q nearest so far, by distance and then by number; a new one is put in its place. */
static inline void insert(double *far, int32_t *who, int64_t q, double distance, int32_t point) {
    int64_t t = q - 1;
    if (distance > far[t] || (distance == far[t] && point > who[t])) return;
    for (; t > 0 && (distance < far[t - 1] || (distance == far[t - 1] && point < who[t - 1]));
         t--) {
        far[t] = far[t - 1];
        who[t] = who[t - 1];
    }
    far[t] = distance;
    who[t] = point;
}

/* The q nearest of one position, the `own`-th in the tree, none of them farther than the limit;
   `far` is room for q. */
static void search(Tree t, int64_t own, int64_t q, int32_t limit, int32_t *who, double *far) {
    const double x = t.x[own], y = t.y[own];
    const int64_t home = own / LEAF / BRANCH;
    for (int64_t s = 0; s < q; s++) {
        far[s] = limit < FARTHEST ? (double)single(limit > 2 * TINY ? limit : 2 * TINY) : INFINITY;
        who[s] = INT32_MAX;
    }
    for (int64_t b = 0; b < t.branches; b++) { /* from home on, and round */
        const int64_t branch = (home + b) % t.branches, first = branch * BRANCH;
        const int64_t width = t.leaves - first < BRANCH ? t.leaves - first : BRANCH;
        if (exact_gap(t.branch, branch, x, y) > far[q - 1]) continue;
        for (int64_t l = 0; l < width; l++) {
            const int64_t leaf = first + (l + own / LEAF) % width, from = leaf * LEAF;
            if (exact_gap(t.leaf, leaf, x, y) > far[q - 1]) continue;
            for (int64_t s = from; s < from + LEAF && s < t.n; s++) {
                const double a = t.x[s] - x, b = t.y[s] - y, apart = a * a + b * b;
                if (s != own && apart <= far[q - 1]) insert(far, who, q, apart, t.number[s]);
            }
        }
    }
}

/* The keys of the positions of a leaf, by their distance from LEAF others, x and y, and their
   codes; return whether any is within the limits. */
ALWAYS_INLINE int measure(Tree t, int64_t leaf, Reals x, Reals y, const int32_t *code, Whole limit,
                          Whole *key) {
    const float *there = t.x + leaf * LEAF, *over = t.y + leaf * LEAF;
    for (int s = 0; s < LEAF; s++) {
        const Reals a = x - there[s], b = y - over[s], apart = a * a + b * b;
        key[s] = ((Whole)apart & -t.codes) | code[s];
    }
    const Whole one = lower(lower(key[0], key[1]), lower(key[2], key[3]));
    const Whole two = lower(lower(key[4], key[5]), lower(key[6], key[7]));
    return any((lower(one, two) - limit - 1) >> 31);
}

#define SORT(a, b)                                                                                 \
    {                                                                                              \
        const Whole smaller = lower(a, b);                                                         \
        b = higher(a, b);                                                                          \
        a = smaller;                                                                               \
    }

/* Merge keys into the best, sorted, and the best of those dropped so far, best[LEAF]. */
ALWAYS_INLINE void merge(const Whole *key, Whole *best) {
    Whole a = key[0], b = key[1], c = key[2], d = key[3], e = key[4], f = key[5], g = key[6],
          h = key[7];
    SORT(a, c)
    SORT(b, d) SORT(e, g) SORT(f, h) SORT(a, e) SORT(b, f) SORT(c, g) SORT(d, h) SORT(a, b)
        SORT(c, d) SORT(e, f) SORT(g, h) SORT(c, e) SORT(d, f) SORT(b, e) SORT(d, g) SORT(b, c)
            SORT(d, e) SORT(f, g)
        /* Against the best from the other end, which leaves the smaller half of both, rising and
           then falling. */
        Whole s = best[7],
              t = best[6], u = best[5], v = best[4];
    Whole w = best[3], x = best[2], y = best[1], z = best[0];
    SORT(a, s)
    SORT(b, t) SORT(c, u) SORT(d, v) SORT(e, w) SORT(f, x) SORT(g, y) SORT(h, z) best[LEAF] =
        lower(best[LEAF], lower(lower(lower(s, t), lower(u, v)), lower(lower(w, x), lower(y, z))));
    SORT(a, e)
    SORT(b, f) SORT(c, g) SORT(d, h) SORT(a, c) SORT(b, d) SORT(e, g) SORT(f, h) SORT(a, b)
        SORT(c, d) SORT(e, f) SORT(g, h) best[0] = a;
    best[1] = b;
    best[2] = c;
    best[3] = d;
    best[4] = e;
    best[5] = f;
    best[6] = g;
    best[7] = h;
}

/* The LEAF nearest others of all positions of a leaf, and the next, into `best`: from the leaf
   itself and those before and after it, then from all others whose box is within the limits: keys
   that might be nearer than the last of the best. Return whether codes could name all leaves
   `visited`. */
ALWAYS_INLINE int ask(Tree t, int64_t own, Whole *best, Whole *limits, int64_t *visited) {
    const float box[4] = {t.leaf[0][own], t.leaf[1][own], t.leaf[2][own], t.leaf[3][own]};
    const Whole places = {0, 1, 2, 3, 4, 5, 6, 7};
    const int64_t before = own > 0 ? own - 1 : 0, after = own + 1 < t.leaves ? own + 1 : own;
    Whole key[LEAF], limit = places * 0 + (INT32_MAX - 1);
    Reals x, y;
    int32_t visits = 0, gaps[BRANCH];
    for (int l = 0; l < LEAF; l++) {
        const int64_t at = own * LEAF + l < t.n ? own * LEAF + l : own * LEAF;
        x[l] = t.x[at];
        y[l] = t.y[at];
    }
    for (int s = 0; s <= LEAF; s++) best[s] = places * 0 + FARTHEST;
    for (int64_t b = -1; b < t.branches; b++) {
        const int64_t branch = (own / BRANCH + b) % t.branches, first = branch * BRANCH;
        int64_t count = 0, list[BRANCH];
        if (b < 0) {
            list[count++] = own;
            if (before < own) list[count++] = before;
            if (after > own) list[count++] = after;
        } else {
            int32_t reach = 0;
            for (int l = 0; l < LEAF; l++) reach = limit[l] > reach ? limit[l] : reach;
            if (bits(gap(t.branch, branch, box)) > reach) continue;
            const int64_t width = t.leaves - first < BRANCH ? t.leaves - first : BRANCH;
            uint32_t within = 0; /* a bit for each leaf */
            for (int l = 0; l < BRANCH; l++) gaps[l] = bits(gap(t.leaf, first + l, box));
            for (int l = 0; l < BRANCH; l++) within |= (uint32_t)(gaps[l] <= reach) << l;
            within &= UINT32_MAX >> (BRANCH - width);
            for (int64_t l = before; l <= after; l++)
                within &= ~((uint32_t)(l / BRANCH == branch) << l % BRANCH);
            for (; within; within &= within - 1) list[count++] = first + __builtin_ctz(within);
        }
        for (int64_t i = 0; i < count; i++) {
            const int64_t leaf = list[i];
            const int32_t *code = t.named ? t.number + leaf * LEAF : t.code + visits * LEAF;
            if (!measure(t, leaf, x, y, code, limit, key)) continue;
            if (visits == VISITS && !t.named) return 0;
            visited[visits++ % VISITS] = leaf;
            for (int l = 0; leaf == own && l < LEAF; l++) key[l] |= (places == l) & FARTHEST;
            merge(key, best);
            limit = (best[LEAF - 1] | (t.codes - 1)) + t.codes;
        }
    }
    *limits = limit;
    return 1;
}

WIDE void nearest_others(const float *place, const int32_t *order, int64_t n, int64_t q,
                         int32_t *near, float *memory, double *far) {
    Tree t = tree_in(memory, n);
    const float step = n < MANY ? step_of(place, n) : 0;
    int32_t shift = 0;
    t.named = step > 0 || n <= VISITS * LEAF;
    while ((1 << shift) < (t.named ? n : VISITS * LEAF)) shift++;
    t.codes = 1 << shift;
    t.exact = bits(step * step * (float)(1 << 24) / (float)t.codes);
    const int32_t tiny = t.exact ? 0 : TINY;
    grow(place, order, t);
    for (int64_t own = 0; own < t.leaves; own++) {
        Whole best[LEAF + 1], limit, alike = {0};
        int64_t visited[VISITS];
        const int enough = q <= LEAF && ask(t, own, best, &limit, visited);
        for (int64_t s = 0; s < q && enough; s++) {
            const Whole one = best[s] >> shift, two = best[s + 1] >> shift;
            alike |= ((two - one <= 1) & (best[s + 1] >= t.exact)) | (best[s + 1] < tiny);
        }
        for (int l = 0; l < LEAF && own * LEAF + l < n; l++) {
            int32_t *who = near + (int64_t)t.number[own * LEAF + l] * 2 * q;
            if (!enough || alike[l])
                search(t, own * LEAF + l, q, enough ? limit[l] : FARTHEST, who, far);
            else
                for (int64_t s = 0; s < q; s++) {
                    const int32_t code = best[s][l] & (t.codes - 1);
                    who[s] = t.named ? code : t.number[visited[code / LEAF] * LEAF + code % LEAF];
                }
        }
    }
}
