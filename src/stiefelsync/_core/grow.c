/* One round of growing tracks: sync/tracks/clusters.py, merge and prune. */
#include "kernels.h"

/* Clusters and the edges between them, A < B, sorted; the points of a cluster, from start on,
   ascend by object. */
typedef struct {
    const int64_t *points, *objects, *start, *A, *B, *count;
    const double *weight;
    int64_t n, edges, k;
} Clusters;

/* A merged cluster: the bits of its objects modulo 64, the first and the last of these, where its
   points begin, whether it grew. */
typedef struct {
    uint64_t word;
    int32_t low, high, start, grown;
} Cluster;

/* The same while it is made: `tree` are the merged clusters of those before, and `place` says which
   of them have an edge. */
typedef struct {
    int32_t *tree, *points, *objects, *place;
    Cluster *at;
    int64_t n;
} Merged;

typedef struct {
    int32_t low, high;
} Ends;

typedef struct {
    int32_t high, edge;
} Half;

typedef struct {
    int64_t count;
    double weight;
    int32_t high;
} Bundle;

/* What a round leaves: clusters with edges, and the points of finished ones with the first of each.
 */
typedef struct {
    int64_t *points, *objects, *start, *A, *B, *count;
    double *weight;
    int64_t *done, *first, edges, dropped;
} Left;

static int32_t root_of(int32_t *tree, int32_t v) {
    int32_t root = v;
    while (tree[root] != root) root = tree[root];
    while (tree[v] != root) {
        const int32_t next = tree[v];
        tree[v] = root;
        v = next;
    }
    return root;
}

/* The edges of positive gain and what comes first, as in clusters.py: by gain, then by a shuffled
   number; and the first of all for every cluster, into `best`. */
static int64_t find_candidates(const Clusters *q, const double *gain, Ends *found,
                               int64_t *priority, int64_t *best) {
    int64_t number = 0;
    for (int64_t v = 0; v < q->n; v++) best[v] = -1;
    for (int64_t e = 0; e < q->edges; e++) {
        if (!(gain[e] > 0)) continue;
        const float value = (float)gain[e];
        int32_t bits;
        memcpy(&bits, &value, 4);
        const int64_t own = (int64_t)bits << 31 | ((number * 2654435761) & 0x7fffffff);
        int64_t *one = best + q->A[e], *two = best + q->B[e];
        if (own > *one) *one = own;
        if (own > *two) *two = own;
        found[number] = (Ends){(int32_t)q->A[e], (int32_t)q->B[e]};
        priority[number++] = own;
    }
    return number;
}

/* Mark the trees that hold two points of an object in `broken`. Bits that all differ say no; `head`
   and `next` list the clusters of the others, and `seen`, (k,), is -1. */
static void find_broken(const Clusters *q, const int32_t *tree, const uint64_t *words,
                        uint64_t *all, uint8_t *broken, int32_t *head, int32_t *next,
                        int32_t *seen) {
    memset(all, 0, (size_t)q->n * 8);
    memset(broken, 0, (size_t)q->n);
    for (int64_t v = 0; v < q->n; v++) {
        broken[tree[v]] |= (all[tree[v]] & words[v]) != 0;
        all[tree[v]] |= words[v];
        head[v] = -1;
    }
    for (int64_t v = q->n - 1; v >= 0; v--)
        if (broken[tree[v]]) {
            next[v] = head[tree[v]];
            head[tree[v]] = (int32_t)v;
        }
    for (int64_t root = 0; root < q->n; root++) {
        if (!broken[root]) continue;
        broken[root] = 0;
        for (int32_t v = head[root]; v >= 0 && !broken[root]; v = next[v])
            for (int64_t p = q->start[v]; p < q->start[v + 1]; p++) {
                broken[root] |= seen[q->objects[p]] == root;
                seen[q->objects[p]] = (int32_t)root;
            }
    }
}

/* Which clusters are merged, by the number of one of them, into `tree`, where each is alone: along
   the best edge of each, of positive gain; where that would give an object two points, only along
   edges that are the best of both ends. */
static void grow_trees(const Clusters *q, const double *gain, int32_t *tree, const uint64_t *words,
                       const Left *left, Room room) {
    const int64_t n = q->n;
    int64_t *best = take(&room, n, 8);
    int32_t *pair = take(&room, n, 4), *head = take(&room, n, 4), *next = take(&room, n, 4),
            *seen = take(&room, q->k, 4);
    uint64_t *all = take(&room, n, 8);
    uint8_t *broken = take(&room, n, 1);
    Ends *found = (Ends *)left->A; /* written only afterwards */
    int64_t *priority = left->B;
    const int64_t candidates = find_candidates(q, gain, found, priority, best);
    for (int64_t v = 0; v < n; v++) pair[v] = -1;
    for (int64_t t = 0; t < candidates; t++) {
        const int32_t A = found[t].low, B = found[t].high;
        const int a = best[A] == priority[t], b = best[B] == priority[t];
        if (b) tree[B] = A;
        if (a && !b) tree[A] = B;
        if (a && b) pair[A] = B; /* one in every tree; its smaller end is the root */
    }
    for (int64_t v = 0; v < n; v++) root_of(tree, (int32_t)v);
    for (int64_t o = 0; o < q->k; o++) seen[o] = -1;
    find_broken(q, tree, words, all, broken, head, next, seen);
    for (int64_t v = 0; v < n; v++)
        if (tree[v] != v && broken[tree[v]]) tree[v] = (int32_t)v;
    for (int64_t v = 0; v < n; v++)
        if (broken[v] && pair[v] >= 0) tree[pair[v]] = (int32_t)v;
}

/* Number the trees from 0 in the order in which they first appear, and collect their points, by
   object within a tree. */
static void merge_points(const Clusters *q, const uint64_t *words, Merged *m, int32_t *next) {
    m->n = 0;
    for (int64_t v = 0; v < q->n; v++) next[v] = -1;
    for (int64_t v = 0; v < q->n; v++) {
        const int32_t root = m->tree[v], grown = next[root] >= 0;
        if (!grown) m->at[next[root] = (int32_t)m->n++] = (Cluster){0};
        Cluster *own = m->at + (m->tree[v] = next[root]);
        own->grown = grown;
        own->word |= words[v];
        own->start += (int32_t)(q->start[v + 1] - q->start[v]); /* how many they are, at first */
    }
    int32_t start = 0;
    for (int64_t t = 0; t < m->n; t++) {
        const int32_t size = m->at[t].start;
        m->at[t].start = next[t] = start;
        start += size;
    }
    m->at[m->n].start = start;
    for (int64_t v = 0; v < q->n; v++) {
        const int32_t t = m->tree[v], first = m->at[t].start;
        for (int64_t p = q->start[v]; p < q->start[v + 1]; p++) {
            int32_t to = next[t]++;
            for (; to > first && m->objects[to - 1] > q->objects[p]; to--) {
                m->objects[to] = m->objects[to - 1];
                m->points[to] = m->points[to - 1];
            }
            m->objects[to] = (int32_t)q->objects[p];
            m->points[to] = (int32_t)q->points[p];
        }
        m->at[t].low = m->objects[first];
        m->at[t].high = m->objects[next[t] - 1];
    }
}

/* Whether merged clusters hold points of one object: not if no bits are common; for sure if 64
   objects in a row are all there can be. */
static int in_conflict(const Merged *m, const Cluster *a, const Cluster *b) {
    if (!(a->grown | b->grown) || !(a->word & b->word)) return 0;
    if ((a->high > b->high ? a->high : b->high) - (a->low < b->low ? a->low : b->low) < 64)
        return 1;
    int32_t i = a->start, j = b->start;
    while (i < a[1].start && j < b[1].start) {
        if (m->objects[i] == m->objects[j]) return 1;
        if (m->objects[i] < m->objects[j])
            i++;
        else
            j++;
    }
    return 0;
}

static int by_high(const void *one, const void *two) {
    const int32_t a = ((const Bundle *)one)->high, b = ((const Bundle *)two)->high;
    return (a > b) - (a < b);
}

static void sort_bundles(Bundle *row, int64_t n) {
    if (n > 64) {
        qsort(row, (size_t)n, sizeof(Bundle), by_high);
        return;
    }
    for (int64_t t = 1; t < n; t++) {
        const Bundle own = row[t];
        int64_t to = t;
        for (; to > 0 && row[to - 1].high > own.high; to--) row[to] = row[to - 1];
        row[to] = own;
    }
}

/* The edges between merged clusters, at their lower ends, in the order of memory: those of cluster
   t from first[t] on. */
static void find_halves(const Clusters *q, const Merged *m, int32_t *first, Half *halves,
                        Ends *ends) {
    memset(first, 0, (size_t)(m->n + 2) * 4);
    for (int64_t e = 0; e < q->edges; e++) {
        const int32_t a = m->tree[q->A[e]], b = m->tree[q->B[e]];
        ends[e] = a < b ? (Ends){a, b} : (Ends){b, a};
        first[ends[e].low + 2] += a != b;
    }
    for (int64_t t = 0; t < m->n; t++) first[t + 2] += first[t + 1];
    for (int64_t e = 0; e < q->edges; e++)
        if (ends[e].low != ends[e].high)
            halves[first[ends[e].low + 1]++] = (Half){ends[e].high, (int32_t)e};
}

/* Add up parallel edges and drop those between clusters in conflict, whose first points are marked
   in `lost_edge`, if that is given. */
static void contract(const Clusters *q, const Merged *m, Left *left, uint8_t *lost_edge,
                     Room room) {
    int32_t *first = take(&room, m->n + 2, 4), *slot = take(&room, m->n, 4);
    Bundle *row = take(&room, q->edges, sizeof(Bundle));
    Half *halves = (Half *)left->A; /* edges are written where their halves have been read */
    find_halves(q, m, first, halves, (Ends *)left->B);
    memset(slot, 0, (size_t)m->n * 4);
    for (int64_t t = 0; t < m->n; t++) {
        int32_t size = 0;
        for (int32_t h = first[t]; h < first[t + 1]; h++) {
            const int32_t high = halves[h].high, e = halves[h].edge,
                          s = slot[high]; /* which may be of another row */
            if (h + AHEAD < first[m->n]) {
                PREFETCH(q->weight + halves[h + AHEAD].edge);
                PREFETCH(q->count + halves[h + AHEAD].edge);
                PREFETCH(slot + halves[h + AHEAD].high);
                PREFETCH(m->at + halves[h + AHEAD].high);
            }
            if (s < size && row[s].high == high) {
                row[s].count += q->count[e];
                row[s].weight += q->weight[e];
            } else {
                row[size] = (Bundle){q->count[e], q->weight[e], high};
                slot[high] = size++;
            }
        }
        sort_bundles(row, size);
        for (int32_t s = 0; s < size; s++) {
            const int32_t high = row[s].high;
            if (in_conflict(m, m->at + t, m->at + high)) {
                left->dropped += row[s].count;
                if (lost_edge)
                    lost_edge[m->points[m->at[t].start]] = lost_edge[m->points[m->at[high].start]] =
                        1;
                continue;
            }
            m->place[t] = m->place[high] = 1;
            left->A[left->edges] = t;
            left->B[left->edges] = high;
            left->count[left->edges] = row[s].count;
            left->weight[left->edges++] = row[s].weight;
        }
    }
}

/* Finish the clusters without an edge and number the others from 0; how many these are. */
static int64_t finish(const Merged *m, Left *left) {
    int64_t clusters = 0, stay = 0, gone = 0;
    for (int64_t t = 0; t < m->n; t++) {
        const int stays = m->place[t];
        if (stays) {
            m->place[t] = (int32_t)clusters;
            left->start[clusters++] = stay;
        }
        for (int32_t p = m->at[t].start; p < m->at[t + 1].start; p++)
            if (stays) {
                left->points[stay] = m->points[p];
                left->objects[stay++] = m->objects[p];
            } else {
                left->done[gone] = m->points[p];
                left->first[gone++] = m->points[m->at[t].start];
            }
    }
    left->start[clusters] = stay;
    for (int64_t e = 0; e < left->edges; e++) {
        left->A[e] = m->place[left->A[e]];
        left->B[e] = m->place[left->B[e]];
    }
    return clusters;
}

/* The arrays that last for the round, then the larger of what its two halves take; how many bytes
   these are. */
static size_t lay_out(const Clusters *q, Merged *m, uint64_t **words, int32_t **next, Room *room) {
    const int64_t n = q->n, p = q->start[n];
    int32_t **of_clusters[] = {&m->tree, &m->place, next};
    for (size_t t = 0; t < sizeof of_clusters / sizeof *of_clusters; t++)
        *of_clusters[t] = take(room, n, 4);
    m->at = take(room, n + 1, sizeof(Cluster));
    m->points = take(room, p, 4);
    m->objects = take(room, p, 4);
    *words = take(room, n, 8);
    const size_t trees = (size_t)(n * 37 + q->k * 4), rows = (size_t)(n * 8 + q->edges * 24);
    return room->taken + (trees > rows ? trees : rows) + 128;
}

/* Merge clusters of k objects along their best edges of positive `gain`, or none without it, then
   drop the edges between clusters in conflict, of which one grew (or is untested, where nothing is
   merged), and finish the clusters without an edge. `left_over` are clusters, edges and points
   left, and matches dropped; -1 without memory. */
API int merge_round(const int64_t *points, const int64_t *objects, const int64_t *start, int64_t n,
                    int64_t k, const int64_t *A, const int64_t *B, const int64_t *count,
                    const double *weight, int64_t edges, const double *gain,
                    const uint8_t *untested, int64_t *new_points, int64_t *new_objects,
                    int64_t *new_start, int64_t *new_A, int64_t *new_B, int64_t *new_count,
                    double *new_weight, int64_t *done, int64_t *first, uint8_t *lost_edge,
                    int64_t *left_over) {
    const Clusters q = {points, objects, start, A, B, count, weight, n, edges, k};
    Left left = {new_points, new_objects, new_start, new_A, new_B, new_count,
                 new_weight, done,        first,     0,     0};
    Merged m;
    Room room = {0};
    uint64_t *words;
    int32_t *next;
    char *memory = room_for(lay_out(&q, &m, &words, &next, &room), 1);
    if (!memory) return -1;
    room = (Room){memory, 0};
    lay_out(&q, &m, &words, &next, &room);
    for (int64_t v = 0; v < n; v++) {
        m.tree[v] = (int32_t)v;
        words[v] = 0;
        for (int64_t p = start[v]; p < start[v + 1]; p++)
            words[v] |= (uint64_t)1 << (objects[p] & 63);
    }
    if (gain) grow_trees(&q, gain, m.tree, words, &left, room);
    merge_points(&q, words, &m, next);
    for (int64_t v = 0; !gain && v < n; v++) m.at[v].grown = untested[v];
    memset(m.place, 0, (size_t)m.n * 4);
    contract(&q, &m, &left, lost_edge, room);
    left_over[0] = finish(&m, &left);
    left_over[1] = left.edges;
    left_over[2] = new_start[left_over[0]];
    left_over[3] = left.dropped;
    free(memory);
    return 0;
}
