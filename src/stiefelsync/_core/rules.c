/* Evidence for merging clusters: sync/tracks/rules.py. Edges A < B of n clusters are sorted, each
   is there once. */
#include "kernels.h"

/* Triangles through every edge; `support` is zero. */
API int count_edge_triangles(const int64_t *A, const int64_t *B, int64_t edges, int64_t n,
                             int64_t *support) {
    int32_t *first = zeros_for((size_t)(2 * n + 1 + edges), 4);
    if (!first) return -1;
    int32_t *at = first + n + 1, *end = at + n; /* the edge from the present vertex, plus one; B */
    for (int64_t e = 0; e < edges; e++) {
        first[A[e] + 1]++;
        end[e] = (int32_t)B[e];
    }
    for (int64_t v = 0; v < n; v++) first[v + 1] += first[v];
    for (int64_t v = 0; v < n; v++) {
        if (first[v + 1] - first[v] < 2) continue;
        for (int32_t e = first[v]; e < first[v + 1]; e++) at[end[e]] = e + 1;
        for (int32_t e = first[v]; e < first[v + 1]; e++) {
            if (e + 2 * AHEAD < edges) {
                PREFETCH(first + end[e + 2 * AHEAD]);
                PREFETCH(end + first[end[e + AHEAD]]);
            }
            for (int32_t f = first[end[e]]; f < first[end[e] + 1]; f++)
                if (at[end[f]]) {
                    support[e]++;
                    support[f]++;
                    support[at[end[f]] - 1]++;
                }
        }
        for (int32_t e = first[v]; e < first[v + 1]; e++) at[end[e]] = 0;
    }
    free(first);
    return 0;
}

/* The edges at every cluster: those of v are first[v], ..., each with its other end and its number.
 */
typedef struct {
    int32_t *first, *end, *edge;
} Edges;

static void find_edges(const int64_t *A, const int64_t *B, int64_t edges, int64_t n, Edges at) {
    memset(at.first, 0, (size_t)(n + 2) * 4);
    for (int64_t e = 0; e < edges; e++) {
        at.first[A[e] + 2]++;
        at.first[B[e] + 2]++;
    }
    for (int64_t v = 0; v < n; v++) at.first[v + 2] += at.first[v + 1];
    for (int64_t e = 0; e < edges; e++) {
        const int32_t one = at.first[A[e] + 1]++, two = at.first[B[e] + 1]++;
        at.end[one] = (int32_t)B[e];
        at.end[two] = (int32_t)A[e];
        at.edge[one] = at.edge[two] = (int32_t)e;
    }
}

/* Squares through every edge whose opposite clusters share no object, over clusters with at most
   `hub` edges; `support` is zero, and so are `paths`, (n,), which count those from x to each y > x.
 */
static void count_squares(Edges at, int64_t n, int64_t hub, const int64_t *objects,
                          const int64_t *start, int32_t *paths, int32_t *met, int64_t *support) {
    for (int64_t x = 0; x < n; x++) {
        int64_t ends = 0, twice = 0;
        for (int32_t s = at.first[x]; s < at.first[x + 1]; s++) {
            const int32_t c = at.end[s];
            if (at.first[c + 1] - at.first[c] > hub) continue;
            for (int32_t t = at.first[c]; t < at.first[c + 1]; t++) {
                const int32_t y = at.end[t];
                if (y <= x) continue;
                if (!paths[y]++)
                    met[ends++] = y;
                else
                    twice++;
            }
        }
        for (int64_t t = 0; twice && t < ends; t++)
            if (paths[met[t]] > 1 && share_object(objects, start, x, met[t])) paths[met[t]] = 1;
        for (int32_t s = at.first[x]; twice && s < at.first[x + 1]; s++) {
            const int32_t c = at.end[s];
            if (at.first[c + 1] - at.first[c] > hub) continue;
            for (int32_t t = at.first[c]; t < at.first[c + 1]; t++) {
                if (at.end[t] <= x) continue;
                support[at.edge[s]] += paths[at.end[t]] - 1;
                support[at.edge[t]] += paths[at.end[t]] - 1;
            }
        }
        for (int64_t t = 0; t < ends; t++) paths[met[t]] = 0;
    }
}

API int count_edge_squares(const int64_t *A, const int64_t *B, int64_t edges, int64_t n,
                           int64_t hub, const int64_t *objects, const int64_t *start,
                           int64_t *support) {
    int32_t *memory = zeros_for((size_t)(3 * n + 2 + 4 * edges), 4);
    if (!memory) return -1;
    int32_t *paths = memory, *met = paths + n, *first = met + n;
    const Edges at = {first, first + n + 2, first + n + 2 + 2 * edges};
    find_edges(A, B, edges, n, at);
    count_squares(at, n, hub, objects, start, paths, met, support);
    free(memory);
    return 0;
}

/* What edges speak for a merge by their support, weighed by how reliable the matches are. */
API void grade_support(const int64_t *support, const int64_t *count, const double *weight,
                       int64_t edges, double *gain) {
    for (int64_t e = 0; e < edges; e++) {
        const double value = (double)support[e] * (weight[e] / (double)count[e]);
        gain[e] = value / (1 + value);
    }
}

/* The same by the density of matches shared among the choices of the smaller cluster, if these are
   at most so many. */
API int weigh_choices(const int64_t *A, const int64_t *B, const double *weight, int64_t edges,
                      const int64_t *start, int64_t n, int64_t most, double *gain) {
    int32_t *degree = zeros_for((size_t)n + 1, 4);
    if (!degree) return -1;
    for (int64_t e = 0; e < edges; e++) {
        degree[A[e]]++;
        degree[B[e]]++;
    }
    for (int64_t e = 0; e < edges; e++) {
        const int64_t a = start[A[e] + 1] - start[A[e]], b = start[B[e] + 1] - start[B[e]];
        const int32_t one = degree[A[e]], two = degree[B[e]],
                      choices = a < b || (a == b && one > two) ? one : two;
        gain[e] = choices <= most ? weight[e] / (double)(a * b) / choices : 0.0;
    }
    free(degree);
    return 0;
}

/* Let edges of two matches or more come before all others, by the density of their matches. */
API void prefer_parallel(const int64_t *A, const int64_t *B, const int64_t *count,
                         const double *weight, int64_t edges, const int64_t *start, double *gain) {
    for (int64_t e = 0; e < edges; e++)
        if (count[e] >= 2)
            gain[e] = 1 + weight[e] / (double)((start[A[e] + 1] - start[A[e]]) *
                                               (start[B[e] + 1] - start[B[e]]));
}
