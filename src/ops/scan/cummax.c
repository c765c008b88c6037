/* cummax and cummin: the largest and the smallest element so far along an axis, and its index. */
#include <math.h>

#include "ops/scan/scan.h"
#include "gpu/shaders.h"

typedef void (*columns_fn)(const void *data, void *values, int64_t *at, const cn__lines *l, int64_t from, int64_t to);

#define FOLDED          NAME(cummax)
#define BEATS(now, best) ((now) >= (best))
#define TEMPLATE        "ops/scan/cummax_body.h"
#define TYPES           CN__FLOAT_TYPES | CN__WHOLE_TYPES
#include "cpu/each_type.h"
#undef FOLDED
#undef BEATS

#define FOLDED          NAME(cummin)
#define BEATS(now, best) ((now) <= (best))
#define TEMPLATE        "ops/scan/cummax_body.h"
#define TYPES           CN__FLOAT_TYPES | CN__WHOLE_TYPES
#include "cpu/each_type.h"

extern const cn_op cn__op_cummax, cn__op_cummin;

#define COLUMNS(f)                                                                                             \
    {                                                                                                          \
        [CN_BOOL] = f##_u8, [CN_U8] = f##_u8, [CN_I8] = f##_i8, [CN_I16] = f##_i16, [CN_I32] = f##_i32,        \
        [CN_I64] = f##_i64, [CN_F32] = f##_f32, [CN_F64] = f##_f64,                                            \
    }
static const columns_fn largest[CN_DTYPES] = COLUMNS(cummax), smallest[CN_DTYPES] = COLUMNS(cummin);

#define STRIP 64

static void strips(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const cn__lines *l = user;
    int64_t per_row = (l->inner + STRIP - 1) / STRIP;
    size_t size = cn_dtype_size(k->out[0].dtype);
    for (int64_t u = begin; u < end; u++) {
        int64_t row = u / per_row * l->n * l->inner, from = u % per_row * STRIP;
        int64_t to = l->inner - from < STRIP ? l->inner : from + STRIP;
        const void *x = (const char *)k->in[0].data + (size_t)row * size;
        void *v = (char *)k->out[0].data + (size_t)row * size;
        int64_t *at = (int64_t *)k->out[1].data + row;
        (k->op == &cn__op_cummin ? smallest : largest)[k->out[0].dtype](x, v, at, l, from, to);
    }
}

static void cpu(const cn_kernel *k)
{
    const cn__axis_attrs *a = k->attrs;
    if (k->out[0].numel == 0) return;
    cn__lines l = cn__lines_of(&k->in[0], a->axis);
    int64_t width = l.inner < STRIP ? l.inner : STRIP;
    cn_parallel(k, l.outer * ((l.inner + STRIP - 1) / STRIP), cn__grain(l.n * width), strips, &l);
}

/* A state is the word of an element and its index. Adding 1 makes the key of NaN, the largest, the smallest. */
static bool gpu(cn_gpu_call *c)
{
    const bool is_min = c->op == &cn__op_cummin;
    const bool lifted = is_min && cn_dtype_is_float(c->in[0].dtype);
    const cn__gpu_scan s = { .shader = cn__wgsl_cummax,
                             .holes = CN_GPU_HOLES(CN_GPU_TEXT("key", cn__gpu_key(c->in[0].dtype)),
                                                   CN_GPU_TEXT("beats", is_min ? "<=" : ">="),
                                                   CN_GPU_NUMBER("more", lifted)) };
    return cn__gpu_scan_lines(c, cn__lines_of(&c->in[0], ((const cn__axis_attrs *)c->attrs)->axis), &s);
}

static void grad(cn_grad_call *g)
{
    const cn__axis_attrs *a = g->attrs;
    g->in_grad[0] = cn__scatter_back(g, a->axis);
}

static const cn_case cases[] = {
    {CN_IN(CN_DISTINCT(2, 3, 4)), .attrs = &(const cn__axis_attrs){1}},
    {CN_IN(CN_DISTINCT(5, 7)), .attrs = &(const cn__axis_attrs){1}},
    {CN_IN(CN_DISTINCT(3, 0, 2)), .attrs = &(const cn__axis_attrs){1}},
    {CN_IN(CN_S0), .attrs = &(const cn__axis_attrs){0}},
    {CN_IN(CN_DISTINCT(17, 131)), .attrs = &(const cn__axis_attrs){0}},
    {CN_IN(CN_DISTINCT(90, 601)), .attrs = &(const cn__axis_attrs){1}},
};

const cn_op cn__op_cummax = {
    .call = "cummax(Tensor input, int dim) -> (Tensor values, Tensor indices)",
    .name = "cummax",
    .doc = "The largest element so far along an axis, and its index, the last of equal ones; a NaN stays the largest.",
    .kind = CN_SCAN, .n_in = 1, .n_out = 2, .dtypes = CN_NUMBERS | CN_BIT(CN_BOOL), .attr_size = sizeof(cn__axis_attrs),
    .infer = cn__infer_scan, .grad = grad, .cpu = cpu, .gpu = gpu,
    CN_CASES_OF(cases),
};

const cn_op cn__op_cummin = {
    .call = "cummin(Tensor input, int dim) -> (Tensor values, Tensor indices)",
    .name = "cummin",
    .doc = "The smallest element so far along an axis, and its index, the last of equal ones; a NaN stays "
           "the smallest.",
    .kind = CN_SCAN, .n_in = 1, .n_out = 2, .dtypes = CN_NUMBERS | CN_BIT(CN_BOOL), .attr_size = sizeof(cn__axis_attrs),
    .infer = cn__infer_scan, .grad = grad, .cpu = cpu, .gpu = gpu,
    CN_CASES_OF(cases),
};

static cn_tensor *scan(const cn_op *op, cn_tensor *x, int64_t axis, cn_tensor **indices)
{
    if (indices) *indices = NULL;
    if (!cn__alive_in(x, op->name) || !cn__scan_axis(op->name, x, &axis)) return NULL;
    cn_tensor *out[CN_MAX_OUT];
    if (!cn_apply_n(op, &x, 1, &(cn__axis_attrs){axis}, NULL, out)) return NULL;
    if (indices) *indices = out[1];
    return out[0];
}

cn_tensor *cn_cummax(cn_tensor *x, int64_t axis, cn_tensor **at) { return scan(&cn__op_cummax, x, axis, at); }
cn_tensor *cn_cummin(cn_tensor *x, int64_t axis, cn_tensor **at) { return scan(&cn__op_cummin, x, axis, at); }
