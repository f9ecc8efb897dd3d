/* Do matches that start side by side end side by side? matching/neighbour_support.py, in the same order of additions; and what
   third objects say of every match: matching/doubt.py. */
#include "kernels.h"

#include <math.h>

#define ANGLES 16
#define SCALES 16
#define ROUNDS 5
#define EVERY 4

#define BLOCK 8 /* positions at a time */

/* Positions of one object along its wider side: `at` that side, `off` the other, `point` their numbers, each with BLOCK - 1
   cells of nothing after the last; `bucket` has room for n + 1 numbers. */
typedef struct {
    double *at, *off;
    int64_t *point, *bucket;
} Sweep;

static size_t sweep_cells(int64_t n) { return (size_t)(3 * (n + BLOCK) + n + 1); }

static Sweep sweep_in(void *memory, int64_t n) {
    Sweep s;
    s.at = memory;
    s.off = s.at + n + BLOCK;
    s.point = (int64_t *)(s.off + n + BLOCK);
    s.bucket = s.point + n + BLOCK;
    return s;
}

/* Sort n positions, (n, 2), along the wider side, equal ones by number: into buckets first, which leaves little to move. */
static void sort_places(const double *x, int64_t n, Sweep s) {
    double low[2] = {x[0], x[1]}, high[2] = {x[0], x[1]};
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < 2; c++) {
            low[c] = x[2 * i + c] < low[c] ? x[2 * i + c] : low[c];
            high[c] = x[2 * i + c] > high[c] ? x[2 * i + c] : high[c];
        }
    const int wide = high[1] - low[1] > high[0] - low[0];
    const double width = high[wide] - low[wide], scale = width > 0 && width < INFINITY ? (double)(n - 1) / width : 0.0;
    memset(s.bucket, 0, (size_t)(n + 1) * 8);
    for (int64_t i = 0; i < n; i++) s.bucket[(int64_t)((x[2 * i + wide] - low[wide]) * scale) + 1]++;
    for (int64_t t = 0; t < n; t++) s.bucket[t + 1] += s.bucket[t];
    for (int64_t i = 0; i < n; i++) s.point[s.bucket[(int64_t)((x[2 * i + wide] - low[wide]) * scale)]++] = i;
    for (int64_t t = 0; t < n; t++) {
        const int64_t i = s.point[t];
        const double at = x[2 * i + wide];
        int64_t to = t;
        for (; to > 0 && (s.at[to - 1] > at || (s.at[to - 1] == at && s.point[to - 1] > i)); to--) {
            s.at[to] = s.at[to - 1];
            s.off[to] = s.off[to - 1];
            s.point[to] = s.point[to - 1];
        }
        s.at[to] = at;
        s.off[to] = x[2 * i + 1 - wide];
        s.point[to] = i;
    }
    for (int64_t t = n; t < n + BLOCK; t++) {
        s.at[t] = s.off[t] = INFINITY;
        s.point[t] = n;
    }
}

/* The q nearest so far, by distance and then by number; a new one is put in its place. */
static inline void insert(double *far, int64_t *who, int64_t q, double distance, int64_t point) {
    int64_t t = q - 1;
    if (distance > far[t] || (distance == far[t] && point > who[t])) return;
    for (; t > 0 && (distance < far[t - 1] || (distance == far[t - 1] && point < who[t - 1])); t--) {
        far[t] = far[t - 1];
        who[t] = who[t - 1];
    }
    far[t] = distance;
    who[t] = point;
}

/* For every one of n > q positions, (n, 2), the q nearest others into columns 0, ..., q - 1 of `near`, rows 2q apart. Blocks
   of others are looked at to both sides until that side alone is farther than the q-th. */
WIDE static void nearest(const double *x, int64_t n, int64_t q, int64_t *near, Sweep s, double *far) {
    sort_places(x, n, s);
    for (int64_t own = 0; own < n; own++) {
        const int64_t middle = own - own % BLOCK;
        const double at = s.at[own], off = s.off[own];
        int64_t *who = near + s.point[own] * 2 * q, left = middle - BLOCK, right = middle + BLOCK, first = middle;
        for (int64_t t = 0; t < q; t++) {
            far[t] = INFINITY;
            who[t] = n;
        }
        for (;;) {
            double apart[BLOCK];
            int any = 0;
            for (int t = 0; t < BLOCK; t++) {
                const double a = s.at[first + t] - at, b = s.off[first + t] - off;
                apart[t] = a * a + b * b;
            }
            for (int t = 0; t < BLOCK; t++) any |= apart[t] <= far[q - 1];
            if (any)
                for (int t = 0; t < BLOCK; t++)
                    if (apart[t] <= far[q - 1] && first + t != own && first + t < n)
                        insert(far, who, q, apart[t], s.point[first + t]);
            const double below = left >= 0 ? at - s.at[left + BLOCK - 1] : INFINITY;
            const double above = right < n ? s.at[right] - at : INFINITY;
            const double side = below <= above ? below : above;
            if ((left < 0 && right >= n) || side * side > far[q - 1]) break;
            first = below <= above ? left : right;
            if (below <= above) left -= BLOCK;
            else right += BLOCK;
        }
    }
}

static int64_t cell_of(double re, double im, const double *tangents, const double *squares) {
    const double a = fabs(re), b = fabs(im), length = re * re + im * im;
    int64_t turn = 0, scale = 0;
    for (int t = 0; t < ANGLES / 4; t++) turn += b >= a * tangents[t];
    if (re < 0) turn = ANGLES / 2 - turn;
    if (im < 0) turn = (ANGLES - turn) % ANGLES;
    for (int t = 0; t < SCALES - 1; t++) scale += length >= squares[t];
    return scale * ANGLES + turn;
}

/* The mean of the ratios, (n, 2), around the fullest cell of angle and scale. */
static void commonest(const double *ratio, int64_t n, double tolerance, const double *tangents, const double *squares,
                      const double *centres, double *z) {
    int64_t votes[ANGLES * SCALES] = {0}, best = 0;
    for (int64_t t = 0; t < n; t++) votes[cell_of(ratio[2 * t], ratio[2 * t + 1], tangents, squares)]++;
    for (int64_t t = 1; t < ANGLES * SCALES; t++)
        if (votes[t] > votes[best]) best = t;
    z[0] = centres[2 * best];
    z[1] = centres[2 * best + 1];
    for (int round = 0; round < ROUNDS; round++) {
        const double reach = tolerance * tolerance * (z[0] * z[0] + z[1] * z[1]);
        double re = 0.0, im = 0.0, count = 0.0;
        for (int64_t t = 0; t < n; t++) {
            const double a = ratio[2 * t] - z[0], b = ratio[2 * t + 1] - z[1];
            if (a * a + b * b > reach) continue;
            re += ratio[2 * t];
            im += ratio[2 * t + 1];
            count += 1.0;
        }
        if (count > 0) {
            z[0] = re / count;
            z[1] = im / count;
        }
    }
}

static double agreement(const double *x, const double *y, int64_t i, int64_t j, const double *z, double rounding,
                        double tolerance) {
    const double ax = x[2 * j] - x[2 * i], bx = x[2 * j + 1] - x[2 * i + 1];
    const double ay = y[2 * j] - y[2 * i], by = y[2 * j + 1] - y[2 * i + 1];
    const double ex = ax * z[0] - bx * z[1], fx = ax * z[1] + bx * z[0];
    const double one = ex * ex + fx * fx, two = ay * ay + by * by, longer = one > two ? one : two;
    double difference = (ay - ex) * (ay - ex) + (by - fx) * (by - fx);
    if (rounding > 0) {
        const double left = sqrt(difference) - rounding;
        difference = left > 0 ? left * left : 0.0;
    }
    const double share = 1 - sqrt(longer > 0 ? difference / longer : 1.0) / tolerance;
    return share > 0 ? share : 0.0;
}

/* The support of matches between the positions x and y, (n, 2), of several pairs of objects, those of pair g being
   first[g], ..., first[g + 1] - 1, more than q each; cells, (groups, 2), are those of the grids. */
API int neighbour_support(const double *x, const double *y, const int64_t *first, int64_t groups, int64_t q, double tolerance,
                          const double *cells, double rounded, const double *tangents, const double *squares,
                          const double *centres, double *support) {
    int64_t most = 0;
    for (int64_t g = 0; g < groups; g++) most = first[g + 1] - first[g] > most ? first[g + 1] - first[g] : most;
    const int64_t columns = 2 * q, some = (columns + EVERY - 1) / EVERY;
    const size_t room = sweep_cells(most);
    double *memory = malloc((room + (size_t)(most * (columns + 2 * some) + q + columns)) * 8);
    if (!memory) return -1;
    int64_t *near = (int64_t *)(memory + room);
    double *ratio = (double *)(near + most * columns), *far = ratio + most * some * 2, *each = far + q;
    for (int64_t g = 0; g < groups; g++) {
        const double *a = x + 2 * first[g], *b = y + 2 * first[g];
        const int64_t n = first[g + 1] - first[g];
        int64_t found = 0;
        double z[2];
        nearest(a, n, q, near, sweep_in(memory, n), far);
        nearest(b, n, q, near + q, sweep_in(memory, n), far);
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < columns; c += EVERY) {
                const int64_t j = near[i * columns + c];
                const double ax = a[2 * j] - a[2 * i], bx = a[2 * j + 1] - a[2 * i + 1], length = ax * ax + bx * bx;
                const double ay = b[2 * j] - b[2 * i], by = b[2 * j + 1] - b[2 * i + 1];
                if (!(length > 0)) continue;
                const double re = (ay * ax + by * bx) / length, im = (by * ax - ay * bx) / length;
                if (re == 0 && im == 0) continue;
                ratio[2 * found] = re;
                ratio[2 * found++ + 1] = im;
            }
        commonest(ratio, found, tolerance, tangents, squares, centres, z);
        const double one = cells[2 * g], two = cells[2 * g + 1];
        const double rounding = rounded * sqrt(two * two + (z[0] * z[0] + z[1] * z[1]) * (one * one));
        for (int64_t i = 0; i < n; i++) {
            for (int64_t c = 0; c < columns; c++)
                each[c] = agreement(a, b, i, near[i * columns + c], z, rounding, tolerance);
            support[first[g] + i] = sum_of(each, columns) / (double)columns;
        }
    }
    free(memory);
    return 0;
}

/* For every match of the points x and y the third objects in which both have a partner, the same one (agree) or not (differ),
   and those, compared with both, in which only one has (silent). `ends`, (M, 2), pair of objects after pair, those of pair g,
   (pairs, 2), from start[g] on; `objects`, (m,), those of the points; `silent` and the others are (M,), and zero. */
API int ask_witnesses(int64_t k, int64_t m, int64_t pairs, const int32_t *pair, const int64_t *start, const int64_t *ends,
                      const int32_t *objects, int64_t *agree, int64_t *differ, int64_t *silent) {
    const int64_t M = start[pairs];
    int64_t *memory = calloc((size_t)(m + 2 + 2 * M + k + 2 + 2 * pairs + 5 * k), 8);
    if (!memory) return -1;
    int64_t *first = memory, *partner = first + m + 2, *begin = partner + 2 * M, *other = begin + k + 2;
    int64_t *with = other + 2 * pairs, *seen[2] = {with + k, with + 2 * k}, *known[2] = {with + 3 * k, with + 4 * k};
    for (int64_t e = 0; e < 2 * M; e++) first[ends[e] + 2]++;
    for (int64_t a = 0; a < m; a++) first[a + 2] += first[a + 1];
    for (int64_t e = 0; e < 2 * M; e++) partner[first[ends[e] + 1]++] = ends[e ^ 1];
    for (int64_t e = 0; e < 2 * pairs; e++) begin[pair[e] + 2]++;
    for (int64_t i = 0; i < k; i++) begin[i + 2] += begin[i + 1];
    for (int64_t e = 0; e < 2 * pairs; e++) other[begin[pair[e] + 1]++] = pair[e ^ 1];
    for (int64_t g = 0; g < pairs; g++) {
        for (int side = 0; side < 2; side++) /* objects compared with this one are those marked g + 1 */
            for (int64_t t = begin[pair[2 * g + side]]; t < begin[pair[2 * g + side] + 1]; t++) known[side][other[t]] = g + 1;
        for (int64_t e = start[g]; e < start[g + 1]; e++) {
            const int64_t x = ends[2 * e], y = ends[2 * e + 1];
            for (int64_t t = first[y]; t < first[y + 1]; t++) {
                seen[1][objects[partner[t]]] = e + 1;
                with[objects[partner[t]]] = partner[t];
            }
            for (int64_t t = first[x]; t < first[x + 1]; t++) {
                const int64_t third = partner[t], o = objects[third];
                seen[0][o] = e + 1;
                if (third == y) continue;
                if (seen[1][o] == e + 1) {
                    agree[e] += with[o] == third;
                    differ[e] += with[o] != third;
                } else {
                    silent[e] += known[1][o] == g + 1;
                }
            }
            for (int64_t t = first[y]; t < first[y + 1]; t++) {
                const int64_t o = objects[partner[t]];
                if (partner[t] != x && seen[0][o] != e + 1) silent[e] += known[0][o] == g + 1;
            }
        }
    }
    free(memory);
    return 0;
}
