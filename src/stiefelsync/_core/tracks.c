/* Growing tracks: sync/tracks/integer_arrays.py, clusters.py and rules.py. */
#include "kernels.h"

/* The stable order of n entries, given in `order`, by their keys from 0 to `most`, into `sorted`;
   `count` has most + 2 cells. */
#define COUNT_SORT(NAME, KEY)                                                                      \
    static void NAME(const KEY *key, const int32_t *order, int64_t n, int64_t most,                \
                     int32_t *sorted, int32_t *count) {                                            \
        memset(count, 0, (size_t)(most + 2) * 4);                                                  \
        for (int64_t t = 0; t < n; t++) count[key[t] + 1]++;                                       \
        for (int64_t c = 0; c < most; c++) count[c + 1] += count[c];                               \
        if (order)                                                                                 \
            for (int64_t t = 0; t < n; t++) sorted[count[key[order[t]]]++] = order[t];             \
        else                                                                                       \
            for (int64_t t = 0; t < n; t++) sorted[count[key[t]]++] = (int32_t)t;                  \
    }
COUNT_SORT(count_sort, int64_t)
COUNT_SORT(sort_cells, int32_t)

/* The order of n < 2^31 entries by one key, or by two (`minor` not null), keys from 0 to most[0]
   and to most[1]. */
API int order_by(const int64_t *major, const int64_t *minor, int64_t n, const int64_t *most,
                 int64_t *order) {
    const int64_t larger = minor && most[1] > most[0] ? most[1] : most[0];
    int32_t *memory = room_for((size_t)(2 * n + larger + 2), 4);
    if (!memory) return -1;
    int32_t *one = memory, *two = one + n, *count = two + n;
    if (minor) count_sort(minor, 0, n, most[1], one, count);
    count_sort(major, minor ? one : 0, n, most[0], two, count);
    for (int64_t t = 0; t < n; t++) order[t] = two[t];
    free(memory);
    return 0;
}

/* The matches, (M, 2), of chosen ones of m points, sorted by their first points, into `sorted` and
   their numbers into `order`; how many they are, -1 without memory. Second points come as they
   stand; `rising` says whether these ascend. */
API int64_t sort_matches(const int64_t *ends, int64_t M, const uint8_t *chosen, int64_t m,
                         int64_t *sorted, int64_t *order, uint8_t *rising) {
    typedef struct {
        int32_t place, last;
    } Row;
    Row *row = zeros_for((size_t)m + 2, sizeof(Row));
    if (!row) return -1;
    *rising = 1;
    for (int64_t e = 0; e < M; e++) row[ends[2 * e] + 2].place += chosen[ends[2 * e]];
    for (int64_t v = 0; v < m; v++) row[v + 2].place += row[v + 1].place;
    for (int64_t e = 0; e < M; e++) {
        const int64_t a = ends[2 * e], b = ends[2 * e + 1];
        if (!chosen[a]) continue;
        Row *own = row + a + 1;
        if (b < own->last) *rising = 0;
        own->last = (int32_t)b;
        sorted[2 * own->place] = a;
        sorted[2 * own->place + 1] = b;
        order[own->place++] = e;
    }
    const int64_t found = row[m].place;
    free(row);
    return found;
}

/* Edges between different ones of n clusters, A < B, sorted, each once, with counts and weights
   added up. How many there are; -1 without memory. */
API int64_t contract_edges(const int64_t *tails, const int64_t *heads, const int64_t *given,
                           const double *weighs, int64_t edges, int64_t n, int64_t *A, int64_t *B,
                           int64_t *count, double *weight) {
    int32_t *memory = room_for((size_t)(5 * edges + n + 2), 4);
    if (!memory) return -1;
    int32_t *low = memory, *high = low + edges, *which = high + edges, *one = which + edges,
            *two = one + edges;
    int32_t *cells = two + edges;
    int64_t left = 0, found = 0;
    for (int64_t e = 0; e < edges; e++) {
        const int64_t a = tails[e], b = heads[e];
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

int share_object(const int64_t *objects, const int64_t *start, int64_t A, int64_t B) {
    int64_t a = start[A], b = start[B];
    while (a < start[A + 1] && b < start[B + 1]) {
        if (objects[a] == objects[b]) return 1;
        if (objects[a] < objects[b])
            a++;
        else
            b++;
    }
    return 0;
}

/* Whether clusters A and B, (pairs,), hold points of one object. Objects of a cluster, from start
   on, ascend; `words` are theirs modulo 64, as bits. */
API void find_conflicts(const int64_t *objects, const int64_t *start, const uint64_t *words,
                        const int64_t *A, const int64_t *B, int64_t pairs, uint8_t *bad) {
    for (int64_t t = 0; t < pairs; t++)
        bad[t] = (words[A[t]] & words[B[t]]) && share_object(objects, start, A[t], B[t]);
}

/* The first of the points that matches, (M, 2), connect with each of m points inside its label, -1
   being none, into `first`. If `counts`, (M,), is not null, only those matches do. */
API int find_parts(const int64_t *label, int64_t m, const int64_t *ends, int64_t M,
                   const uint8_t *counts, int64_t *first) {
    int32_t *up = room_for((size_t)m, 4); /* a point of the same piece, no later one */
    if (!up) return -1;
    for (int64_t p = 0; p < m; p++) up[p] = (int32_t)p;
    for (int64_t e = 0; e < M; e++) {
        const int64_t a = ends[2 * e], b = ends[2 * e + 1];
        if (label[a] == label[b] && label[a] >= 0 && (!counts || counts[e]))
            connect(up, (int32_t)a, (int32_t)b);
    }
    for (int64_t p = 0; p < m; p++) first[p] = up[p] == p ? p : first[up[p]];
    free(up);
    return 0;
}

/* How much more weight of matches, (M, 2), other tracks of m points keep than these do, of every
   component, by its name: `gain`, (m,), which is zero. */
API void compare_tracks(const int64_t *ends, const double *weights, int64_t M, const int64_t *other,
                        const int64_t *track, const int64_t *component, double *gain) {
    for (int64_t e = 0; e < M; e++) {
        const int64_t a = ends[2 * e], b = ends[2 * e + 1];
        gain[component[a]] +=
            weights[e] * (double)((other[a] == other[b]) - (track[a] == track[b]));
    }
}

/* Which matches, (M, 2), join points of the same label, none being negative. */
API int find_agreeing(const int64_t *ends, int64_t M, const int64_t *labels, uint8_t *agree) {
    for (int64_t e = 0; e < M; e++) {
        const int64_t a = labels[ends[2 * e]];
        agree[e] = (a == labels[ends[2 * e + 1]]) & (a >= 0);
    }
    return 0;
}

/* Which components, by name, hold two of m points of one object; objects ascend, `last`, (m,), is
   -1, and `broken` zero. */
API void find_broken_components(const int64_t *component, const int32_t *objects, int64_t m,
                                int32_t *last, uint8_t *broken) {
    for (int64_t p = 0; p < m; p++) {
        const int64_t c = component[p];
        broken[c] |= last[c] == objects[p];
        last[c] = objects[p];
    }
}
