/* The tracks that might be joined, and what became of them: sync/tracks/join.py. */
#include "kernels.h"

/* Mark the tracks with `least` or more of the matches, (M, 2), between them and another one, by
   their names, in `involved`, (m,), which is zero; -1 without memory. */
static int find_involved(const int64_t *ends, int64_t M, const int64_t *track, int64_t m,
                         int64_t least, uint8_t *involved) {
    typedef struct {
        int32_t one, two;
    } Two;
    for (int64_t e = 0; e < M && least <= 1; e++) {
        const int64_t A = track[ends[2 * e]], B = track[ends[2 * e + 1]];
        involved[A] |= A != B;
        involved[B] |= A != B;
    }
    if (least <= 1) return 0;
    Two *met =
        zeros_for((size_t)(m + 2 * M),
                  sizeof(Two)); /* the row that a track was met in, plus one, and how often */
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

/* The n points of such tracks, ascending, and the matches between them, all by their numbers among
   these. */
typedef struct {
    int32_t *point, *track, *object, *a, *b, *up;
    double *place, *weight;
    int64_t n, matches, k;
} Part;

static size_t lay_out(Part *part, int64_t n, int64_t M, int placed, char *memory) {
    Room room = {memory, 0};
    int32_t **of_points[] = {&part->point, &part->track, &part->object, &part->up};
    for (size_t t = 0; t < sizeof of_points / sizeof *of_points; t++)
        *of_points[t] = take(&room, n, 4);
    part->a = take(&room, M + 1, 4);
    part->b = take(&room, M + 1, 4);
    part->weight = take(&room, M + 1, 8);
    part->place = take(&room, placed ? 2 * n : 0, 8);
    return room.taken;
}

/* `number` is that of every point, -1 for those not involved. */
static void fill(Part *part, const int32_t *number, const int64_t *ends, const double *weights,
                 int64_t M, const int64_t *track, const int32_t *objects, int64_t m,
                 const double *places) {
    for (int64_t e = 0; e < M; e++) { /* the next is put in the place of one that does not count */
        const int32_t a = number[ends[2 * e]], b = number[ends[2 * e + 1]];
        part->a[part->matches] = a;
        part->b[part->matches] = b;
        part->weight[part->matches] = weights[e];
        part->matches += (a >= 0) & (b >= 0);
    }
    for (int64_t p = 0; p < m; p++) {
        if (number[p] < 0) continue;
        const int64_t n = part->n++;
        part->point[n] = (int32_t)p;
        part->track[n] = number[track[p]];
        part->object[n] = objects[p];
        part->up[n] = (int32_t)n;
        part->k = objects[p] >= part->k ? objects[p] + 1 : part->k;
        if (places) memcpy(part->place + 2 * n, places + 2 * p, 16);
    }
}

/* What lost the points that held it together falls apart. */
static void write_back(const Part *part, int64_t *track) {
    for (int64_t e = 0; e < part->matches; e++)
        if (part->track[part->a[e]] == part->track[part->b[e]])
            connect(part->up, part->a[e], part->b[e]);
    for (int64_t p = 0; p < part->n; p++) {
        part->up[p] =
            part->up[part->up[p]]; /* the first of its piece, as that of an earlier point is */
        track[part->point[p]] = part->point[part->up[p]];
    }
}

/* Join tracks of m points, `track`, each named by one of them, along matches, (M, 2), sorted by
   their first ends, where `least` or more are between two; `objects`, (m,), `places`, (m, 2), or
   none. Return how often, or -1 without memory. */
API int64_t join_tracks(const int64_t *ends, const double *weights, int64_t M, int64_t *track,
                        const int32_t *objects, int64_t m, const double *places, double copy,
                        double rounding, int64_t least, int64_t rounds) {
    uint8_t *involved = zeros_for((size_t)m, 1);
    int32_t *number = room_for((size_t)m, 4);
    char *memory = 0;
    Part part = {0};
    int64_t n = 0, joins = -1;
    if (involved && number && !find_involved(ends, M, track, m, least, involved)) {
        for (int64_t p = 0; p < m; p++) number[p] = involved[track[p]] ? (int32_t)n++ : -1;
        memory = room_for(lay_out(&part, n, M, places != 0, 0), 1);
    }
    if (memory) {
        lay_out(&part, n, M, places != 0, memory);
        fill(&part, number, ends, weights, M, track, objects, m, places);
        joins = join_along(part.a, part.b, part.weight, part.matches, n, part.track, part.object,
                           part.k, places ? part.place : 0, copy, rounding, least, rounds);
    }
    if (joins >= 0) write_back(&part, track);
    free(memory);
    free(number);
    free(involved);
    return joins;
}
