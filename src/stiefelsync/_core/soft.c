/* Soft labels, and triangles of matches: sync/likelihood/mean_field.py and tree.py. */
#include "kernels.h"

/* Take its largest entry from every row of S, (m, d). */
API void less_maximum(double *S, int64_t m, int64_t d) {
    for (int64_t r = 0; r < m; r++, S += d) {
        double most[4] = {S[0], S[0], S[0], S[0]}; /* four, lest each comparison wait for the one before */
        int64_t c = 0;
        for (; c + 4 <= d; c += 4)
            for (int t = 0; t < 4; t++) most[t] = S[c + t] > most[t] ? S[c + t] : most[t];
        for (; c < d; c++) most[0] = S[c] > most[0] ? S[c] : most[0];
        for (int t = 1; t < 4; t++) most[0] = most[t] > most[0] ? most[t] : most[0];
        for (c = 0; c < d; c++) S[c] -= most[0];
    }
}

/* Scale rows of K, (m, d), to sum 1; columns, (k, d), become the sums of every object's, rows offsets[i], ... */
API void scale_rows(double *K, int64_t d, const int64_t *offsets, int64_t k, double *columns) {
    for (int64_t i = 0; i < k; i++, columns += d) {
        memset(columns, 0, (size_t)d * 8);
        for (int64_t r = offsets[i]; r < offsets[i + 1]; r++, K += d) {
            const double sum = sum_of(K, d);
            for (int64_t c = 0; c < d; c++) {
                K[c] /= sum;
                columns[c] += K[c];
            }
        }
    }
}

/* Scale rows of K, (n, d), to sum 1 and columns of every object, rows first[g], ..., first[g + 1] - 1, to at most 1: K
   becomes u K v. `columns`, (groups, d), are the sums of the columns at first. */
API int scale_soft(double *K, int64_t d, const int64_t *first, int64_t groups, double *columns, int64_t max_iter, double tol,
                   double tiny) {
    const int64_t n = first[groups];
    double *memory = malloc((size_t)(n + groups * d + d) * 8);
    if (!memory) return -1;
    double *u = memory, *v = u + n, *row = v + groups * d;
    for (int64_t round = 0; round < max_iter; round++) {
        double most = 0.0;
        for (int64_t g = 0; g < groups; g++) {
            double *scale = v + g * d, *sum = columns + g * d;
            for (int64_t c = 0; c < d; c++) scale[c] = 1 / (sum[c] > 1 ? sum[c] : 1);
            for (int64_t r = first[g]; r < first[g + 1]; r++) {
                const double *k = K + r * d;
                for (int64_t c = 0; c < d; c++) row[c] = k[c] * scale[c];
                double total = sum_of(row, d);
                u[r] = 1 / (total > tiny ? total : tiny);
                if (r == first[g])
                    for (int64_t c = 0; c < d; c++) sum[c] = k[c] * u[r];
                else
                    for (int64_t c = 0; c < d; c++) sum[c] += k[c] * u[r];
            }
            for (int64_t c = 0; c < d; c++) most = sum[c] * scale[c] > most ? sum[c] * scale[c] : most;
        }
        if (most <= 1 + tol) break;
    }
    for (int64_t g = 0; g < groups; g++)
        for (int64_t r = first[g]; r < first[g + 1]; r++)
            for (int64_t c = 0; c < d; c++) K[r * d + c] = K[r * d + c] * u[r] * v[g * d + c];
    free(memory);
    return 0;
}

/* Sixteen bytes, which a register of any processor holds: wider ones are taken apart where it does not hold them. */
typedef uint8_t lanes_8 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint32_t lanes_32 __attribute__((vector_size(16), aligned(4), may_alias));

/* Of n matches, points a and b: third objects that both have a match in, and those where it is the same point, by the
   numbers of the points matched in every object, 0 for none. Sums of bytes are emptied before they overflow. */
#define TRIANGLES(NAME, NUMBER, LANES, MOST)                                                                                \
    WIDE static void NAME(const NUMBER *rows, int64_t width, const int32_t *a, const int32_t *b, int64_t n, int64_t *same,  \
                          int64_t *both) {                                                                                  \
        const int64_t lanes = sizeof(LANES) / sizeof(NUMBER);                                                               \
        LANES equal = {0}, known = {0};                                                                                     \
        int64_t sums = 0;                                                                                                   \
        for (int64_t s = 0; s < n; s++) {                                                                                   \
            const NUMBER *one = rows + a[s] * width, *two = rows + b[s] * width;                                            \
            for (int64_t x = 0; x < width; x += lanes) {                                                                    \
                const LANES p = *(const LANES *)(one + x), q = *(const LANES *)(two + x);                                   \
                const LANES here = (LANES)((p != 0) & (q != 0)); /* where true -1 */                                        \
                known -= here;                                                                                              \
                equal -= here & (LANES)(p == q);                                                                            \
                if (++sums < MOST && (s + 1 < n || x + lanes < width)) continue;                                            \
                for (int64_t t = 0; t < lanes; t++) {                                                                       \
                    *same += equal[t];                                                                                      \
                    *both += known[t];                                                                                      \
                }                                                                                                           \
                equal = known = (LANES){0};                                                                                 \
                sums = 0;                                                                                                   \
            }                                                                                                               \
        }                                                                                                                   \
    }
TRIANGLES(triangles_8, uint8_t, lanes_8, 255)
TRIANGLES(triangles_32, uint32_t, lanes_32, 65536)

/* For every pair of objects the triangles over its matches, points a and b, and those that close. `small` or `large`,
   (m, width), numbers every point's match in every object. */
API void count_triangles(int64_t width, const uint8_t *small, const uint32_t *large, int64_t n_pairs, const int64_t *start,
                         const int32_t *a, const int32_t *b, double *closed, double *all) {
    for (int64_t s = 0; s < n_pairs; s++) {
        int64_t same = 0, both = 0;
        const int64_t t = start[s], n = start[s + 1] - t;
        if (small) triangles_8(small, width, a + t, b + t, n, &same, &both);
        else triangles_32(large, width, a + t, b + t, n, &same, &both);
        closed[s] = (double)same;
        all[s] = (double)both;
    }
}
