#include "kernels.h"

double sum_of(const double *x, int64_t n) {
    if (n < 8) {
        double total = 0.0;
        for (int64_t t = 0; t < n; t++) total += x[t];
        return total;
    }
    if (n <= 128) {
        double s[8];
        int64_t t = 8;
        for (int v = 0; v < 8; v++) s[v] = x[v];
        for (; t < n - n % 8; t += 8)
            for (int v = 0; v < 8; v++) s[v] += x[t + v];
        double total = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
        for (; t < n; t++) total += x[t];
        return total;
    }
    int64_t half = n / 2;
    half -= half % 8;
    return sum_of(x, half) + sum_of(x + half, n - half);
}
