/* The extra workloads' models: shapes, element types and operators that the reference workloads do not have.
   A part of workloads.c, which includes it. */

static layer conv(model *net, int64_t in, int64_t out, int64_t size, bool bias)
{
    double bound = 1 / sqrt((double)(in * size * size));
    layer l = { add_param(net, uniform(net, CN_DIMS(out, in, size, size), bound)), NULL };
    if (bias) l.b = add_param(net, uniform(net, CN_DIMS(out), bound));
    return l;
}

static cn_tensor *mse(cn_tensor *x, cn_tensor *y) { return cn_mean(cn_square(cn_sub(x, y)), CN_ALL, false); }

/* ---- a small residual network: its blocks halve the image and double the channels ---- */

typedef struct conv_norm {
    layer conv, norm;
    cn_tensor *mean, *var;
} conv_norm;

typedef struct resnet {
    model net;
    conv_norm stem;
    struct residual {
        conv_norm first, second, shortcut;
    } block[2];
    layer full;
} resnet;

static conv_norm conv_norm_new(model *net, int64_t in, int64_t out, int64_t size)
{
    return (conv_norm){ .conv = conv(net, in, out, size, false),
                        .norm = affine(net, out),
                        .mean = cn_keep(cn_zeros(net->cn, CN_F32, CN_DIMS(out))),
                        .var = cn_keep(cn_ones(net->cn, CN_F32, CN_DIMS(out))) };
}

static void resnet_new(resnet *m, cn_ctx *cn, int64_t batch)
{
    m->net.cn = cn;
    m->stem = conv_norm_new(&m->net, 3, 32, 3);
    for (int i = 0; i < 2; i++) {
        int64_t in = 32 << i, out = 2 * in;
        m->block[i].first = conv_norm_new(&m->net, in, out, 3);
        m->block[i].second = conv_norm_new(&m->net, out, out, 3);
        m->block[i].shortcut = conv_norm_new(&m->net, in, out, 1);
    }
    m->full = linear(&m->net, 128 * 2 * 2, 10, true);
    m->net.x = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(batch, 3, 32, 32)));
    m->net.y = cn_keep(cn_randint(cn, CN_I64, 0, 10, CN_DIMS(batch)));
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
    for (int i = 0; i < 2; i++) {
        const struct residual *b = &m->block[i];
        cn_tensor *h = conv_norm_forward(&b->second, cn_relu(conv_norm_forward(&b->first, x, 2)), 1);
        x = cn_relu(cn_add(h, conv_norm_forward(&b->shortcut, x, 2)));
    }
    x = cn_flatten(cn_avg_pool2d(x, &(cn_pool_desc){ .kernel = { 4, 4 } }), 1, -1);
    train(&m->net, cn_cross_entropy(cn_linear(x, m->full.w, m->full.b), m->net.y, NULL));
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
        m->up[i].w = add_param(&m->net, uniform(&m->net, CN_DIMS(in, out, 4, 4), bound));
        m->up[i].b = add_param(&m->net, uniform(&m->net, CN_DIMS(out), bound));
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
    train(&m->net, mse(x, m->net.x));
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

static void lstm_new(lstm *m, cn_ctx *cn, int64_t steps, int64_t batch, int64_t in, int64_t hidden)
{
    *m = (lstm){ .net.cn = cn, .lstm = cn_nn_lstm(cn, in, hidden, NULL) };
    adopt(&m->net, m->lstm);
    m->head = linear(&m->net, hidden, 10, true);
    m->net.x = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(steps, batch, in)));
    m->net.y = cn_keep(cn_randint(cn, CN_I64, 0, 10, CN_DIMS(batch)));
}

static void lstm_step(void *user)
{
    lstm *m = user;
    cn_tensor *h = cn_select(cn_forward(m->lstm, m->net.x), 0, -1);
    train(&m->net, cn_cross_entropy(cn_linear(h, m->head.w, m->head.b), m->net.y, NULL));
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
    m->pos = add_param(&m->net, cn_randn(cn, CN_F32, CN_DIMS(context, width)));
    for (int i = 0; i < 2; i++) {
        struct block *b = &m->block[i];
        b->ln1 = affine(&m->net, width);
        b->qkv = linear(&m->net, width, 3 * width, true);
        b->proj = linear(&m->net, width, width, true);
        b->ln2 = affine(&m->net, width);
        b->up = linear(&m->net, width, 4 * width, true);
        b->down = linear(&m->net, 4 * width, width, true);
    }
    m->ln = affine(&m->net, width);
    m->head = linear(&m->net, width, 10, true);
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
    train(&m->net, cn_cross_entropy(cn_linear(x, m->head.w, m->head.b), m->net.y, NULL));
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
    m->rows = add_param(&m->net, cn_randn(cn, CN_F32, CN_DIMS(rows, width)));
    m->net.x = cn_keep(cn_randint(cn, CN_I64, 0, rows, CN_DIMS(batch)));
    m->net.y = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(batch, width)));
}

static void table_step(void *user)
{
    table *m = user;
    train(&m->net, mse(cn_embedding(m->rows, m->net.x), m->net.y));
}
