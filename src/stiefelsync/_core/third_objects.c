/* What third objects say of every match: positions/doubt.py. */
#include "kernels.h"

typedef struct {
    int32_t point, object;
} Partner;

/* From how many there are of each i, at first[i + 2], to where the first of each i is to be put, at
   first[i + 1]. Once all are, that is where those of i + 1 begin. */
static void to_starts(int32_t *first, int64_t n) {
    for (int64_t i = 0; i < n; i++) first[i + 2] += first[i + 1];
}

/* For every match of the points x and y the third objects in which both have a partner, the same
   one (agree) or not (differ), and those, compared with both, in which only one has (silent).
   `ends`, (M, 2), pair of objects after pair, those of pair g, (pairs, 2), from start[g] on;
   `kept`, (M,), are the matches that count, and pairs without any do not; of these the `asked`,
   (M,), get an answer; `agree` and the others are (M,), and zero. 2M < 2^31. */
API int ask_witnesses(int64_t k, int64_t m, int64_t pairs, const int32_t *pair,
                      const int64_t *start, const int64_t *ends, const uint8_t *kept,
                      const uint8_t *asked, int32_t *agree, int32_t *differ, int32_t *silent) {
    uint64_t *memory =
        zeros_for((size_t)(k + start[pairs] * 2 + (m + 2 + k + 2 + 2 * pairs + 2 * k + 1) / 2), 8);
    if (!memory) return -1;
    uint64_t *met =
        memory; /* the match, plus one, that met an object last, and the partner it has there */
    Partner *partner = (Partner *)(met + k);
    int32_t *first = (int32_t *)(partner + 2 * start[pairs]), *begin = first + m + 2,
            *other = begin + k + 2;
    int32_t *known[2] = {other + 2 * pairs, other + 2 * pairs + k};
    for (int64_t e = 0; e < start[pairs]; e++)
        for (int side = 0; side < 2; side++) first[ends[2 * e + side] + 2] += kept[e];
    for (int64_t g = 0; g < pairs; g++)
        for (int side = 0;
             side < 2 && memchr(kept + start[g], 1, (size_t)(start[g + 1] - start[g])); side++)
            begin[pair[2 * g + side] + 2]++;
    to_starts(first, m);
    to_starts(begin, k);
    for (int64_t g = 0; g < pairs; g++) {
        int any = 0;
        for (int64_t e = start[g]; e < start[g + 1]; e++)
            for (int side = 0; side < 2 && kept[e]; side++, any = 1)
                partner[first[ends[2 * e + side] + 1]++] =
                    (Partner){(int32_t)ends[2 * e + 1 - side], pair[2 * g + 1 - side]};
        for (int side = 0; side < 2 && any; side++)
            other[begin[pair[2 * g + side] + 1]++] = pair[2 * g + 1 - side];
    }
    for (int64_t g = 0; g < pairs; g++) {
        const int32_t own = (int32_t)g + 1; /* marks objects compared with these two */
        for (int side = 0; side < 2; side++)
            for (int32_t t = begin[pair[2 * g + side]]; t < begin[pair[2 * g + side] + 1]; t++)
                known[side][other[t]] = own;
        for (int64_t e = start[g]; e < start[g + 1]; e++) {
            if (e + AHEAD < start[pairs]) PREFETCH(partner + first[ends[2 * (e + AHEAD) + 1]]);
            if (!(kept[e] & asked[e])) continue;
            const int64_t x = ends[2 * e], y = ends[2 * e + 1];
            const uint64_t now = (uint64_t)(e + 1) << 32;
            int32_t both = 0, same = 0, compared = 0;
            for (int32_t t = first[y]; t < first[y + 1];
                 t++) { /* x among them, in an object not compared with itself */
                met[partner[t].object] = now | (uint64_t)partner[t].point;
                compared += known[0][partner[t].object] == own;
            }
            for (int32_t t = first[x]; t < first[x + 1]; t++) {
                const uint64_t there = met[partner[t].object];
                both += there >= now;
                same += there == (now | (uint64_t)partner[t].point);
                compared += (there < now) & (known[1][partner[t].object] == own);
            }
            agree[e] = same;
            differ[e] = both - same;
            silent[e] = compared - both; /* those of y's that x has, too, were counted */
        }
    }
    free(memory);
    return 0;
}

/* Whether both ends, (M, 2), of every match have other matches among those kept, (M,). `degree`,
   (m,), is zero. */
API int have_others(int64_t M, const int64_t *ends, const uint8_t *kept, int32_t *degree,
                    uint8_t *others) {
    for (int64_t e = 0; e < 2 * M; e++) degree[ends[e]] += kept[e / 2];
    for (int64_t e = 0; e < M; e++)
        others[e] = (degree[ends[2 * e]] > kept[e]) & (degree[ends[2 * e + 1]] > kept[e]);
    return 0;
}
