/* divisor, probability, level, weights: their operand, unchanged; evaluation fails if an element is not allowed. */
#include <float.h>

#include "gpu/shaders.h"
#include "ops/index/index.h"

static bool infer(cn_infer *i)
{
    i->out[0] = *i->in[0];
    return true;
}

/* Whole numbers must not be 0, others be from 0 to `most`. */
static bool is_allowed(cn_dtype t, const char *p, double most)
{
    if (!cn_dtype_is_float(t)) return cn__load_i64(t, p) != 0;
    double v = cn__load_f64(t, p);
    return v >= 0 && v <= most;
}

static void check(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const double most = *(const double *)user;
    const cn_array *x = &k->in[0];
    size_t size = cn_dtype_size(x->dtype);
    const char *from = x->data;
    for (int64_t p = begin; p < end; p++)
        if (!is_allowed(x->dtype, from + (size_t)p * size, most)) cn_kernel_fault(k, p, 0);
    memcpy((char *)k->out[0].data + (size_t)begin * size, from + (size_t)begin * size, (size_t)(end - begin) * size);
}

static void cpu(const cn_kernel *k) { cn_parallel(k, k->in[0].numel, 16384, check, &(double){ 1 }); }
static void cpu_weights(const cn_kernel *k) { cn_parallel(k, k->in[0].numel, 16384, check, &(double){ DBL_MAX }); }

/* The bits of a float from 0 to 1 are at most those of 1; WGSL promises nothing about comparisons with NaN. */
#define PROBABILITY "bitcast<u32>(v) <= 0x3f800000u || bitcast<u32>(v) == 0x80000000u"
#define WEIGHT      "bitcast<u32>(v) < 0x7f800000u || bitcast<u32>(v) == 0x80000000u"

static bool gpu_allowing(cn_gpu_call *c, const char *allowed)
{
    return cn_gpu_run(c, &(cn_gpu_launch){
                             .shader = cn__wgsl_check,
                             .each = c->in[0].numel,
                             .holes = CN_GPU_HOLES(CN_GPU_TEXT("allowed", allowed)),
                         });
}

static bool gpu(cn_gpu_call *c)
{
    return gpu_allowing(c, cn_dtype_is_float(c->in[0].dtype) ? PROBABILITY : "v != 0");
}
static bool gpu_weights(cn_gpu_call *c) { return gpu_allowing(c, WEIGHT); }

static void grad(cn_grad_call *g) { g->in_grad[0] = g->out_grad[0]; }

const cn_op cn__op_divisor = {
    .call = "_divisor(Tensor input) -> Tensor",
    .name = "divisor",
    .doc = "x, whole numbers of which none may be 0.",
    .kind = CN_INDEX,
    .n_in = 1,
    .n_out = 1,
    .dtypes = CN_INTS | CN_BIT(CN_BOOL),
    .checks_index = true,
    .fault = "a whole number must not be divided by 0",
    .infer = infer,
    .no_grad = "whole numbers have no gradient",
    .cpu = cpu,
    .gpu = gpu,
    CN_CASES({ CN_IN(CN_IDX_FROM(1, 9, 3, 4)) }, { CN_IN(CN_IDX_FROM(1, 9, 0)) }, { CN_IN(CN_IDX_FROM(-9, 0, 7)) },
             { CN_IN(CN_IDX_FROM(1, 99, 40000)) }),
};

const cn_op cn__op_probability = {
    .call = "_probability(Tensor input) -> Tensor",
    .name = "probability",
    .doc = "x, numbers from 0 to 1.",
    .kind = CN_INDEX,
    .n_in = 1,
    .n_out = 1,
    .checks_index = true,
    .fault = "bernoulli: probabilities must be from 0 to 1",
    .infer = infer,
    .grad = grad,
    .cpu = cpu,
    .gpu = gpu,
    CN_CASES({ CN_IN(CN_RANGE(0, 1, 3, 4)) }, { CN_IN(CN_RANGE(0, 1, 0)) }, { CN_IN(CN_RANGE(0, 1, 40000)) }),
};

const cn_op cn__op_level = {
    .call = "_level(Tensor input) -> Tensor",
    .name = "level",
    .doc = "x, levels of quantiles from 0 to 1.",
    .kind = CN_INDEX,
    .n_in = 1,
    .n_out = 1,
    .checks_index = true,
    .fault = "quantile: q must be from 0 to 1",
    .infer = infer,
    .grad = grad,
    .cpu = cpu,
    .gpu = gpu,
    CN_CASES({ CN_IN(CN_RANGE(0, 1, 3)) }, { CN_IN(CN_RANGE0(0, 1)) }, { CN_IN(CN_RANGE(0, 1, 0)) }),
};

const cn_op cn__op_weights = {
    .call = "_weights(Tensor input) -> Tensor",
    .name = "weights",
    .doc = "x, weights of categories, which are finite and not negative.",
    .kind = CN_INDEX,
    .n_in = 1,
    .n_out = 1,
    .checks_index = true,
    .fault = "multinomial: weights must be finite and not negative, and in each row at least one must be above 0, or, "
             "without replacement, num_samples of them",
    .infer = infer,
    .grad = grad,
    .cpu = cpu_weights,
    .gpu = gpu_weights,
    CN_CASES({ CN_IN(CN_RANGE(0, 9, 3, 4)) }, { CN_IN(CN_RANGE(0, 1, 0)) }, { CN_IN(CN_RANGE(0, 1, 40000)) }),
};

cn_tensor *cn__divisor(cn_tensor *y) { return cn_apply(&cn__op_divisor, &y, 1, NULL, NULL); }

cn_tensor *cn__level(cn_tensor *q) { return cn_apply(&cn__op_level, &q, 1, NULL, NULL); }

cn_tensor *cn__weights(cn_tensor *w) { return cn_apply(&cn__op_weights, &w, 1, NULL, NULL); }

cn_tensor *cn__probability(cn_tensor *p) { return cn_apply(&cn__op_probability, &p, 1, NULL, NULL); }
