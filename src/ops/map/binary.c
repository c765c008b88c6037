/* binary.c: the operators of binary.def: gradients, records, functions. Their loops are in binary_cpu.c. */
#include "ops/shared.h"

#include "classes.h"
#include "ops/kernels.h"

/* ---- gradients that take more than one line ---- */

#define LN2 0.69314718055994530942

static cn_tensor *unless(cn_tensor *g, cn_tensor *condition) { return cn_where(condition, cn__weak(g, 0), g); }

/* g where x > y, g/2 where x = y; if one is NaN, both operands get g. */
static cn_tensor *larger_gets(cn_tensor *g, cn_tensor *x, cn_tensor *y)
{
    cn_tensor *whole = cn_where(cn_lt(x, y), cn__weak(g, 0), g);
    return cn_where(cn_eq(x, y), cn_mul_s(g, 0.5), whole);
}

/* fmax and fmin: g for the operand that is the result, g/2 where x = y. y is the result where it is beyond x, and where
   x alone is NaN. */
static cn_tensor *share(cn_tensor *g, cn_tensor *x, cn_tensor *y, cn_tensor *beyond, bool of_y)
{
    cn_tensor *is_y = cn_logical_or(beyond, cn_logical_and(cn_isnan(x), cn_logical_not(cn_isnan(y))));
    cn_tensor *zero = cn__weak(g, 0), *whole = cn_where(is_y, of_y ? g : zero, of_y ? zero : g);
    return cn_where(cn_eq(x, y), cn_mul_s(g, 0.5), whole);
}

/* v/(x² + y²), and 0 at the origin, where v is 0 too */
static cn_tensor *per_square(cn_tensor *v, cn_tensor *x, cn_tensor *y)
{
    cn_tensor *squares = cn_add(cn_square(x), cn_square(y));
    return cn_div(v, cn_where(cn_eq_s(squares, 0), cn__weak(squares, 1), squares));
}

/* y·x^(y-1), and 0 for y = 0 even where x^-1 is infinite */
static cn_tensor *pow_grad_of_base(cn_tensor *g, cn_tensor *x, cn_tensor *y)
{
    if (y && y->ref.node->state == CN__NUMBER) {
        double e = y->ref.node->args[0].f;
        return e == 0 ? cn_mul_s(g, 0) : cn_mul(g, cn_mul_s(cn_pow_s(x, e - 1), e));
    }
    cn_tensor *slope = cn_mul(g, cn_mul(y, cn_pow(x, cn_sub_s(y, 1))));
    return cn_where(cn_eq_s(y, 0), cn__weak(g, 0), slope);
}

/* z·log(x), and 0 for x = 0 where y ≥ 0 */
static cn_tensor *pow_grad_of_exponent(cn_tensor *g, cn_tensor *x, cn_tensor *y, cn_tensor *z)
{
    cn_tensor *flat = cn_logical_and(cn_eq_s(x, 0), cn_ge_s(y, 0));
    return cn_mul(g, cn_mul(z, cn_log(cn_where(flat, cn__weak(x, 1), x))));
}

typedef cn_tensor *(*gradient_fn)(cn_tensor *g, cn_tensor *x, cn_tensor *y, cn_tensor *z);

static void gradients(cn_grad_call *c, gradient_fn of_x, gradient_fn of_y)
{
    cn_tensor *g = c->out_grad[0], *x = c->in[0], *y = c->in[1], *z = c->out[0];
    if (c->needs[0]) c->in_grad[0] = of_x(g, x, y, z);
    if (c->needs[1]) c->in_grad[1] = of_y(g, x, y, z);
}

#define GRADIENT_OF(name, expression)                                                                                  \
    static cn_tensor *name(cn_tensor *g, cn_tensor *x, cn_tensor *y, cn_tensor *z)                                     \
    {                                                                                                                  \
        return (void)g, (void)x, (void)y, (void)z, (expression);                                                       \
    }
#define GRADIENT(name, of_x, of_y)                                                                                     \
    GRADIENT_OF(name##_grad_of_x, of_x)                                                                                \
    GRADIENT_OF(name##_grad_of_y, of_y)                                                                                \
    static void name##_grad(cn_grad_call *c) { gradients(c, name##_grad_of_x, name##_grad_of_y); }
#define GRADIENT_REAL(name, of_x, of_y)   GRADIENT(name, of_x, of_y)
#define GRADIENT_FLOAT(name, of_x, of_y)  GRADIENT(name, of_x, of_y)
#define GRADIENT_NUMBER(name, of_x, of_y) GRADIENT(name, of_x, of_y)
#define GRADIENT_ANY(name, of_x, of_y)    GRADIENT(name, of_x, of_y)
#define GRADIENT_TEST(name, of_x, of_y)
#define GRADIENT_BITS(name, of_x, of_y)
#define GRADIENT_WHOLE(name, of_x, of_y)
#define BINARY(name, class, cost, doc, real, whole, wgsl, of_x, of_y, ...) GRADIENT_##class(name, of_x, of_y)
#include "binary.def"
#undef BINARY

/* ---- records ---- */

#define TWO(...) CN_IN(CN_S(__VA_ARGS__), CN_S(__VA_ARGS__))
static const cn_case cases[] = {
    { TWO(2, 3, 4) }, { TWO(7) }, { TWO(3, 0) }, { CN_IN(CN_S(2, 1, 4), CN_S(3, 1)) }, { CN_IN(CN_S0, CN_S(5)) },
    { TWO(65, 67) },
};
#define BINARY(name_, class, cost, doc_, real, whole, wgsl_, of_x, of_y, onnx_, xl, xh, yl, yh, second)           \
    const cn_op cn__op_##name_ = {                                                                                \
        .call = #name_ "(Tensor input, Tensor " #second ") -> Tensor",                                            \
        .name = #name_, .doc = doc_ ".", .kind = CN_MAP, .n_in = 2, .n_out = 1, .cheap = cost, DTYPES_##class,    \
        .any_order = true, .infer = INFER_##class, GRAD_##class(name_), .kernels_at = CN__AT(binary, name_),                          \
        .wgsl = wgsl_, .onnx = onnx_,                                                                             \
        CN_CASES_OF(cases), .ranges = (const float[]){ xl, xh, yl, yh },                                          \
    };
#include "binary.def"
#undef BINARY

/* ---- functions ---- */

static double rounded(cn_dtype t, double v)
{
    uint64_t element = 0;
    cn__store_f64(t, &element, cn__wrapped(t, v));
    return cn__load_f64(t, &element);
}

/* y as the divisor of whole numbers, which must not be 0. A number is checked here, other operands when they are
   evaluated. */
static cn_tensor *divisor(const cn_op *op, cn_tensor *x, cn_tensor *y)
{
    if (op != &cn__op_floor_div && op != &cn__op_remainder && op != &cn__op_fmod) return y;
    if (!cn__alive_in(x, op->name) || !cn__alive_in(y, op->name)) return y;
    cn_dtype t = cn__result_dtype(op, (cn_tensor *[]){ x, y }, 2);
    if (cn_dtype_is_float(t) || cn_numel(x) == 0) return y;
    if (y->ref.node->state != CN__NUMBER) return cn__divisor(y);
    if (rounded(t, y->ref.node->args[0].f) != 0) return y;
    cn__fail(y->ctx, CN_BAD_ARGUMENT, "%s: the divisor of whole numbers must not be 0, got %g as %s", op->name,
             y->ref.node->args[0].f, cn_dtype_name(t));
    return NULL;
}

/* Squares and roots need no logarithm. A power of whole numbers is a whole number. */
static cn_tensor *power(cn_tensor *x, double y)
{
    if (y == 2) return cn_square(x);
    if (y == 0.5) return cn_sqrt(x);
    cn_tensor *in[] = { x, cn__weak(x, y) };
    if (!in[1]) return NULL;
    cn_dtype t = cn__result_dtype(&cn__op_pow, in, 2);
    if (!cn_dtype_is_float(t)) {
        if (y < 0) cn__fail(x->ctx, CN_BAD_ARGUMENT, "pow: the exponent of whole numbers must be ≥ 0, got %g", y);
        if (y < 0 || !cn__check_fits(x->ctx, "pow", "exponent", t, y)) return NULL;
    }
    return cn_apply(&cn__op_pow, in, 2, NULL, NULL);
}

/* Comparisons with halves are made in halves. */
static cn_tensor *with_number(const cn_op *op, cn_tensor *x, double y, const char *who)
{
    CN__CALL call = cn__enter_tensor(x, who);
    if (!call.ctx) return NULL;
    if (op == &cn__op_pow) return power(x, y);
    cn_dtype t = cn__dtype(x);
    if ((t == CN_F16 || t == CN_BF16) && op->infer == cn_infer_map_bool) y = rounded(t, y);
    return cn_apply(op, (cn_tensor *[]){ x, divisor(op, x, cn__weak(x, y)) }, 2, NULL, NULL);
}

#define BINARY(name, ...)                                                                                    \
    cn_tensor *cn_##name(cn_tensor *x, cn_tensor *y)                                                         \
    {                                                                                                        \
        return cn_apply(&cn__op_##name, (cn_tensor *[]){ x, divisor(&cn__op_##name, x, y) }, 2, NULL, NULL); \
    }                                                                                                        \
    cn_tensor *cn_##name##_s(cn_tensor *x, double y) { return with_number(&cn__op_##name, x, y, __func__); } \
    bool cn_##name##_(cn_tensor *x, cn_tensor *y)                                                            \
    {                                                                                                        \
        CN__CALL call = cn__call_tensor(x);                                                                  \
        return call.ctx && cn__rebind(x, cn_##name(x, y));                                                   \
    }                                                                                                        \
    bool cn_##name##_s_(cn_tensor *x, double y)                                                              \
    {                                                                                                        \
        CN__CALL call = cn__call_tensor(x);                                                                  \
        return call.ctx && cn__rebind(x, with_number(&cn__op_##name, x, y, __func__));                       \
    }
#include "binary.def"
#undef BINARY

cn_tensor *cn_rsub_s(cn_tensor *x, double y)
{
    CN__CALL call = cn__call_tensor(x);
    return call.ctx ? cn_sub(cn__weak(x, y), x) : NULL;
}

cn_tensor *cn_rdiv_s(cn_tensor *x, double y)
{
    CN__CALL call = cn__call_tensor(x);
    return call.ctx ? cn_div(cn__weak(x, y), x) : NULL;
}

cn_tensor *cn_rpow_s(cn_tensor *x, double base)
{
    CN__CALL call = cn__call_tensor(x);
    return call.ctx ? cn_pow(cn__weak(x, base), x) : NULL;
}
