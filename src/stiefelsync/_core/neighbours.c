/* Do matches that start side by side end side by side? positions/neighbours.py. */
#include "kernels.h"

#include <math.h>

#define ANGLES 16 /* cells for the ratio of offsets: 22.5 degrees, … */
#define SCALES 16 /* … and a factor of the root of two */
#define ROUNDS 5
#define EVERY 4
#define BLOCK 16 /* matches at a time */
#define LANES 8  /* partial sums */
#define USUAL                                                                                      \
    16 /* powers of two around one, of positions whose offsets have squares that are no trouble */

/* What tables of borders and centres of cells are made for. */
API const int64_t angles = ANGLES, scales = SCALES;

typedef float Ends __attribute__((vector_size(16), aligned(4),
                                  may_alias)); /* the positions of both ends of a match */

typedef int32_t Signs __attribute__((vector_size(16)));
typedef double Four __attribute__((vector_size(32), may_alias));
typedef int64_t Flags __attribute__((vector_size(32), may_alias));

/* The positions of both ends of n matches, (n, 4), of those where they are known; `which` are
   these. Return how many, or none if all of them are in one place. */
static int64_t places(const float *coordinates, const int64_t *ends, int64_t n, float *place,
                      int32_t *which) {
    Ends *own = (Ends *)place, nothing = {0};
    Signs apart = {0};
    int64_t known = 0;
    for (int64_t t = 0; t < n; t++) {
        memcpy(place + 4 * t, coordinates + 2 * ends[2 * t], 8);
        memcpy(place + 4 * t + 2, coordinates + 2 * ends[2 * t + 1], 8);
        nothing += own[t] - own[t]; /* or not a number */
        which[t] = (int32_t)t;
    }
    if (nothing[0] + nothing[1] + nothing[2] + nothing[3] == 0) known = n;
    for (int64_t t = 0; t < n && known < n; t++) {
        const Ends none = own[t] - own[t];
        own[known] = own[t];
        which[known] = (int32_t)t;
        known += none[0] + none[1] + none[2] + none[3] == 0;
    }
    for (int64_t t = 1; t < known; t++) apart |= own[t] != own[0];
    return (apart[0] | apart[1]) && (apart[2] | apart[3]) ? known : 0;
}

/* The n matches `which`, in the order in which the curve through an object's points meets their
   ends on one side: `turn` is that of all points, different ones of an object. `met` has a bit for
   each turn, and is zero again at the end; `who` has room for one. */
static void in_order(const int32_t *turn, const int64_t *ends, int side, const int32_t *which,
                     int64_t n, uint64_t *met, int32_t *who, int32_t *order) {
    int64_t low = INT64_MAX, high = 0;
    for (int64_t t = 0; t < n; t++) {
        const int64_t own = turn[ends[2 * (int64_t)which[t] + side]], word = own / 64;
        met[word] |= (uint64_t)1 << own % 64;
        who[own] = (int32_t)t;
        low = word < low ? word : low;
        high = word > high ? word : high;
    }
    for (; low <= high; low++)
        for (; met[low]; met[low] &= met[low] - 1)
            *order++ = who[64 * low + __builtin_ctzll(met[low])];
}

/* What n positions, (n, 4), are to be multiplied by, so that squares of offsets neither overflow
   nor vanish: a power of two. */
WIDE static double unit_of(const float *place, int64_t n) {
    int32_t most = 0; /* as bits, whose order is that of numbers */
    for (int64_t t = 0; t < 4 * n; t++) {
        int32_t own;
        memcpy(&own, place + t, 4);
        own &= INT32_MAX;
        most = own > most ? own : most;
    }
    float length;
    int exponent;
    memcpy(&length, &most, 4);
    frexp(length, &exponent);
    return abs(exponent) > USUAL ? ldexp(1.0, -exponent) : 1.0;
}

/* From the matches i, ..., last - 1 to every so many of their neighbours, (count, 4), in the one
   object and the other. */
ALWAYS_INLINE int64_t offsets(const float *restrict place, const int32_t *restrict near, int64_t i,
                              int64_t last, int64_t columns, int64_t every, float *restrict off) {
    const Ends *from = (const Ends *)place;
    Ends *at = (Ends *)off;
    for (; i < last; i++)
        for (int64_t c = 0; c < columns; c += every) *at++ = from[near[i * columns + c]] - from[i];
    return at - (Ends *)off;
}

/* The ratios of some of the offsets, of those that are not zero, and the number of these. Real and
   imaginary parts are not put side by side at first: GCC 12 would take them for complex numbers,
   and fuse products and sums though it was told not to. */
WIDE static int64_t ratios(const float *place, const int32_t *near, int64_t n, int64_t columns,
                           float *restrict off, float *restrict re, float *restrict im) {
    int64_t found = 0;
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t count =
            offsets(place, near, i, i + BLOCK < n ? i + BLOCK : n, columns, EVERY, off);
        int64_t zeros = 0;
        for (int64_t c = 0; c < count; c++) {
            const float ax = off[4 * c], bx = off[4 * c + 1], ay = off[4 * c + 2],
                        by = off[4 * c + 3];
            const float length = ax * ax + bx * bx, a = (ay * ax + by * bx) / length,
                        b = (by * ax - ay * bx) / length;
            re[found + c] = length > 0 ? a : 0.0f;
            im[found + c] = length > 0 ? b : 0.0f;
        }
        for (int64_t c = found; c < found + count; c++) zeros += (re[c] == 0) & (im[c] == 0);
        if (!zeros) {
            found += count;
            continue;
        }
        for (int64_t c = found, last = found + count; c < last; c++) {
            const float a = re[c], b = im[c];
            re[found] = a;
            im[found] = b;
            found += (a != 0) | (b != 0);
        }
    }
    return found;
}

/* The cell of angle and scale of every ratio. */
WIDE static void cells_of(const float *restrict re, const float *restrict im, int64_t n,
                          const float *restrict tangents, const float *restrict squares,
                          int32_t *restrict cell) {
    for (int64_t t = 0; t < n; t++) {
        const float a = fabsf(re[t]), b = fabsf(im[t]), length = re[t] * re[t] + im[t] * im[t];
        int32_t turn = 0, scale = 0;
        for (int s = 0; s < ANGLES / 4; s++) turn += b >= a * tangents[s];
        turn = re[t] < 0 ? ANGLES / 2 - turn : turn;
        turn = im[t] < 0 ? (ANGLES - turn) & (ANGLES - 1) : turn;
        for (int s = 0; s < SCALES - 1; s++) scale += length >= squares[s];
        cell[t] = scale * ANGLES + turn;
    }
}

/* The sum of n ratios within reach of z, in eight partial sums, and their number. */
WIDE static int64_t around(const float *re, const float *im, int64_t n, const double *z,
                           double reach, double *sum) {
    Four real[2] = {0}, imaginary[2] = {0};
    Flags count = {0};
    for (int64_t t = 0; t < n; t += LANES)
        for (int h = 0; h < 2; h++) {
            const Four a = __builtin_convertvector(*(const Ends *)(re + t + 4 * h), Four),
                       x = a - z[0];
            const Four b = __builtin_convertvector(*(const Ends *)(im + t + 4 * h), Four),
                       y = b - z[1];
            const Flags near = x * x + y * y <= reach;
            real[h] += (Four)((Flags)a & near);
            imaginary[h] += (Four)((Flags)b & near);
            count -= near;
        }
    const Four one = real[0] + real[1], two = imaginary[0] + imaginary[1];
    sum[0] = (one[0] + one[2]) + (one[1] + one[3]);
    sum[1] = (two[0] + two[2]) + (two[1] + two[3]);
    return count[0] + count[1] + count[2] + count[3];
}

/* The mean of n ratios around the fullest of the cells they are in; there is room for LANES more.
 */
static void commonest(float *re, float *im, int64_t n, double tolerance, const int32_t *cell,
                      const double *centres, double *z) {
    int32_t votes[ANGLES * SCALES] = {0}, best = 0;
    for (int64_t t = 0; t < n; t++) votes[cell[t]]++;
    for (int32_t t = 1; t < ANGLES * SCALES; t++)
        if (votes[t] > votes[best]) best = t;
    for (int64_t t = n; t < n + LANES; t++) re[t] = im[t] = INFINITY;
    z[0] = centres[2 * best];
    z[1] = centres[2 * best + 1];
    for (int round = 0; round < ROUNDS; round++) {
        const double x = z[0], y = z[1];
        double sum[2];
        const int64_t count = around(re, im, n, z, tolerance * tolerance * (x * x + y * y), sum);
        for (int c = 0; c < 2 && count > 0; c++) z[c] = sum[c] / (double)count;
        if (z[0] == x && z[1] == y) break; /* and so it stays */
    }
}

/* The mean agreement of each of n matches with its neighbours. */
WIDE static void agreement(const float *place, const int32_t *near, int64_t n, int64_t columns,
                           const double *z, double rounding, double tolerance, float *restrict off,
                           float *restrict longer, float *restrict each, double *restrict shares,
                           const int32_t *which, double *support) {
    const float re = (float)z[0], im = (float)z[1], less = (float)rounding,
                inverse = 1 / (float)tolerance;
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t last = i + BLOCK < n ? i + BLOCK : n,
                      count = offsets(place, near, i, last, columns, 1, off);
        for (int64_t c = 0; c < count; c++) {
            const float ax = off[4 * c], bx = off[4 * c + 1], ay = off[4 * c + 2],
                        by = off[4 * c + 3];
            const float ex = ax * re - bx * im, fx = ax * im + bx * re;
            const float one = ex * ex + fx * fx, two = ay * ay + by * by;
            longer[c] = one > two ? one : two;
            each[c] = (ay - ex) * (ay - ex) + (by - fx) * (by - fx);
        }
        if (less > 0)
            for (int64_t c = 0; c < count; c++) {
                const float rest = sqrtf(each[c]) - less, left = rest > 0 ? rest : 0.0f;
                each[c] = left * left;
            }
        for (int64_t c = 0; c < count; c++) {
            const float share =
                1 - sqrtf(each[c] / longer[c]) * inverse; /* or not a number, if both are zero */
            each[c] = share > 0 ? share : 0.0f;
        }
        for (int64_t c = 0; c < count; c++) shares[c] = each[c];
        for (int64_t t = i; t < last; t++)
            support[which[t]] = sum_of(shares + (t - i) * columns, columns) / (double)columns;
    }
}

/* The support of matches, (M,), between the points `ends`, (M, 2), of several pairs of objects,
   those of pair g being first[g], ..., first[g + 1] - 1; `turn` is that of all points, see
   order_points, and less than `turns`; `cells`, (groups, 2), are those of the grids. What is
   unknown is left alone. */
API int neighbour_support(const float *coordinates, const int32_t *turn, int64_t turns,
                          const int64_t *ends, const int64_t *first, int64_t groups, int64_t q,
                          double tolerance, const double *cells, double rounded,
                          const float *tangents, const float *squares, const double *centres,
                          double *support) {
    int64_t most = 0;
    for (int64_t g = 0; g < groups; g++)
        most = first[g + 1] - first[g] > most ? first[g + 1] - first[g] : most;
    if (most <= q) return 0;
    const int64_t columns = 2 * q, some = (columns + EVERY - 1) / EVERY, block = BLOCK * columns;
    Room room = {0};
    double *far, *shares;
    uint64_t *met;
    int32_t *near, *which, *who, *order, *cell;
    float *tree, *place, *re, *im, *off, *longer, *each;
    for (int made = 0; made < 2; made++) {
        place = take(&room, 4 * most, 4);
        re = take(&room, most * some + LANES, 4);
        im = take(&room, most * some + LANES, 4);
        far = take(&room, q, 8);
        off = take(&room, 4 * block, 4);
        longer = take(&room, block, 4);
        each = take(&room, block, 4);
        shares = take(&room, block, 8);
        cell = take(&room, most * some, 4);
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
        const int64_t *own = ends + 2 * first[g],
                      n = places(coordinates, own, first[g + 1] - first[g], place, which);
        double z[2];
        if (n <= q) continue;
        for (int side = 0; side < 2; side++) {
            in_order(turn, own, side, which, n, met, who, order);
            nearest_others(place + 2 * side, order, n, q, near + q * side, tree, far);
        }
        const double unit = unit_of(place, n);
        for (int64_t t = 0; unit != 1 && t < 4 * n; t++) place[t] = (float)(unit * place[t]);
        const int64_t found = ratios(place, near, n, columns, off, re, im);
        cells_of(re, im, found, tangents, squares, cell);
        commonest(re, im, found, tolerance, cell, centres, z);
        const double one = cells[2 * g], two = cells[2 * g + 1];
        const double rounding =
            unit * (rounded * sqrt(two * two + (z[0] * z[0] + z[1] * z[1]) * (one * one)));
        agreement(place, near, n, columns, z, rounding, tolerance, off, longer, each, shares, which,
                  support + first[g]);
    }
    free(room.memory);
    return 0;
}

#define FITS 3        /* of a map, each trusting less those that the last one missed */
#define RIDGE 1e-3f   /* on the maps, whose offsets are at most 1 long */
#define SPARE 2.0f    /* usual misses of its neighbours at which one counts half */
#define LEAST_NEAR 4  /* neighbours that a map is made of */
#define SMALL 1e-30f

/* How far each of n matches is from where affine maps put it that are fitted to the neighbours that count, from one side, `from`,
   to the other: (n,), or not a number. Neighbours are `near`, (n, 2 q), those on this side. BLOCK matches at a time, one in each
   lane; `room` has space for 6 q BLOCK. */
WIDE static void miss_of_maps(const float *place, int from, const int32_t *near, const float *counts, int64_t n, int64_t q,
                              float *restrict room, float *restrict miss) {
    float *restrict x = room, *restrict y = x + q * BLOCK, *restrict u = y + q * BLOCK, *restrict v = u + q * BLOCK;
    float *restrict base = v + q * BLOCK, *restrict weight = base + q * BLOCK;
    const int64_t to = 2 - 2 * from, at = 2 * from;
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t lanes = i + BLOCK < n ? BLOCK : n - i;
        float reach[BLOCK] = {0}, all[BLOCK] = {0}, off[BLOCK] = {0};
        memset(room, 0, (size_t)(6 * q * BLOCK) * 4);
        for (int64_t l = 0; l < lanes; l++)
            for (int64_t c = 0; c < q; c++) {
                const int64_t other = near[(i + l) * 2 * q + q * from + c], cell = c * BLOCK + l;
                const float *own = place + 4 * (i + l), *their = place + 4 * other;
                x[cell] = their[at] - own[at];
                y[cell] = their[at + 1] - own[at + 1];
                u[cell] = their[to] - own[to];
                v[cell] = their[to + 1] - own[to + 1];
                base[cell] = weight[cell] = counts[other];
            }
        /* Offsets in units of the farthest, so that the ridge means the same at every scale. */
        for (int64_t c = 0; c < q; c++)
            for (int l = 0; l < BLOCK; l++) {
                const float length = x[c * BLOCK + l] * x[c * BLOCK + l] + y[c * BLOCK + l] * y[c * BLOCK + l];
                reach[l] = length > reach[l] ? length : reach[l];
                all[l] += base[c * BLOCK + l];
            }
        for (int l = 0; l < BLOCK; l++) reach[l] = reach[l] > 0 ? 1 / sqrtf(reach[l]) : 0.0f;
        for (int64_t c = 0; c < q; c++)
            for (int l = 0; l < BLOCK; l++) {
                x[c * BLOCK + l] *= reach[l];
                y[c * BLOCK + l] *= reach[l];
            }
        for (int fit = 0; fit < FITS; fit++) {
            float total[BLOCK] = {0}, mx[BLOCK] = {0}, my[BLOCK] = {0}, mu[BLOCK] = {0}, mv[BLOCK] = {0};
            float a[BLOCK], b[BLOCK] = {0}, d[BLOCK], xu[BLOCK] = {0}, xv[BLOCK] = {0}, yu[BLOCK] = {0}, yv[BLOCK] = {0};
            float usual[BLOCK] = {0};
            for (int64_t c = 0; c < q; c++)
                for (int l = 0; l < BLOCK; l++) {
                    const float w = weight[c * BLOCK + l];
                    total[l] += w;
                    mx[l] += w * x[c * BLOCK + l];
                    my[l] += w * y[c * BLOCK + l];
                    mu[l] += w * u[c * BLOCK + l];
                    mv[l] += w * v[c * BLOCK + l];
                }
            for (int l = 0; l < BLOCK; l++) {
                const float one = 1 / (total[l] + SMALL);
                mx[l] *= one, my[l] *= one, mu[l] *= one, mv[l] *= one;
                a[l] = d[l] = RIDGE;
            }
            for (int64_t c = 0; c < q; c++)
                for (int l = 0; l < BLOCK; l++) {
                    const float w = weight[c * BLOCK + l], p = x[c * BLOCK + l] - mx[l], r = y[c * BLOCK + l] - my[l];
                    const float s = u[c * BLOCK + l] - mu[l], t = v[c * BLOCK + l] - mv[l];
                    a[l] += w * p * p;
                    b[l] += w * p * r;
                    d[l] += w * r * r;
                    xu[l] += w * p * s;
                    xv[l] += w * p * t;
                    yu[l] += w * r * s;
                    yv[l] += w * r * t;
                }
            for (int l = 0; l < BLOCK; l++) { /* the map's columns take the place of what they were solved from */
                const float one = 1 / (a[l] * d[l] - b[l] * b[l]);
                const float first = one * (d[l] * xu[l] - b[l] * yu[l]), second = one * (d[l] * xv[l] - b[l] * yv[l]);
                yu[l] = one * (a[l] * yu[l] - b[l] * xu[l]);
                yv[l] = one * (a[l] * yv[l] - b[l] * xv[l]);
                xu[l] = first;
                xv[l] = second;
                const float s = mu[l] - xu[l] * mx[l] - yu[l] * my[l], t = mv[l] - xv[l] * mx[l] - yv[l] * my[l];
                off[l] = sqrtf(s * s + t * t);
            }
            if (fit == FITS - 1) break;
            for (int64_t c = 0; c < q; c++)
                for (int l = 0; l < BLOCK; l++) {
                    const float p = x[c * BLOCK + l] - mx[l], r = y[c * BLOCK + l] - my[l];
                    const float s = u[c * BLOCK + l] - mu[l] - xu[l] * p - yu[l] * r;
                    const float t = v[c * BLOCK + l] - mv[l] - xv[l] * p - yv[l] * r;
                    weight[c * BLOCK + l] = s * s + t * t;
                    usual[l] += base[c * BLOCK + l] * sqrtf(s * s + t * t);
                }
            for (int l = 0; l < BLOCK; l++) {
                usual[l] *= SPARE / (all[l] + SMALL);
                usual[l] = usual[l] * usual[l] + SMALL;
            }
            for (int64_t c = 0; c < q; c++)
                for (int l = 0; l < BLOCK; l++) {
                    const int64_t cell = c * BLOCK + l;
                    weight[cell] = base[cell] * usual[l] / (usual[l] + weight[cell]);
                }
        }
        for (int64_t l = 0; l < lanes; l++) miss[i + l] = all[l] >= LEAST_NEAR ? off[l] : NAN;
    }
}

/* How far matches, (M,), are from where their neighbours put them, in either direction, whichever is less; see neighbour_support
   for the rest. Neighbours count if `kept`, (M,), says so. What is unknown is left alone. */
API int miss_neighbours(const float *coordinates, const int32_t *turn, int64_t turns, const int64_t *ends, const int64_t *first,
                        int64_t groups, int64_t q, const uint8_t *kept, double *missed) {
    int64_t most = 0;
    for (int64_t g = 0; g < groups; g++) most = first[g + 1] - first[g] > most ? first[g + 1] - first[g] : most;
    if (most <= q) return 0;
    Room room = {0};
    double *far;
    uint64_t *met;
    int32_t *near, *which, *who, *order;
    float *tree, *place, *counts, *one, *two, *work;
    for (int made = 0; made < 2; made++) {
        place = take(&room, 4 * most, 4);
        counts = take(&room, most, 4);
        one = take(&room, most, 4);
        two = take(&room, most, 4);
        work = take(&room, 6 * q * BLOCK, 4);
        far = take(&room, q, 8);
        met = take(&room, turns / 64 + 1, 8);
        near = take(&room, most * 2 * q, 4);
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
        if (n <= q) continue;
        for (int side = 0; side < 2; side++) {
            in_order(turn, own, side, which, n, met, who, order);
            nearest_others(place + 2 * side, order, n, q, near + q * side, tree, far);
        }
        const double unit = unit_of(place, n);
        for (int64_t t = 0; unit != 1 && t < 4 * n; t++) place[t] = (float)(unit * place[t]);
        for (int64_t t = 0; t < n; t++) counts[t] = kept[first[g] + which[t]];
        miss_of_maps(place, 0, near, counts, n, q, work, one);
        miss_of_maps(place, 1, near, counts, n, q, work, two);
        for (int64_t t = 0; t < n; t++) {
            const double less = fmin(one[t], two[t]); /* of what is a number */
            if (less >= 0) missed[first[g] + which[t]] = less / unit;
        }
    }
    free(room.memory);
    return 0;
}
