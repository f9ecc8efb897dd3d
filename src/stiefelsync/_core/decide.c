/* Labels of largest expected fscore, from samples: sync/likelihood/decision.py. */
#include "kernels.h"

/* Group the points of every sample by label: `start`, (samples, m + 1), and `members`, (samples,
 * m). Labels are below m. */
API void group_samples(int64_t samples, int64_t m, const int32_t *label, int32_t *start,
                       int32_t *members) {
    for (int64_t s = 0; s < samples; s++) {
        const int32_t *L = label + s * m;
        int32_t *first = start + s * (m + 1), *member = members + s * m;
        memset(first, 0, (size_t)(m + 1) * 4);
        for (int64_t a = 0; a < m; a++) first[L[a] + 1]++;
        for (int64_t c = 0; c < m; c++) first[c + 1] += first[c];
        for (int64_t a = 0; a < m; a++) member[first[L[a]]++] = (int32_t)a;
        for (int64_t c = m; c > 0; c--) first[c] = first[c - 1];
        first[0] = 0;
    }
}

/* Count pairs of points with equal labels in a sample and in an answer, (m,), -1 for none, over all
 * samples. */
API int64_t count_shared(int64_t samples, int64_t m, const int32_t *start, const int32_t *members,
                         const int64_t *answer) {
    int64_t *count = zeros_for((size_t)m + 1, 8), total = 0;
    if (!count) return -1;
    for (int64_t s = 0; s < samples; s++)
        for (int64_t c = 0; c < m; c++) {
            const int32_t *member = members + s * m, *first = start + s * (m + 1) + c;
            for (int64_t x = first[0]; x < first[1]; x++)
                if (answer[member[x]] >= 0) total += count[answer[member[x]]]++;
            for (int64_t x = first[0]; x < first[1]; x++)
                if (answer[member[x]] >= 0) count[answer[member[x]]] = 0;
        }
    free(count);
    return total;
}

/* One pass over all objects: each point goes to the cluster, or none, where it gains most: shares
   of the samples in which members have its label, less `price` for every member. Clusters are
   numbered below m; new ones are begun for points left alone. At most `most` clusters. Returns how
   many points moved, or -1. */
API int64_t decide_sweep(int64_t k, int64_t m, const int64_t *offsets, int64_t samples,
                         const int32_t *label, const int32_t *start, const int32_t *members,
                         double price, int64_t *answer, int64_t most) {
    int64_t largest = 0, moved = 0, used = 0;
    for (int64_t i = 0; i < k; i++)
        largest = offsets[i + 1] - offsets[i] > largest ? offsets[i + 1] - offsets[i] : largest;
    int64_t *size = zeros_for((size_t)m, 8), *column = room_for((size_t)m, 8),
            *cluster = room_for((size_t)m, 8);
    int64_t *chosen = room_for((size_t)largest + 1, 8), *touched = room_for((size_t)m, 8);
    int32_t *count = zeros_for((size_t)m, 4);
    double *S = 0;
    void *work = 0;
    size_t room = 0, bytes = 0;
    if (!size || !column || !cluster || !chosen || !touched || !count) moved = -1;
    for (int64_t a = 0; moved >= 0 && a < m; a++)
        if (answer[a] >= 0) used += size[answer[a]]++ == 0;
    for (int64_t c = 0; moved >= 0 && c < m; c++) column[c] = -1;
    int64_t fresh = 0;
    for (int64_t i = 0; moved >= 0 && i < k; i++) {
        const int64_t first = offsets[i], n = offsets[i + 1] - first;
        if (n == 0) continue;
        for (int64_t a = first; a < first + n; a++)
            if (answer[a] >= 0) used -= --size[answer[a]] == 0;
        /* Twice: clusters that any point gains by joining, then how much. */
        int64_t columns = 0;
        double *row = 0;
        for (int pass = 0; pass < 2; pass++) {
            if (pass == 1) {
                const int64_t wide = columns + n;
                const size_t needed = assign_bytes(n, wide);
                if ((size_t)(n * wide) > room) {
                    free(S);
                    room = (size_t)(n * wide) * 3 / 2;
                    S = malloc(room * 8);
                }
                if (needed > bytes) {
                    free(work);
                    bytes = needed * 3 / 2;
                    work = malloc(bytes);
                }
                if (!S || !work) {
                    moved = -1;
                    break;
                }
                memset(S, 0, (size_t)(n * wide) * 8);
            }
            for (int64_t a = first; a < first + n; a++) {
                int64_t found = 0;
                if (pass == 1) row = S + (a - first) * (columns + n);
                for (int64_t s = 0; s < samples; s++) {
                    const int32_t *from = start + s * (m + 1) + label[s * m + a],
                                  *member = members + s * m;
                    for (int64_t x = from[0]; x < from[1]; x++) {
                        const int64_t b = member[x], c = answer[b];
                        if (c < 0 || (b >= first && b < first + n)) continue;
                        if (count[c]++ == 0) touched[found++] = c;
                    }
                }
                for (int64_t x = 0; x < found; x++) {
                    const int64_t c = touched[x];
                    const double gain =
                        (double)count[c] / (double)samples - price * (double)size[c];
                    count[c] = 0;
                    if (gain <= 0.0) continue;
                    if (pass == 0) {
                        if (column[c] < 0) {
                            column[c] = columns;
                            cluster[columns++] = c;
                        }
                    } else {
                        row[column[c]] = gain;
                    }
                }
            }
        }
        if (moved < 0) break;
        assign_rows(S, n, columns + n, chosen, work);
        for (int64_t x = 0; x < n; x++) {
            const int64_t a = first + x, before = answer[a], at = chosen[x];
            if (at >= 0 && at < columns && S[x * (columns + n) + at] > 0.0) {
                answer[a] = cluster[at];
            } else if (used < most) {
                if (before < 0 || size[before] > 0) {
                    for (int64_t t = 0; t < m && size[fresh] > 0; t++) fresh = (fresh + 1) % m;
                    answer[a] = fresh;
                }
            } else {
                answer[a] = -1;
            }
            if (answer[a] >= 0) used += size[answer[a]]++ == 0;
            moved += answer[a] != before;
        }
        for (int64_t x = 0; x < columns; x++) column[cluster[x]] = -1;
    }
    free(size);
    free(column);
    free(cluster);
    free(chosen);
    free(touched);
    free(count);
    free(S);
    free(work);
    return moved;
}
