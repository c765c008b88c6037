/* random.c: rand, randn, randint, bernoulli: each element from its own place in a stream of random words.
   Arguments: seed, stream, and what the operator adds. The loops are in random_cpu.c. */
#include <stdio.h>

#include "create.h"
#include "ops/kernels.h"

/* ---- on the GPU: the same bits; for f64 the nearest f32, for randn of f64 only some digits agree ---- */

#define WORD "random_word(lo0, hi0, lo1, hi1, i)"
#define PAIR "random_pair(lo0, hi0, lo1, hi1, i)"

static int rand_wgsl(const void *attrs, cn_dtype t, char *out, size_t size)
{
    (void)attrs;
    switch (t) {
    case CN_F16: return snprintf(out, size, "f32(" WORD " >> 21u) * 0x1p-11f");
    case CN_BF16: return snprintf(out, size, "f32(" WORD " >> 24u) * 0x1p-8f");
    case CN_F64: return snprintf(out, size, "unit_53(" PAIR ")");
    default: return snprintf(out, size, "unit(" WORD ")");
    }
}

/* Argument 7 is not used: it is a zero that no compiler knows. */
static int randn_wgsl(const void *attrs, cn_dtype t, char *out, size_t size)
{
    (void)attrs;
    return snprintf(out, size, "%s", t == CN_F64 ? "normal_wide(" PAIR ")" : "normal(" PAIR ", lo7)");
}

static int randint_wgsl(const void *attrs, cn_dtype t, char *out, size_t size)
{
    (void)attrs;
    const char *sum = "add_64(below(vec2<u32>(lo3, hi3), " PAIR "), vec2<u32>(lo2, hi2))";
    return snprintf(out, size, cn_dtype_is_float(t) ? "nearest_signed_64(%s)" : "%s.x", sum);
}

static int bernoulli_wgsl(const void *attrs, cn_dtype t, char *out, size_t size)
{
    (void)attrs;
    return snprintf(out, size, "%s", t == CN_F64 ? "unit_53_below(" PAIR ", x)" : "unit(" WORD ") < x && !isnan(x)");
}

/* ---- records ---- */

#define ANY_FLOAT    CN_FLOATS | CN_BIT(CN_F16) | CN_BIT(CN_BF16)
#define SEED(s, ...) CN_ARGS({ .u = s }, { .u = 3 }, __VA_ARGS__)
static const cn_case float_cases[] = {
    { .attrs = CN__SHAPE(CN_F32, 2, 3, 4), SEED(1, { 0 }) },
    { .attrs = CN__SHAPE(CN_F64, 7), SEED(2, { 0 }) }, { .attrs = CN__SHAPE0(CN_F32), SEED(3, { 0 }) },
    { .attrs = CN__SHAPE(CN_F16, 33), SEED(4, { 0 }) }, { .attrs = CN__SHAPE(CN_BF16, 33), SEED(5, { 0 }) },
    { .attrs = CN__SHAPE(CN_F64, 3, 0), SEED(6, { 0 }) },
    { .attrs = CN__SHAPE(CN_F32, 65, 67), SEED(0x123456789abcdef0, { 0 }) },
};

const cn_op cn__op_rand = {
    .call = "rand(int[] size, *, dtype dtype=f32) -> Tensor",
    .name = "rand", .doc = "Random numbers, uniform in [0, 1).", .kind = CN_RANDOM,
    .n_in = 0, .n_out = 1, .dtypes = ANY_FLOAT,
    .attr_size = sizeof(cn__shape_attrs), .infer = cn__infer_created, .no_grad = "it has no operands",
    .kernels_at = CN__AT(draws, rand),
    .wgsl_print = rand_wgsl, .onnx = "RandomUniform", CN_CASES_OF(float_cases),
};

const cn_op cn__op_randn = {
    .call = "randn(int[] size, *, dtype dtype=f32) -> Tensor",
    .name = "randn", .doc = "Random numbers, normal with mean 0 and standard deviation 1.", .kind = CN_RANDOM,
    .n_in = 0, .n_out = 1,
    .dtypes = ANY_FLOAT, .attr_size = sizeof(cn__shape_attrs), .infer = cn__infer_created,
    .no_grad = "it has no operands",
    .kernels_at = CN__AT(draws, randn),
    .wgsl_print = randn_wgsl, .onnx = "RandomNormal", CN_CASES_OF(float_cases),
};

const cn_op cn__op_randint = {
    .call = "randint(int low, int high, int[] size, *, dtype dtype=i64) -> Tensor",
    .name = "randint", .doc = "Random whole numbers, uniform in [low, high).", .kind = CN_RANDOM,
    .n_in = 0, .n_out = 1,
    .dtypes = CN_ANY, .attr_size = sizeof(cn__shape_attrs), .infer = cn__infer_created, .no_grad = "it has no operands",
    .kernels_at = CN__AT(draws, randint), .wgsl_print = randint_wgsl,
    CN_CASES({ .attrs = CN__SHAPE(CN_I64, 2, 3, 4), SEED(1, { .i = -5 }, { .u = 11 }) },
             { .attrs = CN__SHAPE(CN_U8, 7), SEED(2, { .i = 0 }, { .u = 256 }) },
             { .attrs = CN__SHAPE(CN_F32, 3, 0), SEED(3, { .i = 0 }, { .u = 5 }) },
             { .attrs = CN__SHAPE0(CN_I32), SEED(4, { .i = -9 }, { .u = 1 }) },
             { .attrs = CN__SHAPE(CN_F64, 65, 67), SEED(5, { .i = -(1LL << 40) }, { .u = 1ULL << 41 }) }),
};

const cn_op cn__op_bernoulli = {
    .call = "bernoulli(Tensor input) -> Tensor",
    .name = "bernoulli", .doc = "1 with probability x, else 0.", .kind = CN_RANDOM,
    .n_in = 1, .n_out = 1,
    .infer = cn_infer_map, .no_grad = "a draw does not change gradually with its probability",
    .kernels_at = CN__AT(draws, bernoulli), .wgsl_print = bernoulli_wgsl, .onnx = "Bernoulli",
    CN_CASES({ CN_IN(CN_RANGE(0, 1, 2, 3, 4)), SEED(1, { 0 }) }, { CN_IN(CN_RANGE(0, 1, 7)), SEED(2, { 0 }) },
             { CN_IN(CN_RANGE(0, 1, 3, 0)), SEED(3, { 0 }) }, { CN_IN(CN_RANGE(0, 1, 1)), SEED(4, { 0 }) },
             { CN_IN(CN_RANGE(0, 1, 65, 67)), SEED(5, { 0 }) }),
};

/* ---- functions: each call uses a stream of its own ---- */

static cn_tensor *created(cn_ctx *ctx, const cn_op *op, cn_dtype t, cn_dims shape, int64_t low, uint64_t count)
{
    if (!ctx) return NULL;
    cn__shape_attrs a = cn__shaped(t, shape);
    cn_arg args[CN_MAX_ARGS] = { { .u = ctx->seed }, { .u = ctx->next_stream++ }, { .i = low }, { .u = count } };
    return cn_apply_in(ctx, op, &a, args);
}

cn_tensor *cn_rand(cn_ctx *ctx, cn_dtype t, cn_dims shape) { return created(ctx, &cn__op_rand, t, shape, 0, 0); }

cn_tensor *cn_randn(cn_ctx *ctx, cn_dtype t, cn_dims shape) { return created(ctx, &cn__op_randn, t, shape, 0, 0); }

cn_tensor *cn_rand_like(cn_tensor *x)
{
    CN__CALL call = cn__call_tensor(x);
    return call.ctx ? cn_rand(x->ctx, cn__dtype(x), cn_shape(x)) : NULL;
}

cn_tensor *cn_randn_like(cn_tensor *x)
{
    CN__CALL call = cn__call_tensor(x);
    return call.ctx ? cn_randn(x->ctx, cn__dtype(x), cn_shape(x)) : NULL;
}

/* Whether t holds every whole number from low to high. */
static bool holds(cn_dtype t, int64_t low, int64_t high)
{
    switch (t) {
    case CN_BOOL: return low >= 0 && high <= 1;
    case CN_U8: return low >= 0 && high <= UINT8_MAX;
    case CN_I8: return low >= INT8_MIN && high <= INT8_MAX;
    case CN_I16: return low >= INT16_MIN && high <= INT16_MAX;
    case CN_I32: return low >= INT32_MIN && high <= INT32_MAX;
    case CN_BF16: return low >= -(1 << 8) && high <= 1 << 8;
    case CN_F16: return low >= -(1 << 11) && high <= 1 << 11;
    case CN_F32: return low >= -(1 << 24) && high <= 1 << 24;
    case CN_F64: return low >= -(1LL << 53) && high <= 1LL << 53;
    default: return true;
    }
}

cn_tensor *cn_randint(cn_ctx *ctx, cn_dtype t, int64_t low, int64_t high, cn_dims shape)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (low >= high) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "randint: low must be < high, got %lld and %lld", (long long)low,
                 (long long)high);
        return NULL;
    }
    if (!holds(t, low, high - 1)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "randint: [%lld, %lld) is outside the range of %s", (long long)low,
                 (long long)high, cn_dtype_name(t));
        return NULL;
    }
    return created(ctx, &cn__op_randint, t, shape, low, (uint64_t)high - (uint64_t)low);
}

cn_tensor *cn_bernoulli(cn_tensor *probability)
{
    CN__CALL call = cn__call_tensor(probability);
    if (!call.ctx) return NULL;
    cn_ctx *ctx = probability->ctx;
    cn_arg args[CN_MAX_ARGS] = { { .u = ctx->seed }, { .u = ctx->next_stream++ } };
    probability = cn__probability(probability);
    return cn_apply(&cn__op_bernoulli, &probability, 1, NULL, args);
}
