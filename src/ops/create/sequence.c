/* sequence.c: arange, linspace, eye: numbers computed from their position. */
#include "create.h"

#include <math.h>

#include "cpu/isa.h"

/* start + position·step; in whole numbers, with wrap-around, if the dtype is one of whole numbers */
static void arange_block(const cn_loop *l, cn_dtype t, int64_t first, int64_t n, void *out)
{
    double f64[CN__PIECE], start = l->args[0].f, step = l->args[1].f;
    int64_t i64[CN__PIECE], whole_start = cn__load_i64(CN_F64, &start), whole_step = cn__load_i64(CN_F64, &step);
    if (cn_dtype_is_float(t)) {
        for (int64_t i = 0; i < n; i++) f64[i] = start + (double)(first + i) * step;
        cn__convert(t, out, CN_F64, f64, n);
    } else {
        for (int64_t i = 0; i < n; i++)
            i64[i] = (int64_t)((uint64_t)whole_start + (uint64_t)(first + i) * (uint64_t)whole_step);
        cn__convert(t, out, CN_I64, i64, n);
    }
}

/* Computed from both ends towards the middle, so the last number is exactly `end`. */
static void linspace_block(const cn_loop *l, cn_dtype t, int64_t first, int64_t n, void *out)
{
    const cn__shape_attrs *a = l->attrs;
    int64_t steps = a->shape[0];
    double f64[CN__PIECE], start = l->args[0].f, end = l->args[1].f;
    double step = steps > 1 ? (end - start) / (double)(steps - 1) : 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = first + i;
        f64[i] = k < steps / 2 || steps == 1 ? start + step * (double)k : end - step * (double)(steps - 1 - k);
    }
    cn__convert(t, out, CN_F64, f64, n);
}

CN__INLINE void in_blocks(const cn_loop *l, void (*block)(const cn_loop *, cn_dtype, int64_t, int64_t, void *))
{
    const cn__shape_attrs *a = l->attrs;
    cn_dtype t = (cn_dtype)a->dtype;
    for (int64_t i = 0; i < l->n; i += CN__PIECE) {
        int64_t n = l->n - i < CN__PIECE ? l->n - i : CN__PIECE;
        block(l, t, l->start + i, n, (char *)l->out + (size_t)i * cn_dtype_size(t));
    }
}

static void arange_loop(const cn_loop *l) { in_blocks(l, arange_block); }
static void linspace_loop(const cn_loop *l) { in_blocks(l, linspace_block); }

static void eye_loop(const cn_loop *l)
{
    const cn__shape_attrs *a = l->attrs;
    size_t size = cn_dtype_size((cn_dtype)a->dtype);
    int64_t rows = a->shape[0], cols = a->shape[1], diagonal = rows < cols ? rows : cols;
    double one;
    cn__store_f64((cn_dtype)a->dtype, &one, 1);
    memset(l->out, 0, (size_t)l->n * size);
    /* the 1 of row r is at position r·(cols + 1) */
    for (int64_t r = (l->start + cols) / (cols + 1); r < diagonal && r * (cols + 1) < l->start + l->n; r++)
        memcpy((char *)l->out + (size_t)(r * (cols + 1) - l->start) * size, &one, size);
}

static bool sequence_infer(cn_infer *i)
{
    const cn__shape_attrs *a = i->attrs;
    return a->ndim == 1 ? cn__infer_created(i)
                        : cn_infer_fail(i, CN_BAD_SHAPE, "a sequence has 1 dimension, got %lld", (long long)a->ndim);
}

static bool eye_infer(cn_infer *i)
{
    const cn__shape_attrs *a = i->attrs;
    return a->ndim == 2 ? cn__infer_created(i)
                        : cn_infer_fail(i, CN_BAD_SHAPE, "a matrix has 2 dimensions, got %lld", (long long)a->ndim);
}

/* a2: how many */
#define LINSPACE                                                                                                   \
    "select(p1 - f32(a2 - 1u - i) * ((p1 - p0) / f32(max(a2, 2u) - 1u)), p0 + f32(i) * ((p1 - p0) / f32(max(a2, "    \
    "2u) - 1u)), i < a2 / 2u || a2 == 1u)"

#define FROM(a, b) CN_ARGS({ .f = a }, { .f = b })

const cn_op cn__op_arange = {
    .call = "arange(float start, float end, float step=1, *, dtype dtype=f32) -> Tensor",
    .name = "arange", .doc = "start, start + step, ... up to but not including the end.", .kind = CN_MAP,
    .n_in = 0, .n_out = 1,
    .dtypes = CN_ANY & ~CN_BIT(CN_BOOL), .cheap = true, .attr_size = sizeof(cn__shape_attrs), .infer = sequence_infer,
    .no_grad = "it has no operands", .loops = { CN__EVERY_DTYPE(arange_loop) },
    .wgsl = "p0 + f32(i) * p1", .wgsl_whole = "p0 + i32(i) * p1", .onnx = "Range",
    CN_CASES({ .attrs = CN__SHAPE(CN_F32, 7), FROM(0.5, 0.25) }, { .attrs = CN__SHAPE(CN_I64, 1), FROM(3, 2) },
             { .attrs = CN__SHAPE(CN_I32, 0), FROM(3, 2) }, { .attrs = CN__SHAPE(CN_U8, 9), FROM(250, 1) },
             { .attrs = CN__SHAPE(CN_F16, 33), FROM(1, -0.5) }, { .attrs = CN__SHAPE(CN_F64, 4097), FROM(-1, 0.1) }),
};

const cn_op cn__op_linspace = {
    .call = "linspace(float start, float end, int steps, *, dtype dtype=f32) -> Tensor",
    .name = "linspace", .doc = "Evenly spaced numbers from start to end, both included.", .kind = CN_MAP,
    .n_in = 0, .n_out = 1,
    .dtypes = CN_ANY & ~CN_BIT(CN_BOOL), .cheap = true, .attr_size = sizeof(cn__shape_attrs), .infer = sequence_infer,
    .no_grad = "it has no operands", .loops = { CN__EVERY_DTYPE(linspace_loop) },
    .wgsl = LINSPACE,
    .wgsl_whole = "spaced_whole(p0, p1, real_of(lo0, hi0), real_of(lo1, hi1), i, a2)",
    CN_CASES({ .attrs = CN__SHAPE(CN_F32, 7), FROM(-1, 2) }, { .attrs = CN__SHAPE(CN_F64, 1), FROM(3, 5) },
             { .attrs = CN__SHAPE(CN_F32, 0), FROM(3, 5) }, { .attrs = CN__SHAPE(CN_I32, 5), FROM(0, 10) },
             { .attrs = CN__SHAPE(CN_BF16, 32), FROM(1, 0) }, { .attrs = CN__SHAPE(CN_F64, 4097), FROM(0, 1) }),
};

const cn_op cn__op_eye = {
    .call = "eye(int n, int m, *, dtype dtype=f32) -> Tensor",
    .name = "eye", .doc = "1 on the diagonal, 0 elsewhere.", .kind = CN_MAP,
    .n_in = 0, .n_out = 1, .dtypes = CN_ANY, .cheap = true,
    .attr_size = sizeof(cn__shape_attrs), .infer = eye_infer, .no_grad = "it has no operands",
    .loops = { CN__EVERY_DTYPE(eye_loop) }, .wgsl = "i / a3 == i % a3", .onnx = "EyeLike",
    CN_CASES({ .attrs = CN__SHAPE(CN_F32, 3, 3) }, { .attrs = CN__SHAPE(CN_F64, 2, 5) },
             { .attrs = CN__SHAPE(CN_I64, 7, 3) }, { .attrs = CN__SHAPE(CN_BOOL, 1, 1) },
             { .attrs = CN__SHAPE(CN_F16, 4, 0) }, { .attrs = CN__SHAPE(CN_F32, 65, 67) }),
};

/* Whether arange can count from start to end. */
static bool check_arange(cn_ctx *ctx, double start, double end, double step)
{
    const char *rule = NULL;
    if (!isfinite(start) || !isfinite(end) || !isfinite(step)) rule = "start, end and step must be finite";
    else if (step == 0) rule = "step must not be 0";
    else if ((end - start) / step < 0) rule = "step must lead from start to end";
    else if (!(ceil((end - start) / step) < 0x1p62)) rule = "there must be fewer than 2^62 elements";
    return !rule || cn__fail(ctx, CN_BAD_ARGUMENT, "arange: %s, got start %g, end %g, step %g", rule, start, end, step);
}

cn_tensor *cn_arange(cn_ctx *ctx, cn_dtype t, double start, double end, double step)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (!check_arange(ctx, start, end, step)) return NULL;
    cn__shape_attrs a = cn__shaped(t, CN_DIMS((int64_t)ceil((end - start) / step)));
    /* As in PyTorch: fractions count for the number of elements, not for whole elements. */
    if (!cn_dtype_is_float(t)) start = trunc(start), step = trunc(step);
    return cn_apply_in(ctx, &cn__op_arange, &a, (cn_arg[CN_MAX_ARGS]){ { .f = start }, { .f = step } });
}

cn_tensor *cn_linspace(cn_ctx *ctx, cn_dtype t, double start, double end, int64_t steps)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (steps < 0) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "linspace: steps must be ≥ 0, got %lld", (long long)steps);
        return NULL;
    }
    cn__shape_attrs a = cn__shaped(t, CN_DIMS(steps));
    if (steps && (unsigned)t < CN_DTYPES && !cn_dtype_is_float(t)) {
        if (!cn__check_fits(ctx, "linspace", "start", t, start)) return NULL;
        if (steps > 1 && !cn__check_fits(ctx, "linspace", "end", t, end)) return NULL;
        start = trunc(start), end = trunc(end);
    }
    return cn_apply_in(ctx, &cn__op_linspace, &a, (cn_arg[CN_MAX_ARGS]){ { .f = start }, { .f = end } });
}

cn_tensor *cn_eye(cn_ctx *ctx, cn_dtype t, int64_t rows, int64_t cols)
{
    cn__shape_attrs a = cn__shaped(t, CN_DIMS(rows, cols));
    return cn_apply_in(ctx, &cn__op_eye, &a, NULL);
}
