/* Layers against PyTorch's stored results: names of parameters, outputs, gradients, buffers; dropout; what is refused.
   Initial values: test_init.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/stored_cases.h"

/* ---- the same modules as in reference/make_layers.py ---- */

#define CONV(...)     (&(cn_nn_conv_desc){ __VA_ARGS__ })
#define POOL(...)     (&(cn_nn_pool_desc){ __VA_ARGS__ })
#define BATCH(...)    (&(cn_nn_batch_norm_desc){ __VA_ARGS__ })
#define INSTANCE(...) (&(cn_nn_instance_norm_desc){ __VA_ARGS__ })
#define NORM(...)     (&(cn_nn_norm_desc){ __VA_ARGS__ })
#define UPSAMPLE(...) (&(cn_nn_upsample_desc){ __VA_ARGS__ })

static cn_module *cnn(cn_ctx *cn)
{
    return cn_nn_sequential(cn, cn_nn_conv2d(cn, 1, 4, 3, CONV(.padding = 1, .no_bias = true)),
                            cn_nn_batch_norm2d(cn, 4, NULL), cn_nn_relu(cn), cn_nn_max_pool2d(cn, 2, NULL),
                            cn_nn_conv2d(cn, 4, 6, 2, NULL), cn_nn_group_norm(cn, 2, 6, NULL), cn_nn_silu(cn),
                            cn_nn_adaptive_avg_pool2d(cn, 1, 1), cn_nn_flatten(cn, 1, -1),
                            cn_nn_linear(cn, 6, 3, NULL));
}

static cn_module *make(cn_ctx *cn, const char *name)
{
#define LAYER(case_, maker) \
    if (strcmp(name, case_) == 0) return maker;
#include "reference/layers.def"
#undef LAYER
    return NULL;
}

static const char *const layers[] = {
#define LAYER(case_, maker) case_,
#include "reference/layers.def"
#undef LAYER
};
enum { LAYERS = sizeof layers / sizeof *layers };

/* ---- against PyTorch ---- */

static bool has_role(const stored_tensor *t, const char *role) { return strcmp(t->role, role) == 0; }

static double tolerance(const stored_case *c) { return c->dtype == CN_F64 ? 1e-9 : 1e-5; }

static void compare(const stored_case *c, const stored_tensor *t, cn_tensor *got)
{
    const double difference = stored_difference(t, got);
    check(difference <= tolerance(c), "%s (%s, %s): %s %s differs by %g: %s", c->name, c->mode, c->words, t->role,
          t->name, difference, cn_error(got ? cn_context(got) : NULL));
}

/* By PyTorch's names, and strictly: not one too few or too many. */
static void load(cn_ctx *cn, const stored_case *c, cn_module *m)
{
    cn_dict *d = cn_dict_new(cn);
    int n = 0;
    for (int i = 0; i < c->n; i++)
        if (has_role(&c->v[i], "state")) n += cn_dict_set(d, c->v[i].name, stored_tensor_of(cn, &c->v[i]));
    check(cn_module_load(m, d, NULL), "%s: %s", c->name, cn_error(cn));
    cn_named_list named = cn_module_named(m);
    check(named.n == n, "%s: %d names, of PyTorch's %d", c->name, named.n, n);
    for (int i = 0; i < named.n && i < n; i++)
        check(strcmp(named.v[i].name, cn_dict_name(d, i)) == 0, "%s: name %d is %s, not %s", c->name, i,
              named.v[i].name, cn_dict_name(d, i));
    cn_dict_free(d);
}

static void compare_all(const stored_case *c, cn_module *m, cn_tensor *const *in, cn_tensor *y)
{
    for (int i = 0; i < c->n; i++) {
        const stored_tensor *t = &c->v[i];
        const bool of_input = t->name[0] >= '0' && t->name[0] <= '9' && t->name[1] == 0;
        if (has_role(t, "output")) compare(c, t, y);
        if (has_role(t, "after")) compare(c, t, cn_module_get(m, t->name));
        if (has_role(t, "grad")) compare(c, t, cn_grad_of(of_input ? in[t->name[0] - '0'] : cn_module_get(m, t->name)));
    }
}

static void run_case(cn_ctx *cn, const stored_case *c)
{
    cn_set_default_dtype(cn, c->dtype);
    cn_module *m = make(cn, c->name);
    if (!check(m != NULL, "%s: %s", c->name, cn_failed(cn) ? cn_error(cn) : "has no row in layers.def")) return;
    cn_scope s = cn_scope_begin(cn);
    load(cn, c, m);
    cn_module_train(m, strcmp(c->mode, "train") == 0);
    cn_tensor *in[4] = { 0 }, *weights = NULL, *y = NULL;
    int n = 0;
    for (int i = 0; i < c->n; i++) {
        cn_tensor *t =
            has_role(&c->v[i], "input") || has_role(&c->v[i], "weights") ? stored_tensor_of(cn, &c->v[i]) : NULL;
        if (has_role(&c->v[i], "weights")) weights = t;
        if (has_role(&c->v[i], "input")) in[n++] = cn_dtype_is_float(cn_type(t)) ? cn_param(t) : cn_keep(t);
    }
    check(cn_forward_all(m, in, n, &y, 1), "%s: %s", c->name, cn_error(cn));
    check(cn_backward_with(cn_sum(cn_mul(y, weights), CN_ALL, false), &(cn_backward_desc){ .retain = true }) ||
              !cn_requires_grad(in[0]),
          "%s: %s", c->name, cn_error(cn));
    compare_all(c, m, in, y);
    for (int i = 0; i < n; i++) cn_release(in[i]);
    cn_scope_end(cn, s);
    cn_module_free(m);
    cn_error_clear(cn);
}

static void against_pytorch(cn_ctx *cn)
{
    bool seen[LAYERS] = { 0 };
    FILE *f = stored_cases_open(CAIRN_SOURCE_DIR "/tests/reference/layers.bin");
    if (!check(f != NULL, "tests/reference/layers.bin")) return;
    stored_case c;
    for (; stored_next(f, &c); stored_free(&c)) {
        check_group(c.name);
        run_case(cn, &c);
        for (int i = 0; i < LAYERS; i++) seen[i] = seen[i] || strcmp(layers[i], c.name) == 0;
    }
    check_group("layers.bin");
    check(feof(f), "read to the end");
    for (int i = 0; i < LAYERS; i++) check(seen[i], "there is a stored case of %s", layers[i]);
    fclose(f);
    cn_set_default_dtype(cn, CN_F32);
}

/* ---- dropout ---- */

typedef struct tally {
    double zeros, mean, var;
    bool two_values; /* 0 and 1 / (1 - p), of ones */
} tally;

static tally count(cn_tensor *y, double kept)
{
    const int64_t n = cn_numel(y);
    tally t = { .two_values = true };
    double *v = malloc((size_t)n * sizeof *v), sum = 0, squares = 0;
    cn_read_f64(y, v, n);
    for (int64_t i = 0; i < n; i++) {
        t.zeros += v[i] == 0;
        t.two_values = t.two_values && (v[i] == 0 || fabs(v[i] - kept) < 1e-6);
        sum += v[i], squares += v[i] * v[i];
    }
    free(v);
    t.zeros /= (double)n;
    t.mean = sum / (double)n;
    t.var = squares / (double)n - t.mean * t.mean;
    return t;
}

static void dropout_of_elements(cn_ctx *cn)
{
    check_group("Dropout");
    const double n = 40000;
    cn_tensor *x = cn_param(cn_ones(cn, CN_F32, CN_DIMS(200, 200)));
    for (double p = 0.1; p < 1; p += 0.4) {
        cn_module *m = cn_nn_dropout(cn, p);
        cn_seed(cn, 5);
        cn_tensor *y = cn_keep(cn_forward(m, x));
        tally t = count(y, 1 / (1 - p));
        check(t.two_values, "0 or 1/(1 - %g)", p);
        check(fabs(t.zeros - p) < 4 * sqrt(p * (1 - p) / n), "a share of %g for %g", t.zeros, p);
        cn_backward(cn_sum(y, CN_ALL, false));
        check(cn_item(cn_sum(cn_abs(cn_sub(cn_grad_of(x), y)), CN_ALL, false)) == 0, "its gradient is the mask");
        cn_zero_grad(x);
        cn_tensor *again = cn_forward(m, x);
        check(cn_item(cn_sum(cn_abs(cn_sub(again, y)), CN_ALL, false)) > 0, "another mask each time");
        cn_seed(cn, 5);
        check(cn_item(cn_sum(cn_abs(cn_sub(cn_forward(m, x), y)), CN_ALL, false)) == 0, "the same seed, the same mask");
        cn_module_train(m, false);
        check(cn_forward(m, x) == x, "nothing in evaluation");
        cn_release(y);
        cn_module_free(m);
    }
    cn_module *all = cn_nn_dropout(cn, 1), *none = cn_nn_dropout(cn, 0);
    check(cn_item(cn_sum(cn_forward(all, x), CN_ALL, false)) == 0, "p 1 drops all");
    check(cn_forward(none, x) == x, "p 0 drops nothing");
    cn_module_free(all), cn_module_free(none);
    cn_release(x);
}

/* Every channel is whole or gone; `shape` ends with the axes of a channel. */
static void dropout_of_channels(cn_ctx *cn, const char *name, cn_module *m, cn_dims shape, int axes)
{
    check_group(name);
    cn_scope s = cn_scope_begin(cn);
    cn_dims last = { .n = axes };
    for (int d = 0; d < axes; d++) last.v[d] = d - axes;
    cn_tensor *y = cn_forward(m, cn_ones(cn, CN_F64, shape));
    const double n = (double)cn_numel(y) / (double)(axes == 1 ? shape.v[shape.n - 1] : 9);
    tally t = count(y, 1 / (1 - 0.3)), channel = count(cn_mean(y, last, false), 1 / (1 - 0.3));
    check(t.two_values && channel.two_values, "whole channels");
    check(fabs(channel.zeros - 0.3) < 4 * sqrt(0.3 * 0.7 / n), "a share of %g", channel.zeros);
    cn_module_train(m, false);
    cn_tensor *x = cn_ones(cn, CN_F64, shape);
    check(cn_forward(m, x) == x, "nothing in evaluation");
    cn_scope_end(cn, s);
    cn_module_free(m);
}

static void alpha_dropout(cn_ctx *cn)
{
    check_group("AlphaDropout");
    cn_scope s = cn_scope_begin(cn);
    cn_module *m = cn_nn_alpha_dropout(cn, 0.2), *all = cn_nn_alpha_dropout(cn, 1);
    cn_tensor *x = cn_randn(cn, CN_F64, CN_DIMS(300, 300));
    tally t = count(cn_forward(m, x), 0);
    check(fabs(t.mean) < 0.02 && fabs(t.var - 1) < 0.03, "mean %g and variance %g stay 0 and 1", t.mean, t.var);
    /* of zeros: b where kept, a·limit + b where dropped; by PyTorch's formula for p = 0.2 */
    const double limit = -1.7580993408473766, a = 1 / sqrt(0.8 * (1 + 0.2 * limit * limit)), b = -a * limit * 0.2;
    cn_tensor *y = cn_sub_s(cn_forward(m, cn_zeros_like(x)), a * limit + b);
    tally z = count(cn_where(cn_lt_s(cn_abs(y), 1e-12), cn_zeros_like(y), y), -a * limit);
    check(z.two_values && fabs(z.zeros - 0.2) < 4 * sqrt(0.2 * 0.8 / 90000), "two values; a share of %g", z.zeros);
    check(cn_item(cn_sum(cn_abs(cn_forward(all, x)), CN_ALL, false)) == 0, "p 1 leaves nothing");
    cn_module_train(m, false);
    check(cn_forward(m, x) == x, "nothing in evaluation");
    cn_scope_end(cn, s);
    cn_module_free(m), cn_module_free(all);
}

/* Every channel is whole: its elements differ only as those of x do. */
static void feature_alpha_dropout(cn_ctx *cn)
{
    check_group("FeatureAlphaDropout");
    cn_scope s = cn_scope_begin(cn);
    cn_module *m = cn_nn_feature_alpha_dropout(cn, 0.2);
    const double limit = -1.7580993408473766, a = 1 / sqrt(0.8 * (1 + 0.2 * limit * limit)), b = -a * limit * 0.2;
    cn_tensor *y = cn_sub_s(cn_forward(m, cn_zeros(cn, CN_F64, CN_DIMS(60, 70, 5))), a * limit + b);
    tally all = count(cn_where(cn_lt_s(cn_abs(y), 1e-12), cn_zeros_like(y), y), -a * limit);
    tally channels =
        count(cn_mean(cn_where(cn_lt_s(cn_abs(y), 1e-12), cn_zeros_like(y), y), CN_DIMS(2), false), -a * limit);
    check(all.two_values && channels.two_values, "whole channels");
    check(fabs(channels.zeros - 0.2) < 4 * sqrt(0.2 * 0.8 / 4200), "a share of %g", channels.zeros);
    cn_scope_end(cn, s);
    cn_module_free(m);
}

/* In training, slopes are drawn: of -1 the results lie in (-upper, -lower], and their mean is in the middle. */
static void random_slopes(cn_ctx *cn)
{
    check_group("RReLU");
    cn_scope s = cn_scope_begin(cn);
    cn_module *m = cn_nn_rrelu(cn, 0.1, 0.3);
    cn_tensor *x = cn_full(cn, CN_F64, CN_DIMS(100, 100), -1), *y = cn_forward(m, x);
    check(cn_item(cn_min(y, CN_ALL, false)) >= -0.3 && cn_item(cn_max(y, CN_ALL, false)) <= -0.1, "slopes in range");
    check(fabs(cn_item(cn_mean(y, CN_ALL, false)) + 0.2) < 4 * 0.2 / sqrt(12 * 10000.0), "their mean");
    check(cn_item(cn_std(y, CN_ALL, 1, false)) > 0.05, "each element has its own");
    check(cn_item(cn_sum(cn_sub(cn_forward(m, cn_neg(x)), cn_neg(x)), CN_ALL, false)) == 0, "above 0 nothing changes");
    cn_scope_end(cn, s);
    cn_module_free(m);
}

static void dropouts(cn_ctx *cn)
{
    dropout_of_elements(cn);
    dropout_of_channels(cn, "Dropout1d", cn_nn_dropout1d(cn, 0.3), CN_DIMS(40, 50, 7), 1);
    dropout_of_channels(cn, "Dropout1d (C, L)", cn_nn_dropout1d(cn, 0.3), CN_DIMS(2000, 7), 1);
    dropout_of_channels(cn, "Dropout2d", cn_nn_dropout2d(cn, 0.3), CN_DIMS(40, 50, 3, 3), 2);
    dropout_of_channels(cn, "Dropout3d", cn_nn_dropout3d(cn, 0.3), CN_DIMS(40, 50, 1, 3, 3), 3);
    alpha_dropout(cn);
    feature_alpha_dropout(cn);
    random_slopes(cn);
}

/* ---- PyTorch's initial values ---- */

static void drawn_within(cn_ctx *cn, cn_module *m, const char *name, double bound)
{
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *w = cn_module_get(m, name);
    const double n = (double)cn_numel(w), std = bound / sqrt(3);
    const double most = cn_item(cn_max(cn_abs(w), CN_ALL, false));
    check(most <= bound * (1 + 1e-6) && most > bound * (1 - 20 / n), "%s reaches %g of %g", name, most, bound);
    check(fabs(cn_item(cn_mean(w, CN_ALL, false))) < 5 * std / sqrt(n), "%s: its mean", name);
    check(fabs(cn_item(cn_std(w, CN_ALL, 1, false)) / std - 1) < 5 / sqrt(n), "%s: its deviation", name);
    check(cn_requires_grad(w), "%s is trained", name);
    cn_scope_end(cn, s);
}

static void all_equal(cn_ctx *cn, cn_module *m, const char *name, double value)
{
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *t = cn_module_get(m, name);
    check(t && cn_item(cn_max(cn_abs(cn_sub_s(t, value)), CN_ALL, false)) == 0, "%s is %g", name, value);
    cn_scope_end(cn, s);
}

static void initial_values(cn_ctx *cn)
{
    check_group("initial values");
    cn_module *m =
        cn_nn_list(cn, cn_nn_linear(cn, 100, 300, NULL), cn_nn_conv2d(cn, 16, 64, 3, CONV(.groups = 2)),
                   cn_nn_conv_transpose2d(cn, 16, 64, 3, CONV(.groups = 2)), cn_nn_bilinear(cn, 20, 30, 40, NULL),
                   cn_nn_batch_norm2d(cn, 5, NULL), cn_nn_prelu(cn, 3, 0.25), cn_nn_layer_norm(cn, CN_DIMS(2, 3), NULL),
                   cn_nn_embedding(cn, 200, 300, &(cn_nn_embedding_desc){ .has_padding = true, .padding_idx = 7 }));
    drawn_within(cn, m, "0.weight", 1 / sqrt(100));
    drawn_within(cn, m, "0.bias", 1 / sqrt(100));
    drawn_within(cn, m, "1.weight", 1 / sqrt(8 * 9));
    drawn_within(cn, m, "1.bias", 1 / sqrt(8 * 9));
    drawn_within(cn, m, "2.weight", 1 / sqrt(32 * 9));
    drawn_within(cn, m, "2.bias", 1 / sqrt(32 * 9));
    drawn_within(cn, m, "3.weight", 1 / sqrt(20));
    drawn_within(cn, m, "3.bias", 1 / sqrt(20));
    all_equal(cn, m, "4.weight", 1), all_equal(cn, m, "4.bias", 0), all_equal(cn, m, "4.running_mean", 0);
    all_equal(cn, m, "4.running_var", 1), all_equal(cn, m, "4.num_batches_tracked", 0);
    all_equal(cn, m, "5.weight", 0.25), all_equal(cn, m, "6.weight", 1), all_equal(cn, m, "6.bias", 0);
    cn_tensor *e = cn_module_get(m, "7.weight");
    check(fabs(cn_item(cn_mean(e, CN_ALL, false))) < 0.02 && fabs(cn_item(cn_std(e, CN_ALL, 1, false)) - 1) < 0.02,
          "rows of an embedding are normal");
    check(cn_item(cn_sum(cn_abs(cn_select(e, 0, 7)), CN_ALL, false)) == 0 &&
              cn_item(cn_sum(cn_abs(cn_select(e, 0, 6)), CN_ALL, false)) > 0,
          "but for the padding's");
    check(!cn_failed(cn), "%s", cn_error(cn));
    cn_module_free(m);
}

/* ---- running statistics over several batches ---- */

static void cumulative(cn_ctx *cn)
{
    check_group("cumulative statistics");
    cn_module *m = cn_nn_batch_norm1d(cn, 1, BATCH(.cumulative = true));
    double mean = 0, var = 0;
    for (int i = 1; i <= 5; i++) {
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *x = cn_add_s(cn_randn(cn, CN_F32, CN_DIMS(20, 1)), i);
        cn_eval(x);
        mean += cn_item(cn_mean(x, CN_ALL, false)), var += cn_item(cn_var(x, CN_ALL, 1, false));
        cn_eval(cn_forward(m, x));
        cn_scope_end(cn, s);
    }
    check(cn_item_i64(cn_module_get(m, "num_batches_tracked")) == 5, "five batches");
    check(fabs(cn_item(cn_module_get(m, "running_mean")) - mean / 5) < 1e-5, "the mean of their means");
    check(fabs(cn_item(cn_module_get(m, "running_var")) - var / 5) < 1e-5, "the mean of their variances");
    cn_module_free(m);
}

/* ---- indices of maxima ---- */

/* The elements of x ascend, so that the last element of a window is the largest; unpooling puts it
   back where it was, and leaves zeros elsewhere. */
static void unpooled(cn_ctx *cn, cn_module *pool, cn_module *unpool, cn_dims shape)
{
    cn_scope s = cn_scope_begin(cn);
    int64_t n = 1;
    for (int d = 0; d < shape.n; d++) n *= shape.v[d];
    cn_tensor *x = cn_reshape(cn_arange(cn, CN_F32, 1, (double)n + 1, 1), shape), *max[2], *back = NULL;
    const bool ok = cn_forward_all(pool, &x, 1, max, 2) && cn_forward_all(unpool, max, 2, &back, 1);
    check_group(cn_module_type_of(unpool)->name);
    if (check(ok, "%s", cn_error(cn))) {
        check(cn_type(max[1]) == CN_I64, "indices are i64");
        cn_tensor *kept = cn_where(cn_ne_s(back, 0), x, cn_zeros_like(x));
        check(cn_item(cn_sum(cn_abs(cn_sub(back, kept)), CN_ALL, false)) == 0, "each maximum lies where it was");
        check(cn_item(cn_sum(back, CN_ALL, false)) == cn_item(cn_sum(max[0], CN_ALL, false)), "none is missing");
        check(cn_item(cn_sum(cn_cast(cn_ne_s(back, 0), CN_F32), CN_ALL, false)) == (double)cn_numel(max[0]),
              "zeros elsewhere");
    }
    cn_error_clear(cn);
    cn_scope_end(cn, s);
    cn_module_free(pool), cn_module_free(unpool);
}

static void indices(cn_ctx *cn)
{
    unpooled(cn, cn_nn_max_pool1d(cn, 2, NULL), cn_nn_max_unpool1d(cn, 2, NULL), CN_DIMS(2, 3, 8));
    unpooled(cn, cn_nn_max_pool2d(cn, 0, POOL(.kernels = CN_DIMS(2, 3))),
             cn_nn_max_unpool2d(cn, 0, POOL(.kernels = CN_DIMS(2, 3))), CN_DIMS(2, 3, 4, 6));
    unpooled(cn, cn_nn_max_pool3d(cn, 2, NULL), cn_nn_max_unpool3d(cn, 2, NULL), CN_DIMS(3, 4, 6, 2));
    unpooled(cn, cn_nn_adaptive_max_pool2d(cn, 2, 3), cn_nn_max_unpool2d(cn, 2, NULL), CN_DIMS(1, 2, 4, 6));
}

/* ---- what is refused ---- */

static void refused(cn_ctx *cn, const char *words, const void *made)
{
    check(made == NULL && strstr(cn_error(cn), words), "%s: %s", words, cn_failed(cn) ? cn_error(cn) : "no error");
    cn_error_clear(cn);
}

static void refused_makers(cn_ctx *cn)
{
    check_group("makers refuse");
    refused(cn, "Bilinear: in1, in2 and out must be > 0, got 0, 3 and 4", cn_nn_bilinear(cn, 0, 3, 4, NULL));
    refused(cn, "Embedding: rows and width must be > 0, got 0 and 3", cn_nn_embedding(cn, 0, 3, NULL));
    refused(cn, "Embedding: padding_idx must be from -7 to 6, got 7",
            cn_nn_embedding(cn, 7, 3, &(cn_nn_embedding_desc){ .has_padding = true, .padding_idx = 7 }));
    refused(cn, "Conv2d: groups must be > 0 and divide the channels, got 2 groups for 3 and 4",
            cn_nn_conv2d(cn, 3, 4, 3, CONV(.groups = 2)));
    refused(cn, "Conv2d: in and out must be > 0, got 0 and 4", cn_nn_conv2d(cn, 0, 4, 3, NULL));
    refused(cn, "Conv2d: kernel must be from 1 to 2147483647, got 0", cn_nn_conv2d(cn, 3, 4, 0, NULL));
    refused(cn, "Conv2d: stride must be from 1 to 2147483647, got -1", cn_nn_conv2d(cn, 3, 4, 3, CONV(.stride = -1)));
    refused(cn, "Conv2d: padding must be from 0 to 2147483647, got -1", cn_nn_conv2d(cn, 3, 4, 3, CONV(.padding = -1)));
    refused(cn, "Conv2d: dilation", cn_nn_conv2d(cn, 3, 4, 3, CONV(.dilation = INT64_MAX)));
    refused(cn, "Conv2d: stride needs 2 numbers, one for each axis, got 3",
            cn_nn_conv2d(cn, 3, 4, 3, CONV(.strides = CN_DIMS(1, 1, 1))));
    refused(cn, "Conv2d: stride must be 1 with .same, got 2",
            cn_nn_conv2d(cn, 3, 4, 3, CONV(.same = true, .stride = 2)));
    refused(cn, "Conv2d: padding must be 0 with .same, got 1",
            cn_nn_conv2d(cn, 3, 4, 3, CONV(.same = true, .padding = 1)));
    refused(cn, "Conv2d: output_padding must be 0 unless", cn_nn_conv2d(cn, 3, 4, 3, CONV(.output_padding = 1)));
    refused(cn, "Conv2d: padding_mode must be from 0 to 3, got 9",
            cn_nn_conv2d(cn, 3, 4, 3, CONV(.padding_mode = (cn_pad_mode)9)));
    refused(cn, "ConvTranspose2d: a transposed convolution pads with zeros",
            cn_nn_conv_transpose2d(cn, 3, 4, 3, CONV(.padding_mode = CN_PAD_REFLECT)));
    refused(cn, "ConvTranspose1d: output_padding must be < the stride or the dilation (2, 1), got 2",
            cn_nn_conv_transpose1d(cn, 3, 4, 3, CONV(.stride = 2, .output_padding = 2)));
    refused(cn, "MaxPool2d: padding must be ≤ half the kernel of 3, got 2",
            cn_nn_max_pool2d(cn, 3, POOL(.padding = 2)));
    refused(cn, "MaxPool1d: kernel must be from 1 to 2147483647, got 0", cn_nn_max_pool1d(cn, 0, NULL));
    refused(cn, "MaxPool2d: exclude_padding must be false", cn_nn_max_pool2d(cn, 3, POOL(.exclude_padding = true)));
    refused(cn, "AvgPool2d: dilation must be 1, got 2", cn_nn_avg_pool2d(cn, 3, POOL(.dilation = 2)));
    refused(cn, "AdaptiveAvgPool2d: size must be > 0, got 0", cn_nn_adaptive_avg_pool2d(cn, 2, 0));
    refused(cn, "Upsample: the descriptor must have either a size or a scale, got neither", cn_nn_upsample(cn, NULL));
    refused(cn, "Upsample: scale must be finite and > 0, got -1",
            cn_nn_upsample(cn, &(cn_nn_upsample_desc){ .scale = -1 }));
    refused(cn, "Upsample: size must have 1 number or one for each axis, got 3",
            cn_nn_upsample(cn, UPSAMPLE(.size = CN_DIMS(3, 3, 3), .mode = CN_UPSAMPLE_BILINEAR)));
    refused(cn, "Upsample: the descriptor must have either a size or a scale, got both",
            cn_nn_upsample(cn, UPSAMPLE(.scale = 2, .scales = { 2, 2 })));
    refused(cn, "Upsample: recompute_scale_factor must be false with a size",
            cn_nn_upsample(cn, UPSAMPLE(.size = CN_DIMS(3), .recompute_scale_factor = true)));
    refused(cn, "Upsample: mode must be one of cn_upsample_mode, got 9",
            cn_nn_upsample(cn, UPSAMPLE(.scale = 2, .mode = (cn_upsample_mode)9)));
    refused(cn, "MaxPool3d: divisor_override must be 0", cn_nn_max_pool3d(cn, 2, POOL(.divisor_override = 3)));
    refused(cn, "AvgPool1d: divisor_override must be 0", cn_nn_avg_pool1d(cn, 2, POOL(.divisor_override = 3)));
    refused(cn, "LPPool2d: norm_type must be a number other than 0, got 0", cn_nn_lp_pool2d(cn, 0, 2, NULL));
    refused(cn, "LPPool2d: of the options, only stride and ceil_mode", cn_nn_lp_pool2d(cn, 2, 2, POOL(.padding = 1)));
    refused(cn, "MaxUnpool1d: of the options, only stride and padding",
            cn_nn_max_unpool1d(cn, 2, POOL(.ceil_mode = true)));
    refused(cn, "Fold: output_size must be two numbers > 0, height and width, got 1 numbers",
            cn_nn_fold(cn, CN_DIMS(3), 2, NULL));
    refused(cn, "Unfold: kernel must be from 1", cn_nn_unfold(cn, 0, NULL));
    refused(cn, "ChannelShuffle: groups must be from 1 to 2147483647, got 0", cn_nn_channel_shuffle(cn, 0));
    refused(cn, "LocalResponseNorm: size must be from 1", cn_nn_local_response_norm(cn, 0, 1e-4, 0.75, 1));
    refused(cn, "RReLU: lower must be finite and ≤ upper, got 1", cn_nn_rrelu(cn, 1, 0.5));
    refused(cn, "CosineSimilarity: axis must be from -8 to 7", cn_nn_cosine_similarity(cn, 8, 1e-8));
    refused(cn, "PairwiseDistance: p and eps must be numbers, got nan", cn_nn_pairwise_distance(cn, NAN, 1e-6, false));
    refused(cn, "Upsample: align_corners",
            cn_nn_upsample(cn, &(cn_nn_upsample_desc){ .scale = 2, .align_corners = true }));
    refused(cn, "BatchNorm2d: channels must be > 0, got 0", cn_nn_batch_norm2d(cn, 0, NULL));
    refused(cn, "BatchNorm1d: momentum must be ≤ 1, got 2", cn_nn_batch_norm1d(cn, 3, BATCH(.momentum = 2)));
    refused(cn, "InstanceNorm2d: channels must be > 0, got -3", cn_nn_instance_norm2d(cn, -3, NULL));
    refused(cn, "LayerNorm: shape must have 1 to 8 axes, got 0", cn_nn_layer_norm(cn, CN_SCALAR, NULL));
    refused(cn, "LayerNorm: sizes must be > 0, got 0", cn_nn_layer_norm(cn, CN_DIMS(3, 0), NULL));
    refused(cn, "RMSNorm: eps", cn_nn_rms_norm(cn, CN_DIMS(3), NORM(.eps = NAN)));
    refused(cn, "GroupNorm: groups must be > 0 and divide channels, got 4 groups of 6",
            cn_nn_group_norm(cn, 4, 6, NULL));
    refused(cn, "Dropout: p must be from 0 to 1, got 1.5", cn_nn_dropout(cn, 1.5));
    refused(cn, "Dropout2d: p must be from 0 to 1, got -0.1", cn_nn_dropout2d(cn, -0.1));
    refused(cn, "AlphaDropout: p must be from 0 to 1, got nan", cn_nn_alpha_dropout(cn, NAN));
    refused(cn, "PReLU: channels must be > 0, got 0", cn_nn_prelu(cn, 0, 0.25));
    refused(cn, "CELU: alpha must be finite and not 0, got 0", cn_nn_celu(cn, 0));
    refused(cn, "Hardtanh: low must be < high, got 1 and 1", cn_nn_hardtanh(cn, 1, 1));
    refused(cn, "Softplus: beta must be finite and not 0, got 0", cn_nn_softplus(cn, 0, 20));
    refused(cn, "Softshrink: lambda must be ≥ 0, got -1", cn_nn_softshrink(cn, -1));
    refused(cn, "Softmax: axis must be from -8 to 7, got 9", cn_nn_softmax(cn, 9));
    refused(cn, "Unflatten: sizes must be 1 to 8 numbers > 0, of which one may be -1, got -1x-1",
            cn_nn_unflatten(cn, 1, CN_DIMS(-1, -1)));
    refused(cn, "PixelShuffle: factor must be from 1 to 2147483647, got 0", cn_nn_pixel_shuffle(cn, 0));
    refused(cn, "ZeroPad: pad must have 2, 4 or 6 numbers, two for each axis, got 3",
            cn_nn_zero_pad(cn, CN_DIMS(1, 2, 3)));
    check(cn_nn_conv2d(NULL, 1, 1, 1, NULL) == NULL && cn_nn_relu(NULL) == NULL && cn_nn_dropout(NULL, 2) == NULL &&
              cn_nn_batch_norm2d(NULL, 0, NULL) == NULL && cn_nn_upsample(NULL, NULL) == NULL,
          "NULL in, NULL out");
}

static void refused_forward(cn_ctx *cn, const char *words, cn_module *m, cn_dims shape)
{
    check(m != NULL, "%s: %s", words, cn_error(cn));
    refused(cn, words, cn_forward(m, cn_ones(cn, CN_F32, shape)));
    cn_module_free(m);
}

static void refused_inputs(cn_ctx *cn)
{
    check_group("layers refuse");
    refused_forward(cn, "Conv2d(3, 4, kernel 3x3): conv2d: ", cn_nn_conv2d(cn, 3, 4, 3, NULL), CN_DIMS(1, 2, 5, 5));
    refused_forward(cn, "Conv1d(3, 4, kernel 3, padding 1, reflect): x must have 2 or 3 axes, got [5]",
                    cn_nn_conv1d(cn, 3, 4, 3, CONV(.padding = 1, .padding_mode = CN_PAD_REFLECT)), CN_DIMS(5));
    refused_forward(cn, "MaxPool2d(kernel 3x3, stride 3x3): ", cn_nn_max_pool2d(cn, 3, NULL), CN_DIMS(1, 1, 2, 2));
    refused_forward(cn, "Upsample(times 0.5, nearest): interpolate: size times scale_factor must be from 1 to ",
                    cn_nn_upsample(cn, UPSAMPLE(.scale = 0.5)), CN_DIMS(1, 1, 4, 1));
    refused_forward(cn, "Upsample(4x4, nearest): x must be (N, C, L, H, W or D, H, W), with a size or scale for each",
                    cn_nn_upsample(cn, UPSAMPLE(.size = CN_DIMS(4, 4))), CN_DIMS(1, 1, 4));
    refused_forward(cn, "Softmax2d: x must be (N, C, H, W) or (C, H, W), got [2,3]", cn_nn_softmax2d(cn),
                    CN_DIMS(2, 3));
    refused_forward(cn, "Dropout3d(0.5): x must be (N, C, D, H, W) or (C, D, H, W)", cn_nn_dropout3d(cn, 0.5),
                    CN_DIMS(2, 3, 4));
    refused_forward(cn, "FeatureAlphaDropout(0.5): x must be (N, C, ...), got [3]",
                    cn_nn_feature_alpha_dropout(cn, 0.5), CN_DIMS(3));
    refused_forward(cn, "MaxUnpool2d: forward accepts x and indices and returns one tensor; got 1 operands",
                    cn_nn_max_unpool2d(cn, 2, NULL), CN_DIMS(1, 1, 2, 2));
    refused_forward(cn, "Upsample(times 2, bilinear): x must be (N, C, H, W), got [1,1,3]",
                    cn_nn_upsample(cn, &(cn_nn_upsample_desc){ .scale = 2, .mode = CN_UPSAMPLE_BILINEAR }),
                    CN_DIMS(1, 1, 3));
    refused_forward(cn, "BatchNorm2d(3): x must be (N, C, H, W) with C = 3, got [2,4,5,5]",
                    cn_nn_batch_norm2d(cn, 3, NULL), CN_DIMS(2, 4, 5, 5));
    refused_forward(cn, "BatchNorm1d(3): batch_norm: training needs more", cn_nn_batch_norm1d(cn, 3, NULL),
                    CN_DIMS(1, 3));
    refused_forward(cn,
                    "InstanceNorm1d(3, not affine, no running statistics): x must be (N, C, L) or (C, L) with C = 3",
                    cn_nn_instance_norm1d(cn, 3, NULL), CN_DIMS(2, 4));
    refused_forward(cn, "LayerNorm(3, 4): the last sizes of x must be 3x4, got [2,4]",
                    cn_nn_layer_norm(cn, CN_DIMS(3, 4), NULL), CN_DIMS(2, 4));
    refused_forward(cn, "RMSNorm(3, not affine): ", cn_nn_rms_norm(cn, CN_DIMS(3), NORM(.no_affine = true)),
                    CN_DIMS(2, 4));
    refused_forward(cn, "GroupNorm(2, 4): x must be (N, 4, ...), got [2,6]", cn_nn_group_norm(cn, 2, 4, NULL),
                    CN_DIMS(2, 6));
    refused_forward(cn, "Dropout2d(0.5): x must be (N, C, H, W), got [2,4,3]", cn_nn_dropout2d(cn, 0.5),
                    CN_DIMS(2, 4, 3));
    refused_forward(cn, "GLU(axis -1): glu: the size along axis -1 must be even, got [2,3]", cn_nn_glu(cn, -1),
                    CN_DIMS(2, 3));
    refused_forward(cn, "PReLU(3): prelu: with 3 weights, x must be (N, 3, ...), got [2,4]", cn_nn_prelu(cn, 3, 0.25),
                    CN_DIMS(2, 4));
    refused_forward(cn, "Unflatten(axis 1, 2x3): the size along axis 1 must be 6, got [2,7]",
                    cn_nn_unflatten(cn, 1, CN_DIMS(2, 3)), CN_DIMS(2, 7));
    refused_forward(cn,
                    "PixelShuffle(2): pixel_shuffle: input must have 3 axes or more and a multiple of 4 along axis -3",
                    cn_nn_pixel_shuffle(cn, 2), CN_DIMS(2, 6, 3, 3));
    refused_forward(cn, "Bilinear(2, 3, 4): forward accepts x1 and x2 and returns y; got 1 operands and 1 results",
                    cn_nn_bilinear(cn, 2, 3, 4, NULL), CN_DIMS(2, 2));
    refused_forward(cn, "ReflectionPad(3, 3): pad: ", cn_nn_reflection_pad(cn, CN_DIMS(3, 3)), CN_DIMS(1, 1, 2));
    refused_forward(cn, "Softmax(axis 2): softmax: ", cn_nn_softmax(cn, 2), CN_DIMS(2, 2));
    cn_module *pair = cn_nn_bilinear(cn, 2, 3, 4, NULL);
    cn_tensor *in[2] = { cn_ones(cn, CN_F32, CN_DIMS(5, 2)), cn_ones(cn, CN_F32, CN_DIMS(6, 3)) }, *y;
    refused(cn, "Bilinear(2, 3, 4): x1 and x2 must be (..., 2) and (..., 3), got [5,2] and [6,3]",
            cn_forward_all(pair, in, 2, &y, 1) ? y : NULL);
    cn_module_free(pair);
    /* a batch that was refused does not count */
    cn_module *b = cn_nn_batch_norm1d(cn, 3, NULL);
    refused(cn, "BatchNorm1d", cn_forward(b, cn_ones(cn, CN_F32, CN_DIMS(1, 3))));
    all_equal(cn, b, "num_batches_tracked", 0);
    cn_module_free(b);
    cn_module *index = cn_nn_embedding(cn, 3, 2, NULL);
    const int64_t far = 5;
    check(!cn_eval(cn_forward(index, cn_from(cn, CN_I64, CN_DIMS(1), &far))) && cn_error_code(cn) == CN_BAD_INDEX,
          "a row that is not there: %s", cn_error(cn));
    cn_error_clear(cn);
    cn_module_free(index);
}

/* A padding row that is used elsewhere too learns from there. */
static void tied_padding(cn_ctx *cn)
{
    check_group("tied padding");
    cn_module *m = cn_nn_embedding(cn, 3, 2, &(cn_nn_embedding_desc){ .has_padding = true, .padding_idx = 1 });
    cn_tensor *w = cn_module_get(m, "weight");
    const int64_t index[3] = { 1, 0, 1 };
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *rows = cn_forward(m, cn_from(cn, CN_I64, CN_DIMS(3), index));
    cn_backward(cn_add(cn_sum(rows, CN_ALL, false), cn_sum(cn_mul_s(w, 10), CN_ALL, false)));
    check(cn_get(cn_grad_of(w), CN_DIMS(0, 0)) == 11 && cn_get(cn_grad_of(w), CN_DIMS(1, 0)) == 10 &&
              cn_get(cn_grad_of(w), CN_DIMS(2, 1)) == 10,
          "%g", cn_get(cn_grad_of(w), CN_DIMS(1, 0)));
    cn_scope_end(cn, s);
    cn_module_free(m);
}

static void summaries(cn_ctx *cn)
{
    check_group("summaries");
    char text[4096];
    cn_module *m = cnn(cn);
    cn_summary(m, cn_ones(cn, CN_F32, CN_DIMS(2, 1, 6, 6)), text, sizeof text);
    const char *const parts[] = { "Conv2d(1, 4, kernel 3x3, padding 1x1, no bias)",
                                  "BatchNorm2d(4)",
                                  "ReLU",
                                  "MaxPool2d(kernel 2x2, stride 2x2)",
                                  "GroupNorm(2, 6)",
                                  "AdaptiveAvgPool2d(1x1)",
                                  "(2,6,2,2)" };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        check(strstr(text, parts[i]) != NULL, "%s in\n%s", parts[i], text);
    all_equal(cn, m, "1.num_batches_tracked", 0);
    cn_module_free(m);
}

/* ---- memory that runs out while a network is made and trained ---- */

static bool train_once(cn_ctx *cn)
{
    cn_module *m = cnn(cn), *more = cn_nn_sequential(cn, cn_nn_instance_norm1d(cn, 3, INSTANCE(.running_stats = true)),
                                                     cn_nn_prelu(cn, 3, 0.25), cn_nn_alpha_dropout(cn, 0.5),
                                                     cn_nn_conv1d(cn, 3, 2, 2, CONV(.same = true)));
    cn_module *pair = cn_nn_bilinear(cn, 3, 2, 2, NULL);
    cn_tensor *logits = cn_forward(m, cn_ones(cn, CN_F32, CN_DIMS(2, 1, 6, 6))), *y = NULL;
    cn_tensor *in[2] = { logits, cn_forward(more, cn_randn(cn, CN_F32, CN_DIMS(2, 3, 1 + 1))) };
    in[1] = cn_select(in[1], 2, 0);
    if (!cn_forward_all(pair, in, 2, &y, 1)) return false;
    return cn_backward(cn_sum(y, CN_ALL, false)) && cn_eval_all(cn) && !cn_failed(cn);
}

static void out_of_memory(void)
{
    check_group("out of memory");
    int64_t n = 1, step = test_is_quick() ? 7 : 1;
    for (bool done = false; !done && n < 20000; n += step) {
        faulty f = { .fail_at = n };
        cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } });
        if (cn) {
            bool ok = train_once(cn);
            check(ok || cn_error_code(cn) == CN_NO_MEMORY, "allocation %lld: %s", (long long)n, cn_error(cn));
            done = ok && f.calls < n;
            cn_close(cn);
        }
        check(f.blocks == 0, "allocation %lld: %lld blocks left", (long long)n, (long long)f.blocks);
    }
    check(n > 50 && n < 20000, "%lld allocations", (long long)n);
}

int main(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 11 });
    against_pytorch(cn);
    dropouts(cn);
    indices(cn);
    initial_values(cn);
    cumulative(cn);
    refused_makers(cn);
    refused_inputs(cn);
    tied_padding(cn);
    summaries(cn);
    check(!cn_failed(cn), "no error left: %s", cn_error(cn));
    cn_close(cn);
    out_of_memory();
    return finish();
}
