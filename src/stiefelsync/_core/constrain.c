/* Joining points along edges, first come, first served, never two of one owner: sync/constraints.py. */
#include "kernels.h"

static int64_t root_of(int64_t *track, int64_t p) {
    while (track[p] != p) p = track[p] = track[track[p]];
    return p;
}

/* A point that stands for the track of every point, in `track`. The points of a track are a ring, `next`. */
API int join_in_order(const int64_t *owner, int64_t n, int64_t owners, const int64_t *ends, int64_t E, int64_t *track) {
    int64_t *next = room_for((size_t)(2 * n + owners), 8);
    if (!next) return -1;
    int64_t *count = next + n, *seen = count + n; /* points of the track; the last edge that asked about an owner */
    for (int64_t p = 0; p < n; p++) {
        track[p] = next[p] = p;
        count[p] = 1;
    }
    for (int64_t o = 0; o < owners; o++) seen[o] = -1;
    for (int64_t e = 0; e < E; e++) {
        int64_t a = root_of(track, ends[2 * e]), b = root_of(track, ends[2 * e + 1]), p;
        if (a == b) continue;
        if (count[a] < count[b]) {
            const int64_t smaller = a;
            a = b;
            b = smaller;
        }
        int shared = 0;
        p = b;
        do seen[owner[p]] = e;
        while ((p = next[p]) != b);
        p = a;
        do shared = seen[owner[p]] == e;
        while (!shared && (p = next[p]) != a);
        if (shared) continue;
        /* Two rings become one by exchanging what follows a point of each. */
        const int64_t after = next[a];
        next[a] = next[b];
        next[b] = after;
        track[b] = a;
        count[a] += count[b];
    }
    for (int64_t p = 0; p < n; p++) track[p] = root_of(track, p);
    free(next);
    return 0;
}
