/* Template: layer_norm and rms_norm for one element type T, on (rows, n). layer_norm_cpu.c includes it through
   cpu/each_type.h, which defines T, NAME, EXP and EXP_DOWN. */
#include "ops/block/rows_body.h"

typedef struct NAME(scale) {
    T mean, r; /* h = (x - mean) r */
} NAME(scale);

static NAME(scale) NAME(scale_of)(const T *x, int64_t n, const cn__row_norm *j)
{
    const T mean = j->centred ? (T)(NAME(row_sum)(x, n) / (double)n) : 0;
    return (NAME(scale)){ mean, (T)(1 / sqrt(NAME(row_squares)(x, mean, n) / (double)n + j->eps)) };
}

static void NAME(forward)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    const cn__row_norm *j = user;
    const T *w = k->in[1].data, *b = j->centred ? k->in[2].data : NULL;
    for (int64_t row = begin, reported = begin; row < end; row++) {
        const T *x = (const T *)k->in[0].data + row * j->n;
        T *y = (T *)k->out[0].data + row * j->n;
        const NAME(scale) s = NAME(scale_of)(x, j->n, j);
        for (int64_t i = 0; i < j->n; i++) {
            T h = (x[i] - s.mean) * s.r;
            if (w) h *= w[i];
            y[i] = b ? h + b[i] : h;
        }
        reported = cn__rows_done(k, reported, row + 1, end, j->n, thread);
    }
}

/* A row of the backward pass. dw and db: where its shares of dweight and dbias are added; NULL if nobody wants them. */
typedef struct NAME(line) {
    const T *g, *x, *w;
    T *dw, *db;
    NAME(scale) s;
} NAME(line);

/* For elements [begin, end), a multiple of 2 CN__LANES: adds g h to dw and g to db, and the sums of gw and gw h to
   sum[0] and sum[1]. */
static void NAME(add_lanes)(const NAME(line) *l, int64_t begin, int64_t end, double *sum)
{
    NAME(lanes) s[2] = { { 0 }, { 0 } }, t[2] = { { 0 }, { 0 } };
    const NAME(loose) *g = (const void *)(l->g + begin), *x = (const void *)(l->x + begin);
    const NAME(loose) *w = l->w ? (const void *)(l->w + begin) : NULL;
    NAME(loose) *dw = l->dw ? (void *)(l->dw + begin) : NULL, *db = l->dw ? (void *)(l->db + begin) : NULL;
    const T mean = l->s.mean, r = l->s.r;
    for (int64_t i = 0; i < (end - begin) / CN__LANES; i += 2)
        for (int j = 0; j < 2; j++) {
            NAME(lanes) u = g[i + j];
            const NAME(lanes) h = (x[i + j] - mean) * r;
            if (dw) dw[i + j] += u * h, db[i + j] += u;
            if (w) u *= w[i + j];
            s[j] += u, t[j] += u * h;
        }
    sum[0] += NAME(fold)(s), sum[1] += NAME(fold)(t);
}

/* The same for any number of elements. */
static void NAME(add_each)(const NAME(line) *l, int64_t begin, int64_t end, double *sum)
{
    for (int64_t i = begin; i < end; i++) {
        const T h = (l->x[i] - l->s.mean) * l->s.r, u = l->w ? l->g[i] * l->w[i] : l->g[i];
        if (l->dw) l->dw[i] += l->g[i] * h, l->db[i] += l->g[i];
        sum[0] += u, sum[1] += (double)u * h;
    }
}

/* dx = r (gw - mean(gw) - h mean(gw h)) */
static void NAME(backward_row)(const NAME(line) *l, const cn__row_norm *j, T *dx)
{
    const int64_t n = j->n, whole = n - n % (2 * CN__LANES);
    double sum[2] = { 0 };
    for (int64_t i = 0; i < whole; i += SUMMED) NAME(add_lanes)(l, i, whole - i < SUMMED ? whole : i + SUMMED, sum);
    NAME(add_each)(l, whole, n, sum);
    const T c1 = j->centred ? (T)(sum[0] / (double)n) : 0, c2 = (T)(sum[1] / (double)n);
    const T *g = l->g, *x = l->x, *w = l->w, mean = l->s.mean, r = l->s.r;
    for (int64_t i = 0; i < n; i++) dx[i] = r * ((w ? g[i] * w[i] : g[i]) - c1 - (x[i] - mean) * r * c2);
}

/* The rows of one block. share: the sums of their shares of dweight and dbias, in T. */
static void NAME(backward_block)(const cn_kernel *k, const cn__row_norm *j, int64_t begin, int64_t end, T *share,
                                 int thread)
{
    const int64_t n = j->n;
    for (int64_t row = begin, reported = begin; row < end; row++) {
        const T *x = (const T *)k->in[1].data + row * n;
        const NAME(line) l = { .g = (const T *)k->in[0].data + row * n,
                               .x = x,
                               .w = k->in[2].data,
                               .dw = share,
                               .db = share ? share + n : NULL,
                               .s = NAME(scale_of)(x, n, j) };
        NAME(backward_row)(&l, j, (T *)k->out[0].data + row * n);
        reported = cn__rows_done(k, reported, row + 1, end, n, thread);
    }
}

static void NAME(backward_parts)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    const cn__row_norm *j = user;
    T *share = j->sums ? (T *)(j->sums + 2 * j->n * (j->parts + thread)) : NULL;
    for (int64_t part = begin; part < end; part++) {
        const int64_t first = part * j->part_rows, last = part + 1 < j->parts ? first + j->part_rows : j->n_rows;
        double *sums = j->sums ? j->sums + 2 * j->n * part : NULL;
        for (int64_t i = 0; i < 2 * j->n && sums; i++) sums[i] = 0;
        for (int64_t row = first; row < last; row += BLOCK_ROWS) {
            for (int64_t i = 0; i < 2 * j->n && sums; i++) share[i] = 0;
            NAME(backward_block)(k, j, row, last - row < BLOCK_ROWS ? last : row + BLOCK_ROWS, share, thread);
            for (int64_t i = 0; i < 2 * j->n && sums; i++) sums[i] += share[i];
        }
    }
}

/* Sums dweight and dbias over all parts, in order, for columns [begin, end) of (dweight, dbias). */
static void NAME(merge_parts)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__row_norm *j = user;
    T *dw = k->out[1].numel ? k->out[1].data : NULL, *db = k->n_out > 2 && k->out[2].numel ? k->out[2].data : NULL;
    for (int64_t part = 1; part < j->parts; part++)
        for (int64_t i = begin; i < end; i++) j->sums[i] += j->sums[2 * j->n * part + i];
    for (int64_t i = begin; i < end; i++) {
        T *to = i < j->n ? dw : db;
        if (to) to[i < j->n ? i : i - j->n] = j->parts ? (T)j->sums[i] : 0;
    }
}
