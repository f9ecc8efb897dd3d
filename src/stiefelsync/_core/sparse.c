/* Sparse matrices of matches, prepared for the spectral start: sync/methods/_spectral_start.py. */
#include "kernels.h"

/* Sums of the rows of a matrix in CSR, each from left to right. Four are summed at a time, lest
   each addition wait for the one before. */
API void sum_rows(int64_t m, const int32_t *indptr, const double *data, double *out) {
    for (int64_t r = 0; r < m; r += 4) {
        const int64_t rows = m - r < 4 ? m - r : 4;
        int32_t n = rows < 4 ? 0 : indptr[r + 1] - indptr[r];
        double sum[4] = {0};
        for (int64_t q = 1; q < rows; q++)
            n = indptr[r + q + 1] - indptr[r + q] < n ? indptr[r + q + 1] - indptr[r + q] : n;
        for (int32_t t = 0; t < n; t++)
            for (int q = 0; q < 4; q++) sum[q] += data[indptr[r + q] + t];
        for (int64_t q = 0; q < rows; q++) {
            for (int32_t e = indptr[r + q] + n; e < indptr[r + q + 1]; e++) sum[q] += data[e];
            out[r + q] = sum[q];
        }
    }
}

/* Entries of diag(s) W diag(s), W in CSR, in double precision or, if that is null, single. */
API void scale_entries(int64_t m, const int32_t *indptr, const int32_t *indices, const double *data,
                       const double *s, double *out, float *single) {
    for (int64_t r = 0; r < m; r++)
        for (int32_t e = indptr[r]; e < indptr[r + 1]; e++) {
            const double value = data[e] * s[r] * s[indices[e]];
            if (out)
                out[e] = value;
            else
                single[e] = (float)value;
        }
}

/* Rows of (N + diag(shift)) S, (m, width), N in CSR and S with one sign in every row. Sums are made
   in double precision. */
#define SKETCH(NAME, REAL)                                                                         \
    API int NAME(int64_t m, int64_t width, const int32_t *indptr, const int32_t *indices,          \
                 const REAL *data, const REAL *shift, const int64_t *column, const REAL *sign,     \
                 REAL *out) {                                                                      \
        double *sum = malloc((size_t)(width > 0 ? width : 1) * sizeof *sum);                       \
        if (!sum) return -1;                                                                       \
        for (int64_t r = 0; r < m; r++, out += width) {                                            \
            memset(sum, 0, (size_t)width * sizeof *sum);                                           \
            for (int32_t e = indptr[r]; e < indptr[r + 1]; e++)                                    \
                sum[column[indices[e]]] += data[e] * sign[indices[e]];                             \
            sum[column[r]] += shift[r] * sign[r];                                                  \
            for (int64_t c = 0; c < width; c++) out[c] = (REAL)sum[c];                             \
        }                                                                                          \
        free(sum);                                                                                 \
        return 0;                                                                                  \
    }
SKETCH(sketch_f32, float)
SKETCH(sketch_f64, double)
