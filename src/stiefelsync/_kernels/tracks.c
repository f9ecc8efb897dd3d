/* Growing tracks: sync/tracks/integer_arrays.py, clusters.py and rules.py. Sums are made in the order in which NumPy makes them. */
#include "kernels.h"

/* The stable order of n entries, given in `order`, by their keys from 0 to `most`, into `sorted`; `count` has most + 2 cells. */
static void count_sort(const int64_t *key, const int32_t *order, int64_t n, int64_t most, int32_t *sorted, int32_t *count) {
    memset(count, 0, (size_t)(most + 2) * 4);
    for (int64_t t = 0; t < n; t++) count[key[t] + 1]++;
    for (int64_t c = 0; c < most; c++) count[c + 1] += count[c];
    if (order)
        for (int64_t t = 0; t < n; t++) sorted[count[key[order[t]]]++] = order[t];
    else
        for (int64_t t = 0; t < n; t++) sorted[count[key[t]]++] = (int32_t)t;
}

/* The order of n < 2^31 entries by one key, or by two (`minor` not null), keys from 0 to most[0] and to most[1]. */
API int order_by(const int64_t *major, const int64_t *minor, int64_t n, const int64_t *most, int64_t *order) {
    const int64_t larger = minor && most[1] > most[0] ? most[1] : most[0];
    int32_t *memory = malloc((size_t)(2 * n + larger + 2) * 4);
    if (!memory) return -1;
    int32_t *one = memory, *two = one + n, *count = two + n;
    if (minor) count_sort(minor, 0, n, most[1], one, count);
    count_sort(major, minor ? one : 0, n, most[0], two, count);
    for (int64_t t = 0; t < n; t++) order[t] = two[t];
    free(memory);
    return 0;
}

/* Edges between different ones of n clusters, A < B, sorted, each once, with counts and weights added up, in place. How many
   there are; -1 without memory. */
API int64_t contract_edges(int64_t *A, int64_t *B, int64_t *count, double *weight, int64_t edges, int64_t n) {
    int64_t *low = malloc((size_t)edges * 24 + 8);
    int32_t *memory = malloc((size_t)(2 * edges + n + 2) * 4);
    if (!low || !memory) {
        free(low);
        free(memory);
        return -1;
    }
    int64_t *high = low + edges, *counts = high + edges, left = 0, found = -1;
    int32_t *one = memory, *two = one + edges, *cells = two + edges;
    for (int64_t e = 0; e < edges; e++) {
        if (A[e] == B[e]) continue;
        low[left] = A[e] < B[e] ? A[e] : B[e];
        high[left] = A[e] < B[e] ? B[e] : A[e];
        counts[left] = count[e];
        weight[left++] = weight[e];
    }
    count_sort(high, 0, left, n, one, cells);
    count_sort(low, one, left, n, two, cells);
    double *weights = malloc((size_t)left * 8 + 8);
    if (weights) {
        memcpy(weights, weight, (size_t)left * 8);
        found = 0;
        for (int64_t t = 0; t < left; t++) {
            const int64_t e = two[t];
            if (found && A[found - 1] == low[e] && B[found - 1] == high[e]) {
                count[found - 1] += counts[e];
                weight[found - 1] += weights[e];
            } else {
                A[found] = low[e];
                B[found] = high[e];
                count[found] = counts[e];
                weight[found++] = weights[e];
            }
        }
    }
    free(weights);
    free(low);
    free(memory);
    return found;
}

/* Triangles through every edge A < B, sorted, of n vertices; `support` is zero. */
API int count_edge_triangles(const int64_t *A, const int64_t *B, int64_t edges, int64_t n, int64_t *support) {
    int64_t *first = calloc((size_t)(2 * n + 1), 8);
    if (!first) return -1;
    int64_t *at = first + n + 1; /* the edge from the present vertex, plus one */
    for (int64_t e = 0; e < edges; e++) first[A[e] + 1]++;
    for (int64_t v = 0; v < n; v++) first[v + 1] += first[v];
    for (int64_t v = 0; v < n; v++) {
        if (first[v + 1] - first[v] < 2) continue;
        for (int64_t e = first[v]; e < first[v + 1]; e++) at[B[e]] = e + 1;
        for (int64_t e = first[v]; e < first[v + 1]; e++)
            for (int64_t f = first[B[e]]; f < first[B[e] + 1]; f++)
                if (at[B[f]]) {
                    support[e]++;
                    support[f]++;
                    support[at[B[f]] - 1]++;
                }
        for (int64_t e = first[v]; e < first[v + 1]; e++) at[B[e]] = 0;
    }
    free(first);
    return 0;
}

/* Whether clusters A and B, (pairs,), hold points of one object. Objects of a cluster, from start on, ascend; `words` are theirs
   modulo 64, as bits. */
API void find_conflicts(const int64_t *objects, const int64_t *start, const uint64_t *words, const int64_t *A, const int64_t *B,
                        int64_t pairs, uint8_t *bad) {
    for (int64_t t = 0; t < pairs; t++) {
        bad[t] = 0;
        if (!(words[A[t]] & words[B[t]])) continue;
        int64_t a = start[A[t]], b = start[B[t]];
        while (a < start[A[t] + 1] && b < start[B[t] + 1]) {
            if (objects[a] == objects[b]) {
                bad[t] = 1;
                break;
            }
            if (objects[a] < objects[b]) a++;
            else b++;
        }
    }
}

static int64_t root_of(int64_t *tree, int64_t v) {
    int64_t root = v;
    while (tree[root] != root) root = tree[root];
    while (tree[v] != root) {
        int64_t next = tree[v];
        tree[v] = root;
        v = next;
    }
    return root;
}

/* Which of n clusters are merged, by the number of one of them, into `tree`: along the best edge of each, of positive gain;
   where that would give k objects two points, only along edges that are the best of both ends. `priority` as in clusters.py. */
API int grow_trees(const int64_t *A, const int64_t *B, const int64_t *priority, int64_t edges, const int64_t *start,
                   const int64_t *objects, int64_t n, int64_t k, int64_t *tree) {
    int64_t *memory = malloc((size_t)(5 * n + k + 2) * 8);
    if (!memory) return -1;
    int64_t *best = memory, *first = best + n, *member = first + n + 1, *seen = member + n, *pair = seen + k, *broken = pair + n;
    for (int64_t v = 0; v < n; v++) {
        best[v] = pair[v] = -1;
        tree[v] = v;
        broken[v] = 0;
    }
    for (int64_t e = 0; e < edges; e++) {
        if (priority[e] > best[A[e]]) best[A[e]] = priority[e];
        if (priority[e] > best[B[e]]) best[B[e]] = priority[e];
    }
    for (int64_t e = 0; e < edges; e++) {
        const int a = best[A[e]] == priority[e], b = best[B[e]] == priority[e];
        if (b) tree[B[e]] = A[e];
        if (a && !b) tree[A[e]] = B[e];
        if (a && b) pair[A[e]] = B[e]; /* one in every tree; its smaller end is the root */
    }
    memset(first, 0, (size_t)(n + 1) * 8);
    for (int64_t v = 0; v < n; v++) first[root_of(tree, v) + 1]++;
    for (int64_t v = 0; v < n; v++) first[v + 1] += first[v];
    for (int64_t v = 0; v < n; v++) member[first[tree[v]]++] = v; /* afterwards those of v end at first[v] */
    for (int64_t o = 0; o < k; o++) seen[o] = -1;
    for (int64_t v = 0; v < n; v++) {
        const int64_t begin = v ? first[v - 1] : 0;
        if (first[v] - begin < 2) continue;
        for (int64_t t = begin; t < first[v] && !broken[v]; t++)
            for (int64_t p = start[member[t]]; p < start[member[t] + 1]; p++) {
                if (seen[objects[p]] == v) {
                    broken[v] = 1;
                    break;
                }
                seen[objects[p]] = v;
            }
    }
    for (int64_t v = 0; v < n; v++)
        if (broken[tree[v]]) best[v] = -2;
    for (int64_t v = 0; v < n; v++)
        if (best[v] == -2) tree[v] = v;
    for (int64_t v = 0; v < n; v++)
        if (broken[v] && pair[v] >= 0) tree[pair[v]] = v;
    free(memory);
    return 0;
}
