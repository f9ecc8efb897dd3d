/* How likely matches are wrong, by the level of their support: positions/doubt.py. */
#include "kernels.h"

#include <math.h>

#define BLOCK 64 /* matches at a time */

WIDE static void grade(int64_t M, const double *support, int64_t n, const double *borders,
                       const uint8_t *speak, const uint8_t *kept, uint8_t *level, int64_t *counts) {
    for (int64_t first = 0; first < M; first += BLOCK) {
        const int64_t count = M - first < BLOCK ? M - first : BLOCK;
        double own[BLOCK] = {0};
        int64_t reached[BLOCK] = {0};
        memcpy(own, support + first, (size_t)count * 8);
        for (int64_t s = 0; s < n; s++)
            for (int c = 0; c < BLOCK; c++) reached[c] += own[c] >= borders[s];
        for (int c = 0; c < BLOCK; c++) reached[c] = own[c] > 0 ? reached[c] : n + 1;
        for (int c = 0; c < BLOCK; c++)
            reached[c] = own[c] - own[c] == 0 ? reached[c] : n + 2; /* not a number, or infinite */
        for (int64_t c = 0; c < count; c++) {
            level[first + c] = (uint8_t)reached[c];
            counts[4 * reached[c] + 2 * speak[first + c] + !kept[first + c]]++;
        }
    }
}

/* The level, (M,), of every support, (M,): how many of the n `borders` it has reached; n + 1 for
   none, n + 2 where unknown. Count matches by level, whether they `speak`, and whether they are not
   `kept`: `counts`, (n + 3, 2, 2), is zero. */
API int grade_matches(int64_t M, const double *support, int64_t n, const double *borders,
                      const uint8_t *speak, const uint8_t *kept, uint8_t *level, int64_t *counts) {
    grade(M, support, n, borders, speak, kept, level, counts);
    return 0;
}

/* The sums of the values of levels of every pair's matches. */
API int sum_levels(int64_t pairs, const int64_t *start, const uint8_t *level, const double *value,
                   double *sums) {
    for (int64_t g = 0; g < pairs; g++) {
        double sum = 0.0;
        for (int64_t e = start[g]; e < start[g + 1]; e++) sum += value[level[e]];
        sums[g] = sum;
    }
    return 0;
}

/* The odds, (M,), of every match: the value of its level times the factor of its pair, infinite
   where not kept. */
API int spread_odds(int64_t pairs, const int64_t *start, const uint8_t *level, const double *value,
                    const double *factor, const uint8_t *kept, double *odds) {
    for (int64_t g = 0; g < pairs; g++)
        for (int64_t e = start[g]; e < start[g + 1]; e++) {
            const int64_t mask = -(int64_t)kept[e]; /* a branch could not be foreseen */
            odds[e] = of_bits((bits_of(value[level[e]] * factor[g]) & mask) |
                              (bits_of(INFINITY) & ~mask));
        }
    return 0;
}

/* Lower the odds, (M,), by those who agree, (M,): `lower`, (most + 1,), is by how much. */
API int lower_odds(int64_t M, const int32_t *agree, int64_t most, const double *lower,
                   double *odds) {
    for (int64_t e = 0; e < M; e++) odds[e] *= lower[agree[e] < most ? agree[e] : most];
    return 0;
}

/* The sums of the probabilities, by their odds, of those of every pair's matches that count, and
   how many these are. */
API int sum_probabilities(int64_t pairs, const int64_t *start, const double *odds,
                          const uint8_t *which, double *sums, int64_t *counts) {
    for (int64_t g = 0; g < pairs; g++) {
        double sum = 0.0;
        int64_t count = 0;
        for (int64_t e = start[g]; e < start[g + 1]; e++) {
            sum += of_bits(bits_of(1 - 1 / (1 + odds[e])) & -(int64_t)which[e]);
            count += which[e];
        }
        sums[g] = sum;
        counts[g] = count;
    }
    return 0;
}
