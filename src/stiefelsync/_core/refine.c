/* Labels, and the sums that scores are made of, kept up to date as objects are re-labelled: the class State of
   sync/likelihood/gauss_seidel.py, whose arrays these are. All terms are multiples of 2^-36, so that sums are exact in any
   order; only the prior is not, and is added in the order of the Python code. */
#include "kernels.h"

#include <math.h>

typedef struct {
    int64_t k, d, complete;
    const int64_t *offsets;                  /* (k + 1,) first point of every object */
    const int32_t *indptr, *indices;         /* matches by point, CSR of shape (m, m) … */
    const int64_t *partners;                 /* … the object of every column … */
    const int64_t *near_first, *near_object; /* objects that every object was compared with, CSR; null where complete */
    const double *right, *seen;              /* … what a match is worth, and half of what being seen is; seen may be null */
    const double *size;                      /* (k, k) what sharing a label costs, or null and CSR: */
    const int32_t *size_first, *size_object;
    const double *size_value;
    const double *popular;                   /* (k + 1,) prior by the number of other holders, or null */
    const double *logit;                     /* (6,) prior by level, the last for none; or null for no prior */
    double fresh, apart;                     /* prior for each object that newly sees a label; for a piece apart */
    const double *extent;                    /* (k + 1,) prior by reach, or null */
    double births;
    int64_t *labels;                         /* (m,) */
    double *O, *holders, *shared;            /* (k, d), (d,), (k, d) */
    double *near;                            /* (k, d) or null */
    int64_t *reach;                          /* (d,) or null */
    int64_t width;
    const uint8_t *partner;                  /* (m, width) numbers of all matches, see partners.c, or null; if not, every */
    const double *worth;                     /* match between two objects is worth the same, (k, width), and right null */
} State;

static const double GRID = 1.5 * 268435456.0; /* added and taken away again it leaves multiples of 2^-24 */
static const double SLACK = 1e-9;

static inline int64_t level(double n, double compared) {
    if (n < 0.5) return -1;
    double x = 5 * (n / compared) - 1e-9;
    int64_t whole = (int64_t)x;
    if ((double)whole < x) whole++;
    return whole - 1 < 4 ? whole - 1 : 4;
}

/* Compared objects that neither hold a label nor have another holder near, of every label. */
WIDE static void newly_seen(const State *s, int64_t i, double *fresh) {
    const int64_t d = s->d;
    const double *own = s->O + i * d;
    memset(fresh, 0, (size_t)d * 8);
    for (int64_t t = s->near_first[i]; t < s->near_first[i + 1]; t++) {
        const double *n = s->near + s->near_object[t] * d, *o = s->O + s->near_object[t] * d;
        for (int64_t c = 0; c < d; c++) fresh[c] += ((n[c] == own[c]) & (o[c] == 0)) ? 1.0 : 0.0;
    }
}

/* What any point of object i earns by each label, matches of its own apart: (d,). */
static void common(const State *s, int64_t i, double *sum) {
    const int64_t d = s->d;
    const double *shared = s->shared + i * d, *own = s->O + i * d;
    if (!s->near) {
        for (int64_t c = 0; c < d; c++)
            sum[c] = shared[c] + (s->popular ? s->popular[(int64_t)(s->holders[c] - own[c])] : 0.0);
        return;
    }
    if (!s->logit) {
        memcpy(sum, shared, (size_t)d * 8);
        return;
    }
    const double *near = s->near + i * d;
    int64_t partners = s->near_first[i + 1] - s->near_first[i];
    double compared = partners > 1 ? (double)partners : 1.0;
    newly_seen(s, i, sum);
    for (int64_t c = 0; c < d; c++) {
        double fresh = sum[c];
        int64_t l = level(near[c], compared);
        double value = s->logit[l < 0 ? 5 : l] + fresh * s->fresh;
        value -= l < 0 && s->holders[c] - own[c] > 0 ? s->apart : 0.0;
        if (s->reach) {
            int64_t reach = s->reach[c] - (int64_t)(own[c] * (fresh + (l < 0)));
            double before = reach > 0 ? s->extent[reach] : -s->births;
            value += s->extent[reach + (int64_t)fresh + (l < 0)] - before;
        }
        sum[c] = shared[c] + value;
    }
}

WIDE static void add_scaled(double *to, const double *from, double by, int64_t n) {
    for (int64_t c = 0; c < n; c++) to[c] += by * from[c];
}

/* Scores of point a of object i, (d,), given what is common to the object; S has room for d + 2 more. */
static void score_point(const State *s, int64_t i, int64_t a, const double *sum, double *S) {
    const int64_t d = s->d;
    double *T = S + d + 1; /* of every other match, lest each addition wait for the one before */
    memset(S, 0, (size_t)(2 * d + 2) * 8);
    const int32_t stop = s->partner ? 0 : s->indptr[a + 1];
    int32_t at = s->partner ? 0 : s->indptr[a];
    for (int64_t j = 0; s->partner && j < s->k; j++) {
        const uint8_t number = s->partner[a * s->width + j];
        if (number) (j % 2 ? S : T)[s->labels[s->offsets[j] + number - 1] + 1] += s->worth[i * s->width + j];
    }
    for (; at + 1 < stop; at += 2) {
        S[s->labels[s->indices[at]] + 1] += s->right[at]; /* without a label in front, to be cut off */
        T[s->labels[s->indices[at + 1]] + 1] += s->right[at + 1];
    }
    if (at < stop) S[s->labels[s->indices[at]] + 1] += s->right[at];
    for (int64_t c = 0; c < d; c++) S[c] = (S[c + 1] + T[c + 1]) + sum[c];
    if (s->seen)
        for (int32_t e = s->indptr[a]; e < s->indptr[a + 1]; e++)
            add_scaled(S, s->O + s->partners[e] * d, s->seen[e], d);
}

/* One score only. */
static double score_one(const State *s, int64_t i, int64_t a, const double *sum, int64_t c) {
    double matches = 0.0, seen = 0.0;
    for (int64_t j = 0; s->partner && j < s->k; j++) {
        const uint8_t number = s->partner[a * s->width + j];
        if (number && s->labels[s->offsets[j] + number - 1] == c) matches += s->worth[i * s->width + j];
    }
    if (s->partner) return matches + sum[c];
    for (int32_t e = s->indptr[a]; e < s->indptr[a + 1]; e++) {
        if (s->labels[s->indices[e]] == c) matches += s->right[e];
        if (s->seen) seen += s->seen[e] * s->O[s->partners[e] * s->d + c];
    }
    return matches + sum[c] + seen;
}

/* Add `by` = ±1 holders of label c in object i. */
static void hold(State *s, int64_t i, int64_t c, double by) {
    const int64_t d = s->d;
    s->holders[c] += by;
    if (s->size) {
        for (int64_t j = 0; j < s->k; j++) s->shared[j * d + c] += s->size[i * s->k + j] * by;
    } else {
        for (int32_t t = s->size_first[i]; t < s->size_first[i + 1]; t++)
            s->shared[s->size_object[t] * d + c] += s->size_value[t] * by;
    }
    if (s->near) {
        int64_t change = s->near[i * d + c] > 0 ? 0 : (s->O[i * d + c] + by > 0) - (s->O[i * d + c] > 0);
        for (int64_t t = s->near_first[i]; t < s->near_first[i + 1]; t++) {
            int64_t at = s->near_object[t] * d + c;
            change -= s->near[at] + s->O[at] > 0;
            s->near[at] += by;
            change += s->near[at] + s->O[at] > 0;
        }
        if (s->reach) s->reach[c] += change;
    }
    s->O[i * d + c] += by;
}

/* Find who holds what, O and holders, and in `shared` what being seen is worth; 1 if a label is not below d. */
API int begin(State *s) {
    const int64_t k = s->k, d = s->d;
    memset(s->O, 0, (size_t)(k * d) * 8);
    memset(s->holders, 0, (size_t)d * 8);
    memset(s->shared, 0, (size_t)(k * d) * 8);
    for (int64_t i = 0; i < k; i++)
        for (int64_t a = s->offsets[i]; a < s->offsets[i + 1]; a++) {
            const int64_t c = s->labels[a];
            if (c >= d) return 1;
            if (c < 0) continue;
            s->holders[c] += s->O[i * d + c] == 0;
            s->O[i * d + c] = 1.0;
            for (int32_t e = s->indptr[a]; s->seen && e < s->indptr[a + 1]; e++)
                s->shared[s->partners[e] * d + c] += s->seen[e];
        }
    return 0;
}

/* Give object i new labels; whether they differ from those it had. `count`, (d,), is all zeros before and after. */
static int give(State *s, int64_t i, const int64_t *new, int64_t *count) {
    const int64_t a = s->offsets[i], n = s->offsets[i + 1] - a, d = s->d;
    int64_t *old = s->labels + a;
    if (!memcmp(old, new, (size_t)n * sizeof *new)) return 0;
    for (int64_t r = 0; r < n; r++) {
        if (new[r] >= 0) count[new[r]]++;
        if (old[r] >= 0) count[old[r]]--;
    }
    for (int64_t r = 0; r < n; r++) {
        int64_t both[2] = {new[r], old[r]};
        for (int t = 0; t < 2; t++)
            if (both[t] >= 0 && count[both[t]]) {
                hold(s, i, both[t], (double)count[both[t]]);
                count[both[t]] = 0;
            }
        if (s->seen && new[r] != old[r])
            for (int32_t e = s->indptr[a + r]; e < s->indptr[a + r + 1]; e++) {
                double *shared = s->shared + s->partners[e] * d;
                if (new[r] >= 0) shared[new[r]] += s->seen[e];
                if (old[r] >= 0) shared[old[r]] -= s->seen[e];
            }
    }
    memcpy(old, new, (size_t)n * sizeof *new);
    return 1;
}

static int64_t largest(const State *s) {
    int64_t most = 0;
    for (int64_t i = 0; i < s->k; i++) {
        int64_t n = s->offsets[i + 1] - s->offsets[i];
        if (n > most) most = n;
    }
    return most;
}

static int wants_other(const State *s, int64_t a, const double *S) {
    double best = S[0];
    int64_t label = s->labels[a];
    if (label < 0) return 1;
    for (int64_t c = 1; c < s->d; c++) best = S[c] > best ? S[c] : best;
    return S[label] < best - SLACK * (1 + fabs(best));
}

/* Whether point a keeps its label without a look at the others: they could not earn more even if all its other matches
   spoke for the same one of them. `most` is the largest of `sum`. */
WIDE static int content(const State *s, int64_t a, const double *sum, double most) {
    const int64_t label = s->labels[a];
    if (label < 0 || s->seen) return 0;
    double own[8] = {0}, all[8] = {0}; /* all terms are multiples of 2^-36: sums are exact in any order */
    int32_t e = s->indptr[a];
    const int32_t stop = s->indptr[a + 1];
    for (; e + 8 <= stop; e += 8)
        for (int t = 0; t < 8; t++) {
            own[t] += s->labels[s->indices[e + t]] == label ? s->right[e + t] : 0.0;
            all[t] += s->right[e + t];
        }
    for (; e < stop; e++) {
        own[0] += s->labels[s->indices[e]] == label ? s->right[e] : 0.0;
        all[0] += s->right[e];
    }
    for (int t = 1; t < 8; t++) {
        own[0] += own[t];
        all[0] += all[t];
    }
    return own[0] + sum[label] >= most + (all[0] - own[0]);
}

typedef uint8_t some_bytes __attribute__((vector_size(REALS), aligned(1), may_alias));
typedef int64_t some_masks __attribute__((vector_size(VECTOR), aligned(8), may_alias));

/* The same where matches are numbered: `same`, (width,), are the holders of the point's label, `worth`, (width,), is what
   matches of its object are worth and `all` their sum. Sums are exact in any order, as above. */
WIDE static int content_by_numbers(const State *s, int64_t a, const uint8_t *same, const double *worth, double all, double sum,
                                   double most) {
    const uint8_t *partner = s->partner + a * s->width;
    some_reals parts[2] = {{0}, {0}};
    double own = 0.0;
    for (int64_t j = 0; j < s->width; j += 2 * REALS)
        for (int t = 0; t < 2; t++) {
            const int64_t at = j + t * REALS;
            const some_masks equal = __builtin_convertvector(
                *(const some_bytes *)(partner + at) == *(const some_bytes *)(same + at), some_masks);
            parts[t] += (some_reals)(*(const some_masks *)(worth + at) & equal);
        }
    for (int t = 0; t < REALS; t++) own += parts[0][t] + parts[1][t];
    return own + sum >= most + (all - own);
}

/* Whether object i has a point that would rather have another label; S has room for the scores of one. */
static int is_restless(const State *s, int64_t i, const uint8_t *holder, double *sum, double *S) {
    common(s, i, sum);
    double most = sum[0], all = 0.0;
    for (int64_t c = 1; c < s->d; c++) most = sum[c] > most ? sum[c] : most;
    const double *worth = s->partner ? s->worth + i * s->width : 0;
    for (int64_t j = 0; worth && j < s->k; j++) all += worth[j];
    for (int64_t a = s->offsets[i]; a < s->offsets[i + 1]; a++) {
        const int64_t c = s->labels[a];
        if (!worth ? content(s, a, sum, most)
                   : c >= 0 && content_by_numbers(s, a, holder + c * s->width, worth, all, sum[c], most))
            continue;
        score_point(s, i, a, sum, S);
        if (wants_other(s, a, S)) return 1;
    }
    return 0;
}

static int relabel(State *s, int64_t i, double *S, double *sum, int64_t *new, int64_t *count, void *work) {
    const int64_t a = s->offsets[i], n = s->offsets[i + 1] - a, d = s->d;
    double most = 0.0;
    common(s, i, sum);
    for (int64_t r = 0; r < n; r++) score_point(s, i, a + r, sum, S + r * d);
    for (int64_t x = 0; x < n * d; x++) {
        S[x] = (S[x] + GRID) - GRID;
        double size = fabs(S[x]);
        most = size > most ? size : most;
    }
    for (int64_t r = 0; r < n; r++)
        if (s->labels[a + r] >= 0) S[r * d + s->labels[a + r]] += SLACK * (1 + most); /* on a tie nothing moves */
    assign_rows(S, n, d, new, work);
    return give(s, i, new, count);
}

/* One sweep of Gauss-Seidel over the objects with a point that would rather have another label, but for those that are
   calm, (k,), when their turn comes. Whether a label changed; -1 without memory. */
API int refine_sweep(State *s, uint8_t *calm) {
    const int64_t k = s->k, d = s->d, n = largest(s);
    const size_t cells = (size_t)(n * d + d + 2 + d + n + d + k) * 8, bytes = assign_bytes(n, d);
    char *memory = malloc(cells + bytes + (s->partner ? (size_t)(d * s->width) : 0));
    int changed = 0;
    if (!memory) return -1;
    double *S = (double *)memory, *sum = S + n * d + d + 2;
    int64_t *new = (int64_t *)(sum + d), *count = new + n, *restless = count + d, found = 0;
    memset(count, 0, (size_t)d * 8);
    uint8_t *holder = (uint8_t *)memory + cells + bytes;
    if (s->partner) number_holders(k, d, s->width, s->offsets, s->labels, holder);
    for (int64_t i = 0; i < k; i++)
        if (s->offsets[i + 1] > s->offsets[i] && is_restless(s, i, holder, sum, S)) restless[found++] = i;
    for (int64_t t = 0; t < found; t++) {
        int64_t i = restless[t];
        if (calm[i]) continue;
        if (relabel(s, i, S, sum, new, count, memory + cells)) {
            changed = 1;
            if (!s->complete) /* else nobody is calm */
                for (int64_t x = s->near_first[i]; x < s->near_first[i + 1]; x++) calm[s->near_object[x]] = 0;
        } else {
            calm[i] = !s->complete;
        }
    }
    free(memory);
    return changed;
}

/* Draw the labels of one object. `order`, (times, d), pairs labels off: its first half with its second; `noise`,
   (times, d / 2), is what the gain of a swap must exceed. Point n is nobody. */
static void draw(State *s, int64_t i, int64_t times, const int64_t *order, const double *noise, double *sum, int64_t *member,
                 int64_t *new) {
    const int64_t a = s->offsets[i], n = s->offsets[i + 1] - a, d = s->d, half = d / 2;
    common(s, i, sum);
    for (int64_t c = 0; c < d; c++) member[c] = n;
    for (int64_t r = 0; r < n; r++)
        if (s->labels[a + r] >= 0) member[s->labels[a + r]] = r;
    for (int64_t t = 0; t < times; t++, order += d, noise += half)
        for (int64_t x = 0; x < half; x++) {
            int64_t one = order[x], two = order[half + x], p = member[one], q = member[two];
            if (p == n && q == n) continue;
            double gain = p < n ? score_one(s, i, a + p, sum, two) : 0.0;
            gain += q < n ? score_one(s, i, a + q, sum, one) : 0.0;
            gain -= p < n ? score_one(s, i, a + p, sum, one) : 0.0;
            gain -= q < n ? score_one(s, i, a + q, sum, two) : 0.0;
            if (gain > noise[x]) {
                member[one] = q;
                member[two] = p;
            }
        }
    for (int64_t r = 0; r < n; r++) new[r] = -1;
    for (int64_t c = 0; c < d; c++)
        if (member[c] < n) new[member[c]] = c;
}

/* One sweep of Gibbs sampling over all objects with points: order (objects, times, d), noise (objects, times, d / 2). */
API int draw_sweep(State *s, int64_t times, const int64_t *order, const double *noise) {
    const int64_t k = s->k, d = s->d, n = largest(s);
    char *memory = malloc((size_t)(3 * d + n) * 8);
    if (!memory) return -1;
    double *sum = (double *)memory;
    int64_t *member = (int64_t *)(sum + d), *count = member + d, *new = count + d;
    memset(count, 0, (size_t)d * 8);
    for (int64_t i = 0; i < k; i++) {
        if (s->offsets[i + 1] == s->offsets[i]) continue;
        draw(s, i, times, order, noise, sum, member, new);
        give(s, i, new, count);
        order += times * d;
        noise += times * (d / 2);
    }
    free(memory);
    return 0;
}
