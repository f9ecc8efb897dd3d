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

WIDE static void compare(const int32_t *one, const int32_t *two, int64_t k, int32_t *same, int32_t *both) {
    int32_t equal = 0, known = 0;
    for (int64_t i = 0; i < k; i++) {
        int32_t here = (one[i] >= 0) & (two[i] >= 0);
        known += here;
        equal += here & (one[i] == two[i]);
    }
    *same = equal;
    *both = known;
}

/* For every match of points a and b the third objects that both have a match in, and those where it is the same point.
   `partner`, (m, k), is the point matched in every object, -1 for none. */
API void count_triangles(const int32_t *partner, int64_t k, const int32_t *a, const int32_t *b, int64_t n, int32_t *same,
                         int32_t *both) {
    for (int64_t t = 0; t < n; t++)
        compare(partner + (int64_t)a[t] * k, partner + (int64_t)b[t] * k, k, same + t, both + t);
}
