/* make.c: draws the numbers of operands, the same for the same case, and makes tensors of them in a given layout. */
#include "trials/make.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"

/* ---- numbers: PCG32 (O'Neill, 2014) ---- */

typedef struct pcg {
    uint64_t state;
} pcg;

static uint32_t draw(pcg *r)
{
    uint64_t s = r->state;
    r->state = s * 6364136223846793005u + 1442695040888963407u;
    uint32_t x = (uint32_t)(((s >> 18) ^ s) >> 27), turn = (uint32_t)(s >> 59);
    return x >> turn | x << (-turn & 31);
}

static double draw_unit(pcg *r) { return ((double)draw(r) + 0.5) * 0x1p-32; }
static int64_t draw_below(pcg *r, int64_t n) { return (int64_t)(draw_unit(r) * (double)n); }

static pcg seeded(const char *name, int operand)
{
    uint64_t h = 14695981039346656037u + (uint64_t)operand * 0x9e3779b97f4a7c15u;
    for (; *name; name++) h = (h ^ (uint8_t)*name) * 1099511628211u;
    pcg r = { h };
    draw(&r);
    return r;
}

void *trial_memory(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    if (p) return p;
    fprintf(stderr, "out of memory: %zu elements of %zu bytes\n", n, size);
    exit(1);
}

static int64_t product(const cn_dims *shape)
{
    int64_t n = 1;
    for (int d = 0; d < shape->n; d++) n *= shape->v[d];
    return n;
}

static void shuffled(pcg *r, double *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t j = draw_below(r, i + 1);
        v[i] = v[j];
        v[j] = (double)i;
    }
}

/* The whole numbers of a range that `t` can hold. */
static bool whole_range(cn_dtype t, double low, double high, int64_t *from, int64_t *count)
{
    low = ceil(low);
    high = floor(high);
    if (t == CN_U8 || t == CN_BOOL) low = fmax(low, 0);
    if (t == CN_BOOL) high = fmin(high, 1);
    *from = (int64_t)low;
    *count = (int64_t)(high - low) + 1;
    return *count > 0;
}

static bool fill_uniform(pcg *r, ref_tensor *x, double low, double high)
{
    int64_t from = 0, count = 0;
    bool is_float = cn_dtype_is_float(x->dtype);
    if (!is_float && !whole_range(x->dtype, low, high, &from, &count)) return false;
    for (int64_t i = 0; i < x->numel; i++)
        x->v[i] = is_float ? low + draw_unit(r) * (high - low) : (double)(from + draw_below(r, count));
    return true;
}

/* Evenly spaced, in random order; not symmetric, so that magnitudes differ as well. Small types hold too few numbers to
   be distinct; the references of such operators break ties as the kernels do. */
static void fill_distinct(pcg *r, ref_tensor *x, double low, double high)
{
    double n = (double)x->numel;
    shuffled(r, x->v, x->numel);
    for (int64_t i = 0; i < x->numel; i++) {
        double rank = x->v[i];
        if (cn_dtype_is_float(x->dtype)) x->v[i] = low + (rank + 0.3) / n * (high - low);
        else if (x->dtype == CN_BOOL) x->v[i] = fmod(rank, 2);
        else x->v[i] = fmod(rank, 120) - (x->dtype == CN_U8 ? 0 : 60);
    }
}

/* M·Mᵀ/n + I/2, with the elements of M in [-1.5, 1.5]. */
static void fill_positive(pcg *r, ref_tensor *x)
{
    const int64_t n = x->ndim ? x->shape[x->ndim - 1] : 1;
    double *m = trial_memory((size_t)(n * n), sizeof *m);
    for (int64_t at = 0; at < x->numel; at += n * n) {
        for (int64_t i = 0; i < n * n; i++) m[i] = 3 * draw_unit(r) - 1.5;
        for (int64_t i = 0; i < n * n; i++) {
            double sum = i / n == i % n ? 0.5 * (double)n : 0;
            for (int64_t k = 0; k < n; k++) sum += m[i / n * n + k] * m[i % n * n + k];
            x->v[at + i] = sum / (double)n;
        }
    }
    free(m);
}

static bool fill(pcg *r, ref_tensor *x, const cn_spec *s)
{
    switch (s->fill) {
    case CN_FILL_RANGE: return fill_uniform(r, x, s->low, s->high);
    case CN_FILL_DISTINCT: fill_distinct(r, x, -2, 2); return true;
    case CN_FILL_POSITIVE: fill_positive(r, x); return true;
    case CN_FILL_PERMUTATION: shuffled(r, x->v, x->numel); return true;
    case CN_FILL_INDEX:
        for (int64_t i = 0; i < x->numel; i++) x->v[i] = s->low + (double)draw_below(r, (int64_t)(s->high - s->low));
        return true;
    case CN_FILL_BOOL:
        for (int64_t i = 0; i < x->numel; i++) x->v[i] = draw(r) >> 31;
        return true;
    default: return true;
    }
}

static double rounded(cn_dtype t, double v)
{
    char element[8];
    cn__store_f64(t, element, v);
    return cn__load_f64(t, element);
}

static cn_dtype dtype_for(const cn_spec *s, cn_dtype dtype, cn_dtype index)
{
    if (s->fill == CN_FILL_BOOL) return CN_BOOL;
    return s->fill == CN_FILL_INDEX || s->fill == CN_FILL_PERMUTATION ? index : dtype;
}

/* ---- repeated along an axis ---- */

static int repeated_axis(const ref_tensor *x)
{
    for (int d = 0; d < x->ndim; d++)
        if (x->shape[d] > 1) return d;
    return -1;
}

static int64_t inner_size(const ref_tensor *x, int axis)
{
    int64_t n = 1;
    for (int d = axis + 1; d < x->ndim; d++) n *= x->shape[d];
    return n;
}

static bool repeat(ref_tensor *x)
{
    int axis = repeated_axis(x);
    if (axis < 0) return false;
    int64_t inner = inner_size(x, axis), span = inner * x->shape[axis];
    for (int64_t i = 0; i < x->numel; i++) x->v[i] = x->v[i / span * span + i % inner];
    return true;
}

/* ---- operands ---- */

int count_operands(const cn_case *c)
{
    cn_spec specs[CN_MAX_IN];
    return cn_case_operands(NULL, c, specs);
}

bool make_inputs(inputs *x, const char *name, const cn_op *op, const cn_case *c, cn_dtype dtype, cn_dtype index,
                 trial_layout layout)
{
    cn_spec specs[CN_MAX_IN];
    *x = (inputs){ .n = cn_case_operands(op, c, specs) };
    for (int k = 0; k < x->n; k++) {
        const cn_spec *s = &specs[k];
        ref_tensor *t = &x->in[k];
        if (s->fill == CN_FILL_ABSENT) continue;
        *t = (ref_tensor){
            .present = true, .dtype = dtype_for(s, dtype, index), .ndim = s->shape.n, .numel = product(&s->shape)
        };
        memcpy(t->shape, s->shape.v, sizeof t->shape);
        t->v = trial_memory((size_t)t->numel, sizeof *t->v);
        pcg r = seeded(name, k);
        if (!fill(&r, t, s)) {
            free_inputs(x);
            return false;
        }
        for (int64_t i = 0; i < t->numel; i++) t->v[i] = rounded(t->dtype, t->v[i]);
        if (layout == LAYOUT_BROADCAST && s->fill == CN_FILL_RANGE) x->repeats[k] = repeat(t);
    }
    return true;
}

void free_inputs(inputs *x)
{
    for (int k = 0; k < x->n; k++) free(x->in[k].v);
    *x = (inputs){ 0 };
}

/* ---- layouts ---- */

const char *layout_name(trial_layout layout)
{
    static const char *const names[LAYOUTS] = { "contiguous", "strided", "permuted", "flipped", "broadcast" };
    return names[layout];
}

bool layout_applies(const inputs *x, trial_layout layout)
{
    for (int k = 0; k < x->n; k++) {
        const ref_tensor *t = &x->in[k];
        if (!t->present) continue;
        if (layout == LAYOUT_CONTIGUOUS || layout == LAYOUT_STRIDED || (layout == LAYOUT_PERMUTED && t->ndim > 1) ||
            (layout == LAYOUT_FLIPPED && t->ndim > 0) || (layout == LAYOUT_BROADCAST && x->repeats[k]))
            return true;
    }
    return false;
}

static cn_tensor *tensor_of(cn_ctx *ctx, cn_dtype t, cn_dims shape, const double *v)
{
    int64_t n = product(&shape);
    size_t size = cn_dtype_size(t);
    char *data = trial_memory((size_t)n, size);
    for (int64_t i = 0; i < n; i++) cn__store_f64(t, data + (size_t)i * size, v[i]);
    cn_tensor *made = cn_from(ctx, t, shape, data);
    free(data);
    return made;
}

static cn_dims shape_of(const ref_tensor *x)
{
    cn_dims d = { .n = x->ndim };
    memcpy(d.v, x->shape, sizeof d.v);
    return d;
}

/* The elements between those of the view are 97: a kernel that reads one gives a wrong result. */
static cn_tensor *strided(cn_ctx *ctx, const ref_tensor *x)
{
    cn_dims wide = shape_of(x);
    if (x->ndim == 0) wide.v[wide.n++] = 1;
    int last = wide.n - 1;
    int64_t s = wide.v[last], row = 2 * s + 2, rows = s ? x->numel / s : 0;
    wide.v[last] = row;
    int64_t n = product(&wide);
    double *v = trial_memory((size_t)n, sizeof *v);
    for (int64_t i = 0; i < n; i++) v[i] = 97;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < s; j++) v[i * row + 1 + 2 * j] = x->v[i * s + j];
    cn_tensor *whole = tensor_of(ctx, x->dtype, wide, v);
    free(v);
    return x->ndim ? cn_slice(whole, last, 1, 1 + 2 * s, 2) : cn_select(whole, 0, 1);
}

static cn_tensor *permuted(cn_ctx *ctx, const ref_tensor *x)
{
    cn_dims turned = { .n = x->ndim }, order = { .n = x->ndim };
    for (int d = 0; d < x->ndim; d++) {
        turned.v[d] = x->shape[x->ndim - 1 - d];
        order.v[d] = x->ndim - 1 - d;
    }
    double *v = trial_memory((size_t)x->numel, sizeof *v);
    for (int64_t i = 0; i < x->numel; i++) {
        int64_t rest = i, at = 0, step = x->numel;
        for (int d = x->ndim - 1; d >= 0; d--) { /* axis d of x is axis ndim-1-d here: the last comes first */
            step /= x->shape[d];
            at += rest % x->shape[d] * step;
            rest /= x->shape[d];
        }
        v[at] = x->v[i];
    }
    cn_tensor *t = tensor_of(ctx, x->dtype, turned, v);
    free(v);
    return cn_permute(t, order);
}

static cn_tensor *flipped(cn_ctx *ctx, const ref_tensor *x)
{
    double *v = trial_memory((size_t)x->numel, sizeof *v);
    for (int64_t i = 0; i < x->numel; i++) v[i] = x->v[x->numel - 1 - i];
    cn_tensor *t = tensor_of(ctx, x->dtype, shape_of(x), v);
    free(v);
    return cn_flip(t, CN_ALL);
}

static bool does_repeat(const ref_tensor *x, int axis)
{
    int64_t inner = inner_size(x, axis), span = inner * x->shape[axis];
    for (int64_t i = 0; i < x->numel; i++)
        if (x->v[i] != x->v[i / span * span + i % inner]) return false;
    return true;
}

static cn_tensor *broadcast(cn_ctx *ctx, const ref_tensor *x, int axis)
{
    cn_dims narrow = shape_of(x);
    narrow.v[axis] = 1;
    int64_t inner = inner_size(x, axis), n = product(&narrow);
    double *v = trial_memory((size_t)n, sizeof *v);
    for (int64_t i = 0; i < n; i++) v[i] = x->v[i / inner * inner * x->shape[axis] + i % inner];
    cn_tensor *t = tensor_of(ctx, x->dtype, narrow, v);
    free(v);
    return cn_expand(t, shape_of(x));
}

cn_tensor *make_tensor(cn_ctx *ctx, const ref_tensor *x, trial_layout layout)
{
    if (!x->present) return NULL;
    int axis = repeated_axis(x);
    if (layout == LAYOUT_STRIDED) return strided(ctx, x);
    if (layout == LAYOUT_PERMUTED && x->ndim > 1) return permuted(ctx, x);
    if (layout == LAYOUT_FLIPPED && x->ndim > 0) return flipped(ctx, x);
    if (layout == LAYOUT_BROADCAST && axis >= 0 && does_repeat(x, axis)) return broadcast(ctx, x, axis);
    return tensor_of(ctx, x->dtype, shape_of(x), x->v);
}
