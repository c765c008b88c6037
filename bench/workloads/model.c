/* model.c: parameters, layers and the training step of the workloads' models, and the perceptrons and GPTs of both
   lists. */
#include "bench/workloads/model.h"

#include <math.h>
#include <stdio.h>

cn_dtype model_dtype(const model *net) { return net->f64 ? CN_F64 : CN_F32; }

cn_tensor *model_param(model *net, cn_tensor *t)
{
    int i = net->n++;
    net->p[i] = cn_param(t);
    if (net->sgd) return net->p[i];
    net->m[i] = cn_keep(cn_zeros_like(t));
    net->v[i] = cn_keep(cn_zeros_like(t));
    return net->p[i];
}

cn_tensor *model_uniform(model *net, cn_dims shape, double bound)
{
    return cn_mul_s(cn_sub_s(cn_rand(net->cn, model_dtype(net), shape), 0.5), 2 * bound);
}

layer model_linear(model *net, int64_t in, int64_t out, bool bias)
{
    double bound = 1 / sqrt((double)in);
    layer l = { model_param(net, model_uniform(net, CN_DIMS(out, in), bound)), NULL };
    if (bias) l.b = model_param(net, model_uniform(net, CN_DIMS(out), bound));
    return l;
}

layer model_affine(model *net, int64_t n)
{
    return (layer){ model_param(net, cn_ones(net->cn, CN_F32, CN_DIMS(n))),
                    model_param(net, cn_zeros(net->cn, CN_F32, CN_DIMS(n))) };
}

static bool print_plans;
void model_print_plans(bool on) { print_plans = on; }

void model_train(model *net, cn_tensor *loss)
{
    cn_backward(loss);
    net->steps++;
    if (net->sgd) {
        cn_sgd_step(net->p, NULL, net->n, &(cn_sgd_step_desc){ .lr = 1e-1 });
    } else {
        cn_adam_step_desc adam = { .lr = 1e-3, .weight_decay = net->decay, .decoupled = true, .step = net->steps };
        cn_adam_step(net->p, net->m, net->v, net->n, &adam);
    }
    for (int i = 0; i < net->n; i++) cn_zero_grad(net->p[i]);
    if (print_plans && net->steps == 2) {
        static char text[1 << 20];
        cn_plan_print(loss, text, sizeof text);
        fputs(text, stdout);
    }
    cn_eval_all(net->cn);
}

/* ---- multi-layer perceptrons ---- */

typedef struct mlp {
    model net;
    layer l[4];
    int layers;
} mlp;

void *mlp_new(cn_ctx *cn, bool f64, int64_t batch, int layers, const int64_t *width)
{
    static mlp the;
    mlp *m = &the;
    *m = (mlp){ .net = { .cn = cn, .f64 = f64 }, .layers = layers };
    for (int i = 0; i < layers; i++) m->l[i] = model_linear(&m->net, width[i], width[i + 1], true);
    m->net.x = cn_keep(cn_randn(cn, model_dtype(&m->net), CN_DIMS(batch, width[0])));
    m->net.y = cn_keep(cn_randint(cn, CN_I64, 0, width[layers], CN_DIMS(batch)));
    return m;
}

void mlp_step(void *user)
{
    mlp *m = user;
    cn_tensor *x = m->net.x;
    for (int i = 0; i < m->layers; i++) {
        x = cn_linear(x, m->l[i].w, m->l[i].b);
        if (i + 1 < m->layers) x = cn_relu(x);
    }
    model_train(&m->net, cn_cross_entropy(x, m->net.y, NULL));
}

/* ---- GPTs ---- */

typedef struct gpt {
    model net;
    int64_t vocab, context, heads, width, batch;
    int layers;
    cn_tensor *tok, *pos;
    layer ln, head;
    struct block block[12];
} gpt;

void *gpt_new(cn_ctx *cn, int64_t vocab, int64_t context, int layers, int64_t heads, int64_t width, int64_t batch)
{
    static gpt the;
    gpt *m = &the;
    *m = (gpt){ .vocab = vocab, .context = context, .heads = heads, .width = width, .batch = batch, .layers = layers };
    m->net.cn = cn;
    m->net.decay = 0.01;
    m->tok = model_param(&m->net, cn_randn(cn, CN_F32, CN_DIMS(vocab, width)));
    m->pos = model_param(&m->net, cn_randn(cn, CN_F32, CN_DIMS(context, width)));
    for (int i = 0; i < layers; i++) {
        struct block *b = &m->block[i];
        b->ln1 = model_affine(&m->net, width);
        b->ln2 = model_affine(&m->net, width);
        b->qkv = model_linear(&m->net, width, 3 * width, true);
        b->proj = model_linear(&m->net, width, width, true);
        b->up = model_linear(&m->net, width, 4 * width, true);
        b->down = model_linear(&m->net, 4 * width, width, true);
    }
    m->ln = model_affine(&m->net, width);
    m->head = model_linear(&m->net, width, vocab, false);
    m->net.x = cn_keep(cn_randint(cn, CN_I64, 0, vocab, CN_DIMS(batch, context)));
    m->net.y = cn_keep(cn_randint(cn, CN_I64, 0, vocab, CN_DIMS(batch * context)));
    return m;
}

/* (B,T,C) -> (B,T,C) */
static cn_tensor *block_forward(const gpt *m, const struct block *b, cn_tensor *x)
{
    int64_t B = m->batch, T = m->context, C = m->width, H = m->heads;
    cn_tensor *h = cn_linear(cn_layer_norm(x, 1, b->ln1.w, b->ln1.b, 1e-5), b->qkv.w, b->qkv.b);
    h = cn_permute(cn_view(h, CN_DIMS(B, T, 3, H, C / H)), CN_DIMS(2, 0, 3, 1, 4)); /* (3,B,H,T,D) */
    cn_tensor *y = cn_scaled_dot_product_attention(cn_select(h, 0, 0), cn_select(h, 0, 1), cn_select(h, 0, 2),
                                                   &(cn_attention_desc){ .is_causal = true });
    y = cn_reshape(cn_transpose(y, 1, 2), CN_DIMS(B, T, C));
    x = cn_add(x, cn_linear(y, b->proj.w, b->proj.b));
    h = cn_gelu_tanh(cn_linear(cn_layer_norm(x, 1, b->ln2.w, b->ln2.b, 1e-5), b->up.w, b->up.b));
    return cn_add(x, cn_linear(h, b->down.w, b->down.b));
}

void gpt_step(void *user)
{
    gpt *m = user;
    cn_tensor *x = cn_add(cn_embedding(m->tok, m->net.x), m->pos);
    for (int i = 0; i < m->layers; i++) x = block_forward(m, &m->block[i], x);
    x = cn_linear(cn_layer_norm(x, 1, m->ln.w, m->ln.b, 1e-5), m->head.w, NULL);
    model_train(&m->net, cn_cross_entropy(cn_reshape(x, CN_DIMS(m->batch * m->context, m->vocab)), m->net.y, NULL));
}
