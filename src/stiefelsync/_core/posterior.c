/* One sweep of Gibbs sampling over the labels of few objects, many chains: sync/likelihood/posterior.py. */
#include "kernels.h"

/* `member`, (chains, d, k), is the point that holds a label in an object, and is changed. `kinds`, (n, n), says what was
   observed about two points and `worth`, (chains, classes), what that is worth if their labels are equal. In object i of
   chain c labels order[i, c, 2x] and order[i, c, 2x + 1], those below size[c], swap if they gain more than noise[i, c, x]. */
API int sample_sweep(int64_t *member, int64_t chains, int64_t d, int64_t k, const int64_t *size, const int64_t *kinds, int64_t n,
                     const double *worth, int64_t classes, const int64_t *order, const double *noise) {
    const int64_t half = d / 2;
    double *gains = malloc((size_t)(k > 0 ? k : 1) * 8);
    if (!gains) return -1;
    for (int64_t i = 0; i < k; i++)
        for (int64_t c = 0; c < chains; c++) {
            const double *w = worth + c * classes;
            for (int64_t x = 0; x < half; x++) {
                const int64_t *pair = order + (i * chains + c) * d + 2 * x;
                if (pair[1] >= size[c]) continue;
                int64_t *A = member + (c * d + pair[0]) * k, *B = member + (c * d + pair[1]) * k;
                const int64_t *a = kinds + A[i] * n, *b = kinds + B[i] * n;
                for (int64_t j = 0; j < k; j++) gains[j] = (w[a[B[j]]] + w[b[A[j]]]) - (w[a[A[j]]] + w[b[B[j]]]);
                if (sum_of(gains, k) > noise[(i * chains + c) * half + x]) {
                    int64_t point = A[i];
                    A[i] = B[i];
                    B[i] = point;
                }
            }
        }
    free(gains);
    return 0;
}
