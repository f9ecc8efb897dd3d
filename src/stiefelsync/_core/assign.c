/* Linear assignment by shortest augmenting paths: D. F. Crouse, "On implementing 2D rectangular
   assignment algorithms", IEEE Transactions on Aerospace and Electronic Systems 52 (2016).
   Comparisons are made in the order in which scipy.optimize.linear_sum_assignment makes them, so
   that ties end alike. */
#include "kernels.h"

#include <math.h>

typedef struct {
    double *u, *v,
        *dist; /* dual variables of rows and columns; length of the shortest path to every column */
    int64_t *from,
        *row_of; /* row before a column on its path; row that holds a column, -1 for none */
    int64_t *open, *rows,
        *cols; /* columns not yet reached for good; rows and columns that have been, in order */
} Paths;

size_t assign_bytes(int64_t n, int64_t d) { return (size_t)(2 * n + 6 * d) * 8; }

static Paths paths_in(void *work, int64_t n, int64_t d) {
    Paths p;
    p.u = work;
    p.v = p.u + n;
    p.dist = p.v + d;
    p.from = (int64_t *)(p.dist + d);
    p.row_of = p.from + d;
    p.open = p.row_of + d;
    p.cols = p.open + d;
    p.rows = p.cols + d;
    return p;
}

/* The free column that is nearest to `row` by alternating paths, for costs -S; counts and lengths
   by the pointers. */
static int64_t nearest(const double *S, int64_t d, int64_t row, Paths *p, int64_t *n_rows,
                       int64_t *n_cols, double *length) {
    double reached = 0.0;
    int64_t left = d, sink = -1;
    for (int64_t t = 0; t < d; t++) {
        p->open[t] = d - 1 - t; /* backwards, so that of equal scores the first columns win */
        p->dist[t] = INFINITY;
    }
    *n_rows = *n_cols = 0;
    while (sink < 0) {
        const double *s = S + row * d;
        const double own = p->u[row];
        double least = INFINITY;
        int64_t at = -1;
        p->rows[(*n_rows)++] = row;
        for (int64_t t = 0; t < left; t++) {
            int64_t c = p->open[t];
            double r = reached + -s[c] - own - p->v[c];
            if (r < p->dist[c]) {
                p->from[c] = row;
                p->dist[c] = r;
            }
            if (p->dist[c] < least || (p->dist[c] == least && p->row_of[c] < 0)) {
                least = p->dist[c];
                at = t;
            }
        }
        if (at < 0) return -1; /* not finite */
        reached = least;
        int64_t c = p->open[at];
        p->cols[(*n_cols)++] = c;
        p->open[at] = p->open[--left];
        if (p->row_of[c] < 0)
            sink = c;
        else
            row = p->row_of[c];
    }
    *length = reached;
    return sink;
}

static void shortest_paths(const double *S, int64_t n, int64_t d, int64_t *columns, Paths p) {
    memset(p.u, 0, (size_t)n * 8);
    memset(p.v, 0, (size_t)d * 8);
    for (int64_t c = 0; c < d; c++) p.row_of[c] = -1;
    for (int64_t r = 0; r < n; r++) columns[r] = -1;
    for (int64_t first = 0; first < n; first++) {
        int64_t n_rows, n_cols;
        double length;
        int64_t c = nearest(S, d, first, &p, &n_rows, &n_cols, &length);
        if (c < 0) return;
        p.u[first] += length;
        for (int64_t t = 1; t < n_rows; t++) p.u[p.rows[t]] += length - p.dist[columns[p.rows[t]]];
        for (int64_t t = 0; t < n_cols; t++) p.v[p.cols[t]] -= length - p.dist[p.cols[t]];
        for (int64_t row = -1; row != first;) { /* the path changes hands */
            row = p.from[c];
            p.row_of[c] = row;
            int64_t before = columns[row];
            columns[row] = c;
            c = before;
        }
    }
}

void assign_rows(const double *S, int64_t n, int64_t d, int64_t *columns, void *work) {
    Paths p = paths_in(work, n, d);
    int contested = 0;
    for (int64_t c = 0; c < d; c++) p.row_of[c] = 0;
    for (int64_t r = 0; r < n; r++) {
        const double *s = S + r * d;
        int64_t best = 0;
        for (int64_t c = 1; c < d; c++)
            if (s[c] > s[best]) best = c;
        columns[r] = best;
        contested |= p.row_of[best]++ > 0;
    }
    if (contested) shortest_paths(S, n, d, columns, p);
}

/* Assign every row of S, (n, d), its column; 0 if it went well. */
API int assign(const double *S, int64_t n, int64_t d, int64_t *columns) {
    void *work = malloc(assign_bytes(n, d));
    if (!work) return -1;
    assign_rows(S, n, d, columns, work);
    free(work);
    return 0;
}

/* Maxima are found by four at a time, lest each comparison wait for the one before. */
#define PROJECT(NEAREST, ASSIGN, REAL)                                                             \
    /* The column of the largest entry of every row of U, (m, d), and for every object, of rows    \
       offsets[i], ..., offsets[i + 1] - 1, whether two of its rows want the same column or one of \
       them has two such entries. */                                                               \
    API int NEAREST(const REAL *U, int64_t d, const int64_t *offsets, int64_t k, int64_t *labels,  \
                    uint8_t *contested) {                                                          \
        int64_t *taken = malloc((size_t)d * 8);                                                    \
        if (!taken) return -1;                                                                     \
        for (int64_t c = 0; c < d; c++) taken[c] = -1;                                             \
        for (int64_t i = 0; i < k; i++)                                                            \
            for (int64_t a = offsets[i]; a < offsets[i + 1]; a++) {                                \
                const REAL *u = U + a * d;                                                         \
                REAL most[4] = {u[0], u[0], u[0], u[0]};                                           \
                int64_t c = 0, equal = 0, best = 0;                                                \
                for (; c + 4 <= d; c += 4)                                                         \
                    for (int t = 0; t < 4; t++) most[t] = u[c + t] > most[t] ? u[c + t] : most[t]; \
                for (; c < d; c++) most[0] = u[c] > most[0] ? u[c] : most[0];                      \
                for (int t = 1; t < 4; t++) most[0] = most[t] > most[0] ? most[t] : most[0];       \
                for (c = 0; c < d; c++) equal += u[c] == most[0];                                  \
                while (u[best] != most[0]) best++;                                                 \
                labels[a] = best;                                                                  \
                contested[i] |= equal > 1 || taken[best] == i;                                     \
                taken[best] = i;                                                                   \
            }                                                                                      \
        free(taken);                                                                               \
        return 0;                                                                                  \
    }                                                                                              \
    /* Assign the rows of some objects, (count,), columns that maximise the sum of U; ties are     \
       broken by the first in the object's order of columns, orders, (count, d). */                \
    API int ASSIGN(const REAL *U, int64_t d, const int64_t *offsets, int64_t count,                \
                   const int64_t *objects, const int64_t *orders, int64_t *labels) {               \
        double *S = malloc((size_t)(d * d) * 8 + assign_bytes(d, d));                              \
        if (!S) return -1;                                                                         \
        for (int64_t t = 0; t < count; t++, orders += d) {                                         \
            const int64_t a = offsets[objects[t]], n = offsets[objects[t] + 1] - a;                \
            for (int64_t r = 0; r < n; r++)                                                        \
                for (int64_t c = 0; c < d; c++) S[r * d + c] = (double)U[(a + r) * d + orders[c]]; \
            shortest_paths(S, n, d, labels + a, paths_in(S + d * d, n, d));                        \
            for (int64_t r = 0; r < n; r++) labels[a + r] = orders[labels[a + r]];                 \
        }                                                                                          \
        free(S);                                                                                   \
        return 0;                                                                                  \
    }
PROJECT(nearest_f32, assign_objects_f32, float)
PROJECT(nearest_f64, assign_objects_f64, double)
