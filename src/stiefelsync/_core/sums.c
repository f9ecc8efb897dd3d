#include "kernels.h"

double sum_of(const double *x, int64_t n) {
    double s[8] = {0}; /* lest each addition wait for the one before */
    int64_t t = 0;
    for (; t + 8 <= n; t += 8)
        for (int v = 0; v < 8; v++) s[v] += x[t + v];
    double total = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
    for (; t < n; t++) total += x[t];
    return total;
}
