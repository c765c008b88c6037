/* extra.c: fifteen more workloads, of shapes, element types and operators that the reference workloads do not have. */
#include <math.h>

#include "bench/workloads/model.h"

static layer conv(model *net, int64_t in, int64_t out, int64_t size, bool bias)
{
    double bound = 1 / sqrt((double)(in * size * size));
    layer l = { model_param(net, model_uniform(net, CN_DIMS(out, in, size, size), bound)), NULL };
    if (bias) l.b = model_param(net, model_uniform(net, CN_DIMS(out), bound));
    return l;
}

static cn_tensor *mse(cn_tensor *x, cn_tensor *y) { return cn_mean(cn_square(cn_sub(x, y)), CN_ALL, false); }

/* ---- residual networks: a block of stride 2 halves the image and doubles the channels ---- */

typedef struct conv_norm {
    layer conv, norm;
    cn_tensor *mean, *var;
} conv_norm;

enum { MOST_BLOCKS = 6 };

typedef struct resnet {
    model net;
    conv_norm stem;
    struct residual {
        int64_t stride;
        conv_norm first, second, shortcut; /* a block of stride 1 has no shortcut */
    } block[MOST_BLOCKS];
    int blocks;
    int64_t pool;
    layer full;
} resnet;

static conv_norm conv_norm_new(model *net, int64_t in, int64_t out, int64_t size)
{
    return (conv_norm){ .conv = conv(net, in, out, size, false),
                        .norm = model_affine(net, out),
                        .mean = cn_keep(cn_zeros(net->cn, CN_F32, CN_DIMS(out))),
                        .var = cn_keep(cn_ones(net->cn, CN_F32, CN_DIMS(out))) };
}

/* 32 images of 32x32. strides: of the blocks, ending with 0. pool: the size of the windows of the last average. */
static void *resnet_new(resnet *m, cn_ctx *cn, int64_t channels, const int64_t *strides, int64_t pool)
{
    const int64_t batch = 32;
    int64_t side = 32;
    m->net.cn = cn;
    m->pool = pool;
    m->stem = conv_norm_new(&m->net, 3, channels, 3);
    for (; strides[m->blocks]; m->blocks++) {
        struct residual *b = &m->block[m->blocks];
        b->stride = strides[m->blocks];
        int64_t in = channels;
        channels *= b->stride, side /= b->stride;
        b->first = conv_norm_new(&m->net, in, channels, 3);
        b->second = conv_norm_new(&m->net, channels, channels, 3);
        if (b->stride > 1) b->shortcut = conv_norm_new(&m->net, in, channels, 1);
    }
    m->full = model_linear(&m->net, channels * (side / pool) * (side / pool), 10, true);
    m->net.x = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(batch, 3, 32, 32)));
    m->net.y = cn_keep(cn_randint(cn, CN_I64, 0, 10, CN_DIMS(batch)));
    return m;
}

static cn_tensor *conv_norm_forward(const conv_norm *l, cn_tensor *x, int64_t stride)
{
    int64_t pad = cn_size(l->conv.w, -1) / 2;
    x = cn_conv2d(x, l->conv.w, NULL, &(cn_conv_desc){ .stride = { stride, stride }, .padding = { pad, pad } });
    return cn_batch_norm(x, l->norm.w, l->norm.b,
                         &(cn_batch_norm_desc){ .running_mean = l->mean, .running_var = l->var, .training = true });
}

static void resnet_step(void *user)
{
    resnet *m = user;
    cn_tensor *x = cn_relu(conv_norm_forward(&m->stem, m->net.x, 1));
    for (int i = 0; i < m->blocks; i++) {
        const struct residual *b = &m->block[i];
        cn_tensor *h = conv_norm_forward(&b->second, cn_relu(conv_norm_forward(&b->first, x, b->stride)), 1);
        x = cn_relu(cn_add(h, b->stride > 1 ? conv_norm_forward(&b->shortcut, x, b->stride) : x));
    }
    x = cn_flatten(cn_avg_pool2d(x, &(cn_pool_desc){ .kernel_size = { m->pool, m->pool } }), 1, -1);
    model_train(&m->net, cn_cross_entropy(cn_linear(x, m->full.w, m->full.b), m->net.y, NULL));
}

/* ---- convolutions whose stride is their kernel size: the mean of the squares of their result is made small ---- */

typedef struct patches {
    model net;
    layer l[3];
    int layers;
} patches;

/* 4 images of 3x224x224. sizes: of the kernels; channels: of the image and after each layer. */
static void *patches_new(patches *m, cn_ctx *cn, int layers, const int64_t *sizes, const int64_t *channels)
{
    *m = (patches){ .net = { .cn = cn, .sgd = true }, .layers = layers };
    for (int i = 0; i < layers; i++) m->l[i] = conv(&m->net, channels[i], channels[i + 1], sizes[i], true);
    m->net.x = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(4, channels[0], 224, 224)));
    return m;
}

static void patches_step(void *user)
{
    patches *m = user;
    cn_tensor *x = m->net.x;
    for (int i = 0; i < m->layers; i++) {
        int64_t size = cn_size(m->l[i].w, -1);
        x = cn_conv2d(x, m->l[i].w, m->l[i].b, &(cn_conv_desc){ .stride = { size, size } });
        if (i + 1 < m->layers) x = cn_relu(x);
    }
    model_train(&m->net, cn_mean(cn_square(x), CN_ALL, false));
}

/* ---- an autoencoder: 28x28 to 64 channels of 7x7 and back ---- */

typedef struct autoencoder {
    model net;
    layer down[2], up[2];
} autoencoder;

static void autoencoder_new(autoencoder *m, cn_ctx *cn, int64_t batch)
{
    m->net.cn = cn;
    m->down[0] = conv(&m->net, 1, 32, 3, true);
    m->down[1] = conv(&m->net, 32, 64, 3, true);
    for (int i = 0; i < 2; i++) {
        int64_t in = i ? 32 : 64, out = i ? 1 : 32; /* a transposed convolution's weight is (in, out, height, width) */
        double bound = 1 / sqrt((double)out * 16);
        m->up[i].w = model_param(&m->net, model_uniform(&m->net, CN_DIMS(in, out, 4, 4), bound));
        m->up[i].b = model_param(&m->net, model_uniform(&m->net, CN_DIMS(out), bound));
    }
    m->net.x = cn_keep(cn_rand(cn, CN_F32, CN_DIMS(batch, 1, 28, 28)));
}

static void autoencoder_step(void *user)
{
    autoencoder *m = user;
    const cn_conv_desc half = { .stride = { 2, 2 }, .padding = { 1, 1 } };
    cn_tensor *x = m->net.x;
    for (int i = 0; i < 2; i++) x = cn_relu(cn_conv2d(x, m->down[i].w, m->down[i].b, &half));
    x = cn_relu(cn_conv_transpose2d(x, m->up[0].w, m->up[0].b, &half));
    x = cn_sigmoid(cn_conv_transpose2d(x, m->up[1].w, m->up[1].b, &half));
    model_train(&m->net, mse(x, m->net.x));
}

/* ---- an LSTM that sorts sequences into ten classes ---- */

typedef struct lstm {
    model net;
    cn_module *lstm;
    layer head;
} lstm;

/* A module's parameters, for the optimizer. */
static void adopt(model *net, cn_module *m)
{
    cn_params p = cn_parameters(m);
    for (int i = 0; i < p.n; i++) {
        net->p[net->n] = p.v[i];
        net->m[net->n] = cn_keep(cn_zeros_like(p.v[i]));
        net->v[net->n++] = cn_keep(cn_zeros_like(p.v[i]));
    }
}

static void lstm_new(lstm *m, cn_ctx *cn, int layers, int64_t steps, int64_t batch, int64_t in, int64_t hidden)
{
    *m = (lstm){ .net.cn = cn, .lstm = cn_nn_lstm(cn, in, hidden, &(cn_rnn_desc){ .num_layers = layers }) };
    adopt(&m->net, m->lstm);
    m->head = model_linear(&m->net, hidden, 10, true);
    m->net.x = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(steps, batch, in)));
    m->net.y = cn_keep(cn_randint(cn, CN_I64, 0, 10, CN_DIMS(batch)));
}

static void lstm_step(void *user)
{
    lstm *m = user;
    cn_tensor *h = cn_select(cn_forward(m->lstm, m->net.x), 0, -1);
    model_train(&m->net, cn_cross_entropy(cn_linear(h, m->head.w, m->head.b), m->net.y, NULL));
}

/* ---- a transformer encoder with dropout that sorts sequences into ten classes ---- */

typedef struct encoder {
    model net;
    int64_t context, heads, width, batch;
    cn_tensor *pos;
    layer ln, head;
    struct block block[2];
} encoder;

static void encoder_new(encoder *m, cn_ctx *cn, int64_t context, int64_t heads, int64_t width, int64_t batch)
{
    *m = (encoder){ .net.cn = cn, .context = context, .heads = heads, .width = width, .batch = batch };
    m->net.decay = 0.01;
    m->pos = model_param(&m->net, cn_randn(cn, CN_F32, CN_DIMS(context, width)));
    for (int i = 0; i < 2; i++) {
        struct block *b = &m->block[i];
        b->ln1 = model_affine(&m->net, width);
        b->qkv = model_linear(&m->net, width, 3 * width, true);
        b->proj = model_linear(&m->net, width, width, true);
        b->ln2 = model_affine(&m->net, width);
        b->up = model_linear(&m->net, width, 4 * width, true);
        b->down = model_linear(&m->net, 4 * width, width, true);
    }
    m->ln = model_affine(&m->net, width);
    m->head = model_linear(&m->net, width, 10, true);
    m->net.x = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(batch, context, width)));
    m->net.y = cn_keep(cn_randint(cn, CN_I64, 0, 10, CN_DIMS(batch)));
}

/* (B,T,C) -> (B,T,C) */
static cn_tensor *encoder_block(const encoder *m, const struct block *b, cn_tensor *x)
{
    int64_t B = m->batch, T = m->context, C = m->width, H = m->heads;
    cn_tensor *h = cn_linear(cn_layer_norm(x, 1, b->ln1.w, b->ln1.b, 1e-5), b->qkv.w, b->qkv.b);
    h = cn_permute(cn_view(h, CN_DIMS(B, T, 3, H, C / H)), CN_DIMS(2, 0, 3, 1, 4)); /* (3,B,H,T,D) */
    cn_tensor *y = cn_scaled_dot_product_attention(cn_select(h, 0, 0), cn_select(h, 0, 1), cn_select(h, 0, 2), NULL);
    y = cn_linear(cn_reshape(cn_transpose(y, 1, 2), CN_DIMS(B, T, C)), b->proj.w, b->proj.b);
    x = cn_add(x, cn_dropout(y, 0.1, true));
    h = cn_gelu(cn_linear(cn_layer_norm(x, 1, b->ln2.w, b->ln2.b, 1e-5), b->up.w, b->up.b));
    return cn_add(x, cn_linear(cn_dropout(h, 0.1, true), b->down.w, b->down.b));
}

static void encoder_step(void *user)
{
    encoder *m = user;
    cn_tensor *x = cn_add(m->net.x, m->pos);
    for (int i = 0; i < 2; i++) x = encoder_block(m, &m->block[i], x);
    x = cn_mean(cn_layer_norm(x, 1, m->ln.w, m->ln.b, 1e-5), CN_DIMS(1), false);
    model_train(&m->net, cn_cross_entropy(cn_linear(x, m->head.w, m->head.b), m->net.y, NULL));
}

/* ---- rows, an embedding ---- */

static void rows_step(void *user)
{
    pair *p = user;
    cn_eval(cn_sum(cn_log_softmax(p->a, 1), CN_DIMS(0), false));
}

typedef struct normed {
    cn_ctx *cn;
    cn_tensor *in[3], *gradient; /* x, weight, bias */
} normed;

static void normed_new(normed *m, cn_ctx *cn, int64_t rows, int64_t width)
{
    m->cn = cn;
    m->in[0] = cn_param(cn_randn(cn, CN_F32, CN_DIMS(rows, width)));
    m->in[1] = cn_param(cn_ones(cn, CN_F32, CN_DIMS(width)));
    m->in[2] = cn_param(cn_zeros(cn, CN_F32, CN_DIMS(width)));
    m->gradient = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(rows, width)));
}

static void normed_step(void *user)
{
    normed *m = user;
    cn_tensor *y = cn_layer_norm(m->in[0], 1, m->in[1], m->in[2], 1e-5), *grads[3];
    cn_grad(&y, 1, m->in, 3, grads, &(cn_grad_desc){ .gradients = &m->gradient });
    cn_eval_all(m->cn);
}

typedef struct table {
    model net;
    cn_tensor *rows;
} table;

static void table_new(table *m, cn_ctx *cn, int64_t rows, int64_t width, int64_t batch)
{
    m->net = (model){ .cn = cn, .sgd = true };
    m->rows = model_param(&m->net, cn_randn(cn, CN_F32, CN_DIMS(rows, width)));
    m->net.x = cn_keep(cn_randint(cn, CN_I64, 0, rows, CN_DIMS(batch)));
    m->net.y = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(batch, width)));
}

static void table_step(void *user)
{
    table *m = user;
    model_train(&m->net, mse(cn_embedding(m->rows, m->net.x), m->net.y));
}

/* ---- permuted and cut views ---- */

static cn_tensor *squares(cn_tensor *x, cn_dims axes)
{
    return cn_sum(cn_square(cn_sub(x, cn_mean(x, axes, true))), axes, false);
}

static void permuted_step(void *user)
{
    pair *p = user;
    cn_eval(squares(cn_slice(cn_permute(p->a, CN_DIMS(3, 1, 0, 2)), 0, 0, 64, 2), CN_DIMS(0, 2)));
}

static void sliced_step(void *user)
{
    pair *p = user;
    cn_tensor *x = cn_slice(cn_permute(p->a, CN_DIMS(2, 0, 3, 1)), 2, 1, 64, 1);
    cn_eval(squares(cn_slice(x, 3, 0, 40, 2), CN_DIMS(1, 3)));
}

static void permuted_add_step(void *user)
{
    pair *p = user;
    const cn_dims order = CN_DIMS(0, 2, 3, 1);
    cn_eval(cn_contiguous(cn_add(cn_permute(p->a, order), cn_permute(p->b, order))));
}

/* ---- the list ---- */

static pair a_pair;
static resnet a_resnet;
static patches some_patches;
static autoencoder an_autoencoder;
static lstm an_lstm;
static encoder an_encoder;
static normed a_normed;
static table a_table;

static void *new_mlp_odd(cn_ctx *cn) { return mlp_new(cn, false, 37, 3, (const int64_t[]){ 777, 301, 103, 11 }); }
static void *new_mlp_f64(cn_ctx *cn) { return mlp_new(cn, true, 64, 2, (const int64_t[]){ 784, 256, 10 }); }
static void *new_strided(cn_ctx *cn) { return resnet_new(&a_resnet, cn, 32, (const int64_t[]){ 2, 2, 0 }, 4); }
static void *new_resnet(cn_ctx *cn)
{
    return resnet_new(&a_resnet, cn, 16, (const int64_t[MOST_BLOCKS + 1]){ 1, 1, 2, 1, 2, 1, 0 }, 8);
}
static void *new_patches(cn_ctx *cn)
{
    return patches_new(&some_patches, cn, 1, (const int64_t[]){ 16 }, (const int64_t[]){ 3, 192 });
}
static void *new_downsample(cn_ctx *cn)
{
    return patches_new(&some_patches, cn, 3, (const int64_t[]){ 4, 2, 2 }, (const int64_t[]){ 3, 48, 96, 192 });
}
static void *new_autoencoder(cn_ctx *cn) { return autoencoder_new(&an_autoencoder, cn, 32), &an_autoencoder; }
static void *new_lstm(cn_ctx *cn) { return lstm_new(&an_lstm, cn, 1, 32, 32, 64, 128), &an_lstm; }
static void *new_lstm_2x200(cn_ctx *cn) { return lstm_new(&an_lstm, cn, 2, 50, 8, 100, 200), &an_lstm; }
static void *new_lstm_odd(cn_ctx *cn) { return lstm_new(&an_lstm, cn, 2, 40, 5, 77, 77), &an_lstm; }
static void *new_encoder(cn_ctx *cn) { return encoder_new(&an_encoder, cn, 100, 3, 192, 8), &an_encoder; }
static void *new_gpt2(cn_ctx *cn) { return gpt_new(cn, 50257, 512, 12, 12, 768, 1); }
static void *new_rows(cn_ctx *cn)
{
    a_pair = (pair){ .a = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(4096, 1000))) };
    return &a_pair;
}
static void *new_blocks(cn_ctx *cn)
{
    const cn_dims shape = CN_DIMS(24, 40, 48, 64);
    a_pair = (pair){ .a = cn_keep(cn_randn(cn, CN_F32, shape)), .b = cn_keep(cn_randn(cn, CN_F32, shape)) };
    return &a_pair;
}
static void *new_normed(cn_ctx *cn) { return normed_new(&a_normed, cn, 4096, 768), &a_normed; }
static void *new_table(cn_ctx *cn) { return table_new(&a_table, cn, 50000, 128, 8192), &a_table; }

const workload extra_workloads[] = {
    { "mlp-odd", "777-301-103-11, batch 37", new_mlp_odd, mlp_step },
    { "mlp-f64", "784-256-10, batch 64, in f64", new_mlp_f64, mlp_step },
    { "cnn-strided", "two residual blocks of stride 2 on 32 images of 3x32x32", new_strided, resnet_step },
    { "resnet", "six residual blocks of 16, 32, 64 channels, 32 images of 3x32x32", new_resnet, resnet_step },
    { "patches", "16x16 patches of 4 images of 3x224x224 to 192 channels, SGD", new_patches, patches_step },
    { "downsample", "patches of 4x4, 2x2, 2x2 to 48, 96, 192 channels, 4 images of 3x224x224, SGD", new_downsample,
      patches_step },
    { "autoencoder", "strided convolutions and back, 32 images of 28x28", new_autoencoder, autoencoder_step },
    { "lstm", "input 64, hidden 128, 32 steps, batch 32", new_lstm, lstm_step },
    { "lstm-2x200", "2 layers, input 100, hidden 200, 50 steps, batch 8", new_lstm_2x200, lstm_step },
    { "lstm-odd", "2 layers, width 77, 40 steps, batch 5", new_lstm_odd, lstm_step },
    { "encoder", "2 layers, 3 heads, width 192, context 100, batch 8, dropout", new_encoder, encoder_step },
    { "softmax-rows", "log_softmax of 4096 rows of 1000, summed over the rows", new_rows, rows_step },
    { "layernorm-bwd", "layer_norm of 4096 rows of 768, and its gradients", new_normed, normed_step },
    { "reduce-permuted", "squares about the mean over 2 of 4 axes, permuted, every other", new_blocks, permuted_step },
    { "reduce-sliced", "the same over other axes, cut twice", new_blocks, sliced_step },
    { "permuted-add", "the sum of two permuted tensors of 24x40x48x64, row-major", new_blocks, permuted_add_step },
    { "gather-embed", "8192 rows of an embedding of 50,000x128, SGD", new_table, table_step },
    { "gpt2", "12 layers, 12 heads, width 768, context 512, 50,257 tokens, batch 1", new_gpt2, gpt_step },
};
const int n_extra_workloads = sizeof extra_workloads / sizeof *extra_workloads;
