/* Growing tracks: sync/tracks/integer_arrays.py, clusters.py and rules.py. Sums are made in the order in which NumPy makes them. */
#include "kernels.h"

/* The stable order of n entries, given in `order`, by their keys from 0 to `most`, into `sorted`; `count` has most + 2 cells. */
#define COUNT_SORT(NAME, KEY)                                                                                               \
    static void NAME(const KEY *key, const int32_t *order, int64_t n, int64_t most, int32_t *sorted, int32_t *count) {      \
        memset(count, 0, (size_t)(most + 2) * 4);                                                                           \
        for (int64_t t = 0; t < n; t++) count[key[t] + 1]++;                                                                \
        for (int64_t c = 0; c < most; c++) count[c + 1] += count[c];                                                        \
        if (order)                                                                                                          \
            for (int64_t t = 0; t < n; t++) sorted[count[key[order[t]]]++] = order[t];                                      \
        else                                                                                                                \
            for (int64_t t = 0; t < n; t++) sorted[count[key[t]]++] = (int32_t)t;                                           \
    }
COUNT_SORT(count_sort, int64_t)
COUNT_SORT(sort_cells, int32_t)

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

/* Edges between different ones of n clusters, A < B, sorted, each once, with counts and weights added up. Those given are A and
   B, or name[A] and name[B] if there are names. How many there are; -1 without memory. */
API int64_t contract_edges(const int64_t *from, const int64_t *to, const int64_t *name, const int64_t *given,
                           const double *weighs, int64_t edges, int64_t n, int64_t *A, int64_t *B, int64_t *count,
                           double *weight) {
    int32_t *memory = malloc((size_t)(5 * edges + n + 2) * 4);
    if (!memory) return -1;
    int32_t *low = memory, *high = low + edges, *which = high + edges, *one = which + edges, *two = one + edges;
    int32_t *cells = two + edges;
    int64_t left = 0, found = 0;
    for (int64_t e = 0; e < edges; e++) {
        const int64_t a = name ? name[from[e]] : from[e], b = name ? name[to[e]] : to[e];
        if (a == b) continue;
        low[left] = (int32_t)(a < b ? a : b);
        high[left] = (int32_t)(a < b ? b : a);
        which[left++] = (int32_t)e;
    }
    sort_cells(high, 0, left, n, one, cells);
    sort_cells(low, one, left, n, two, cells);
    for (int64_t t = 0; t < left; t++) {
        const int32_t x = two[t], e = which[x];
        if (found && A[found - 1] == low[x] && B[found - 1] == high[x]) {
            count[found - 1] += given[e];
            weight[found - 1] += weighs[e];
        } else {
            A[found] = low[x];
            B[found] = high[x];
            count[found] = given[e];
            weight[found++] = weighs[e];
        }
    }
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

/* Drop the edges between clusters in conflict, one of them fresh, and then the clusters without an edge: what is left goes into
   the `new` arrays, the points of the others, and the first point of each one's cluster, into `done` and `first`. `left` are
   clusters, edges and points that are left; -1 without memory. */
API int prune_clusters(const int64_t *points, const int64_t *objects, const int64_t *start, int64_t n, const int64_t *A,
                       const int64_t *B, const int64_t *count, const double *weight, int64_t edges, const uint8_t *fresh,
                       int64_t *new_points, int64_t *new_objects, int64_t *new_start, int64_t *new_A, int64_t *new_B,
                       int64_t *new_count, double *new_weight, int64_t *done, int64_t *first, int64_t *left) {
    uint64_t *words = calloc((size_t)n + 1, 16);
    if (!words) return -1;
    int64_t *place = (int64_t *)(words + n), clusters = 0, kept = 0, stay = 0, gone = 0;
    for (int64_t v = 0; v < n; v++)
        for (int64_t p = start[v]; p < start[v + 1]; p++) words[v] |= (uint64_t)1 << (objects[p] & 63);
    for (int64_t e = 0; e < edges; e++) {
        uint8_t bad = 0;
        if (fresh[A[e]] | fresh[B[e]]) find_conflicts(objects, start, words, A + e, B + e, 1, &bad);
        if (bad) continue;
        place[A[e]] = place[B[e]] = 1;
        new_A[kept] = A[e];
        new_B[kept] = B[e];
        new_count[kept] = count[e];
        new_weight[kept++] = weight[e];
    }
    for (int64_t v = 0; v < n; v++) {
        if (place[v]) {
            place[v] = clusters;
            new_start[clusters++] = stay;
        } else place[v] = -1;
        for (int64_t p = start[v]; p < start[v + 1]; p++)
            if (place[v] >= 0) {
                new_points[stay] = points[p];
                new_objects[stay++] = objects[p];
            } else {
                done[gone] = points[p];
                first[gone++] = points[start[v]];
            }
    }
    new_start[clusters] = stay;
    for (int64_t e = 0; e < kept; e++) {
        new_A[e] = place[new_A[e]];
        new_B[e] = place[new_B[e]];
    }
    left[0] = clusters;
    left[1] = kept;
    left[2] = stay;
    free(words);
    return 0;
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

/* Number the trees of n clusters from 0 in the order in which they first appear, in place; how many there are. */
static int64_t number_trees(int64_t *tree, int64_t n, int64_t *name) {
    int64_t found = 0;
    for (int64_t v = 0; v < n; v++) name[v] = -1;
    for (int64_t v = 0; v < n; v++)
        if (name[tree[v]] < 0) name[tree[v]] = found++;
    for (int64_t v = 0; v < n; v++) tree[v] = name[tree[v]];
    return found;
}

/* The points of n clusters, from start on, cluster after cluster of the trees they are merged into and by object within: into
   `new_points`, `new_objects` and `new_start`. `tree`, one of the clusters of each tree, is numbered from 0, `inside` counts the
   clusters of each; how many trees there are, -1 without memory. */
API int64_t merge_points(int64_t *tree, int64_t n, const int64_t *start, const int64_t *points, const int64_t *objects,
                         int64_t *new_points, int64_t *new_objects, int64_t *new_start, int64_t *inside) {
    int64_t *at = malloc((size_t)(n + 1) * 8);
    if (!at) return -1;
    const int64_t trees = number_trees(tree, n, at);
    memset(new_start, 0, (size_t)(trees + 1) * 8);
    memset(inside, 0, (size_t)trees * 8);
    for (int64_t v = 0; v < n; v++) {
        new_start[tree[v] + 1] += start[v + 1] - start[v];
        inside[tree[v]]++;
    }
    for (int64_t t = 0; t < trees; t++) new_start[t + 1] += new_start[t];
    memcpy(at, new_start, (size_t)trees * 8);
    for (int64_t v = 0; v < n; v++) {
        const int64_t t = tree[v];
        for (int64_t p = start[v]; p < start[v + 1]; p++) {
            int64_t to = at[t]++;
            for (; to > new_start[t] && new_objects[to - 1] > objects[p]; to--) {
                new_objects[to] = new_objects[to - 1];
                new_points[to] = new_points[to - 1];
            }
            new_objects[to] = objects[p];
            new_points[to] = points[p];
        }
    }
    free(at);
    return trees;
}

/* What comes first, as in clusters.py: by gain, then by a shuffled number among those with a gain; -2 for the others. */
static void set_priority(const double *gain, int64_t edges, int64_t *priority) {
    int64_t number = 0;
    for (int64_t e = 0; e < edges; e++) {
        const float value = (float)gain[e];
        int32_t bits;
        memcpy(&bits, &value, 4);
        priority[e] = gain[e] > 0 ? (int64_t)bits << 31 | ((number++ * 2654435761) & 0x7fffffff) : -2;
    }
}

/* Which of n clusters are merged, by the number of one of them, into `tree`: along the best edge of each, of positive gain;
   where that would give k objects two points, only along edges that are the best of both ends. */
API int grow_trees(const int64_t *A, const int64_t *B, const double *gain, int64_t edges, const int64_t *start,
                   const int64_t *objects, int64_t n, int64_t k, int64_t *tree) {
    int64_t *memory = malloc((size_t)(5 * n + k + edges + 2) * 8);
    if (!memory) return -1;
    int64_t *best = memory, *first = best + n, *member = first + n + 1, *seen = member + n, *pair = seen + k, *broken = pair + n;
    int64_t *priority = broken + n;
    set_priority(gain, edges, priority);
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
