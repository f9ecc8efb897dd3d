/* Matches as a table of points and objects: the number, from 1, of a point's match in an object, 0 for none. Rows are padded to
   whole lanes. Where every point has a match in every other object it takes a byte for each, and who agrees with whom is
   found by comparing bytes: MatchTable.partner_numbers of sync/likelihood/matches.py. */
#include "kernels.h"

API const int64_t row_lanes = ROW_LANES;

/* Fill the table, (m, width), zeros before, from W in CSR and the object and first point of every point. */
API void number_partners(int64_t m, int64_t width, const int32_t *indptr, const int32_t *indices, const int64_t *owner,
                         const int64_t *offsets, uint8_t *small, uint32_t *large) {
    for (int64_t r = 0; r < m; r++)
        for (int32_t e = indptr[r]; e < indptr[r + 1]; e++) {
            const int64_t j = owner[indices[e]], number = indices[e] - offsets[j] + 1;
            if (small) small[r * width + j] = (uint8_t)number;
            else large[r * width + j] = (uint32_t)number;
        }
}

int number_holders(int64_t k, int64_t d, int64_t width, const int64_t *offsets, const int64_t *labels, uint8_t *holder) {
    int once = 1;
    memset(holder, NOBODY, (size_t)(d * width));
    for (int64_t i = 0; i < k; i++)
        for (int64_t a = offsets[i]; a < offsets[i + 1]; a++)
            if (labels[a] >= 0) {
                uint8_t *at = holder + labels[a] * width + i;
                once &= *at == NOBODY;
                *at = (uint8_t)(a - offsets[i] + 1);
            }
    return once;
}

WIDE static void add_equal(const uint8_t *one, const uint8_t *two, uint8_t *count, int64_t n) {
    for (int64_t t = 0; t < n; t++) count[t] += one[t] == two[t];
}

int count_agreeing(int64_t k, int64_t d, int64_t width, const int64_t *offsets, const uint8_t *partner, const int64_t *labels,
                   int64_t n_pairs, const int32_t *pairs, double *right) {
    uint8_t *count = malloc((size_t)((d + 1) * width)), *holder = count + width;
    if (!count) return 0;
    const int once = number_holders(k, d, width, offsets, labels, holder);
    for (int64_t s = 0, i = -1; once && s < n_pairs; s++) {
        if (i != pairs[2 * s]) {
            i = pairs[2 * s];
            memset(count, 0, (size_t)width);
            for (int64_t a = offsets[i]; a < offsets[i + 1]; a++)
                if (labels[a] >= 0) add_equal(partner + a * width, holder + labels[a] * width, count, width);
        }
        right[s] = count[pairs[2 * s + 1]];
    }
    free(count);
    return once;
}

/* Rows of the product of W and one_hot(labels), (m, d), zeros before, a match between two objects being worth `worth`, (k, width).
   Four rows are summed at a time, lest each addition wait for the one before. */
API void earn(int64_t k, int64_t d, int64_t width, const int64_t *offsets, const uint8_t *partner, const int64_t *labels,
              const double *worth, double *out) {
    for (int64_t i = 0; i < k; i++, worth += width)
        for (int64_t a = offsets[i]; a < offsets[i + 1]; a += 4) {
            const int64_t rows = offsets[i + 1] - a < 4 ? offsets[i + 1] - a : 4;
            for (int64_t j = 0; j < k; j++) {
                const int64_t *label = labels + offsets[j] - 1;
                for (int64_t q = 0; q < rows; q++) {
                    const uint8_t number = partner[(a + q) * width + j];
                    if (number && label[number] >= 0) out[(a + q) * d + label[number]] += worth[j];
                }
            }
        }
}

/* What matches of every pair of labels are worth, across, (d, d), the smaller label first, which of them have any, joined,
   (d, d), and what those within a label are worth to an object, inside, (d, k); all zeros before. `worth`, (k, width), is
   that of a match between two objects. Sums are made in the order of points, then of their matches. */
API int sum_pairs(int64_t k, int64_t d, int64_t width, const int64_t *offsets, const uint8_t *partner, const int64_t *labels,
                  const double *worth, uint8_t *joined, double *across, double *inside) {
    uint8_t *holder = malloc((size_t)(d * width));
    if (!holder) return -1;
    number_holders(k, d, width, offsets, labels, holder);
    for (int64_t i = 0; i < k; i++)
        for (int64_t a = offsets[i]; a < offsets[i + 1]; a++) {
            const int64_t one = labels[a];
            if (one < 0) continue;
            const uint8_t *p = partner + a * width, *same = holder + one * width;
            const double *w = worth + i * width;
            double all = across[one * d + one], here = 0.0; /* what most matches change stays in registers */
            for (int64_t j = 0; j < k; j++) {
                if (p[j] == same[j]) {
                    all += w[j];
                    here += w[j];
                } else if (p[j]) {
                    const int64_t two = labels[offsets[j] + p[j] - 1];
                    if (two < one) continue;
                    across[one * d + two] += w[j];
                    joined[one * d + two] = 1;
                }
            }
            across[one * d + one] = all;
            inside[one * k + i] = here;
        }
    free(holder);
    return 0;
}
