/* triangle.c: tril and triu keep one side of a diagonal of the last two axes and set the other to zero. */
#include "create.h"

static int64_t within(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

/* For elements of `size` bytes: keeps those with column - row in [low, high], sets the others to 0. */
static void band(const cn_loop *l, size_t size, int64_t low, int64_t high)
{
    const cn__triangle_attrs *a = l->attrs;
    const char *in = l->in[0];
    char *out = l->out;
    low = within(low, -a->rows, a->cols), high = within(high, -a->rows, a->cols);
    for (int64_t i = 0, n; i < l->n; i += n, in += (size_t)n * size, out += (size_t)n * size) {
        const int64_t col = (l->start + i) % a->cols, row = (l->start + i) / a->cols % a->rows;
        n = l->n - i < a->cols - col ? l->n - i : a->cols - col; /* to the end of the row */
        const int64_t from = within(low + row - col, 0, n), to = within(high + row - col + 1, from, n);
        memset(out, 0, (size_t)from * size);
        memmove(out + (size_t)from * size, in + (size_t)from * size, (size_t)(to - from) * size);
        memset(out + (size_t)to * size, 0, (size_t)(n - to) * size);
    }
}

static void tril_1(const cn_loop *l) { band(l, 1, INT64_MIN, l->args[0].i); }
static void tril_2(const cn_loop *l) { band(l, 2, INT64_MIN, l->args[0].i); }
static void tril_4(const cn_loop *l) { band(l, 4, INT64_MIN, l->args[0].i); }
static void tril_8(const cn_loop *l) { band(l, 8, INT64_MIN, l->args[0].i); }
static void triu_1(const cn_loop *l) { band(l, 1, l->args[0].i, INT64_MAX); }
static void triu_2(const cn_loop *l) { band(l, 2, l->args[0].i, INT64_MAX); }
static void triu_4(const cn_loop *l) { band(l, 4, l->args[0].i, INT64_MAX); }
static void triu_8(const cn_loop *l) { band(l, 8, l->args[0].i, INT64_MAX); }

#define BY_SIZE(n)                                                                                                 \
    { [CN_BOOL] = n##_1, [CN_U8] = n##_1, [CN_I8] = n##_1, [CN_I16] = n##_2, [CN_F16] = n##_2, [CN_BF16] = n##_2,  \
      [CN_I32] = n##_4,  [CN_F32] = n##_4, [CN_I64] = n##_8, [CN_F64] = n##_8 }

static bool infer(cn_infer *i)
{
    const cn__triangle_attrs *a = i->attrs;
    const cn_layout *l = &i->in[0]->layout;
    char text[96];
    if (l->ndim < 2 || l->shape[l->ndim - 2] != a->rows || l->shape[l->ndim - 1] != a->cols)
        return cn_infer_fail(i, CN_BAD_SHAPE, "the last axes of %s must be %lld by %lld",
                             cn__shape_text(l, text, sizeof text), (long long)a->rows, (long long)a->cols);
    return cn_infer_map(i);
}

static void tril_grad(cn_grad_call *c) { c->in_grad[0] = cn_tril(c->out_grad[0], c->args[0].i); }
static void triu_grad(cn_grad_call *c) { c->in_grad[0] = cn_triu(c->out_grad[0], c->args[0].i); }

/* compares column - row with the diagonal; a0: rows, a1: columns */
#define SIDE(compare) "i32(i % a1) - i32(i / a1 % a0) " compare " saturated(lo0, hi0)"
#define WITHIN(compare)                                                                                            \
    .wgsl = "select(0.0, x, " SIDE(compare) ")", .wgsl_whole = "select(0, x, " SIDE(compare) ")"
#define SIZES(r, c) .attrs = &(const cn__triangle_attrs){ r, c }
static const cn_case cases[] = {
    { CN_IN(CN_S(3, 4)), SIZES(3, 4) }, { CN_IN(CN_S(2, 5, 3)), SIZES(5, 3), CN_ARGS({ .i = 1 }) },
    { CN_IN(CN_S(4, 4)), SIZES(4, 4), CN_ARGS({ .i = -2 }) }, { CN_IN(CN_S(3, 0)), SIZES(3, 0) },
    { CN_IN(CN_S(1, 1)), SIZES(1, 1) },
    { CN_IN(CN_S(2, 65, 33)), SIZES(65, 33), CN_ARGS({ .i = -3 }) },
};

const cn_op cn__op_tril = {
    .call = "tril(Tensor input, int diagonal=0) -> Tensor",
    .name = "tril", .doc = "Keeps the elements on and below a diagonal of the last two axes; the others become 0.",
    .kind = CN_MAP,
    .n_in = 1, .n_out = 1,
    .dtypes = CN_ANY, .cheap = true, .attr_size = sizeof(cn__triangle_attrs), .infer = infer, .grad = tril_grad,
    .loops = BY_SIZE(tril), WITHIN("<="), .onnx = "Trilu", CN_CASES_OF(cases),
};

const cn_op cn__op_triu = {
    .call = "triu(Tensor input, int diagonal=0) -> Tensor",
    .name = "triu", .doc = "Keeps the elements on and above a diagonal of the last two axes; the others become 0.",
    .kind = CN_MAP,
    .n_in = 1, .n_out = 1,
    .dtypes = CN_ANY, .cheap = true, .attr_size = sizeof(cn__triangle_attrs), .infer = infer, .grad = triu_grad,
    .loops = BY_SIZE(triu), WITHIN(">="), .onnx = "Trilu", CN_CASES_OF(cases),
};

static cn_tensor *triangle(const cn_op *op, cn_tensor *x, int64_t diagonal)
{
    CN__CALL call = cn__enter_tensor(x, op->name);
    if (!call.ctx) return NULL;
    const cn_layout *l = cn__layout(x);
    if (l->ndim < 2) {
        cn__fail(x->ctx, CN_BAD_SHAPE, "%s: input must have at least 2 dimensions, got %d", op->name, l->ndim);
        return NULL;
    }
    cn__triangle_attrs a = { l->shape[l->ndim - 2], l->shape[l->ndim - 1] };
    return cn_apply(op, &x, 1, &a, (cn_arg[CN_MAX_ARGS]){ { .i = diagonal } });
}

cn_tensor *cn_tril(cn_tensor *x, int64_t diagonal) { return triangle(&cn__op_tril, x, diagonal); }

cn_tensor *cn_triu(cn_tensor *x, int64_t diagonal) { return triangle(&cn__op_triu, x, diagonal); }
