/* function.c: cn_map, a function of the user's on every element. It is made as a user would make an operator: its
   records are in no list, because a C function has no kernel on the GPU, no signature and no cases. */
#include "ops/shared.h"

typedef double (*plain_fn)(double x);
typedef double (*user_fn)(void *user, double x);

/* A function is part of a plan's identity: its address is an attribute. fn is a user_fn if `with_user`. */
typedef struct function {
    int64_t fn, derivative, user, with_user;
} function;

static double call(const function *f, double x)
{
    return f->with_user ? ((user_fn)(uintptr_t)f->fn)((void *)(uintptr_t)f->user, x) : ((plain_fn)(uintptr_t)f->fn)(x);
}

#define LOOP(dtype, element, result)                                                    \
    static void map_##dtype(const cn_loop *l)                                           \
    {                                                                                   \
        const element *x = l->in[0];                                                    \
        result *y = l->out;                                                             \
        for (int64_t i = 0; i < l->n; i++) y[i] = (result)call(l->attrs, (double)x[i]); \
    }
LOOP(f32, float, float)
LOOP(f64, double, double)
LOOP(bool, bool, float)
LOOP(u8, uint8_t, float)
LOOP(i8, int8_t, float)
LOOP(i16, int16_t, float)
LOOP(i32, int32_t, float)
LOOP(i64, int64_t, float)

static bool infer(cn_infer *i)
{
    if (!cn_infer_map(i)) return false;
    if (!cn_dtype_is_float(i->out[0].dtype)) i->out[0].dtype = CN_F32;
    return true;
}

static cn_tensor *apply(const cn_op *op, cn_tensor *x, function f, const char *who);
static const cn_op map, map_grad;

static void grad(cn_grad_call *g)
{
    function slope = *(const function *)g->attrs;
    slope.fn = slope.derivative;
    slope.derivative = 0;
    g->in_grad[0] = cn_mul(g->out_grad[0], apply(&map, g->in[0], slope, "map"));
}

#define RECORD                                                                                        \
    .doc = "fn(x), where fn is a C function.", .kind = CN_MAP, .n_in = 1, .n_out = 1, .infer = infer, \
    .dtypes = CN_NUMBERS | CN_BIT(CN_BOOL), .any_order = true, .attr_size = sizeof(function),                            \
    .loops = { [CN_F32] = map_f32, [CN_F64] = map_f64, [CN_BOOL] = map_bool, [CN_U8] = map_u8,        \
               [CN_I8] = map_i8,   [CN_I16] = map_i16, [CN_I32] = map_i32,   [CN_I64] = map_i64 }
static const cn_op map = { .name = "map",
                           .no_grad = "the derivative of a C function is not known; cn_map_grad takes it as well",
                           RECORD };
static const cn_op map_grad = { .name = "map_grad", .grad = grad, RECORD };

static cn_tensor *apply(const cn_op *op, cn_tensor *x, function f, const char *who)
{
    CN__CALL call = cn__enter_tensor(x, who);
    if (!call.ctx) return NULL;
    if (!f.fn) return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: fn is NULL", op->name), NULL;
    if (op == &map_grad && !f.derivative)
        return cn__fail(x->ctx, CN_BAD_ARGUMENT, "%s: derivative is NULL; cn_map needs none", op->name), NULL;
    return cn_apply(op, &x, 1, &f, NULL);
}

cn_tensor *cn_map(cn_tensor *x, double (*fn)(double x))
{
    return apply(&map, x, (function){ .fn = (int64_t)(uintptr_t)fn }, __func__);
}

cn_tensor *cn_map_grad(cn_tensor *x, double (*fn)(double x), double (*derivative)(double x))
{
    return apply(&map_grad, x, (function){ .fn = (int64_t)(uintptr_t)fn, .derivative = (int64_t)(uintptr_t)derivative },
                 __func__);
}

cn_tensor *cn_map_user(cn_tensor *x, double (*fn)(void *user, double x), double (*derivative)(void *user, double x),
                       void *user)
{
    return apply(derivative ? &map_grad : &map, x,
                 (function){ .fn = (int64_t)(uintptr_t)fn,
                             .derivative = (int64_t)(uintptr_t)derivative,
                             .user = (int64_t)(uintptr_t)user,
                             .with_user = true },
                 __func__);
}
