/* cumsum, cumprod, logcumsumexp and linear_scan: each result along an axis is computed from the one before it. */
#include <math.h>

#include "ops/scan/scan.h"
#include "gpu/shaders.h"

extern const cn_op cn__op_cumsum, cn__op_cumprod, cn__op_logcumsumexp, cn__op_linear_scan;

/* log(e^x + e^y); equal infinities differ by 0 */
static inline double log_add_exp(double x, double y)
{
    return (x > y ? x : y) + log1p(exp(x == y ? 0 : -fabs(x - y)));
}

/* Up to STRIP neighbouring lines are computed at a time. */
#define STRIP 64
typedef struct strip {
    const void *x, *y;
    void *out;
    int64_t at, n, step, width; /* at: the index of the first elements; step: from one to the next */
    int64_t lag;                /* added to the index at which y is read */
} strip;

#define FOLDED(f)     NAME(CN__PASTE(cumsum, f))
#define FOLD(h, x, y) ((h) + (x))
#define TEMPLATE      "ops/scan/cumulate_body.h"
#define TYPES         CN__FLOAT_TYPES | CN__I64_TYPE
#include "cpu/each_type.h"
#undef FOLDED
#undef FOLD

#define FOLDED(f)     NAME(CN__PASTE(cumprod, f))
#define FOLD(h, x, y) ((h) * (x))
#define TEMPLATE      "ops/scan/cumulate_body.h"
#define TYPES         CN__FLOAT_TYPES | CN__I64_TYPE
#include "cpu/each_type.h"
#undef FOLDED
#undef FOLD

#define FOLDED(f)     NAME(CN__PASTE(logcumsumexp, f))
#define FOLD(h, x, y) log_add_exp(h, x)
#define TEMPLATE      "ops/scan/cumulate_body.h"
#define TYPES         CN__FLOAT_TYPES
#include "cpu/each_type.h"
#undef FOLDED
#undef FOLD

#define FOLDED(f)     NAME(CN__PASTE(linear, f))
#define FOLD(h, x, y) ((h) * (y) + (x))
#define TEMPLATE      "ops/scan/cumulate_body.h"
#define TYPES         CN__FLOAT_TYPES
#include "cpu/each_type.h"

typedef void (*strip_fn)(const strip *s);
typedef struct job {
    cn__lines lines;
    strip_fn fn;
    const void *x, *y;
    int64_t strips; /* in each outer row */
    bool reverse;
} job;

static void strips(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const job *j = user;
    int64_t n = j->lines.n, inner = j->lines.inner;
    for (int64_t u = begin; u < end; u++) {
        int64_t column = u % j->strips * STRIP, row = u / j->strips * n + (j->reverse ? n - 1 : 0);
        j->fn(&(strip){
            .x = j->x, .y = j->y, .out = k->out[0].data, .at = row * inner + column, .n = n,
            .step = j->reverse ? -inner : inner, .width = inner - column < STRIP ? inner - column : STRIP,
            .lag = j->reverse ? inner : 0,
        });
    }
}

static void run(const cn_kernel *k, job j)
{
    if (k->out[0].numel == 0) return;
    j.lines = cn__lines_of(&k->out[0], ((const cn__axis_attrs *)k->attrs)->axis);
    j.strips = (j.lines.inner + STRIP - 1) / STRIP;
    int64_t width = j.lines.inner < STRIP ? j.lines.inner : STRIP;
    cn_parallel(k, j.lines.outer * j.strips, cn__grain(j.lines.n * width), strips, &j);
}

static strip_fn by_dtype(const cn_kernel *k, strip_fn f32, strip_fn f64, strip_fn i64)
{
    cn_dtype t = k->out[0].dtype;
    return t == CN_F32 ? f32 : t == CN_F64 ? f64 : i64;
}

static void cumsum_cpu(const cn_kernel *k)
{
    const cn__scan_attrs *a = k->attrs;
    run(k, (job){ .fn = by_dtype(k, cumsum_strip_f32, cumsum_strip_f64, cumsum_strip_i64),
                  .x = k->in[0].data,
                  .reverse = a->reverse });
}

static void cumprod_cpu(const cn_kernel *k)
{
    run(k, (job){.fn = by_dtype(k, cumprod_strip_f32, cumprod_strip_f64, cumprod_strip_i64), .x = k->in[0].data});
}

static void logcumsumexp_cpu(const cn_kernel *k)
{
    run(k, (job){ .fn = by_dtype(k, logcumsumexp_strip_f32, logcumsumexp_strip_f64, NULL), .x = k->in[0].data });
}

static void linear_cpu(const cn_kernel *k)
{
    const cn__scan_attrs *a = k->attrs;
    run(k, (job){.fn = by_dtype(k, linear_strip_f32, linear_strip_f64, NULL), .x = k->in[1].data, .y = k->in[0].data,
                 .reverse = a->reverse});
}

/* ---- on the GPU ---- */

static bool gpu_fold(cn_gpu_call *c, const char *fold, bool reverse)
{
    const char *type = cn_dtype_is_float(c->out[0].dtype) ? "f32" : "i32";
    const cn__gpu_scan s = { .shader = cn__wgsl_cumulate,
                             .holes = CN_GPU_HOLES(CN_GPU_TEXT("type", type), CN_GPU_TEXT("fold", fold)),
                             .reverse = reverse };
    return cn__gpu_scan_lines(c, cn__lines_of(&c->out[0], ((const cn__axis_attrs *)c->attrs)->axis), &s);
}

static bool cumsum_gpu(cn_gpu_call *c) { return gpu_fold(c, "sum", ((const cn__scan_attrs *)c->attrs)->reverse); }
static bool cumprod_gpu(cn_gpu_call *c) { return gpu_fold(c, "product", false); }
static bool logcumsumexp_gpu(cn_gpu_call *c) { return gpu_fold(c, "log_sum", false); }

static bool linear_gpu(cn_gpu_call *c)
{
    const cn__scan_attrs *a = c->attrs;
    const cn__gpu_scan s = { .shader = cn__wgsl_linear_scan, .reverse = a->reverse };
    return cn__gpu_scan_lines(c, cn__lines_of(&c->out[0], a->axis), &s);
}

static cn_tensor *cumsum(cn_tensor *x, int64_t axis, bool reverse)
{
    return cn_apply(&cn__op_cumsum, &x, 1, &(cn__scan_attrs){axis, reverse}, NULL);
}

cn_tensor *cn__linear_scan(cn_tensor *a, cn_tensor *b, int64_t axis, bool reverse)
{
    return cn_apply(&cn__op_linear_scan, (cn_tensor *[]){a, b}, 2, &(cn__scan_attrs){axis, reverse}, NULL);
}

/* (first, v[0], v[1], ..., v[n-2]) along the axis. */
static cn_tensor *shifted(cn_tensor *v, int64_t axis, double first)
{
    if (!v) return NULL;
    cn_dims shape = cn_shape(v);
    if (shape.n == 0 || shape.v[axis] <= 1) return cn_full_like(v, first);
    int64_t n = shape.v[axis];
    shape.v[axis] = 1;
    cn_tensor *head = cn_full(v->ctx, cn__dtype(v), shape, first);
    return cn_cat((cn_tensor *[]){head, cn_narrow(v, axis, 0, n - 1)}, 2, axis);
}

static void cumsum_grad(cn_grad_call *g)
{
    const cn__scan_attrs *a = g->attrs;
    g->in_grad[0] = cumsum(g->out_grad[0], a->axis, !a->reverse);
}

/* dx[i] = (x[0] ... x[i-1]) s[i],  s[i] = sum over k >= i of gy[k] x[i+1] ... x[k] = gy[i] + x[i+1] s[i+1]:
   no division, so zeros are no special case, at any order. */
cn_tensor *cn__cumprod_backward(cn_tensor *x, cn_tensor *y, cn_tensor *gy, int64_t axis)
{
    return cn_mul(shifted(y, axis, 1), cn__linear_scan(x, gy, axis, true));
}

static void cumprod_grad(cn_grad_call *g)
{
    const cn__axis_attrs *a = g->attrs;
    g->in_grad[0] = cn__cumprod_backward(g->in[0], g->out[0], g->out_grad[0], a->axis);
}

/* y[k] = log Σ exp(x[i]) over i ≤ k, so dx[i] = Σ gy[k] exp(x[i] - y[k]) over k ≥ i = exp(x[i] - y[i]) s[i], where
   s[i] = gy[i] + exp(y[i] - y[i+1]) s[i+1]: no exponent is above 0. Where y is -inf so is x, and dx is 0. */
static void logcumsumexp_grad(cn_grad_call *g)
{
    const cn__axis_attrs *a = g->attrs;
    cn_tensor *x = g->in[0], *y = g->out[0], *none = cn_isneginf(y);
    cn_tensor *safe = cn_masked_fill(y, none, 0);
    cn_tensor *step = cn_exp(cn_sub(shifted(y, a->axis, 0), safe));
    cn_tensor *sum = cn__linear_scan(step, cn_masked_fill(g->out_grad[0], none, 0), a->axis, true);
    g->in_grad[0] = cn_mul(cn_exp(cn_sub(x, safe)), sum);
}

/* The gradient of b[i] is that of h[i] plus what comes from later h: the same scan in the other direction. */
static void linear_grad(cn_grad_call *g)
{
    const cn__scan_attrs *a = g->attrs;
    cn_tensor *db = cn__linear_scan(g->in[0], g->out_grad[0], a->axis, !a->reverse), *h = g->out[0];
    if (g->needs[1]) g->in_grad[1] = db;
    if (!g->needs[0]) return;
    g->in_grad[0] = a->reverse ? cn_mul(shifted(db, a->axis, 0), h) : cn_mul(db, shifted(h, a->axis, 0));
}

static bool infer_linear(cn_infer *i)
{
    if (cn__same_shape(&i->in[0]->layout, &i->in[1]->layout)) return cn__infer_scan(i);
    char s[96], t[96];
    return cn_infer_fail(i, CN_BAD_SHAPE, "the operands must have one shape, got %s and %s",
                         cn__shape_text(&i->in[0]->layout, s, sizeof s),
                         cn__shape_text(&i->in[1]->layout, t, sizeof t));
}

const cn_op cn__op_cumsum = {
    .call = "cumsum(Tensor input, int dim) -> Tensor",
    .name = "cumsum", .doc = "Running sum along an axis; integers and bool add up in i64.", .kind = CN_SCAN, .n_in = 1,
    .n_out = 1, .dtypes = CN_FLOATS | CN_BIT(CN_I64), .attr_size = sizeof(cn__scan_attrs), .infer = cn__infer_scan,
    .grad = cumsum_grad, .cpu = cumsum_cpu, .gpu = cumsum_gpu, .onnx = "CumSum",
    CN_CASES(
        {CN_IN(CN_S(2, 3, 4)), .attrs = &(const cn__scan_attrs){1, 0}},
        {CN_IN(CN_S(5, 7)), .attrs = &(const cn__scan_attrs){1, 1}},
        {CN_IN(CN_S(3, 0, 2)), .attrs = &(const cn__scan_attrs){1, 0}},
        {CN_IN(CN_S0), .attrs = &(const cn__scan_attrs){0, 0}},
        {CN_IN(CN_S(17, 131)), .attrs = &(const cn__scan_attrs){0, 0}},
        {CN_IN(CN_S(3, 1001)), .attrs = &(const cn__scan_attrs){1, 0}},
        {CN_IN(CN_S(90, 601)), .attrs = &(const cn__scan_attrs){1, 1}}),
};

const cn_op cn__op_cumprod = {
    .call = "cumprod(Tensor input, int dim) -> Tensor",
    .name = "cumprod", .doc = "Running product along an axis; integers and bool multiply in i64.", .kind = CN_SCAN,
    .n_in = 1, .n_out = 1, .dtypes = CN_FLOATS | CN_BIT(CN_I64), .attr_size = sizeof(cn__axis_attrs),
    .infer = cn__infer_scan, .grad = cumprod_grad, .cpu = cumprod_cpu, .gpu = cumprod_gpu,
    CN_CASES(
        {CN_IN(CN_S(2, 3, 4)), .attrs = &(const cn__axis_attrs){1}},
        {CN_IN(CN_S(5, 7)), .attrs = &(const cn__axis_attrs){1}},
        {CN_IN(CN_S(3, 0, 2)), .attrs = &(const cn__axis_attrs){1}},
        {CN_IN(CN_S0), .attrs = &(const cn__axis_attrs){0}},
        {CN_IN(CN_RANGE(0.9, 1.1, 17, 131)), .attrs = &(const cn__axis_attrs){0}},
        {CN_IN(CN_RANGE(0.9, 1.1, 171, 300)), .attrs = &(const cn__axis_attrs){0}}),
};

const cn_op cn__op_logcumsumexp = {
    .call = "logcumsumexp(Tensor input, int dim) -> Tensor",
    .name = "logcumsumexp", .doc = "log of the running sum of exp(x) along an axis, without overflow.",
    .kind = CN_SCAN, .n_in = 1, .n_out = 1, .dtypes = CN_FLOATS, .attr_size = sizeof(cn__axis_attrs),
    .infer = cn__infer_scan, .grad = logcumsumexp_grad, .cpu = logcumsumexp_cpu, .gpu = logcumsumexp_gpu,
    CN_CASES(
        {CN_IN(CN_S(2, 3, 4)), .attrs = &(const cn__axis_attrs){1}},
        {CN_IN(CN_RANGE(900, 1000, 5, 7)), .attrs = &(const cn__axis_attrs){1}},
        {CN_IN(CN_S(3, 0, 2)), .attrs = &(const cn__axis_attrs){1}},
        {CN_IN(CN_S0), .attrs = &(const cn__axis_attrs){0}},
        {CN_IN(CN_S(17, 131)), .attrs = &(const cn__axis_attrs){0}},
        {CN_IN(CN_S(3, 1001)), .attrs = &(const cn__axis_attrs){1}}),
};

const cn_op cn__op_linear_scan = {
    .call = "_linear_scan(Tensor a, Tensor b, int dim, bool reverse) -> Tensor",
    .name = "linear_scan", .doc = "h[i] = a[i] h[i-1] + b[i] along an axis (reverse: h[i] = a[i+1] h[i+1] + b[i]).",
    .kind = CN_SCAN, .n_in = 2, .n_out = 1, .attr_size = sizeof(cn__scan_attrs), .infer = infer_linear,
    .grad = linear_grad, .cpu = linear_cpu, .gpu = linear_gpu,
    CN_CASES(
        {CN_IN(CN_S(2, 3, 4), CN_S(2, 3, 4)), .attrs = &(const cn__scan_attrs){1, 0}},
        {CN_IN(CN_S(2, 3, 4), CN_S(2, 3, 4)), .attrs = &(const cn__scan_attrs){1, 1}},
        {CN_IN(CN_S(1, 2), CN_S(1, 2)), .attrs = &(const cn__scan_attrs){0, 1}},
        {CN_IN(CN_S(3, 0), CN_S(3, 0)), .attrs = &(const cn__scan_attrs){1, 0}},
        {CN_IN(CN_RANGE(-1, 1, 17, 131), CN_S(17, 131)), .attrs = &(const cn__scan_attrs){0, 1}},
        {CN_IN(CN_RANGE(-1, 1, 3, 1001), CN_S(3, 1001)), .attrs = &(const cn__scan_attrs){1, 0}},
        {CN_IN(CN_RANGE(-1, 1, 90, 601), CN_S(90, 601)), .attrs = &(const cn__scan_attrs){1, 0}}),
};

cn_tensor *cn_cumsum(cn_tensor *x, int64_t axis)
{
    if (!cn__alive(x) || !cn__scan_axis("cumsum", x, &axis)) return NULL;
    return cumsum(cn_dtype_is_float(cn__dtype(x)) || cn__dtype(x) == CN_I64 ? x : cn_cast(x, CN_I64), axis, false);
}

cn_tensor *cn_cumprod(cn_tensor *x, int64_t axis)
{
    if (!cn__alive(x) || !cn__scan_axis("cumprod", x, &axis)) return NULL;
    if (!cn_dtype_is_float(cn__dtype(x)) && cn__dtype(x) != CN_I64) x = cn_cast(x, CN_I64);
    return cn_apply(&cn__op_cumprod, &x, 1, &(cn__axis_attrs){axis}, NULL);
}

cn_tensor *cn_logcumsumexp(cn_tensor *x, int64_t axis)
{
    if (!cn__alive(x) || !cn__scan_axis("logcumsumexp", x, &axis)) return NULL;
    return cn_apply(&cn__op_logcumsumexp, &x, 1, &(cn__axis_attrs){axis}, NULL);
}
