/* Rows of scale * (W + diagonal) U - onto, W in CSR. Columns of U are copied, some at a time, to
   where they lie close together: 128 bytes of a row, so that those of several thousand rows stay in
   the second-level cache. Every sum is made in registers, in the order of W's columns, whatever the
   width of registers. */
#include "kernels.h"

#define PANEL_BYTES 128
#define LINE 64 /* bytes that are fetched at a time */
#define SOON                                                                                       \
    20 /* entries from now on: their rows of the panel are asked for, into the second-level cache, \
          … */
#define CACHED (1 << 20) /* … unless the whole panel is there */

#define PANEL(NAME, REAL, LANES, N)                                                                \
    ALWAYS_INLINE void NAME##_rows(                                                                \
        const int32_t *indptr, const int32_t *indices, const REAL *data, const REAL *panel,        \
        int64_t first, int64_t last, REAL *out, int64_t c, int64_t width, const REAL *diagonal,    \
        const REAL *onto, REAL scale, const int ahead) {                                           \
        const int64_t room = N * sizeof(LANES) / sizeof(REAL);                                     \
        for (int64_t r = first; r < last; r++) {                                                   \
            union {                                                                                \
                LANES lanes[N];                                                                    \
                REAL each[N * sizeof(LANES) / sizeof(REAL)];                                       \
            } sum;                                                                                 \
            LANES s[N];                                                                            \
            for (int x = 0; x < N; x++) s[x] = (LANES){0};                                         \
            for (int x = 0; x <= PANEL_BYTES && ahead; x += LINE)                                  \
                __builtin_prefetch((const char *)(out + (r + 1) * c) + x, 1, 2);                   \
            for (int32_t e = indptr[r]; e < indptr[r + 1]; e++) {                                  \
                const LANES *u = (const LANES *)panel + (int64_t)indices[e] * N;                   \
                const REAL w = data[e];                                                            \
                for (size_t x = 0; x < N && ahead; x += LINE / sizeof(LANES))                      \
                    __builtin_prefetch((const LANES *)panel + (int64_t)indices[e + ahead] * N + x, \
                                       0, 2);                                                      \
                for (int x = 0; x < N; x++) s[x] += w * u[x];                                      \
            }                                                                                      \
            for (int x = 0; x < N; x++) sum.lanes[x] = s[x];                                       \
            for (int64_t t = 0; t < width; t++) {                                                  \
                REAL value = sum.each[t];                                                          \
                if (diagonal) value += diagonal[r] * panel[r * room + t];                          \
                if (onto) value = value * scale - onto[r * c + t];                                 \
                out[r * c + t] = value;                                                            \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    WIDE static void NAME(const int32_t *indptr, const int32_t *indices, const REAL *data,         \
                          const REAL *panel, int64_t first, int64_t last, REAL *out, int64_t c,    \
                          int64_t width, const REAL *diagonal, const REAL *onto, REAL scale,       \
                          int64_t far) {                                                           \
        NAME##_rows(indptr, indices, data, panel, first, far, out, c, width, diagonal, onto,       \
                    scale, SOON);                                                                  \
        NAME##_rows(indptr, indices, data, panel, far, last, out, c, width, diagonal, onto, scale, \
                    0);                                                                            \
    }

#define PRODUCT(NAME, REAL, LANES, FULL, HALF)                                                     \
    API int NAME(const int32_t *indptr, const int32_t *indices, const REAL *data, int64_t m,       \
                 const REAL *U, int64_t c, REAL *out, int64_t first, int64_t last,                 \
                 const REAL *diagonal, const REAL *onto, double scale) {                           \
        const int64_t full = PANEL_BYTES / sizeof(REAL), half = full / 2;                          \
        char *memory = malloc((size_t)(m + 1) * PANEL_BYTES);                                      \
        if (!memory) return -1;                                                                    \
        REAL *panel = (REAL *)(((uintptr_t)memory + PANEL_BYTES - 1) &                             \
                               ~(uintptr_t)(PANEL_BYTES - 1)); /* whole lines */                   \
        int64_t far = m * PANEL_BYTES > CACHED                                                     \
                          ? last                                                                   \
                          : first; /* rows from here on are too near the end to look ahead */      \
        while (far > first && indptr[far] + SOON > indptr[m]) far--;                               \
        for (int64_t t = 0; t < c; t += full) {                                                    \
            const int64_t width = c - t < full ? c - t : full, room = width > half ? full : half;  \
            if (width < room) memset(panel, 0, (size_t)(m * room) * sizeof(REAL));                 \
            for (int64_t r = 0; r < m; r++)                                                        \
                memcpy(panel + r * room, U + r * c + t, (size_t)width * sizeof(REAL));             \
            (room > half ? FULL : HALF)(indptr, indices, data, panel, first, last, out + t, c,     \
                                        width, diagonal, onto ? onto + t : 0, (REAL)scale, far);   \
        }                                                                                          \
        free(memory);                                                                              \
        return 0;                                                                                  \
    }

typedef double lanes_f64 __attribute__((vector_size(VECTOR), may_alias));
typedef float lanes_f32 __attribute__((vector_size(VECTOR), may_alias));
PANEL(full_f64, double, lanes_f64, PANEL_BYTES / VECTOR)
PANEL(half_f64, double, lanes_f64, PANEL_BYTES / VECTOR / 2)
PANEL(full_f32, float, lanes_f32, PANEL_BYTES / VECTOR)
PANEL(half_f32, float, lanes_f32, PANEL_BYTES / VECTOR / 2)
PRODUCT(product_f64, double, lanes_f64, full_f64, half_f64)
PRODUCT(product_f32, float, lanes_f32, full_f32, half_f32)
