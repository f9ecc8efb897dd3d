/* The tracks that might be joined, and what became of them: sync/tracks/join.py. */
#include "kernels.h"

/* Mark the tracks with `least` or more of the matches, (M, 2), between them and another one, by their names, in `involved`, (m,),
   which is zero; -1 without memory. */
static int find_involved(const int64_t *ends, int64_t M, const int64_t *track, int64_t m, int64_t least, uint8_t *involved) {
    typedef struct {
        int32_t one, two;
    } Two;
    for (int64_t e = 0; e < M && least <= 1; e++) {
        const int64_t A = track[ends[2 * e]], B = track[ends[2 * e + 1]];
        involved[A] |= A != B;
        involved[B] |= A != B;
    }
    if (least <= 1) return 0;
    Two *met = zeros_for((size_t)(m + 2 * M), sizeof(Two)); /* the row that a track was met in, plus one, and how often */
    int32_t *first = zeros_for((size_t)m + 2, 4), apart = 0;
    if (!met || !first) {
        free(met);
        free(first);
        return -1;
    }
    Two *between = met + m; /* different tracks, the smaller first */
    int32_t *other = (int32_t *)(between + M);
    for (int64_t e = 0; e < M; e++) {
        const int32_t A = (int32_t)track[ends[2 * e]], B = (int32_t)track[ends[2 * e + 1]];
        between[apart] = A < B ? (Two){A, B} : (Two){B, A};
        apart += A != B;
    }
    for (int32_t t = 0; t < apart; t++) first[between[t].one + 2]++;
    for (int64_t t = 0; t < m; t++) first[t + 2] += first[t + 1];
    for (int32_t t = 0; t < apart; t++) other[first[between[t].one + 1]++] = between[t].two;
    for (int64_t A = 0; A < m; A++)
        for (int32_t t = first[A]; t < first[A + 1]; t++) {
            Two *own = met + other[t];
            *own = (Two){(int32_t)A + 1, own->one == A + 1 ? own->two + 1 : 1};
            if (own->two >= least) involved[A] = involved[other[t]] = 1;
        }
    free(met);
    free(first);
    return 0;
}

/* Join tracks of m points, `track`, each named by one of them, along matches, (M, 2), sorted by their first ends; what loses the
   points that held it together falls apart. `objects`, (m,), `places`, (m, 2), or none. Return how often, or -1 without memory. */
API int64_t join_tracks(const int64_t *ends, const double *weights, int64_t M, int64_t *track, const int32_t *objects, int64_t m,
                        const double *places, double copy, double rounding, int64_t least, int64_t rounds) {
    uint8_t *involved = zeros_for((size_t)m, 1);
    int32_t *number = room_for((size_t)m, 4), *a, *b, *point, *here, *owner, *up; /* the number of a point among those involved */
    if (!involved || !number || find_involved(ends, M, track, m, least, involved)) {
        free(involved);
        free(number);
        return -1;
    }
    int64_t n = 0, matches = 0, k = 0, joins = -1;
    for (int64_t p = 0; p < m; p++) number[p] = involved[track[p]] ? (int32_t)n++ : -1;
    double *weight, *place;
    Room room = {0};
    for (int made = 0; made < 2; made++) {
        weight = take(&room, M + 1, 8);
        place = take(&room, places ? 2 * n : 0, 8);
        a = take(&room, M + 1, 4);
        b = take(&room, M + 1, 4);
        point = take(&room, n, 4);
        here = take(&room, n, 4);
        owner = take(&room, n, 4);
        up = take(&room, n, 4);
        if (!made) room = (Room){room_for(room.taken, 1), 0};
        if (!room.memory) break;
    }
    if (room.memory) {
        n = 0;
        for (int64_t e = 0; e < M; e++) { /* the next in the place of those that do not count */
            a[matches] = number[ends[2 * e]];
            b[matches] = number[ends[2 * e + 1]];
            weight[matches] = weights[e];
            matches += (a[matches] >= 0) & (b[matches] >= 0);
        }
        for (int64_t p = 0; p < m; p++) {
            if (number[p] < 0) continue;
            point[n] = (int32_t)p;
            here[n] = number[track[p]];
            owner[n] = objects[p];
            up[n] = (int32_t)n;
            if (places) memcpy(place + 2 * n, places + 2 * p, 16);
            k = owner[n] >= k ? owner[n] + 1 : k;
            n++;
        }
        joins = join_along(a, b, weight, matches, n, here, owner, k, places ? place : 0, copy, rounding, least, rounds);
        for (int64_t e = 0; e < matches && joins >= 0; e++)
            if (here[a[e]] == here[b[e]]) connect(up, a[e], b[e]);
        for (int64_t p = 0; p < n && joins >= 0; p++) {
            up[p] = up[up[p]]; /* the first of its piece, as that of an earlier point is */
            track[point[p]] = point[up[p]];
        }
    }
    free(room.memory);
    free(involved);
    free(number);
    return joins;
}
