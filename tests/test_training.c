/* A hundred steps of training beside PyTorch's (reference/make_training.py): the same start and the same batches give
   the same first gradients, the same losses all the way and the same parameters at the end. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/named_cases.h"

enum { STEPS = 100, BATCHES = 5 };

/* ---- batches: formulas of their number k, as make_training.py has them ---- */

typedef struct batch {
    cn_tensor *x, *y;
} batch;

static int64_t numel(cn_dims shape)
{
    int64_t n = 1;
    for (int i = 0; i < shape.n; i++) n *= shape.v[i];
    return n;
}

static cn_tensor *wave(cn_ctx *cn, cn_dims shape, int k)
{
    const int64_t n = numel(shape);
    float *v = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++) v[i] = (float)sin((double)(i * i) * 0.013 + k);
    cn_tensor *t = cn_from(cn, CN_F32, shape, v);
    free(v);
    return t;
}

static cn_tensor *labels(cn_ctx *cn, int64_t n, int64_t classes, int k)
{
    int64_t v[64];
    for (int64_t i = 0; i < n; i++) v[i] = (i * 7 + k * 3) % classes;
    return cn_from(cn, CN_I64, CN_DIMS(n), v);
}

static batch mlp_batch(cn_ctx *cn, int k) { return (batch){ wave(cn, CN_DIMS(12, 10), k), labels(cn, 12, 5, k) }; }
static batch lstm_batch(cn_ctx *cn, int k) { return (batch){ wave(cn, CN_DIMS(7, 8, 6), k), labels(cn, 8, 5, k) }; }
static batch cnn_batch(cn_ctx *cn, int k) { return (batch){ wave(cn, CN_DIMS(6, 1, 8, 8), k), labels(cn, 6, 5, k) }; }

static batch gpt_batch(cn_ctx *cn, int k)
{
    int64_t v[36];
    for (int64_t i = 0; i < 36; i++) v[i] = (i * i * 3 + i * k + k) % 11;
    cn_tensor *t = cn_from(cn, CN_I64, CN_DIMS(4, 9), v);
    return (batch){ cn_contiguous(cn_slice(t, 1, 0, 8, 1)), cn_contiguous(cn_slice(t, 1, 1, 9, 1)) };
}

/* ---- models ---- */

static cn_module *mlp_new(cn_ctx *cn)
{
    return cn_nn_sequential(cn, cn_nn_linear(cn, 10, 16, NULL), cn_nn_relu(cn), cn_nn_linear(cn, 16, 16, NULL),
                            cn_nn_function(cn, cn_tanh), cn_nn_linear(cn, 16, 5, NULL));
}

typedef struct classifier {
    cn_module *lstm, *head;
} classifier;

/* (T,B,6) -> (B,5) */
static cn_tensor *classify(cn_module *m, cn_tensor *x)
{
    const classifier *c = cn_module_data(m);
    return cn_forward(c->head, cn_select(cn_forward(c->lstm, x), 0, -1));
}

static cn_module *lstm_new(cn_ctx *cn)
{
    static const cn_module_type type = { .name = "Classifier", .forward = classify, .data_bytes = sizeof(classifier) };
    cn_module *m = cn_module_new(cn, &type);
    classifier *c = cn_module_data(m);
    c->lstm = cn_module_child(m, "lstm", cn_nn_lstm(cn, 6, 12, NULL));
    c->head = cn_module_child(m, "head", cn_nn_linear(cn, 12, 5, NULL));
    return cn_module_made(m);
}

static cn_module *cnn_new(cn_ctx *cn)
{
    return cn_nn_sequential(cn, cn_nn_conv2d(cn, 1, 4, 3, &(cn_nn_conv_desc){ .padding = 1, .no_bias = true }),
                            cn_nn_batch_norm2d(cn, 4, NULL), cn_nn_relu(cn), cn_nn_max_pool2d(cn, 2, NULL),
                            cn_nn_conv2d(cn, 4, 6, 3, &(cn_nn_conv_desc){ .no_bias = true }),
                            cn_nn_batch_norm2d(cn, 6, NULL), cn_nn_relu(cn), cn_nn_flatten(cn, 1, -1),
                            cn_nn_linear(cn, 24, 5, NULL));
}

static cn_module *gpt_new(cn_ctx *cn)
{
    return cn_nn_gpt(cn, &(cn_gpt_desc){ .vocab = 11, .context = 8, .layers = 2, .heads = 2, .width = 8 });
}

/* final: how close the parameters at the end are, in units of the largest of each */
static const struct model {
    const char *name;
    cn_module *(*make)(cn_ctx *cn);
    batch (*batch)(cn_ctx *cn, int k);
    double final;
} models[] = {
    { "mlp", mlp_new, mlp_batch, 1e-4 },
    { "lstm", lstm_new, lstm_batch, 1e-4 },
    { "cnn", cnn_new, cnn_batch, 1e-4 },
    { "gpt", gpt_new, gpt_batch, 1e-4 },
};

static const struct model *find_model(const char *name)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strcmp(models[i].name, name) == 0) return &models[i];
    return NULL;
}

/* ---- training ---- */

static cn_optim *make_optimizer(cn_ctx *cn, const named_case *c, cn_module *m)
{
    const double lr = named_option(c, "lr"), decay = named_option(c, "weight_decay");
    if (named_option(c, "adamw"))
        return cn_adamw(cn, cn_parameters(m), &(cn_adamw_desc){ .lr = lr, .weight_decay = decay });
    return cn_sgd(cn, cn_parameters(m),
                  &(cn_sgd_desc){ .lr = lr,
                                  .weight_decay = decay,
                                  .momentum = named_option(c, "momentum"),
                                  .nesterov = named_option(c, "nesterov") });
}

/* The biases of keys have no gradient, since softmax does not see them; Adam makes something of rounding errors. */
static cn_tensor *without_keys(cn_tensor *bias)
{
    const int64_t width = cn_size(bias, 0) / 3;
    return cn_cat(CN_TENSORS(cn_narrow(bias, 0, 0, width), cn_narrow(bias, 0, 2 * width, width)), 0);
}

/* Everything of m's state against what is stored below a prefix: gradients for "g.", values otherwise. */
static void check_state(const named_case *c, cn_module *m, const char *prefix, double relative)
{
    const bool gradients = *prefix == 'g';
    cn_named_list named = cn_module_named(m);
    for (int i = 0; i < named.n; i++) {
        char name[256];
        snprintf(name, sizeof name, "%s%s", prefix, named.v[i].name);
        cn_tensor *expected = cn_dict_get(c->d, name), *got = named.v[i].tensor;
        if (gradients && named.v[i].buffer) continue;
        if (gradients) got = cn_grad_of(got);
        if (strstr(name, "c_attn.bias")) expected = without_keys(expected), got = without_keys(got);
        named_compare(c, name, expected, got, relative);
    }
}

static cn_tensor *loss_of(cn_module *m, batch b)
{
    cn_tensor *logits = cn_forward(m, b.x);
    if (cn_ndim(logits) == 3) logits = cn_flatten(logits, 0, 1);
    return cn_cross_entropy(logits, cn_flatten(b.y, 0, -1), NULL);
}

static void train(cn_ctx *cn, const named_case *c, const struct model *model)
{
    cn_module *m = model->make(cn);
    check(cn_module_load(m, c->d, &(cn_module_load_desc){ .prefix = "p." }), "%s: %s", c->name, cn_error(cn));
    cn_optim *o = make_optimizer(cn, c, m);
    double expected[STEPS];
    if (!check(cn_read_f64(cn_dict_get(c->d, "losses"), expected, STEPS), "%s: losses: %s", c->name, cn_error(cn)))
        return;
    int64_t misses = 0;
    for (int step = 0; step < STEPS && !cn_failed(cn); step++) {
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *loss = loss_of(m, model->batch(cn, step % BATCHES));
        cn_backward(loss);
        if (step == 0) check_state(c, m, "g.", 1e-5);
        check(cn_step(o), "%s (%s), step %d: %s", c->name, c->options, step, cn_error(cn));
        const double got = cn_item(loss);
        check(fabs(got - expected[step]) <= 1e-4 * expected[step], "%s (%s), step %d: a loss of %.8g, not %.8g",
              c->name, c->options, step, got, expected[step]);
        cn_scope_end(cn, s);
        if (step == 3) misses = cn_count(cn).plan_misses;
    }
    check(cn_count(cn).plan_misses == misses, "%s (%s): no plan is made once training goes", c->name, c->options);
    check_state(c, m, "f.", model->final);
    cn_optim_free(o), cn_module_free(m);
}

int main(void)
{
    int cases = 0, tried = 0;
    FILE *f = named_open(CAIRN_SOURCE_DIR "/tests/reference/training.bin", &cases);
    for (int k = 0; f && k < cases; k++) {
        cn_ctx *cn = cn_open(&(cn_desc){ .seed = 5 });
        named_case c;
        if (named_next(f, cn, &c)) {
            check_group(c.name);
            const struct model *model = find_model(c.name);
            if (check(model != NULL, "a model %s", c.name)) train(cn, &c, model), tried++;
            check(!cn_failed(cn), "no error left: %s", cn_error(cn));
            named_free(&c);
        }
        cn_close(cn);
    }
    check(tried == 8, "%d runs", tried);
    if (f) fclose(f);
    return finish();
}
