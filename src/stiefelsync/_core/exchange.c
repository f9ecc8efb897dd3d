/* Which pairs of labels may gain by being exchanged in a group of objects: sync/likelihood/exchange.py. */
#include "kernels.h"

typedef struct {
    int64_t k, d, m;
    const int64_t *first;         /* (d * d + 1,) where the entries of a pair of labels begin */
    const int32_t *i, *j;         /* (n,) objects that they join */
    const double *right;          /* (n,) what they are worth */
    const int64_t *where;         /* (d, k) the point of a label in an object, m for none */
    const double *X;              /* (m + 1, k) what being seen is worth, or null and */
    const double *size;           /* (k, k) what sharing a label costs, or null */
    int64_t width;
    const uint8_t *partner;       /* (m, width) numbers of all matches, see partners.c, or null; if not, all hold all labels */
    const double *worth;          /* and every match between two objects is worth the same, (k, width): no entries then */
    const int64_t *offsets;       /* (k + 1,) first point of every object */
    double hope, lift;
} Entries;

/* The same as `coupling` does below, by the numbers of matches; `holder`, (2, width), has room for those of both labels. */
WIDE static void coupling_by_numbers(const Entries *s, const int64_t *p, const int64_t *q, double *J, uint8_t *holder) {
    const int64_t k = s->k;
    uint8_t *one = holder, *two = holder + s->width;
    for (int64_t i = 0; i < k; i++) {
        one[i] = (uint8_t)(p[i] - s->offsets[i] + 1);
        two[i] = (uint8_t)(q[i] - s->offsets[i] + 1);
    }
    for (int64_t i = 0; i < k; i++) {
        const uint8_t *x = s->partner + p[i] * s->width, *y = s->partner + q[i] * s->width;
        const double *worth = s->worth + i * s->width;
        for (int64_t j = 0; j < k; j++) {
            const int8_t times = (int8_t)((x[j] == one[j]) + (y[j] == two[j]) - (x[j] == two[j]) - (y[j] == one[j]));
            J[i * k + j] = worth[j] * times;
        }
    }
}

/* What two labels couple every pair of objects by: J, (k, k). */
static void coupling(const Entries *s, int64_t one, int64_t two, double *J, double *side) {
    const int64_t k = s->k, *p = s->where + one * k, *q = s->where + two * k;
    const int64_t keys[3] = {one * s->d + one, two * s->d + two, one * s->d + two};
    int uneven = 0;
    memset(J, 0, (size_t)(k * k) * 8);
    for (int t = 0; t < 3; t++)
        for (int64_t e = s->first[keys[t]]; e < s->first[keys[t] + 1]; e++) {
            double worth = t < 2 ? s->right[e] : -s->right[e];
            J[s->i[e] * k + s->j[e]] += worth;
            if (t == 2) J[s->j[e] * k + s->i[e]] += worth;
        }
    for (int64_t i = 0; i < k; i++) {
        side[i] = (double)(p[i] < s->m) - (double)(q[i] < s->m);
        uneven |= side[i] != 0;
    }
    if (s->X) {
        for (int64_t i = 0; i < k; i++) {
            const double *x = s->X + p[i] * k, *y = s->X + q[i] * k;
            for (int64_t j = 0; j <= i; j++) {
                const double *v = s->X + p[j] * k, *w = s->X + q[j] * k;
                double here = (x[j] - y[j]) * (0.5 * side[j]), there = (v[i] - w[i]) * (0.5 * side[i]);
                J[i * k + j] = (J[i * k + j] + here) + there;
                if (i != j) J[j * k + i] = (J[j * k + i] + there) + here;
            }
        }
    } else if (uneven && s->size) {
        for (int64_t i = 0; i < k; i++)
            for (int64_t j = 0; j < k; j++) J[i * k + j] += s->size[i * k + j] * side[i] * side[j];
    }
}

/* Whether A, (n, n) symmetric, has a negative eigenvalue: elimination meets a negative pivot. The upper triangle is
   overwritten, four rows at a time by four before them, which stay in the first-level cache, and B are rows over their pivots.
   Each element sees the rows before its own in order, whatever the width of registers. Both are padded by zeros to `width`
   rows and columns, a multiple of 8, and what is left of a diagonal need only be finite. */
WIDE static int indefinite(double *A, double *B, int64_t n, int64_t width) {
    const int64_t wide = width / REALS;
    for (int64_t first = 0; first < n; first += 4) {
        for (int64_t a = 0; a < first; a += 4) {
            const some_reals *p = (const some_reals *)(A + a * width), *q = p + wide, *r = q + wide, *s = r + wide;
            for (int64_t b = first; b < first + 4; b++) {
                const double *by = B + a * width + b, w = by[0], x = by[width], y = by[2 * width], z = by[3 * width];
                some_reals *row = (some_reals *)(A + b * width);
                for (int64_t t = first / REALS; t < wide; t++) row[t] = (((row[t] - w * p[t]) - x * q[t]) - y * r[t]) - z * s[t];
            }
        }
        for (int64_t b = first; b < first + 4 && b < n; b++) {
            some_reals *row = (some_reals *)(A + b * width), *over = (some_reals *)(B + b * width);
            for (int64_t a = first; a < b; a++)
                for (int64_t t = first / REALS; t < wide; t++)
                    row[t] -= B[a * width + b] * ((const some_reals *)(A + a * width))[t];
            const double pivot = A[b * width + b];
            if (!(pivot > 0)) return 1;
            for (int64_t t = first / REALS; t < wide; t++) over[t] = row[t] / pivot;
        }
    }
    return 0;
}

/* diag(degree + lift) - J, objects that hold a label only: the upper triangle of A, (width, width), zeros beside it. */
static void laplacian(const Entries *s, const double *J, const double *degree, const int64_t *held, int64_t n, int64_t width,
                      double *A) {
    memset(A, 0, (size_t)(width * width) * 8);
    for (int64_t a = 0; a < n; a++)
        for (int64_t b = a; b < n; b++)
            A[a * width + b] = -J[held[a] * s->k + held[b]] + (a == b ? degree[held[a]] + s->lift : 0.0);
}

/* For pairs of labels, (count, 2), whether a group of objects that gains by exchanging them is to be looked for. */
API int hopeful_pairs(const Entries *s, const int64_t *pairs, int64_t count, uint8_t *found) {
    const int64_t k = s->k, width = (k + 7) / 8 * 8;
    char *memory = malloc((size_t)(2 * width * width + k * k + 5 * k + 8) * 8 + (size_t)(2 * s->width));
    if (!memory) return -1;
    double *A = (double *)(((uintptr_t)memory + 63) & ~(uintptr_t)63), *B = A + width * width, *J = B + width * width;
    double *side = J + k * k, *degree = side + k, *against = degree + k, *row = against + k;
    int64_t *held = (int64_t *)(row + k);
    uint8_t *holder = (uint8_t *)(held + k);
    for (int64_t t = 0; t < count; t++) {
        const int64_t one = pairs[2 * t], two = pairs[2 * t + 1], *p = s->where + one * k, *q = s->where + two * k;
        int64_t n = 0;
        int any = 0, some = 0;
        double least = 0.0;
        if (s->partner) coupling_by_numbers(s, p, q, J, holder);
        else coupling(s, one, two, J, side);
        for (int64_t i = 0; i < k; i++) {
            for (int64_t j = 0; j < k; j++) row[j] = J[i * k + j] < 0 ? J[i * k + j] : 0.0;
            degree[i] = sum_of(J + i * k, k);
            against[i] = sum_of(row, k);
            any |= against[i] < 0;
            if (p[i] < s->m || q[i] < s->m) {
                double free = degree[i] - against[i];
                if (!some || free < least) least = free;
                some = 1;
                held[n++] = i;
            }
        }
        found[t] = 0;
        if (!any || !some || -sum_of(against, k) < s->hope * least) continue;
        laplacian(s, J, degree, held, n, width, A);
        found[t] = (uint8_t)indefinite(A, B, n, width);
    }
    free(memory);
    return 0;
}

/* Sort the entries of W, CSR, by the labels that they join, the smaller one first; `at` is `first` without its last. What
   those of a pair of labels are worth goes to across, (d, d), and what those within a label are worth to an object to
   inside, (d, k), both zeros before. With `i` null entries are only counted, into first[label * d + label + 1]. */
API void sort_entries(int64_t m, int64_t d, int64_t k, const int32_t *indptr, const int32_t *indices, const int64_t *owner,
                      const int64_t *labels, const double *right, int64_t *at, int32_t *i, int32_t *j, double *sorted,
                      double *across, double *inside) {
    for (int64_t a = 0; a < m; a++) {
        const int64_t one = labels[a];
        if (one < 0) continue;
        /* What most entries change stays in registers. */
        const int64_t own = one * d + one;
        int64_t place = at[own + !i];
        double all = i ? across[own] : 0.0, here = i ? inside[one * k + owner[a]] : 0.0;
        for (int32_t e = indptr[a]; e < indptr[a + 1]; e++) {
            const int64_t two = labels[indices[e]];
            if (two < one) continue;
            const int64_t which = one * d + two, to = one == two ? place++ : at[which + !i]++;
            if (!i) continue;
            i[to] = (int32_t)owner[a];
            j[to] = (int32_t)owner[indices[e]];
            sorted[to] = right[e];
            if (one == two) {
                all += right[e];
                here += right[e];
            } else {
                across[which] += right[e];
            }
        }
        at[own + !i] = place;
        if (!i) continue;
        across[own] = all;
        inside[one * k + owner[a]] = here;
    }
}
