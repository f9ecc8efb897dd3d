/* Do matches that start side by side end side by side? matching/neighbour_support.py, in the same order of additions. */
#include "kernels.h"

#include <math.h>

#define ANGLES 16
#define SCALES 16
#define ROUNDS 5
#define EVERY 4
#define BLOCK 16 /* matches at a time */

typedef double Four __attribute__((vector_size(32), aligned(8), may_alias)); /* the positions of both ends of a match */

/* The positions of both ends of n matches, (n, 4), of those where they are known; `which` are these. Return how many, or none
   if all of them are in one place. */
static int64_t places(const float *coordinates, const int64_t *ends, int64_t n, double *place, int32_t *which) {
    int64_t known = 0;
    int apart[2] = {0, 0};
    for (int64_t t = 0; t < n; t++) {
        double *own = place + 4 * known, nothing = 0.0;
        for (int c = 0; c < 4; c++) {
            own[c] = coordinates[2 * ends[2 * t + c / 2] + c % 2];
            nothing += own[c] - own[c];
        }
        which[known] = (int32_t)t;
        if (nothing != 0) continue; /* not a number, or infinite */
        known++;
        for (int c = 0; c < 4; c++) apart[c / 2] |= own[c] != place[c];
    }
    return apart[0] && apart[1] ? known : 0;
}

/* The n matches `which`, in the order in which the curve through an object's points meets their ends on one side: `turn` is that of
   all points, different ones of an object. `met` has a bit for each turn, and is zero again at the end; `who` has room for one. */
static void in_order(const int32_t *turn, const int64_t *ends, int side, const int32_t *which, int64_t n, uint64_t *met,
                     int32_t *who, int32_t *order) {
    int64_t low = INT64_MAX, high = 0;
    for (int64_t t = 0; t < n; t++) {
        const int64_t own = turn[ends[2 * (int64_t)which[t] + side]], word = own / 64;
        met[word] |= (uint64_t)1 << own % 64;
        who[own] = (int32_t)t;
        low = word < low ? word : low;
        high = word > high ? word : high;
    }
    for (; low <= high; low++)
        for (; met[low]; met[low] &= met[low] - 1) *order++ = who[64 * low + __builtin_ctzll(met[low])];
}

/* From the matches i, ..., last - 1 to every so many of their neighbours, (count, 4), in the one object and the other. */
ALWAYS_INLINE int64_t offsets(const double *restrict place, const int32_t *restrict near, int64_t i, int64_t last,
                              int64_t columns, int64_t every, double *restrict off) {
    const Four *from = (const Four *)place;
    Four *at = (Four *)off;
    for (; i < last; i++)
        for (int64_t c = 0; c < columns; c += every) *at++ = from[near[i * columns + c]] - from[i];
    return at - (Four *)off;
}

/* The ratios of some of the offsets, of those that are not zero, and the number of these. Real and imaginary parts are not put
   side by side at first: GCC 12 would take them for complex numbers, and fuse products and sums though it was told not to. */
WIDE static int64_t ratios(const double *place, const int32_t *near, int64_t n, int64_t columns, double *restrict off,
                           double *restrict re, double *restrict im) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t count = offsets(place, near, i, i + BLOCK < n ? i + BLOCK : n, columns, EVERY, off);
        int64_t zeros = 0;
        for (int64_t c = 0; c < count; c++) {
            const double ax = off[4 * c], bx = off[4 * c + 1], ay = off[4 * c + 2], by = off[4 * c + 3];
            const double length = ax * ax + bx * bx, a = (ay * ax + by * bx) / length, b = (by * ax - ay * bx) / length;
            re[found + c] = length > 0 ? a : 0.0;
            im[found + c] = length > 0 ? b : 0.0;
        }
        for (int64_t c = found; c < found + count; c++) zeros += (re[c] == 0) & (im[c] == 0);
        if (!zeros) {
            found += count;
            continue;
        }
        for (int64_t c = found, last = found + count; c < last; c++) {
            const double a = re[c], b = im[c];
            re[found] = a;
            im[found] = b;
            found += (a != 0) | (b != 0);
        }
    }
    return found;
}

/* The cell of angle and scale of every ratio. */
WIDE static void cells_of(const double *restrict re, const double *restrict im, int64_t n, const double *restrict tangents,
                          const double *restrict squares, int64_t *restrict cell) {
    for (int64_t t = 0; t < n; t++) {
        const double a = fabs(re[t]), b = fabs(im[t]), length = re[t] * re[t] + im[t] * im[t];
        int64_t turn = 0, scale = 0;
        for (int s = 0; s < ANGLES / 4; s++) turn += b >= a * tangents[s];
        turn = re[t] < 0 ? ANGLES / 2 - turn : turn;
        turn = im[t] < 0 ? (ANGLES - turn) & (ANGLES - 1) : turn;
        for (int s = 0; s < SCALES - 1; s++) scale += length >= squares[s];
        cell[t] = scale * ANGLES + turn;
    }
}

/* The mean of n ratios around the fullest of the cells they are in. */
static void commonest(const double *re, const double *im, int64_t n, double tolerance, const int64_t *cell,
                      const double *centres, double *z) {
    int64_t votes[ANGLES * SCALES] = {0}, best = 0;
    for (int64_t t = 0; t < n; t++) votes[cell[t]]++;
    for (int64_t t = 1; t < ANGLES * SCALES; t++)
        if (votes[t] > votes[best]) best = t;
    z[0] = centres[2 * best];
    z[1] = centres[2 * best + 1];
    for (int round = 0; round < ROUNDS; round++) {
        const double x = z[0], y = z[1], reach = tolerance * tolerance * (x * x + y * y);
        double real = 0.0, imaginary = 0.0;
        int64_t count = 0;
        for (int64_t t = 0; t < n; t++) { /* adding zeros is quicker than a branch that cannot be foreseen */
            const double a = re[t] - x, b = im[t] - y;
            const int64_t near = -(int64_t)(a * a + b * b <= reach);
            real += of_bits(bits_of(re[t]) & near);
            imaginary += of_bits(bits_of(im[t]) & near);
            count -= near;
        }
        if (count > 0) {
            z[0] = real / (double)count;
            z[1] = imaginary / (double)count;
        }
        if (z[0] == x && z[1] == y) break; /* and so it stays */
    }
}

/* The mean agreement of each of n matches with its neighbours. */
WIDE static void agreement(const double *place, const int32_t *near, int64_t n, int64_t columns, const double *z,
                           double rounding, double tolerance, double *restrict off, double *restrict longer,
                           double *restrict each, const int32_t *which, double *support) {
    const double re = z[0], im = z[1], inverse = 1 / tolerance;
    const int power = bits_of(tolerance) % ((int64_t)1 << 52) == 0; /* of two, so that to multiply by the inverse is exact */
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t last = i + BLOCK < n ? i + BLOCK : n, count = offsets(place, near, i, last, columns, 1, off);
        for (int64_t c = 0; c < count; c++) {
            const double ax = off[4 * c], bx = off[4 * c + 1], ay = off[4 * c + 2], by = off[4 * c + 3];
            const double ex = ax * re - bx * im, fx = ax * im + bx * re;
            const double one = ex * ex + fx * fx, two = ay * ay + by * by;
            longer[c] = one > two ? one : two;
            each[c] = (ay - ex) * (ay - ex) + (by - fx) * (by - fx);
        }
        for (int64_t c = 0; rounding > 0 && c < count; c++) {
            const double left = sqrt(each[c]) - rounding;
            each[c] = left > 0 ? left * left : 0.0;
        }
        for (int64_t c = 0; c < count; c++) {
            const double part = each[c] / longer[c], error = sqrt(longer[c] > 0 ? part : 1.0);
            const double share = 1 - (power ? error * inverse : error / tolerance);
            each[c] = share > 0 ? share : 0.0;
        }
        for (int64_t t = i; t < last; t++)
            support[which[t]] = sum_of(each + (t - i) * columns, columns) / (double)columns;
    }
}

/* The support of matches, (M,), between the points `ends`, (M, 2), of several pairs of objects, those of pair g being
   first[g], ..., first[g + 1] - 1; `turn` is that of all points, see order_points, and less than `turns`; `cells`, (groups, 2),
   are those of the grids. What is unknown is left alone. */
API int neighbour_support(const float *coordinates, const int32_t *turn, int64_t turns, const int64_t *ends, const int64_t *first,
                          int64_t groups, int64_t q, double tolerance, const double *cells, double rounded,
                          const double *tangents, const double *squares, const double *centres, double *support) {
    int64_t most = 0;
    for (int64_t g = 0; g < groups; g++) most = first[g + 1] - first[g] > most ? first[g + 1] - first[g] : most;
    if (most <= q) return 0;
    const int64_t columns = 2 * q, some = (columns + EVERY - 1) / EVERY, block = BLOCK * columns;
    Room room = {0};
    double *place, *re, *im, *far, *off, *longer, *each;
    int64_t *cell;
    uint64_t *met;
    int32_t *near, *which, *who, *order;
    float *tree;
    for (int made = 0; made < 2; made++) {
        place = take(&room, 4 * most, 8);
        re = take(&room, most * some + 1, 8);
        im = take(&room, most * some + 1, 8);
        far = take(&room, q, 8);
        off = take(&room, 4 * block, 8);
        longer = take(&room, block, 8);
        each = take(&room, block, 8);
        cell = take(&room, most * some, 8);
        met = take(&room, turns / 64 + 1, 8);
        near = take(&room, most * columns, 4);
        which = take(&room, most, 4);
        order = take(&room, most, 4);
        who = take(&room, turns, 4);
        tree = take(&room, (int64_t)nearest_cells(most), 4);
        if (made) break;
        room = (Room){malloc(room.taken), 0};
        if (!room.memory) return -1;
    }
    memset(met, 0, (size_t)(turns / 64 + 1) * 8);
    for (int64_t g = 0; g < groups; g++) {
        const int64_t *own = ends + 2 * first[g], n = places(coordinates, own, first[g + 1] - first[g], place, which);
        double z[2];
        if (n <= q) continue;
        for (int side = 0; side < 2; side++) {
            in_order(turn, own, side, which, n, met, who, order);
            nearest_others(place + 2 * side, order, n, q, near + q * side, tree, far);
        }
        const int64_t found = ratios(place, near, n, columns, off, re, im);
        cells_of(re, im, found, tangents, squares, cell);
        commonest(re, im, found, tolerance, cell, centres, z);
        const double one = cells[2 * g], two = cells[2 * g + 1];
        const double rounding = rounded * sqrt(two * two + (z[0] * z[0] + z[1] * z[1]) * (one * one));
        agreement(place, near, n, columns, z, rounding, tolerance, off, longer, each, which, support + first[g]);
    }
    free(room.memory);
    return 0;
}
