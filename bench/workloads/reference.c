/* reference.c: the ten reference workloads. Shapes, dtype and optimizer are those of bench/peers/; change them in both
   places, or not at all. */
#include <math.h>

#include "bench/workloads/model.h"

/* ---- a small convolutional network ---- */

typedef struct cnn {
    model net;
    layer conv[2], norm[2], full[2];
    cn_tensor *mean[2], *var[2];
} cnn;

static void cnn_new(cnn *m, cn_ctx *cn, int64_t batch)
{
    static const int64_t channels[3] = { 1, 32, 64 };
    m->net.cn = cn;
    for (int i = 0; i < 2; i++) {
        double bound = 1 / sqrt((double)channels[i] * 9);
        m->conv[i].w = model_param(&m->net, model_uniform(&m->net, CN_DIMS(channels[i + 1], channels[i], 3, 3), bound));
        m->conv[i].b = model_param(&m->net, model_uniform(&m->net, CN_DIMS(channels[i + 1]), bound));
        m->norm[i] = model_affine(&m->net, channels[i + 1]);
        m->mean[i] = cn_keep(cn_zeros(cn, CN_F32, CN_DIMS(channels[i + 1])));
        m->var[i] = cn_keep(cn_ones(cn, CN_F32, CN_DIMS(channels[i + 1])));
    }
    m->full[0] = model_linear(&m->net, 64 * 7 * 7, 128, true);
    m->full[1] = model_linear(&m->net, 128, 10, true);
    m->net.x = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(batch, 1, 28, 28)));
    m->net.y = cn_keep(cn_randint(cn, CN_I64, 0, 10, CN_DIMS(batch)));
}

static void cnn_step(void *user)
{
    cnn *m = user;
    cn_tensor *x = m->net.x;
    for (int i = 0; i < 2; i++) {
        x = cn_conv2d(x, m->conv[i].w, m->conv[i].b, &(cn_conv_desc){ .padding = { 1, 1 } });
        x = cn_batch_norm(
            x, m->norm[i].w, m->norm[i].b,
            &(cn_batch_norm_desc){ .running_mean = m->mean[i], .running_var = m->var[i], .training = true });
        x = cn_max_pool2d(cn_relu(x), &(cn_pool_desc){ .kernel_size = { 2, 2 } });
    }
    x = cn_relu(cn_linear(cn_flatten(x, 1, -1), m->full[0].w, m->full[0].b));
    model_train(&m->net, cn_cross_entropy(cn_linear(x, m->full[1].w, m->full[1].b), m->net.y, NULL));
}

/* ---- single operations ---- */

static void chain_step(void *user)
{
    pair *p = user;
    cn_tensor *a = cn_abs(p->a), *b = p->b, *c = p->c;
    cn_eval(cn_sub(
        cn_div(cn_sqrt(cn_add(cn_mul(cn_tanh(cn_add(cn_mul(a, b), c)), cn_sigmoid(cn_sub(a, b))), cn_mul(a, a))), c),
        b));
}

static void matmul_step(void *user)
{
    pair *p = user;
    cn_eval(cn_matmul(p->a, p->b));
}

/* ---- the list ---- */

static cnn a_cnn;
static pair a_pair;

static void *new_mlp_tiny(cn_ctx *cn) { return mlp_new(cn, false, 16, 3, (const int64_t[]){ 2, 16, 16, 2 }); }
static void *new_mlp(cn_ctx *cn) { return mlp_new(cn, false, 64, 2, (const int64_t[]){ 784, 128, 10 }); }
static void *new_mlp_wide(cn_ctx *cn) { return mlp_new(cn, false, 128, 3, (const int64_t[]){ 784, 1024, 1024, 10 }); }
static void *new_cnn(cn_ctx *cn) { return cnn_new(&a_cnn, cn, 64), &a_cnn; }
static void *new_gpt_mini(cn_ctx *cn) { return gpt_new(cn, 65, 64, 4, 4, 128, 12); }
static void *new_gpt_small(cn_ctx *cn) { return gpt_new(cn, 512, 256, 6, 6, 384, 4); }

static void *new_chain(cn_ctx *cn)
{
    cn_dims n = CN_DIMS(1 << 24);
    a_pair = (pair){ cn_keep(cn_randn(cn, CN_F32, n)), cn_keep(cn_randn(cn, CN_F32, n)),
                     cn_keep(cn_add_s(cn_rand(cn, CN_F32, n), 0.5)) };
    return &a_pair;
}

static void *new_product(cn_ctx *cn, int64_t n)
{
    a_pair = (pair){ cn_keep(cn_randn(cn, CN_F32, CN_DIMS(n, n))), cn_keep(cn_randn(cn, CN_F32, CN_DIMS(n, n))), NULL };
    return &a_pair;
}
static void *new_matmul_256(cn_ctx *cn) { return new_product(cn, 256); }
static void *new_matmul_1024(cn_ctx *cn) { return new_product(cn, 1024); }
static void *new_matmul_2048(cn_ctx *cn) { return new_product(cn, 2048); }

const workload reference_workloads[] = {
    { "mlp-tiny", "2-16-16-2, batch 16: overhead alone", new_mlp_tiny, mlp_step },
    { "mlp", "784-128-10, batch 64", new_mlp, mlp_step },
    { "mlp-wide", "784-1024-1024-10, batch 128", new_mlp_wide, mlp_step },
    { "cnn", "two convolutions with batch norm on 64 images of 28x28", new_cnn, cnn_step },
    { "gpt-mini", "4 layers, 4 heads, width 128, context 64, batch 12", new_gpt_mini, gpt_step },
    { "gpt-small", "6 layers, 6 heads, width 384, context 256, batch 4", new_gpt_small, gpt_step },
    { "chain-16m", "ten elementwise operations on 16 M elements", new_chain, chain_step },
    { "matmul-256", "256x256 by 256x256", new_matmul_256, matmul_step },
    { "matmul-1024", "1024x1024 by 1024x1024", new_matmul_1024, matmul_step },
    { "matmul-2048", "2048x2048 by 2048x2048", new_matmul_2048, matmul_step },
};
const int n_reference_workloads = sizeof reference_workloads / sizeof *reference_workloads;
