/* Matches arranged by point, and what labels make of them: sync/likelihood/matches.py and
   counts.py. Matches are sorted by the pair of objects that they join, `pairs`, (n_pairs, 2), those
   of pair s from start[s] on. */
#include "kernels.h"

/* The ends of every match, (n,) each, and W without its diagonal in CSR: row pointers, (m + 1,),
   and columns. `points`, (n, 2), are counted within objects, whose first points are `offsets`.
   Pairs being in order, i < j, every row is filled in order. */
API int arrange_matches(int64_t n_pairs, const int32_t *pairs, const int64_t *start,
                        const int32_t *points, const int64_t *offsets, int64_t m, int32_t *a,
                        int32_t *b, int32_t *indptr, int32_t *indices) {
    memset(indptr, 0, (size_t)(m + 1) * sizeof *indptr);
    for (int64_t s = 0; s < n_pairs; s++) {
        const int32_t i = (int32_t)offsets[pairs[2 * s]], j = (int32_t)offsets[pairs[2 * s + 1]];
        for (int64_t t = start[s]; t < start[s + 1]; t++) {
            indptr[1 + (a[t] = i + points[2 * t])]++;
            indptr[1 + (b[t] = j + points[2 * t + 1])]++;
        }
    }
    for (int64_t r = 0; r < m; r++) indptr[r + 1] += indptr[r];
    for (int64_t t = 0; t < start[n_pairs]; t++) {
        indices[indptr[a[t]]++] = b[t];
        indices[indptr[b[t]]++] = a[t];
    }
    memmove(indptr + 1, indptr,
            (size_t)m * sizeof *indptr); /* every row began where the one before ended */
    indptr[0] = 0;
    return 0;
}

/* The number of the match of every entry of W, in the same order; `place`, (m,), are row pointers,
   and are changed. */
API void number_matches(int64_t n, const int32_t *a, const int32_t *b, int32_t *place,
                        int32_t *numbers) {
    for (int64_t t = 0; t < n; t++) numbers[place[a[t]]++] = numbers[place[b[t]]++] = (int32_t)t;
}

WIDE static int32_t in_both(const uint8_t *x, const uint8_t *y, int64_t n) {
    int32_t sum = 0;
    for (int64_t c = 0; c < n; c++) sum += x[c] & y[c];
    return sum;
}

WIDE static int64_t agreeing(const int32_t *a, const int32_t *b, const int64_t *labels, int64_t n) {
    int64_t same = 0;
    for (int64_t t = 0; t < n; t++) same += (labels[a[t]] == labels[b[t]]) & (labels[a[t]] >= 0);
    return same;
}

/* Matches that join equal labels, and labels that both objects hold, of every pair: right and
   present, (n_pairs,); and how many objects hold each label, (d,), zeros before. `found`, (2,),
   counts matches whose first, and whose second, point has a label that the other object holds; null
   if not wanted. Labels, (m,), are -1 for none. `partner`, (m, width), are the numbers of all
   matches, see partners.c, or null. 1 if a label is not below d, -1 without memory. */
API int count_labels(int64_t k, int64_t d, int64_t n_pairs, const int32_t *pairs,
                     const int64_t *start, const int32_t *a, const int32_t *b,
                     const int64_t *offsets, int64_t width, const uint8_t *partner,
                     const int64_t *labels, double *right, double *present, double *holders,
                     double *found) {
    uint8_t *held = calloc((size_t)(k * d > 0 ? k * d : 1), 1);
    int64_t rows = 0, columns = 0;
    if (!held) return -1;
    for (int64_t i = 0; i < k; i++)
        for (int64_t r = offsets[i]; r < offsets[i + 1]; r++) {
            if (labels[r] >= d) {
                free(held);
                return 1;
            }
            if (labels[r] >= 0) held[i * d + labels[r]] = 1;
        }
    for (int64_t i = 0; i < k; i++)
        for (int64_t c = 0; c < d; c++) holders[c] += held[i * d + c];
    const int counted =
        partner && count_agreeing(k, d, width, offsets, partner, labels, n_pairs, pairs, right);
    for (int64_t s = 0; s < n_pairs; s++) {
        const uint8_t *i = held + pairs[2 * s] * d, *j = held + pairs[2 * s + 1] * d;
        for (int64_t t = start[s]; found && t < start[s + 1]; t++) {
            const int64_t one = labels[a[t]], two = labels[b[t]];
            rows += one >= 0 && j[one];
            columns += two >= 0 && i[two];
        }
        if (!counted)
            right[s] =
                (double)agreeing(a + start[s], b + start[s], labels, start[s + 1] - start[s]);
        present[s] = in_both(i, j, d);
    }
    if (found) {
        found[0] = (double)rows;
        found[1] = (double)columns;
    }
    free(held);
    return 0;
}

/* Rows of matrix(values) one_hot(labels), (m, d): out is all zeros before. Four rows are summed at
   a time, lest each addition wait for the one before. */
API void label_product(int64_t m, int64_t d, const int32_t *indptr, const int32_t *indices,
                       const int64_t *labels, const double *values, double *out) {
    for (int64_t r = 0; r < m; r += 4, out += 4 * d) {
        const int64_t rows = m - r < 4 ? m - r : 4;
        int32_t n = rows < 4 ? 0 : indptr[r + 1] - indptr[r];
        for (int64_t q = 1; q < rows; q++)
            n = indptr[r + q + 1] - indptr[r + q] < n ? indptr[r + q + 1] - indptr[r + q] : n;
        for (int32_t t = 0; t < n; t++)
            for (int q = 0; q < 4; q++) {
                const int32_t e = indptr[r + q] + t;
                const int64_t x = labels[indices[e]];
                if (x >= 0) out[q * d + x] += values[e];
            }
        for (int64_t q = 0; q < rows; q++)
            for (int32_t e = indptr[r + q] + n; e < indptr[r + q + 1]; e++)
                if (labels[indices[e]] >= 0) out[q * d + labels[indices[e]]] += values[e];
    }
}

/* Mark the points that have a match to a point of the same label. Most have found one after a few
   matches. */
API void mark_supported(int64_t m, const int32_t *indptr, const int32_t *indices,
                        const int64_t *labels, uint8_t *supported) {
    for (int64_t r = 0; r < m; r++)
        for (int32_t e = indptr[r]; e < indptr[r + 1] && !supported[r]; e++)
            supported[r] = labels[indices[e]] == labels[r];
}

/* What matches between objects, values, (k, k), make of every entry of W, in CSR. */
API void spread_values(int64_t k, const int64_t *offsets, const int32_t *indptr,
                       const int32_t *indices, const int64_t *owner, const double *values,
                       double *out) {
    for (int64_t i = 0; i < k; i++, values += k)
        for (int32_t e = indptr[offsets[i]]; e < indptr[offsets[i + 1]]; e++)
            out[e] = values[owner[indices[e]]];
}

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
