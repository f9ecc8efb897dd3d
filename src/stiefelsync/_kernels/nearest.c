/* The nearest others of every position, by a tree whose leaves of LEAF positions ask together: each of them has a lane of the
   processor's registers, and the nearest so far are kept sorted by networks of minima and maxima, without a branch.

   What is sorted are keys: squares of distances whose last bits are replaced by the number of the position, which are doubles
   of the same order, equally near ones by number. Only where two squares differ by no more than these bits one has to look
   again, and exactly. On a grid no square has so many bits. */
#include "kernels.h"

#include <math.h>

#define LEAF 8        /* the networks below are for eight */
#define BRANCH 32     /* leaves whose boxes are looked at together */
#define SAMPLE 16     /* positions that show which side of a part is the wider */
#define NOWHERE 1e150 /* where the rest of the last leaf is; positions are of single precision, and nowhere near */
#define FARTHEST (4 * NOWHERE * NOWHERE)
#define STEPS 8 /* of a grid, in one pixel */
#define BIAS ((int64_t)1 << 52) /* one more in the exponent: no key is subnormal, which some programs take for zero */

typedef double Row[LEAF];

/* n positions, leaf after leaf: x, y, and `mark`, their number + BIAS. The boxes of leaves, and those of branches, are low x,
   high x, low y, high y. `key` is room to sort the positions, by their `rank` along x or along y. */
typedef struct {
    int64_t n, leaves, branches;
    double *x, *y, *leaf[4], *branch[4];
    int64_t *mark;
    uint64_t *key;
    uint32_t *rank[2];
} Tree;

size_t nearest_cells(int64_t n) { return (size_t)(5 * (n + LEAF) + 4 * (n / LEAF + n / LEAF / BRANCH + 2)); }

static Tree tree_in(double *memory, int64_t n) {
    Tree t = {.n = n, .leaves = (n + LEAF - 1) / LEAF};
    t.branches = (t.leaves + BRANCH - 1) / BRANCH;
    t.x = memory;
    t.y = t.x + n + LEAF;
    t.mark = (int64_t *)(t.y + n + LEAF);
    t.key = (uint64_t *)(t.mark + n + LEAF);
    t.rank[0] = (uint32_t *)(t.key + n + LEAF);
    t.rank[1] = t.rank[0] + n;
    double *boxes = (double *)(t.rank[0] + 2 * (n + LEAF));
    for (int c = 0; c < 4; c++) {
        t.leaf[c] = boxes + c * t.leaves;
        t.branch[c] = boxes + 4 * t.leaves + c * t.branches;
    }
    return t;
}

static inline double least(double a, double b) { return a < b ? a : b; }
static inline double most(double a, double b) { return a > b ? a : b; }

static inline uint32_t rank_of(double x) {
    const float single = (float)x;
    uint32_t bits;
    memcpy(&bits, &single, 4);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* Move the `half` smallest of n different keys to the front; `other` is room for n. O(n) whatever their order, as the pivots
   are drawn. */
static void halve(uint64_t *restrict key, int64_t n, int64_t half, uint64_t *restrict other) {
    uint64_t draw = 1, some[3];
    while (half > 0 && half < n) {
        for (int t = 0; t < 3; t++) {
            draw = draw * 6364136223846793005u + 1442695040888963407u;
            some[t] = key[(draw >> 32) * (uint64_t)n >> 32];
        }
        const uint64_t low = some[0] < some[1] ? some[0] : some[1], high = some[0] < some[1] ? some[1] : some[0];
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

/* Part the positions of the leaves from, ..., to - 1 along their wider side, half by half: all leaves but the last are full. */
static void part(const double *place, Tree t, int64_t from, int64_t to) {
    while (to - from > 1) {
        const int64_t a = from * LEAF, b = to * LEAF < t.n ? to * LEAF : t.n, step = (b - a + SAMPLE - 1) / SAMPLE;
        double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
        for (int64_t s = a; s < b; s += step)
            for (int c = 0; c < 2; c++) {
                const double at = place[4 * (t.key[s] & UINT32_MAX) + c];
                low[c] = least(at, low[c]);
                high[c] = most(at, high[c]);
            }
        const uint32_t *rank = t.rank[high[1] - low[1] > high[0] - low[0]];
        for (int64_t s = a; s < b; s++) {
            const uint64_t i = t.key[s] & UINT32_MAX;
            t.key[s] = (uint64_t)rank[i] << 32 | i;
        }
        const int64_t middle = (from + to) / 2;
        halve(t.key + a, b - a, (middle - from) * LEAF, (uint64_t *)t.x);
        part(place, t, from, middle);
        from = middle;
    }
}

static void grow(const double *place, Tree t) {
    for (int64_t i = 0; i < t.n; i++) {
        t.key[i] = (uint64_t)i;
        for (int c = 0; c < 2; c++) t.rank[c][i] = rank_of(place[4 * i + c]);
    }
    part(place, t, 0, t.leaves);
    for (int64_t s = 0; s < t.leaves * LEAF; s++) {
        const uint64_t i = s < t.n ? t.key[s] & UINT32_MAX : 0;
        t.x[s] = s < t.n ? place[4 * i] : NOWHERE;
        t.y[s] = s < t.n ? place[4 * i + 1] : NOWHERE;
        t.mark[s] = (int64_t)i + BIAS;
    }
    for (int64_t l = 0; l < t.leaves; l++) {
        double box[4] = {INFINITY, -INFINITY, INFINITY, -INFINITY};
        for (int64_t s = l * LEAF; s < (l + 1) * LEAF && s < t.n; s++) {
            box[0] = least(t.x[s], box[0]);
            box[1] = most(t.x[s], box[1]);
            box[2] = least(t.y[s], box[2]);
            box[3] = most(t.y[s], box[3]);
        }
        for (int c = 0; c < 4; c++) {
            double *around = t.branch[c] + l / BRANCH;
            t.leaf[c][l] = box[c];
            *around = l % BRANCH == 0 ? box[c] : c & 1 ? most(*around, box[c]) : least(*around, box[c]);
        }
    }
}

/* Whether all positions lie on so coarse a grid that the last bits of squares of distances, those of the mask, are zero. */
static int on_grid(const double *place, int64_t n, int64_t mask) {
    for (int c = 0; c < 2; c++) {
        double low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < n; i++) {
            const double steps = place[4 * i + c] * STEPS;
            if (!(fabs(steps) <= 0x1p52) || steps != (double)(int64_t)steps) return 0;
            low = least(steps, low);
            high = most(steps, high);
        }
        if (2 * (high - low) * (high - low) * (double)(mask + 1) > 0x1p53) return 0;
    }
    return 1;
}

/* The square of the gap between two boxes: by rounding, too, no more than the distance of any two positions in them. */
static inline double gap(double *const *boxes, int64_t i, const double *box) {
    const double a = most(most(boxes[0][i] - box[1], box[0] - boxes[1][i]), 0.0);
    const double b = most(most(boxes[2][i] - box[3], box[2] - boxes[3][i]), 0.0);
    return a * a + b * b;
}

/* The q nearest so far, by distance and then by number; a new one is put in its place. */
static inline void insert(double *far, int32_t *who, int64_t q, double distance, int32_t point) {
    int64_t t = q - 1;
    if (distance > far[t] || (distance == far[t] && point > who[t])) return;
    for (; t > 0 && (distance < far[t - 1] || (distance == far[t - 1] && point < who[t - 1])); t--) {
        far[t] = far[t - 1];
        who[t] = who[t - 1];
    }
    far[t] = distance;
    who[t] = point;
}

/* The q nearest of one position, the `own`-th in the tree, none of them farther than `bound`; `far` is room for q. */
static void search(Tree t, int64_t own, int64_t q, double bound, int32_t *who, double *far) {
    const double x = t.x[own], y = t.y[own], box[4] = {x, x, y, y};
    const int64_t home = own / LEAF / BRANCH;
    for (int64_t s = 0; s < q; s++) {
        far[s] = bound;
        who[s] = INT32_MAX;
    }
    for (int64_t b = 0; b < t.branches; b++) { /* from home on, and round */
        const int64_t branch = (home + b) % t.branches, first = branch * BRANCH;
        const int64_t width = t.leaves - first < BRANCH ? t.leaves - first : BRANCH;
        if (gap(t.branch, branch, box) > far[q - 1]) continue;
        for (int64_t l = 0; l < width; l++) {
            const int64_t leaf = first + (l + own / LEAF) % width, from = leaf * LEAF;
            if (gap(t.leaf, leaf, box) > far[q - 1]) continue;
            for (int64_t s = from; s < from + LEAF && s < t.n; s++) {
                const double a = t.x[s] - x, b = t.y[s] - y, apart = a * a + b * b;
                if (s != own && apart <= far[q - 1]) insert(far, who, q, apart, (int32_t)(t.mark[s] - BIAS));
            }
        }
    }
}

/* The keys of the positions of a leaf, by their distance from LEAF others, x and y; return whether any is within the limits. */
ALWAYS_INLINE int measure(Tree t, int64_t leaf, const double *x, const double *y, int64_t mask, const double *limit, Row *key) {
    const double *there = t.x + leaf * LEAF, *over = t.y + leaf * LEAF;
    const int64_t *mark = t.mark + leaf * LEAF;
    Row nearest;
    int any = 0;
    for (int l = 0; l < LEAF; l++) {
        Row k;
        for (int s = 0; s < LEAF; s++) {
            const double a = x[l] - there[s], b = y[l] - over[s];
            key[s][l] = k[s] = of_bits((bits_of(a * a + b * b) & ~mask) + mark[s]);
        }
        nearest[l] = least(least(least(k[0], k[1]), least(k[2], k[3])), least(least(k[4], k[5]), least(k[6], k[7])));
    }
    for (int l = 0; l < LEAF; l++) any |= nearest[l] <= limit[l];
    return any;
}

#define SORT(a, b)                          \
    {                                       \
        const double smaller = least(a, b); \
        b = most(a, b);                     \
        a = smaller;                        \
    }

/* Merge keys into the best, sorted, and the best of those dropped so far, best[LEAF]. Limit what is worth a look to keys that
   are smaller than the last of the best but for the bits that were lost. */
ALWAYS_INLINE void merge(const Row *restrict key, Row *restrict best, int64_t lost, double *restrict limit) {
    for (int l = 0; l < LEAF; l++) {
        double a = key[0][l], b = key[1][l], c = key[2][l], d = key[3][l];
        double e = key[4][l], f = key[5][l], g = key[6][l], h = key[7][l];
        SORT(a, c) SORT(b, d) SORT(e, g) SORT(f, h)
        SORT(a, e) SORT(b, f) SORT(c, g) SORT(d, h)
        SORT(a, b) SORT(c, d) SORT(e, f) SORT(g, h)
        SORT(c, e) SORT(d, f)
        SORT(b, e) SORT(d, g)
        SORT(b, c) SORT(d, e) SORT(f, g)
        /* Against the best from the other end, which leaves the smaller half of both, rising and then falling. */
        double s = best[7][l], t = best[6][l], u = best[5][l], v = best[4][l];
        double w = best[3][l], x = best[2][l], y = best[1][l], z = best[0][l];
        SORT(a, s) SORT(b, t) SORT(c, u) SORT(d, v)
        SORT(e, w) SORT(f, x) SORT(g, y) SORT(h, z)
        best[LEAF][l] = least(best[LEAF][l], least(least(least(s, t), least(u, v)), least(least(w, x), least(y, z))));
        SORT(a, e) SORT(b, f) SORT(c, g) SORT(d, h)
        SORT(a, c) SORT(b, d) SORT(e, g) SORT(f, h)
        SORT(a, b) SORT(c, d) SORT(e, f) SORT(g, h)
        best[0][l] = a;
        best[1][l] = b;
        best[2][l] = c;
        best[3][l] = d;
        best[4][l] = e;
        best[5][l] = f;
        best[6][l] = g;
        best[7][l] = h;
        limit[l] = of_bits(bits_of(h) | lost);
    }
}

/* The LEAF nearest others of all positions of a leaf, and the next, into `best`: leaf by leaf, the one with the nearest box
   first, until no box is as near as the farthest of the best. */
ALWAYS_INLINE void ask(Tree t, int64_t own, int64_t mask, int64_t lost, Row *best, Row limit) {
    const double box[4] = {t.leaf[0][own], t.leaf[1][own], t.leaf[2][own], t.leaf[3][own]};
    int64_t boxes[BRANCH], reach = INT64_MAX - 1; /* the bits of positive doubles are in their order */
    Row x, y, key[LEAF];
    for (int l = 0; l < LEAF; l++) {
        const int64_t at = own * LEAF + l < t.n ? own * LEAF + l : own * LEAF;
        x[l] = t.x[at];
        y[l] = t.y[at];
        limit[l] = INFINITY;
        for (int s = 0; s <= LEAF; s++) best[s][l] = FARTHEST;
    }
    for (int64_t b = 0; b < t.branches; b++) {
        const int64_t branch = (own / BRANCH + b) % t.branches, first = branch * BRANCH;
        if (bits_of(gap(t.branch, branch, box)) > reach) continue;
        const int64_t width = t.leaves - first < BRANCH ? t.leaves - first : BRANCH;
        for (int64_t l = 0; l < width; l++) boxes[l] = (bits_of(gap(t.leaf, first + l, box)) & -BRANCH) + l;
        for (int64_t l = width; l < BRANCH; l++) boxes[l] = INT64_MAX;
        for (;;) {
            int64_t next = INT64_MAX;
            for (int64_t l = 0; l < BRANCH; l++) next = boxes[l] < next ? boxes[l] : next;
            if (next > reach) break;
            const int64_t leaf = first + next % BRANCH;
            boxes[next % BRANCH] = INT64_MAX;
            if (!measure(t, leaf, x, y, mask, limit, key)) continue;
            for (int l = 0; leaf == own && l < LEAF; l++) key[l][l] = FARTHEST;
            merge(key, best, lost, limit);
            double farthest = 0.0;
            for (int l = 0; l < LEAF; l++) farthest = most(farthest, limit[l]);
            reach = (bits_of(farthest) - BIAS) | mask | (BRANCH - 1);
        }
    }
}

WIDE void nearest_others(const double *place, int64_t n, int64_t q, int32_t *near, double *memory, double *far) {
    const Tree t = tree_in(memory, n);
    int64_t mask = 1;
    while (mask < n) mask = 2 * mask + 1;
    const int64_t lost = on_grid(place, n, mask) ? 0 : mask;
    grow(place, t);
    for (int64_t own = 0; own < t.leaves; own++) {
        Row best[LEAF + 1], limit;
        int64_t alike[LEAF] = {0};
        if (q <= LEAF) ask(t, own, mask, lost, best, limit);
        for (int64_t s = 0; s < q && q <= LEAF && lost; s++)
            for (int l = 0; l < LEAF; l++) alike[l] |= (bits_of(best[s][l]) ^ bits_of(best[s + 1][l])) <= lost;
        for (int l = 0; l < LEAF && own * LEAF + l < n; l++) {
            int32_t *who = near + (t.mark[own * LEAF + l] - BIAS) * 2 * q;
            if (q > LEAF || alike[l])
                search(t, own * LEAF + l, q, q > LEAF ? INFINITY : of_bits(bits_of(limit[l]) - BIAS), who, far);
            else
                for (int64_t s = 0; s < q; s++) who[s] = (int32_t)((bits_of(best[s][l]) - BIAS) & mask);
        }
    }
}
