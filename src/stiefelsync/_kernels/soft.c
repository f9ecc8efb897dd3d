/* Soft labels, and triangles of matches: sync/likelihood/mean_field.py and tree.py. */
#include "kernels.h"

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

#define LANES 64 /* entries compared at a time; rows are as long as a multiple of it */

/* Of n matches, points a and b: third objects that both have a match in, and those where it is the same point, by the
   numbers of the points matched in every object, 0 for none. Sums of bytes are emptied before they overflow. */
#define TRIANGLES(NAME, NUMBER, MOST)                                                                                       \
    WIDE static void NAME(const NUMBER *rows, int64_t width, const int32_t *a, const int32_t *b, int64_t n, int64_t *same,  \
                          int64_t *both) {                                                                                  \
        NUMBER equal[LANES] = {0}, known[LANES] = {0};                                                                      \
        int64_t sums = 0;                                                                                                   \
        for (int64_t x = 0; x < n * width; x += LANES) {                                                                    \
            const NUMBER *one = rows + a[x / width] * width + x % width, *two = rows + b[x / width] * width + x % width;    \
            for (int t = 0; t < LANES; t++) {                                                                               \
                const NUMBER here = (one[t] != 0) & (two[t] != 0);                                                          \
                known[t] += here;                                                                                           \
                equal[t] += here & (one[t] == two[t]);                                                                      \
            }                                                                                                               \
            if (++sums < MOST && x + LANES < n * width) continue;                                                           \
            for (int t = 0; t < LANES; t++) {                                                                               \
                *same += equal[t];                                                                                          \
                *both += known[t];                                                                                          \
                equal[t] = known[t] = 0;                                                                                    \
            }                                                                                                               \
            sums = 0;                                                                                                       \
        }                                                                                                                   \
    }
TRIANGLES(triangles_8, uint8_t, 255)
TRIANGLES(triangles_32, uint32_t, 65536)

/* For every pair of objects the triangles over its matches, points a and b, and those that close. W is given in CSR, with
   the object and first point of every point; `bytes` says that no object has more than 255 points. */
API int count_triangles(int64_t m, int64_t k, const int32_t *indptr, const int32_t *indices, const int64_t *owner,
                        const int64_t *offsets, int64_t n_pairs, const int64_t *start, const int32_t *a, const int32_t *b,
                        int64_t bytes, double *closed, double *all) {
    const int64_t width = (k + LANES - 1) / LANES * LANES;
    void *memory = calloc((size_t)(m * width > 0 ? m * width : 1), bytes ? 1 : 4);
    uint8_t *small = memory;
    uint32_t *large = memory;
    if (!memory) return -1;
    for (int64_t r = 0; r < m; r++)
        for (int32_t e = indptr[r]; e < indptr[r + 1]; e++) {
            const int64_t j = owner[indices[e]], number = indices[e] - offsets[j] + 1;
            if (bytes) small[r * width + j] = (uint8_t)number;
            else large[r * width + j] = (uint32_t)number;
        }
    for (int64_t s = 0; s < n_pairs; s++) {
        int64_t same = 0, both = 0;
        const int64_t t = start[s], n = start[s + 1] - t;
        if (bytes) triangles_8(small, width, a + t, b + t, n, &same, &both);
        else triangles_32(large, width, a + t, b + t, n, &same, &both);
        closed[s] = (double)same;
        all[s] = (double)both;
    }
    free(memory);
    return 0;
}
