/* What all kernels share. They add, subtract, multiply, divide, compare and take square roots,
   which every processor rounds alike; logarithms, exponentials and random numbers come from NumPy.
   So labels do not depend on the processor. Types, contiguity and lengths are checked by the
   binding, signatures.py; what indices point to was checked before, and a kernel trusts it. */
#ifndef STIEFELSYNC_KERNELS_H
#define STIEFELSYNC_KERNELS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

/* Wider registers where the processor has them. Each element is computed alike, so results do not
   depend on it. It takes a C library that chooses when the program is loaded (glibc; musl does
   not). */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) &&       \
    !defined(WITHOUT_CLONES)
#ifndef CLONES /* others, to measure as on a processor that has less */
#if __GNUC__ >= 12
#define CLONES "arch=x86-64-v4", "avx2", "default"
#else
#define CLONES "avx512f", "avx2", "default"
#endif
#endif
#define CLONED 1
#define WIDE __attribute__((target_clones(CLONES)))
#define VECTOR 32
#else
#define CLONED 0
#define WIDE
#define VECTOR 16
#endif

/* Memory that is asked for AHEAD entries before its turn. */
#define AHEAD 12
#if defined(__GNUC__)
#define PREFETCH(at) __builtin_prefetch(at)
#else
#define PREFETCH(at) ((void)0)
#endif

/* A few numbers at a time, wherever they are; each is computed alike, too. VECTOR is what
   processors with AVX2 have registers for: vectors of 64 bytes GCC takes apart so badly there that
   a product takes twenty times as long, and with AVX-512 these are as quick. */
#define REALS (VECTOR / 8)
typedef double some_reals __attribute__((vector_size(VECTOR), aligned(8), may_alias));

/* For what is part of a function with wider registers, and must have them, too. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

static inline int64_t bits_of(double x) {
    int64_t bits;
    memcpy(&bits, &x, 8);
    return bits;
}

static inline double of_bits(int64_t bits) {
    double x;
    memcpy(&x, &bits, 8);
    return x;
}

/* The sum of x, (n,). */
double sum_of(const double *x, int64_t n);

/* Columns, all different, that maximise the sum of S, (n, d), n <= d; `work` has room for
   assign_bytes(n, d). */
size_t assign_bytes(int64_t n, int64_t d);
void assign_rows(const double *S, int64_t n, int64_t d, int64_t *columns, void *work);

/* Memory for so many cells, of any value or zero, which is freed as any other; null if there is
   none. */
void *room_for(size_t cells, size_t size);
void *zeros_for(size_t cells, size_t size);

/* Memory and how much of it is taken; without any yet, only that is reckoned. */
typedef struct {
    char *memory;
    size_t taken;
} Room;

static inline void *take(Room *room, int64_t cells, size_t size) {
    char *at = room->memory ? room->memory + room->taken : 0;
    room->taken += ((size_t)cells * size + 7) / 8 * 8;
    return at;
}

/* Connect two points; `up` is of every point another one of its piece, no later one, or itself. */
static inline void connect(int32_t *up, int32_t a, int32_t b) {
    while (up[a] != a) a = up[a] = up[up[a]];
    while (up[b] != b) b = up[b] = up[up[b]];
    up[a > b ? a : b] = a > b ? b : a;
}

/* Join tracks of n points, `track`, each named by one of them, along matches a, b, sorted by a;
   `objects` are less than k, and `places`, (n, 2), may be none. Return how often, or -1 without
   memory. */
int64_t join_along(const int32_t *a, const int32_t *b, const double *weight, int64_t matches,
                   int64_t n, int32_t *track, const int32_t *objects, int64_t k,
                   const double *places, double copy, double rounding, int64_t least,
                   int64_t rounds);

/* Whether clusters A and B hold points of one object; those of a cluster, from start on, ascend. */
int share_object(const int64_t *objects, const int64_t *start, int64_t A, int64_t B);

/* For every one of n > q positions, the first two of four columns of `place`, the q nearest others,
   nearest first and of equally near ones the first, into the columns 0, ..., q - 1 of `near`, rows
   2q apart. In their `order`, (n,), neighbours are near each other. `memory` is room for
   nearest_cells(n) floats, `far` for q. */
size_t nearest_cells(int64_t n);
void nearest_others(const float *place, const int32_t *order, int64_t n, int64_t q, int32_t *near,
                    float *memory, double *far);

#endif
