/* The grids that coordinates lie on: positions/grid.py. */
#include "kernels.h"

#include <math.h>

#define DIGITS 1e6 /* gaps are rounded to so many parts of one */

/* The commonest gap between n coordinates, sorted, of equally common ones the smallest; 0 if there
   is none. There is room for n gaps, for how often each was met, and for a table of `cells`, a
   power of two and more than n, which finds them. */
ALWAYS_INLINE double commonest_gap(const double *value, int64_t n, double *gap, int32_t *times,
                                   int32_t *table, int64_t cells) {
    const uint64_t last = (uint64_t)cells - 1;
    int64_t best = -1;
    memset(table, 0, (size_t)cells * 4);
    for (int64_t t = 0; t + 1 < n; t++) gap[t] = rint((value[t + 1] - value[t]) * DIGITS);
    for (int64_t t = 0; t + 1 < n; t++) {
        if (!(value[t + 1] > value[t])) continue;
        uint64_t at = ((uint64_t)bits_of(gap[t]) * 0x9e3779b97f4a7c15u >> 40) & last;
        while (table[at] && gap[table[at] - 1] != gap[t]) at = (at + 1) & last;
        if (!table[at]) {
            table[at] = (int32_t)t + 1; /* the first of its kind stands for all */
            times[t] = 0;
        }
        const int64_t own = table[at] - 1;
        times[own]++;
        if (best < 0 || times[own] > times[best] ||
            (times[own] == times[best] && gap[own] < gap[best]))
            best = own;
    }
    return best < 0 ? 0.0 : gap[best] / DIGITS;
}

WIDE static int cells_of(int64_t groups, const int64_t *start, const double *value, double near,
                         double share, double *cell) {
    int64_t most = 0, cells = 2;
    for (int64_t g = 0; g < groups; g++)
        most = start[g + 1] - start[g] > most ? start[g + 1] - start[g] : most;
    while (cells < 2 * most) cells *= 2;
    double *gap = malloc((size_t)most * 12 + (size_t)cells * 4);
    if (!gap) return -1;
    int32_t *times = (int32_t *)(gap + most), *table = times + most;
    for (int64_t g = 0; g < groups; g++) {
        const double *own = value + start[g];
        const int64_t n = start[g + 1] - start[g];
        int64_t room = 2, on = 0;
        while (room < 2 * n) room *= 2;
        const double step = commonest_gap(own, n, gap, times, table, room);
        for (int64_t t = 0; t < n; t++) { /* or not a number */
            const double steps = (own[t] - own[0]) / step;
            on += fabs(steps - rint(steps)) < near;
        }
        cell[g] = (double)on / (double)n >= share ? step : 0.0;
    }
    free(gap);
    return 0;
}

/* The cell of every group of coordinates, (n,), sorted, those of group g from start[g] on: their
   commonest gap, if at least a `share` of them are whole multiples of it away from the first, to
   within `near` of it; else 0. */
API int find_cells(int64_t groups, const int64_t *start, const double *value, double near,
                   double share, double *cell) {
    return cells_of(groups, start, value, near, share, cell);
}
