/* Labels of points, sampled or improved object by object: sync/likelihood/state.py, with the model
   of sync/likelihood/model.py. Exponentials are polynomials of our own, so that every processor
   draws the same labels. */
#include "kernels.h"

#include <math.h>

#define BINS 12   /* of the share of near objects that hold a label */
#define REACHES 3 /* none, one, or more earlier objects far away that hold it */
#define NOBODY_HOLDS (-1)
#define FIXED (-2)       /* a point that keeps its label for now */
#define MOST_ORDERED 256 /* objects that are sorted by what they gain by an exchange */
#define HOPELESS 30.0    /* log-odds against which nothing is drawn */
#define AT(object, label) ((int64_t)(label) * s->k + (object))

typedef struct {
    int64_t k, m, d;
    const int64_t *offsets;
    const int32_t *owner;
    /* Compared objects: of every object, in order, with the number of the pair, and where the
       object itself is in the list of the other. */
    const int64_t *near_start;
    const int32_t *near_object, *near_pair, *near_back;
    /* Of point a of object i and compared object s the matched point, or -1:
       partner[partner_start[i] + (a - offsets[i]) * degree + s]. */
    const int64_t *partner_start;
    const int32_t *partner;
    const double *weight; /* log-odds that its weight gives a match, laid out likewise; or null */
    /* Per pair of objects i < j what points of one label are worth, against two labels each seen in
       one of the objects alone: matched with each other; else row unmatched, row matched, column
       unmatched, column matched. */
    const double *worth;
    /* Objects that come later in the order of the prior, near and far. */
    const int64_t *later_start;
    const int32_t *later_object, *later_weight;
    const int64_t *far_start;
    const int32_t *far_object;
    const int32_t *total;        /* weights of all earlier near objects, and a little more */
    const double *held, *absent; /* (REACHES, BINS), log-probabilities */
    const double *birth;         /* (k,) */
    double back;
    int64_t *labels;  /* (m,) */
    int32_t *point;   /* (d, k): the point of an object that holds a label, or -1 */
    int32_t *near;    /* (d, k): weights of earlier near objects that hold a label */
    uint8_t *far;     /* (d, k): how many earlier far objects hold it, 255 at most */
    int32_t *size;    /* (d,) */
    int32_t *begun;   /* (d,): holders without an earlier near holder */
    int64_t *shared;  /* (1,): labels of two holders or more */
    int64_t most;     /* of these */
    int64_t alone;    /* whether a point may have a label that nobody else holds */
    uint64_t *random; /* (1,) */
} Chain;

static inline uint64_t draw_bits(Chain *s) {
    uint64_t z = (s->random[0] += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline double draw_unit(Chain *s) { return (double)(draw_bits(s) >> 11) * 0x1p-53; }

static inline int64_t draw_below(Chain *s, int64_t n) {
    return (int64_t)(draw_unit(s) * (double)n);
}

/* exp(x) for x <= 0: 2^n times a polynomial on |r| <= ln 2 / 2, to 1e-9 of itself. */
static inline double exp_of(double x) {
    if (x < -40.0) return 0.0;
    double t = x * 1.4426950408889634;
    int64_t n = (int64_t)(t - 0.5);
    double r = (t - (double)n) * 0.6931471805599453, p = 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    return p * of_bits((n + 1023) << 52);
}

static inline int64_t bin_of(const Chain *s, int64_t i, int64_t near, int64_t far) {
    int64_t share = BINS * near / s->total[i];
    return (far < REACHES - 1 ? far : REACHES - 1) * BINS + (share < BINS ? share : BINS - 1);
}

/* What the prior says of object i and label c, held or not. */
static inline double cell_prior(const Chain *s, int64_t i, int64_t c, int64_t near, int64_t far,
                                int held) {
    if (near > 0) {
        int64_t b = bin_of(s, i, near, far);
        return held ? s->held[b] : s->absent[b];
    }
    return held ? s->birth[i] : 0.0;
}

/* The change of the prior if object i took label c, which it does not hold; `begins` gets that of
   the number of its beginnings. */
static double prior_gain(const Chain *s, int64_t i, int64_t c, int64_t *begins) {
    int64_t begun = s->near[AT(i, c)] == 0;
    double v = cell_prior(s, i, c, s->near[AT(i, c)], s->far[AT(i, c)], 1) -
               cell_prior(s, i, c, s->near[AT(i, c)], s->far[AT(i, c)], 0);
    for (int64_t x = s->later_start[i]; x < s->later_start[i + 1]; x++) {
        const int64_t j = s->later_object[x], near = s->near[AT(j, c)], far = s->far[AT(j, c)];
        const int held = s->point[AT(j, c)] >= 0;
        v += cell_prior(s, j, c, near + s->later_weight[x], far, held) -
             cell_prior(s, j, c, near, far, held);
        begun -= held && near == 0;
    }
    for (int64_t x = s->far_start[i]; x < s->far_start[i + 1]; x++) {
        const int64_t j = s->far_object[x], near = s->near[AT(j, c)], far = s->far[AT(j, c)];
        if (near > 0 && far < REACHES - 1) {
            const int held = s->point[AT(j, c)] >= 0;
            v += cell_prior(s, j, c, near, far + 1, held) - cell_prior(s, j, c, near, far, held);
        }
    }
    const int64_t z = s->begun[c];
    v += s->back * (double)((z + begun > 1 ? z + begun - 1 : 0) - (z > 1 ? z - 1 : 0));
    *begins = begun;
    return v;
}

/* Let object i take (sign 1) or lose (sign -1) label c, at point a. */
static void toggle(Chain *s, int64_t i, int64_t c, int64_t a, int sign) {
    s->point[AT(i, c)] = sign > 0 ? (int32_t)a : -1;
    s->size[c] += sign;
    s->shared[0] += sign * (s->size[c] == (sign > 0 ? 2 : 1));
    int64_t begun = sign * (s->near[AT(i, c)] == 0);
    for (int64_t x = s->later_start[i]; x < s->later_start[i + 1]; x++) {
        const int64_t j = s->later_object[x];
        int32_t *near = s->near + AT(j, c);
        const int before = *near == 0;
        *near += sign * s->later_weight[x];
        if (s->point[AT(j, c)] >= 0) begun += (*near == 0) - before;
    }
    for (int64_t x = s->far_start[i]; x < s->far_start[i + 1]; x++)
        s->far[AT(s->far_object[x], c)] += sign;
    s->begun[c] += (int32_t)begun;
}

/* Fill everything from the labels. */
API void begin_chain(Chain *s) {
    memset(s->near, 0, (size_t)(s->k * s->d) * 4);
    memset(s->far, 0, (size_t)(s->k * s->d));
    memset(s->size, 0, (size_t)s->d * 4);
    memset(s->begun, 0, (size_t)s->d * 4);
    s->shared[0] = 0;
    for (int64_t x = 0; x < s->k * s->d; x++) s->point[x] = NOBODY_HOLDS;
    for (int64_t i = 0; i < s->k; i++)
        for (int64_t a = s->offsets[i]; a < s->offsets[i + 1]; a++)
            toggle(s, i, s->labels[a], a, 1);
}

/* What matches say of point a of object i with label c, others given: against seen here alone. */
static double evidence(const Chain *s, int64_t i, int64_t a, int64_t c) {
    const int64_t *at = s->near_start + i, degree = at[1] - at[0];
    const int64_t row = s->partner_start[i] + (a - s->offsets[i]) * degree;
    double v = 0.0;
    for (int64_t x = 0; x < degree; x++) {
        const int64_t j = s->near_object[at[0] + x], b = s->point[AT(j, c)];
        if (b < 0) continue;
        const double *w = s->worth + 5 * s->near_pair[at[0] + x];
        const int64_t mine = s->partner[row + x];
        if (mine == b) {
            v += w[0] + (s->weight ? s->weight[row + x] : 0.0);
        } else {
            const int64_t theirs =
                s->partner[s->partner_start[j] +
                           (b - s->offsets[j]) * (s->near_start[j + 1] - s->near_start[j]) +
                           s->near_back[at[0] + x]];
            const int row_matched = (i < j ? mine : theirs) >= 0,
                      column_matched = (i < j ? theirs : mine) >= 0;
            v += w[1 + row_matched] + w[3 + column_matched];
        }
    }
    return v;
}

/* Room for a visit of an object. */
typedef struct {
    int64_t most;    /* candidates */
    int64_t *column; /* (d,): candidate number of a label, or -1 */
    int32_t *label;  /* (most,) */
    double *S, *E;   /* (most, n) scores; (n, most + 1) their exponentials */
    double *row, *total, *top;
    int64_t *listed; /* (n,): candidates worth a look, and which, (n, most + 1) */
    int32_t *list;
    int64_t *now, *holder, *begins;
    int64_t *pick;
    void *work;
} Visit;

/* Scores of all points of object i, lifted out, and all labels held near it: (candidates, n). */
static int64_t score_object(Chain *s, int64_t i, Visit *v) {
    const int64_t first = s->offsets[i], n = s->offsets[i + 1] - first;
    const int64_t start = s->near_start[i], degree = s->near_start[i + 1] - start;
    int64_t count = 0, begins;
    for (int64_t x = 0; x < degree; x++) {
        const int64_t j = s->near_object[start + x], pair = s->near_pair[start + x];
        const double *w = s->worth + 5 * pair;
        const int32_t *mine = s->partner + s->partner_start[i] + x;
        const int64_t width = s->near_start[j + 1] - s->near_start[j];
        const double *own = i < j ? w + 1 : w + 3, *other = i < j ? w + 3 : w + 1;
        for (int64_t a = 0; a < n; a++) v->row[a] = own[mine[a * degree] >= 0];
        for (int64_t b = s->offsets[j]; b < s->offsets[j + 1]; b++) {
            const int64_t c = s->labels[b];
            if (v->column[c] < 0) {
                /* No more shared labels than there may be. */
                if (s->size[c] == 1 && s->shared[0] >= s->most) continue;
                v->column[c] = count;
                v->label[count] = (int32_t)c;
                const double base = prior_gain(s, i, c, &begins);
                double *S = v->S + count * n;
                for (int64_t a = 0; a < n; a++) S[a] = base;
                count++;
            }
            const int64_t matched = s->partner[s->partner_start[j] + (b - s->offsets[j]) * width +
                                               s->near_back[start + x]];
            const double theirs = other[matched >= 0];
            double *S = v->S + v->column[c] * n;
            for (int64_t a = 0; a < n; a++) S[a] += v->row[a] + theirs;
            if (matched >= 0) {
                const int64_t a = matched - first;
                S[a] += w[0] - (v->row[a] + theirs);
                if (s->weight) S[a] += s->weight[s->partner_start[i] + a * degree + x];
            }
        }
    }
    return count;
}

static int64_t free_label(Chain *s, int64_t *from) {
    for (int64_t t = 0; t < s->d; t++) {
        if (s->size[*from] == 0) return *from;
        *from = (*from + 1) % s->d;
    }
    return -1;
}

/* How likely point a is to be given candidate c, but for a factor of its own. */
static inline double odds(const Visit *v, int64_t n, int64_t count, double alone, double inverse,
                          int64_t a, int64_t c) {
    return exp_of(((c < count ? v->S[c * n + a] : alone) - v->top[a]) * inverse);
}

/* Whether a candidate is a label that one point holds elsewhere: who takes it makes it shared. */
static inline int joins_one(const Chain *s, int64_t count, const Visit *v, int64_t c) {
    return c >= 0 && c < count && s->size[v->label[c]] == 1;
}

static int64_t labels_joined(const Chain *s, int64_t n, int64_t count, const Visit *v) {
    int64_t joined = 0;
    for (int64_t a = 0; a < n; a++) joined += joins_one(s, count, v, v->now[a]);
    return joined;
}

/* Points of an object take labels, or pairs of them exchange theirs, with the probabilities that
   scores at a temperature give. */
static void draw_object(Chain *s, int64_t n, int64_t count, double alone, double inverse,
                        Visit *v) {
    /* Labels that are hopeless beside a point's best one are not looked at again. */
    const double hopeless = -HOPELESS / inverse;
    for (int64_t a = 0; a < n; a++) v->top[a] = alone;
    for (int64_t c = 0; c < count; c++)
        for (int64_t a = 0; a < n; a++)
            v->top[a] = v->S[c * n + a] > v->top[a] ? v->S[c * n + a] : v->top[a];
    const int64_t wide = count + 1;
    for (int64_t a = 0; a < n; a++) v->listed[a] = 0, v->total[a] = 0.0;
    for (int64_t c = 0; c <= count; c++)
        for (int64_t a = 0; a < n; a++) {
            const double gap = (c < count ? v->S[c * n + a] : alone) - v->top[a];
            if (gap < hopeless) continue;
            const int64_t at = a * wide + v->listed[a]++;
            v->list[at] = (int32_t)c;
            v->total[a] += v->E[at] = exp_of(gap * inverse);
        }
    int64_t joined = labels_joined(s, n, count, v);
    for (int64_t t = 0; t < n; t++) {
        const int64_t a = draw_below(s, n), now = v->now[a];
        if (now == FIXED) continue;
        const int64_t last = a * wide + v->listed[a] - 1;
        double u = draw_unit(s) * v->total[a];
        int64_t at = a * wide;
        while (at < last && (u -= v->E[at]) >= 0.0) at++;
        const int64_t c = v->list[at];
        if (c == now) continue;
        const int64_t e = c < count ? v->holder[c] : -1;
        if (e >= 0) {
            /* Two points swap: either may have been the one that was drawn. */
            const double A = v->total[a], B = v->total[e];
            const double ac = v->E[at] / A, an = odds(v, n, count, alone, inverse, a, now) / A;
            const double ec = odds(v, n, count, alone, inverse, e, c) / B;
            const double en = odds(v, n, count, alone, inverse, e, now) / B;
            /* A point that is alone is never drawn to swap with: then only one of them may have
             * been. */
            const double forth = now < count ? ac + en : ac, back = now < count ? an + ec : ec;
            if (ac * en * back < draw_unit(s) * (an * ec * forth)) continue;
            v->now[e] = now;
            if (now < count) v->holder[now] = e;
        } else {
            /* No more shared labels than there may be. */
            const int64_t more = joins_one(s, count, v, c) - joins_one(s, count, v, now);
            if (more > 0 && s->shared[0] + joined >= s->most) continue;
            joined += more;
            if (now < count) v->holder[now] = -1;
        }
        v->now[a] = c;
        if (c < count) v->holder[c] = a;
    }
}

/* The assignment of points to labels, or to nobody else's, of the largest sum of scores. What a
   point has now is worth a little more, so that nothing changes for nothing. */
static void assign_object(const Chain *s, int64_t n, int64_t count, double alone, Visit *v) {
    const int64_t wide = count + n;
    for (int64_t a = 0; a < n; a++) {
        double *row = v->E + a * wide;
        const int64_t now = v->now[a];
        for (int64_t c = 0; c < count; c++) row[c] = now == FIXED ? -1e9 : v->S[c * n + a];
        for (int64_t c = 0; c < n; c++)
            row[count + c] = c == a ? (now == FIXED ? 1e9 : alone) : -1e12;
        if (now >= 0) row[now < count ? now : count + a] += 1e-6;
    }
    assign_rows(v->E, n, wide, v->pick, v->work);
    for (int64_t a = 0; a < n; a++)
        if (v->now[a] != FIXED) v->now[a] = v->pick[a] < count ? v->pick[a] : count;
    /* No more shared labels than there may be: those of the least scores are left. */
    int64_t over = s->alone ? s->shared[0] + labels_joined(s, n, count, v) - s->most : 0;
    for (; over > 0; over--) {
        int64_t least = -1;
        for (int64_t a = 0; a < n; a++)
            if (joins_one(s, count, v, v->now[a]) &&
                (least < 0 || v->S[v->now[a] * n + a] < v->S[v->now[least] * n + least]))
                least = a;
        if (least < 0) break;
        v->now[least] = count;
    }
}

/* Draw the labels of the points of object i anew, at a temperature; 0 assigns them at best. */
static void visit_object(Chain *s, int64_t i, double inverse, Visit *v, int64_t *fresh) {
    const int64_t first = s->offsets[i], n = s->offsets[i + 1] - first;
    if (n == 0 || s->near_start[i + 1] == s->near_start[i]) return;
    for (int64_t a = 0; a < n; a++) toggle(s, i, s->labels[first + a], first + a, -1);
    const int64_t count = score_object(s, i, v);
    int64_t begins;
    const int64_t empty = s->alone ? free_label(s, fresh) : -1;
    const double alone = empty >= 0 ? prior_gain(s, i, empty, &begins) : -1e30;
    /* Points whose label nobody near holds keep it here: only moves of several points bring such
       labels, and only they take them back. */
    for (int64_t c = 0; c < count; c++) v->holder[c] = -1;
    for (int64_t a = 0; a < n; a++) {
        const int64_t c = s->labels[first + a], at = v->column[c];
        v->now[a] = at >= 0 ? at : s->size[c] > 0 ? FIXED : count;
        if (at >= 0) v->holder[at] = a;
    }
    if (isfinite(inverse))
        draw_object(s, n, count, alone, inverse, v);
    else
        assign_object(s, n, count, alone, v);
    for (int64_t c = 0; c < count; c++) v->column[v->label[c]] = -1;
    for (int64_t a = 0; a < n; a++) {
        if (v->now[a] == count) {
            if (s->size[s->labels[first + a]] > 0) s->labels[first + a] = free_label(s, fresh);
        } else if (v->now[a] >= 0) {
            s->labels[first + a] = v->label[v->now[a]];
        }
        toggle(s, i, s->labels[first + a], first + a, 1);
    }
}

/* Points p and q (or none) of object i, which hold labels c and e, exchange them. */
static double swap_gain(Chain *s, int64_t i, int64_t c, int64_t e) {
    const int64_t p = s->point[AT(i, c)], q = s->point[AT(i, e)];
    int64_t begins;
    double v = 0.0;
    if (p >= 0) v += evidence(s, i, p, e) - evidence(s, i, p, c);
    if (q >= 0) v += evidence(s, i, q, c) - evidence(s, i, q, e);
    if (p < 0 || q < 0) {
        const int64_t from = p >= 0 ? c : e, to = p >= 0 ? e : c;
        toggle(s, i, from, p >= 0 ? p : q, -1);
        v += prior_gain(s, i, to, &begins) - prior_gain(s, i, from, &begins);
        toggle(s, i, from, p >= 0 ? p : q, 1);
    }
    return v;
}

static void swap_labels(Chain *s, int64_t i, int64_t c, int64_t e) {
    const int64_t p = s->point[AT(i, c)], q = s->point[AT(i, e)];
    if (p >= 0) toggle(s, i, c, p, -1);
    if (q >= 0) toggle(s, i, e, q, -1);
    if (p >= 0) {
        toggle(s, i, e, p, 1);
        s->labels[p] = e;
    }
    if (q >= 0) {
        toggle(s, i, c, q, 1);
        s->labels[q] = c;
    }
}

/* How many matches point a of object i has to points of a label. */
static int64_t matches_to(const Chain *s, int64_t i, int64_t a, int64_t c) {
    const int64_t degree = s->near_start[i + 1] - s->near_start[i];
    const int32_t *mine = s->partner + s->partner_start[i] + (a - s->offsets[i]) * degree;
    int64_t found = 0;
    for (int64_t x = 0; x < degree; x++) found += mine[x] >= 0 && s->labels[mine[x]] == c;
    return found;
}

/* By how much the matches between labels c and e grow if object i exchanges them. */
static int64_t matches_gained(const Chain *s, int64_t i, int64_t c, int64_t e) {
    const int64_t p = s->point[AT(i, c)], q = s->point[AT(i, e)];
    int64_t gained = 0;
    if (p >= 0) gained += matches_to(s, i, p, c) - matches_to(s, i, p, e);
    if (q >= 0) gained += matches_to(s, i, q, e) - matches_to(s, i, q, c);
    return gained;
}

/* What it is worth that points a of object i and b of its compared object x have one label. */
static inline double pair_worth(const Chain *s, int64_t i, int64_t x, int64_t a, int64_t b) {
    const int64_t at = s->near_start[i] + x, j = s->near_object[at];
    const double *w = s->worth + 5 * s->near_pair[at];
    const int64_t row =
        s->partner_start[i] + (a - s->offsets[i]) * (s->near_start[i + 1] - s->near_start[i]) + x;
    const int64_t mine = s->partner[row];
    if (mine == b) return w[0] + (s->weight ? s->weight[row] : 0.0);
    const int64_t theirs =
        s->partner[s->partner_start[j] +
                   (b - s->offsets[j]) * (s->near_start[j + 1] - s->near_start[j]) +
                   s->near_back[at]];
    return w[1 + ((i < j ? mine : theirs) >= 0)] + w[3 + ((i < j ? theirs : mine) >= 0)];
}

/* Sort members by what they gain by exchanging labels c and e, each after those before it. That is
   a sum over pairs of objects, of which one exchanges and one does not. `place`, (k,), is scratch,
   as are `J`, (count, count), and `gain`. */
static void order_by_gain(const Chain *s, int32_t *members, int64_t count, int64_t c, int64_t e,
                          int32_t *place, double *J, double *gain) {
    for (int64_t i = 0; i < s->k; i++) place[i] = -1;
    for (int64_t y = 0; y < count; y++) place[members[y]] = (int32_t)y;
    memset(J, 0, (size_t)(count * count) * 8);
    for (int64_t y = 0; y < count; y++) {
        const int64_t i = members[y], p = s->point[AT(i, c)], q = s->point[AT(i, e)];
        gain[y] = 0.0;
        for (int64_t x = 0; x < s->near_start[i + 1] - s->near_start[i]; x++) {
            const int64_t j = s->near_object[s->near_start[i] + x], z = place[j];
            if (z < 0) continue;
            const int64_t r = s->point[AT(j, c)], t = s->point[AT(j, e)];
            double v = 0.0;
            if (p >= 0 && t >= 0) v += pair_worth(s, i, x, p, t);
            if (q >= 0 && r >= 0) v += pair_worth(s, i, x, q, r);
            if (p >= 0 && r >= 0) v -= pair_worth(s, i, x, p, r);
            if (q >= 0 && t >= 0) v -= pair_worth(s, i, x, q, t);
            J[y * count + z] = v;
            gain[y] += v;
        }
    }
    for (int64_t y = 0; y < count; y++) {
        int64_t best = y;
        for (int64_t x = y + 1; x < count; x++)
            if (gain[place[members[x]]] > gain[place[members[best]]]) best = x;
        const int32_t kept = members[y];
        members[y] = members[best];
        members[best] = kept;
        const double *row = J + place[members[y]] * count;
        for (int64_t x = 0; x < count; x++) gain[x] -= 2 * row[x];
    }
}

/* How much likelier labels become if c and e are exchanged in none, one, two, … of these objects,
   and how likely these two labels are to be picked in each of these states; the largest of the
   former. */
static double exchange_along(Chain *s, int64_t c, int64_t e, int64_t M, const int32_t *members,
                             int64_t count, double *sum, double *chance) {
    const int64_t shared = s->shared[0];
    const double all = (double)s->m * (double)s->m, edges = (double)(M > 0 ? M : 1);
    double best = 0.0;
    int64_t between = 0;
    for (int64_t y = 0; y < count; y++)
        if (s->point[AT(members[y], c)] >= 0)
            between += matches_to(s, members[y], s->point[AT(members[y], c)], e);
    sum[0] = 0.0;
    for (int64_t y = 0; y <= count - 1; y++) {
        const double A = s->size[c], B = s->size[e];
        chance[y] = B == 0   ? 0.2 * A / (double)s->m
                    : A == 0 ? 0.2 * B / (double)s->m
                             : 0.6 * (double)between / edges + 0.4 * A * B / all;
        if (y > 0 && s->shared[0] > shared && s->shared[0] > s->most) chance[y] = 0.0;
        if (chance[y] > 0.0 && sum[y] > best) best = sum[y];
        if (y == count - 1) break;
        sum[y + 1] = sum[y] + swap_gain(s, members[y], c, e);
        between += matches_gained(s, members[y], c, e);
        swap_labels(s, members[y], c, e);
    }
    for (int64_t y = count - 2; y >= 0; y--) swap_labels(s, members[y], c, e);
    return best;
}

/* Two labels are exchanged in the objects nearest to one of them: how many is drawn from all
   possible numbers, none among them. At temperature zero objects come in the order of what they
   gain, each after those before it, and the best number is taken. */
static void exchange_near(Chain *s, const int64_t *ends, int64_t M, const float *distance,
                          double inverse, int64_t turn, int32_t *members, double *key, double *sum,
                          double *chance, int32_t *place, double *J, int64_t *fresh) {
    int64_t c, e;
    const double u = draw_unit(s);
    if (turn >= 0 || (u < 0.6 && M > 0)) {
        const int64_t x = turn >= 0 ? turn : draw_below(s, M);
        c = s->labels[ends[x]];
        e = s->labels[ends[M + x]];
    } else {
        c = s->labels[draw_below(s, s->m)];
        if (u < 0.8) {
            e = s->labels[draw_below(s, s->m)];
        } else {
            if (s->size[c] < 2 || !s->alone) return;
            e = free_label(s, fresh);
        }
    }
    if (e < 0 || c == e) return;
    int64_t count = 0;
    for (int64_t i = 0; i < s->k; i++)
        if (s->point[AT(i, c)] >= 0 || s->point[AT(i, e)] >= 0) members[count++] = (int32_t)i;
    if (count < 2) return;
    const int64_t centre = draw_unit(s) < 0.5 ? draw_below(s, s->k) : members[draw_below(s, count)];
    /* Sort members by distance from the centre. */
    for (int64_t y = 0; y < count; y++) {
        const int32_t object = members[y];
        const double far = distance[centre * s->k + object];
        int64_t x = y;
        for (; x > 0 && key[x - 1] > far; x--) {
            key[x] = key[x - 1];
            members[x] = members[x - 1];
        }
        key[x] = far;
        members[x] = object;
    }
    if (!isfinite(inverse) && count <= MOST_ORDERED)
        order_by_gain(s, members, count, c, e, place, J, key);
    int64_t pick = 0;
    const double best = exchange_along(s, c, e, M, members, count, sum, chance);
    if (isfinite(inverse)) {
        double total = 0.0, again = 0.0;
        for (int64_t y = 0; y < count; y++)
            total += chance[y] > 0.0 ? chance[y] * exp_of((sum[y] - best) * inverse) : 0.0;
        double left = draw_unit(s) * total;
        for (; pick < count - 1; pick++)
            if (chance[pick] > 0.0 &&
                (left -= chance[pick] * exp_of((sum[pick] - best) * inverse)) < 0.0)
                break;
        if (pick == 0 || chance[pick] == 0.0) return;
        const double gained = sum[pick];
        for (int64_t y = 0; y < pick; y++) swap_labels(s, members[y], c, e);
        /* From there other numbers can be drawn, and the way back may be likelier than the way
         * here, or less likely. */
        const double next = exchange_along(s, c, e, M, members, count, sum, chance);
        for (int64_t y = 0; y < count; y++)
            again += chance[y] > 0.0 ? chance[y] * exp_of((sum[y] - next) * inverse) : 0.0;
        const double more = (gained + next - best) * inverse;
        const double u = draw_unit(s);
        if (more > 0.0 ? u * again < total * exp_of(-more) : u * again * exp_of(more) < total)
            return;
        for (int64_t y = pick - 1; y >= 0; y--) swap_labels(s, members[y], c, e);
    } else {
        for (int64_t y = 0; y < count; y++)
            if (chance[y] > 0.0 && sum[y] > sum[pick] + 1e-9) pick = y;
        for (int64_t y = 0; y < pick; y++) swap_labels(s, members[y], c, e);
    }
}

/* One label of two that matches join is given to all objects that hold the other alone, if that is
   likelier. */
static void join_labels(Chain *s, const int64_t *ends, int64_t M, int64_t x, int32_t *members) {
    const int64_t c = s->labels[ends[x]], e = s->labels[ends[M + x]];
    if (c == e) return;
    int64_t count = 0, both = 0;
    for (int64_t i = 0; i < s->k; i++) {
        const int has = s->point[AT(i, c)] >= 0, other = s->point[AT(i, e)] >= 0;
        both += has && other;
        if (has && !other) members[count++] = (int32_t)i;
    }
    if (2 * both > count) return;
    const int64_t shared = s->shared[0];
    double gain = 0.0;
    for (int64_t y = 0; y < count; y++) {
        gain += swap_gain(s, members[y], c, e);
        swap_labels(s, members[y], c, e);
    }
    if (gain <= 0.0 || (s->shared[0] > shared && s->shared[0] > s->most))
        for (int64_t y = count - 1; y >= 0; y--) swap_labels(s, members[y], c, e);
}

/* Visit all objects, in random order, so many times, with so many exchanges in between. Labels to
   exchange or to join are those of random matches or, at temperature zero, of all in turn. */
API int sample_labels(Chain *s, int64_t sweeps, int64_t exchanges, int64_t joins, double inverse,
                      const int64_t *ends, int64_t M, const float *distance, int32_t *order) {
    int64_t largest = 0, candidates = 0, fresh = 0;
    for (int64_t i = 0; i < s->k; i++) {
        const int64_t n = s->offsets[i + 1] - s->offsets[i];
        int64_t around = 0;
        for (int64_t x = s->near_start[i]; x < s->near_start[i + 1]; x++)
            around += s->offsets[s->near_object[x] + 1] - s->offsets[s->near_object[x]];
        largest = n > largest ? n : largest;
        candidates = around > candidates ? around : candidates;
    }
    if (candidates > s->d) candidates = s->d;
    Visit v;
    Room room = {0, 0};
    int32_t *members = 0;
    int32_t *place = 0;
    double *key = 0, *sum = 0, *chance = 0, *J = 0;
    const int64_t ordered = s->k < MOST_ORDERED ? s->k : MOST_ORDERED;
    for (int pass = 0; pass < 2; pass++) {
        room.taken = 0;
        v.column = take(&room, s->d, 8);
        v.label = take(&room, candidates, 4);
        v.S = take(&room, candidates * largest, 8);
        v.E = take(&room, (candidates + largest) * largest, 8);
        v.pick = take(&room, largest, 8);
        v.work = take(&room, (int64_t)assign_bytes(largest, candidates + largest), 1);
        v.row = take(&room, largest, 8);
        v.total = take(&room, largest, 8);
        v.top = take(&room, largest, 8);
        v.listed = take(&room, largest, 8);
        v.list = take(&room, (candidates + 1) * largest, 4);
        v.now = take(&room, largest, 8);
        v.holder = take(&room, candidates, 8);
        members = take(&room, s->k, 4);
        place = take(&room, s->k, 4);
        key = take(&room, s->k, 8);
        J = take(&room, ordered * ordered, 8);
        sum = take(&room, s->k + 1, 8);
        chance = take(&room, s->k + 1, 8);
        if (pass == 0 && !(room.memory = malloc(room.taken + 8))) return -1;
    }
    for (int64_t c = 0; c < s->d; c++) v.column[c] = -1;
    for (int64_t t = 0; t < sweeps; t++) {
        for (int64_t x = s->k - 1; x > 0; x--) {
            const int64_t y = draw_below(s, x + 1);
            const int32_t kept = order[x];
            order[x] = order[y];
            order[y] = kept;
        }
        for (int64_t x = 0; x < s->k; x++) visit_object(s, order[x], inverse, &v, &fresh);
        for (int64_t x = 0; x < exchanges; x++)
            exchange_near(s, ends, M, distance, inverse, isfinite(inverse) || M == 0 ? -1 : x % M,
                          members, key, sum, chance, place, J, &fresh);
        for (int64_t x = 0; M > 0 && x < joins; x++)
            join_labels(s, ends, M, isfinite(inverse) ? draw_below(s, M) : x % M, members);
    }
    free(room.memory);
    return 0;
}

/* Count what labels say of every pair of objects: right matches, labels that both hold, and of
   these the matched rows and matched columns; counts, (4, pairs). */
API void count_pairs(const Chain *s, int64_t pairs, int64_t *counts) {
    memset(counts, 0, (size_t)(4 * pairs) * 8);
    for (int64_t i = 0; i < s->k; i++) {
        const int64_t start = s->near_start[i], degree = s->near_start[i + 1] - start;
        for (int64_t x = 0; x < degree; x++) {
            const int64_t j = s->near_object[start + x], p = s->near_pair[start + x];
            if (j < i) continue;
            const int64_t width = s->near_start[j + 1] - s->near_start[j];
            int64_t right = 0, both = 0, rows = 0, columns = 0;
            for (int64_t a = s->offsets[i]; a < s->offsets[i + 1]; a++) {
                const int64_t b = s->point[AT(j, s->labels[a])];
                if (b < 0) continue;
                const int64_t mine =
                    s->partner[s->partner_start[i] + (a - s->offsets[i]) * degree + x];
                const int64_t theirs =
                    s->partner[s->partner_start[j] + (b - s->offsets[j]) * width +
                               s->near_back[start + x]];
                both++;
                right += mine == b;
                rows += mine >= 0;
                columns += theirs >= 0;
            }
            counts[p] = right;
            counts[pairs + p] = both;
            counts[2 * pairs + p] = rows;
            counts[3 * pairs + p] = columns;
        }
    }
}

/* Count cells of the prior: objects that hold a label and that do not, by bin, (REACHES, BINS)
   each, and labels that begin in every object, (k,). */
API void count_cells(const Chain *s, int64_t *held, int64_t *absent, int64_t *begun) {
    memset(held, 0, REACHES * BINS * 8);
    memset(absent, 0, REACHES * BINS * 8);
    memset(begun, 0, (size_t)s->k * 8);
    for (int64_t i = 0; i < s->k; i++)
        for (int64_t c = 0; c < s->d; c++) {
            const int64_t x = AT(i, c), has = s->point[x] >= 0;
            if (s->near[x] > 0)
                (has ? held : absent)[bin_of(s, i, s->near[x], s->far[x])]++;
            else if (has)
                begun[i]++;
        }
}

API const int64_t bins = BINS, reaches = REACHES;
