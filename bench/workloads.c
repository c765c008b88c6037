/* The reference workloads, one line each: `name median_ms peak_rss_mb`, as the peers print them.

       bench_workloads [--list] [--extra] [--only gpt-mini,mlp] [--device gpu] [--threads 2] [--seconds 4] [--plan]

   Shapes, dtype and optimizer are the peers'. Every workload runs in a process of its own, so that memory is its own.
   --extra: the workloads of extra.h instead, where sizes, element types and operators are others.
   On a GPU each step is waited for, and a line goes on: `first_step_ms dispatches submissions pipelines fallbacks`, of
   which the first has the compilation of shaders in it, and the others are of a step. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cairn/cairn.h"

enum { MOST = 256 };

static struct options {
    int threads;
    double seconds;
    const char *only, *device;
    bool plan, extra;
} options = { .threads = 2, .seconds = 4, .device = "auto" };

/* ---- a model: its parameters, and Adam's state ---- */

typedef struct model {
    cn_ctx *cn;
    cn_tensor *p[MOST], *m[MOST], *v[MOST];
    int n, steps;
    double decay;
    bool sgd, f64;
    cn_tensor *x, *y;
} model;

static cn_dtype floats(const model *net) { return net->f64 ? CN_F64 : CN_F32; }

static cn_tensor *add_param(model *net, cn_tensor *t)
{
    int i = net->n++;
    net->p[i] = cn_param(t);
    if (net->sgd) return net->p[i];
    net->m[i] = cn_keep(cn_zeros_like(t));
    net->v[i] = cn_keep(cn_zeros_like(t));
    return net->p[i];
}

static cn_tensor *uniform(model *net, cn_dims shape, double bound)
{
    return cn_mul_s(cn_sub_s(cn_rand(net->cn, floats(net), shape), 0.5), 2 * bound);
}

typedef struct layer {
    cn_tensor *w, *b;
} layer;

static layer linear(model *net, int64_t in, int64_t out, bool bias)
{
    double bound = 1 / sqrt((double)in);
    layer l = { add_param(net, uniform(net, CN_DIMS(out, in), bound)), NULL };
    if (bias) l.b = add_param(net, uniform(net, CN_DIMS(out), bound));
    return l;
}

static layer affine(model *net, int64_t n)
{
    return (layer){ add_param(net, cn_ones(net->cn, CN_F32, CN_DIMS(n))),
                    add_param(net, cn_zeros(net->cn, CN_F32, CN_DIMS(n))) };
}

static void train(model *net, cn_tensor *loss)
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
    if (options.plan && net->steps == 2) {
        static char text[1 << 17];
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

static void mlp_new(mlp *m, cn_ctx *cn, int64_t batch, int layers, const int64_t *width)
{
    m->net.cn = cn;
    m->layers = layers;
    for (int i = 0; i < layers; i++) m->l[i] = linear(&m->net, width[i], width[i + 1], true);
    m->net.x = cn_keep(cn_randn(cn, floats(&m->net), CN_DIMS(batch, width[0])));
    m->net.y = cn_keep(cn_randint(cn, CN_I64, 0, width[layers], CN_DIMS(batch)));
}

static void mlp_step(void *user)
{
    mlp *m = user;
    cn_tensor *x = m->net.x;
    for (int i = 0; i < m->layers; i++) {
        x = cn_linear(x, m->l[i].w, m->l[i].b);
        if (i + 1 < m->layers) x = cn_relu(x);
    }
    train(&m->net, cn_cross_entropy(x, m->net.y, NULL));
}

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
        m->conv[i].w = add_param(&m->net, uniform(&m->net, CN_DIMS(channels[i + 1], channels[i], 3, 3), bound));
        m->conv[i].b = add_param(&m->net, uniform(&m->net, CN_DIMS(channels[i + 1]), bound));
        m->norm[i] = affine(&m->net, channels[i + 1]);
        m->mean[i] = cn_keep(cn_zeros(cn, CN_F32, CN_DIMS(channels[i + 1])));
        m->var[i] = cn_keep(cn_ones(cn, CN_F32, CN_DIMS(channels[i + 1])));
    }
    m->full[0] = linear(&m->net, 64 * 7 * 7, 128, true);
    m->full[1] = linear(&m->net, 128, 10, true);
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
        x = cn_max_pool2d(cn_relu(x), &(cn_pool_desc){ .kernel = { 2, 2 } });
    }
    x = cn_relu(cn_linear(cn_flatten(x, 1, -1), m->full[0].w, m->full[0].b));
    train(&m->net, cn_cross_entropy(cn_linear(x, m->full[1].w, m->full[1].b), m->net.y, NULL));
}

/* ---- transformers ---- */

typedef struct gpt {
    model net;
    int64_t vocab, context, heads, width, batch;
    int layers;
    cn_tensor *tok, *pos;
    layer ln, head;
    struct block {
        layer ln1, ln2, qkv, proj, up, down;
    } block[12];
} gpt;

static void gpt_new(gpt *m, cn_ctx *cn, int64_t vocab, int64_t context, int layers, int64_t heads, int64_t width,
                    int64_t batch)
{
    *m = (gpt){ .vocab = vocab, .context = context, .heads = heads, .width = width, .batch = batch, .layers = layers };
    m->net.cn = cn;
    m->net.decay = 0.01;
    m->tok = add_param(&m->net, cn_randn(cn, CN_F32, CN_DIMS(vocab, width)));
    m->pos = add_param(&m->net, cn_randn(cn, CN_F32, CN_DIMS(context, width)));
    for (int i = 0; i < layers; i++) {
        struct block *b = &m->block[i];
        b->ln1 = affine(&m->net, width);
        b->ln2 = affine(&m->net, width);
        b->qkv = linear(&m->net, width, 3 * width, true);
        b->proj = linear(&m->net, width, width, true);
        b->up = linear(&m->net, width, 4 * width, true);
        b->down = linear(&m->net, 4 * width, width, true);
    }
    m->ln = affine(&m->net, width);
    m->head = linear(&m->net, width, vocab, false);
    m->net.x = cn_keep(cn_randint(cn, CN_I64, 0, vocab, CN_DIMS(batch, context)));
    m->net.y = cn_keep(cn_randint(cn, CN_I64, 0, vocab, CN_DIMS(batch * context)));
}

/* (B,T,C) -> (B,T,C) */
static cn_tensor *block_forward(const gpt *m, const struct block *b, cn_tensor *x)
{
    int64_t B = m->batch, T = m->context, C = m->width, H = m->heads;
    cn_tensor *h = cn_linear(cn_layer_norm(x, 1, b->ln1.w, b->ln1.b, 1e-5), b->qkv.w, b->qkv.b);
    h = cn_permute(cn_view(h, CN_DIMS(B, T, 3, H, C / H)), CN_DIMS(2, 0, 3, 1, 4)); /* (3,B,H,T,D) */
    cn_tensor *y = cn_scaled_dot_product_attention(cn_select(h, 0, 0), cn_select(h, 0, 1), cn_select(h, 0, 2),
                                                   &(cn_attention_desc){ .causal = true });
    y = cn_reshape(cn_transpose(y, 1, 2), CN_DIMS(B, T, C));
    x = cn_add(x, cn_linear(y, b->proj.w, b->proj.b));
    h = cn_gelu_tanh(cn_linear(cn_layer_norm(x, 1, b->ln2.w, b->ln2.b, 1e-5), b->up.w, b->up.b));
    return cn_add(x, cn_linear(h, b->down.w, b->down.b));
}

static void gpt_step(void *user)
{
    gpt *m = user;
    cn_tensor *x = cn_add(cn_embedding(m->tok, m->net.x), m->pos);
    for (int i = 0; i < m->layers; i++) x = block_forward(m, &m->block[i], x);
    x = cn_linear(cn_layer_norm(x, 1, m->ln.w, m->ln.b, 1e-5), m->head.w, NULL);
    train(&m->net, cn_cross_entropy(cn_reshape(x, CN_DIMS(m->batch * m->context, m->vocab)), m->net.y, NULL));
}

/* ---- single operations ---- */

typedef struct pair {
    cn_tensor *a, *b, *c;
} pair;

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

#include "extra.h"

/* ---- the lists ---- */

static mlp a_mlp;
static cnn a_cnn;
static gpt a_gpt;
static pair a_pair;
static resnet a_resnet;
static autoencoder an_autoencoder;
static lstm an_lstm;
static encoder an_encoder;
static normed a_normed;
static table a_table;

static void *new_mlp_tiny(cn_ctx *cn) { return mlp_new(&a_mlp, cn, 16, 3, (const int64_t[]){ 2, 16, 16, 2 }), &a_mlp; }
static void *new_mlp(cn_ctx *cn) { return mlp_new(&a_mlp, cn, 64, 2, (const int64_t[]){ 784, 128, 10 }), &a_mlp; }
static void *new_mlp_wide(cn_ctx *cn)
{
    return mlp_new(&a_mlp, cn, 128, 3, (const int64_t[]){ 784, 1024, 1024, 10 }), &a_mlp;
}
static void *new_cnn(cn_ctx *cn) { return cnn_new(&a_cnn, cn, 64), &a_cnn; }
static void *new_gpt_mini(cn_ctx *cn) { return gpt_new(&a_gpt, cn, 65, 64, 4, 4, 128, 12), &a_gpt; }
static void *new_gpt_small(cn_ctx *cn) { return gpt_new(&a_gpt, cn, 512, 256, 6, 6, 384, 4), &a_gpt; }

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

static void *new_mlp_odd(cn_ctx *cn)
{
    return mlp_new(&a_mlp, cn, 37, 3, (const int64_t[]){ 777, 301, 103, 11 }), &a_mlp;
}
static void *new_mlp_f64(cn_ctx *cn)
{
    a_mlp.net.f64 = true;
    return mlp_new(&a_mlp, cn, 64, 2, (const int64_t[]){ 784, 256, 10 }), &a_mlp;
}
static void *new_resnet(cn_ctx *cn) { return resnet_new(&a_resnet, cn, 32), &a_resnet; }
static void *new_autoencoder(cn_ctx *cn) { return autoencoder_new(&an_autoencoder, cn, 32), &an_autoencoder; }
static void *new_lstm(cn_ctx *cn) { return lstm_new(&an_lstm, cn, 32, 32, 64, 128), &an_lstm; }
static void *new_encoder(cn_ctx *cn) { return encoder_new(&an_encoder, cn, 100, 3, 192, 8), &an_encoder; }
static void *new_rows(cn_ctx *cn)
{
    a_pair = (pair){ .a = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(4096, 1000))) };
    return &a_pair;
}
static void *new_normed(cn_ctx *cn) { return normed_new(&a_normed, cn, 4096, 768), &a_normed; }
static void *new_table(cn_ctx *cn) { return table_new(&a_table, cn, 50000, 128, 8192), &a_table; }

static const struct workload {
    const char *name, *words;
    void *(*make)(cn_ctx *cn);
    void (*step)(void *user);
} reference[] = {
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

static const struct workload extra[] = {
    { "mlp-odd", "777-301-103-11, batch 37", new_mlp_odd, mlp_step },
    { "mlp-f64", "784-256-10, batch 64, in f64", new_mlp_f64, mlp_step },
    { "cnn-strided", "two residual blocks of stride 2 on 32 images of 3x32x32", new_resnet, resnet_step },
    { "autoencoder", "strided convolutions and back, 32 images of 28x28", new_autoencoder, autoencoder_step },
    { "lstm", "input 64, hidden 128, 32 steps, batch 32", new_lstm, lstm_step },
    { "encoder", "2 layers, 3 heads, width 192, context 100, batch 8, dropout", new_encoder, encoder_step },
    { "softmax-rows", "log_softmax of 4096 rows of 1000, summed over the rows", new_rows, rows_step },
    { "layernorm-bwd", "layer_norm of 4096 rows of 768, and its gradients", new_normed, normed_step },
    { "gather-embed", "8192 rows of an embedding of 50,000x128, SGD", new_table, table_step },
};
enum { REFERENCE = sizeof reference / sizeof *reference, EXTRA = sizeof extra / sizeof *extra };

/* ---- timing ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* What the GPU does for steps, without what waiting for them costs it. */
typedef struct work {
    int64_t dispatches, submissions, pipelines, fallbacks;
} work;

static void add_work(work *sum, cn_gpu_counters from, cn_gpu_counters to)
{
    sum->dispatches += to.dispatches - from.dispatches;
    sum->submissions += to.submissions - from.submissions;
    sum->pipelines += to.pipelines - from.pipelines;
    sum->fallbacks += to.fallbacks - from.fallbacks;
}

/* gate: a number on the GPU; it can be read when all before it is done. NULL: nothing runs on after a step. */
static double one_step(cn_ctx *cn, const struct workload *w, void *user, cn_tensor *gate, work *sum)
{
    cn_scope s = cn_scope_begin(cn);
    cn_gpu_counters before = cn_gpu_counted(cn);
    double t = now();
    w->step(user);
    add_work(sum, before, cn_gpu_counted(cn));
    if (gate) cn_item(gate);
    t = now() - t;
    cn_scope_end(cn, s);
    return t;
}

enum { NO_DEVICE = 3 };

static int run(const struct workload *w)
{
    enum { MOST_TIMES = 1 << 20 };
    static double times[MOST_TIMES];
    cn_ctx *cn = cn_open(&(cn_desc){ .device = options.device, .seed = 1, .threads = options.threads });
    if (!cn || cn_failed(cn)) {
        fprintf(stderr, "cairn: --device %s: %s\n", options.device, cn ? cn_error(cn) : "out of memory");
        return NO_DEVICE;
    }
    void *user = w->make(cn);
    cn_tensor *one = cn_keep(cn_ones(cn, CN_F32, CN_DIMS(1))), *gate = strncmp(cn_device(one), "gpu", 3) ? NULL : one;
    cn_eval_all(cn);
    if (gate) cn_item(gate);
    work warm = { 0 }, sum = { 0 };
    double first = one_step(cn, w, user, gate, &warm);
    for (int i = 0; i < 2; i++) one_step(cn, w, user, gate, &warm);
    int n = 0;
    for (double end = now() + options.seconds; (now() < end || n < 5) && n < MOST_TIMES && !cn_failed(cn);)
        times[n++] = one_step(cn, w, user, gate, &sum);
    if (cn_failed(cn)) {
        printf("%s FAILED %s\n", w->name, cn_error(cn));
        return 1;
    }
    qsort(times, (size_t)n, sizeof *times, by_value);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%s %.4f %.0f", w->name, times[n / 2] * 1e3, (double)usage.ru_maxrss / 1024);
    if (gate)
        printf(" %.1f %.1f %.1f %.1f %.1f", first * 1e3, (double)sum.dispatches / n, (double)sum.submissions / n,
               (double)sum.pipelines / n, (double)sum.fallbacks / n);
    printf("\n");
    cn_close(cn);
    return 0;
}

/* By name if names were given, else as a member of the list that was asked for. */
static bool chosen(const char *name, bool list)
{
    size_t n = strlen(name);
    for (const char *at = options.only; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (!strncmp(at, name, n) && (at[n] == 0 || at[n] == ',')) return true;
    return !options.only && list;
}

static void print_list(const struct workload *w, int n)
{
    for (int k = 0; k < n; k++) printf("%-14s %s\n", w[k].name, w[k].words);
}

static int run_list(const struct workload *w, int n, bool list)
{
    int bad = 0;
    for (int k = 0; k < n; k++) {
        if (!chosen(w[k].name, list)) continue;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            int code = run(&w[k]);
            fflush(stdout);
            _exit(code);
        }
        int status = 1;
        if (child > 0) waitpid(child, &status, 0);
        bad |= status != 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) == NO_DEVICE) break;
    }
    return bad;
}

static int usage(int code)
{
    printf("usage: bench_workloads [--list] [--extra] [--only NAME,NAME] [--device gpu] [--threads N] [--seconds S] "
           "[--plan]\n");
    return code;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--list")) {
            print_list(reference, REFERENCE);
            printf("\n");
            print_list(extra, EXTRA);
            return 0;
        }
        if (!strcmp(argv[i], "--plan")) options.plan = true;
        else if (!strcmp(argv[i], "--extra")) options.extra = true;
        else if (i + 1 < argc && !strcmp(argv[i], "--only")) options.only = argv[++i];
        else if (i + 1 < argc && !strcmp(argv[i], "--device")) options.device = argv[++i];
        else if (i + 1 < argc && !strcmp(argv[i], "--threads")) options.threads = atoi(argv[++i]);
        else if (i + 1 < argc && !strcmp(argv[i], "--seconds")) options.seconds = atof(argv[++i]);
        else return usage(strcmp(argv[i], "--help") != 0);
    }
    int bad = run_list(reference, REFERENCE, !options.extra);
    return run_list(extra, EXTRA, options.extra) | bad;
}
