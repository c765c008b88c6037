/* Losses at their limits: refusals, values out of range, long sequences, halves, memory that runs out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "cairn/loss.h"
#include "support/check.h"
#include "support/faulty.h"

static cn_tensor *wholes(cn_ctx *ctx, cn_dims shape, const int64_t *v) { return cn_from(ctx, CN_I64, shape, v); }

/* ---- refusals */

static void refused(cn_ctx *ctx, cn_tensor *loss, cn_code code, const char *words)
{
    check(!loss && cn_error_code(ctx) == code && strstr(cn_error(ctx), words), "%s: %s \"%s\"", words,
          loss ? "accepted" : "refused", cn_error(ctx));
    cn_error_clear(ctx);
}

static void refuses_shapes(cn_ctx *ctx)
{
    cn_tensor *x = cn_rand(ctx, CN_F32, CN_DIMS(3, 4)), *row = cn_rand(ctx, CN_F32, CN_DIMS(4));
    cn_tensor *long_row = cn_rand(ctx, CN_F32, CN_DIMS(5)), *more = cn_rand(ctx, CN_F32, CN_DIMS(2, 3, 4));
    const cn_code shape = CN_BAD_SHAPE;
    refused(ctx, cn_mse_loss(x, row, NULL), shape, "mse_loss: target must have the input's shape [3,4], got [4]");
    refused(ctx, cn_l1_loss(x, row, NULL), shape, "l1_loss");
    refused(ctx, cn_smooth_l1_loss(x, row, NULL), shape, "smooth_l1_loss");
    refused(ctx, cn_huber_loss(x, row, NULL), shape, "huber_loss");
    refused(ctx, cn_bce_loss(x, row, NULL), shape, "bce_loss");
    refused(ctx, cn_bce_loss(x, x, &(cn_bce_desc){ .weight = long_row }), shape,
            "weight must broadcast to the input's shape [3,4], got [");
    refused(ctx, cn_bce_loss(x, x, &(cn_bce_desc){ .weight = more }), shape,
            "weight must broadcast to the input's shape [3,4], got [");
    refused(ctx, cn_bce_with_logits_loss(x, row, NULL), shape, "bce_with_logits_loss");
    refused(ctx, cn_bce_with_logits_loss(x, x, &(cn_bce_desc){ .pos_weight = long_row }), shape,
            "pos_weight must broadcast to the input's shape [3,4], got [5]");
    refused(ctx, cn_kl_div(x, row, NULL), shape, "kl_div");
    refused(ctx, cn_gaussian_nll_loss(x, x, row, NULL), shape, "var must be [3,4] as the input");
    refused(ctx, cn_gaussian_nll_loss(x, row, x, NULL), shape, "gaussian_nll_loss");
    refused(ctx, cn_poisson_nll_loss(x, row, NULL), shape, "poisson_nll_loss");
    refused(ctx, cn_hinge_embedding_loss(x, row, NULL), shape, "hinge_embedding_loss");
    refused(ctx, cn_margin_ranking_loss(x, row, x, NULL), shape,
            "margin_ranking_loss: input2 must have the input's shape");
    refused(ctx, cn_margin_ranking_loss(x, x, row, NULL), shape,
            "margin_ranking_loss: target must have the input's shape");
    refused(ctx, cn_cosine_embedding_loss(x, x, row, NULL), shape, "cosine_embedding_loss");
    refused(ctx, cn_cosine_embedding_loss(more, more, x, NULL), shape, "cosine_embedding_loss");
    refused(ctx, cn_soft_margin_loss(x, row, NULL), shape, "soft_margin_loss");
    refused(ctx, cn_multi_margin_loss(x, cn_cast(row, CN_I64), NULL), shape, "multi_margin_loss");
    refused(ctx, cn_triplet_margin_loss(x, x, row, NULL), shape,
            "triplet_margin_loss: negative must have the input's shape");
}

static void refuses_numbers(cn_ctx *ctx)
{
    cn_tensor *x = cn_rand(ctx, CN_F32, CN_DIMS(3, 4)), *i = cn_cast(x, CN_I64),
              *one = cn_cast(cn_select(x, 1, 0), CN_I64);
    const cn_code argument = CN_BAD_ARGUMENT;
    const cn_reduction batch = CN_BATCHMEAN;
    refused(ctx, cn_mse_loss(i, i, NULL), CN_BAD_DTYPE, "mse_loss: the input must be of a floating type, got i64");
    refused(ctx, cn_ctc_loss(i, i, one, one, NULL), CN_BAD_DTYPE, "ctc_loss");
    refused(ctx, cn_multi_margin_loss(x, cn_select(x, 1, 0), NULL), CN_BAD_DTYPE,
            "multi_margin_loss: target must be i32 or i64, got f32");
    refused(ctx, cn_mse_loss(x, x, &(cn_plain_loss_desc){ batch }), argument,
            "mse_loss: reduction must be CN_MEAN, CN_SUM or CN_NONE, got 3");
    refused(ctx, cn_kl_div(x, x, &(cn_kl_div_desc){ .reduction = (cn_reduction)4 }), argument,
            "kl_div: reduction must be CN_MEAN, CN_SUM or CN_NONE, got 4");
    refused(ctx, cn_nll_loss(x, one, &(cn_loss_desc){ .reduction = batch }), argument,
            "nll_loss: reduction must be CN_MEAN, CN_SUM or CN_NONE, got 3");
    refused(ctx, cn_cross_entropy(x, one, &(cn_loss_desc){ .reduction = batch }), argument,
            "cross_entropy: reduction must be");
    refused(ctx, cn_cross_entropy(x, x, &(cn_loss_desc){ .reduction = batch }), argument,
            "cross_entropy: reduction must be");
    refused(ctx, cn_smooth_l1_loss(x, x, &(cn_smooth_l1_desc){ .beta = -1 }), argument,
            "beta must be finite and > 0, got -1");
    refused(ctx, cn_huber_loss(x, x, &(cn_huber_desc){ .delta = (double)NAN }), argument,
            "delta must be finite and > 0, got");
    refused(ctx, cn_bce_loss(x, x, &(cn_bce_desc){ .pos_weight = x }), argument, "bce_with_logits_loss");
    refused(ctx, cn_gaussian_nll_loss(x, x, x, &(cn_gaussian_nll_desc){ .eps = -1 }), argument,
            "eps must be finite and > 0, got -1");
    refused(ctx, cn_multi_margin_loss(x, one, &(cn_multi_margin_desc){ .p = 3 }), argument, "p must be 1 or 2, got 3");
    refused(ctx, cn_triplet_margin_loss(x, x, x, &(cn_triplet_margin_desc){ .margin = -1 }), argument,
            "margin must be > 0, got -1");
    refused(ctx, cn_mse_loss(NULL, x, NULL), argument, "must not be NULL");
    refused(ctx, cn_mse_loss(x, NULL, NULL), argument, "must not be NULL");
    refused(ctx, cn_gaussian_nll_loss(x, x, NULL, NULL), argument, "must not be NULL");
    refused(ctx, cn_ctc_loss(x, NULL, one, one, NULL), argument, "must not be NULL");
    refused(ctx, cn_cosine_similarity(NULL, x, 1, 1e-8), argument, "must not be NULL");
}

/* Refused when it is computed: each row names what is wrong. */
static void refuses_alignments(cn_ctx *ctx)
{
    static const struct {
        const char *what;
        int64_t target[4], frames[2], length[2];
        bool flat, good;
    } rows[] = {
        { "a good one", { 1, 2, 2, 1 }, { 5, 5 }, { 2, 2 }, false, true },
        { "a flat one", { 1, 2, 2, 1 }, { 5, 0 }, { 4, 0 }, true, true },
        { "more steps than there are", { 1, 2, 2, 1 }, { 5, 6 }, { 2, 2 }, false, false },
        { "fewer steps than 0", { 1, 2, 2, 1 }, { -1, 5 }, { 2, 2 }, false, false },
        { "more labels than there are", { 1, 2, 2, 1 }, { 5, 5 }, { 2, 3 }, false, false },
        { "fewer labels than 0", { 1, 2, 2, 1 }, { 5, 5 }, { -2, 2 }, false, false },
        { "a label above the classes", { 1, 3, 2, 1 }, { 5, 5 }, { 2, 2 }, false, false },
        { "a label below 0", { 1, 2, -1, 1 }, { 5, 5 }, { 2, 2 }, false, false },
        { "a padding that is no label", { 1, 2, 1, -7 }, { 5, 5 }, { 2, 1 }, false, true },
        { "flat: too many", { 1, 2, 2, 1 }, { 5, 5 }, { 3, 2 }, true, false },
        { "flat: too few", { 1, 2, 2, 1 }, { 5, 5 }, { 1, 2 }, true, false },
    };
    cn_tensor *x = cn_param(cn_log_softmax(cn_rand(ctx, CN_F32, CN_DIMS(5, 2, 3)), 2));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const cn_scope scope = cn_scope_begin(ctx);
        cn_tensor *target = wholes(ctx, rows[i].flat ? CN_DIMS(4) : CN_DIMS(2, 2), rows[i].target);
        cn_tensor *frames = wholes(ctx, CN_DIMS(2), rows[i].frames), *length = wholes(ctx, CN_DIMS(2), rows[i].length);
        cn_tensor *loss = cn_ctc_loss(x, target, frames, length, NULL);
        const bool ok = loss && cn_backward(loss) && cn_eval(cn_grad_of(x)) && isfinite(cn_item(loss));
        check(ok == rows[i].good && (ok || cn_error_code(ctx) == CN_BAD_INDEX), "ctc_loss, %s: %s", rows[i].what,
              cn_error(ctx));
        cn_error_clear(ctx);
        cn_zero_grad(x);
        cn_scope_end(ctx, scope);
    }
    cn_release(x);
    cn_tensor *wide = cn_rand(ctx, CN_F32, CN_DIMS(5, 2, 3)), *two = cn_ones(ctx, CN_I64, CN_DIMS(2));
    cn_tensor *three = cn_ones(ctx, CN_I64, CN_DIMS(3)), *pairs = cn_ones(ctx, CN_I64, CN_DIMS(2, 2));
    refused(ctx, cn_ctc_loss(wide, pairs, three, two, NULL), CN_BAD_SHAPE,
            "input_lengths must have shape [2] for log_probs [5,2,3], got [3]");
    refused(ctx, cn_ctc_loss(wide, cn_ones(ctx, CN_I64, CN_DIMS(3, 2)), two, two, NULL), CN_BAD_SHAPE,
            "targets must be (N, S) or have one axis with all labels, got [3,2]");
    refused(ctx, cn_ctc_loss(wide, cn_cast(pairs, CN_F32), two, two, NULL), CN_BAD_DTYPE,
            "targets must be i32 or i64, got f32");
    refused(ctx, cn_ctc_loss(wide, pairs, two, two, &(cn_ctc_desc){ .blank = 3 }), CN_BAD_ARGUMENT,
            "blank must be ≥ 0 and < 3, the number of classes, got 3");
    cn_tensor *class = wholes(ctx, CN_DIMS(3), (const int64_t[]){ 0, 4, 1 });
    check(isnan(cn_item(cn_multi_margin_loss(cn_rand(ctx, CN_F32, CN_DIMS(3, 4)), class, NULL))) &&
              cn_error_code(ctx) == CN_BAD_INDEX,
          "multi_margin_loss, a class out of range: %s", cn_error(ctx));
    cn_error_clear(ctx);
}

/* ---- values outside of what PyTorch lets through, impossible alignments */

static void out_of_range(cn_ctx *ctx)
{
    check_group("out of range");
    const double v[3] = { -0.5, 1.5, 0.5 };
    cn_tensor *x = cn_from(ctx, CN_F64, CN_DIMS(3), v);
    double out[3];
    cn_read_f64(cn_bce_loss(x, cn_ones_like(x), &(cn_bce_desc){ .reduction = CN_NONE }), out, 3);
    check(isnan(out[0]) && isnan(out[1]) && fabs(out[2] - log(2)) < 1e-15, "no probabilities: %g %g", out[0], out[1]);
    cn_read_f64(cn_gaussian_nll_loss(x, x, x, &(cn_gaussian_nll_desc){ .reduction = CN_NONE }), out, 3);
    check(isnan(out[0]) && fabs(out[1] - 0.5 * log(1.5)) < 1e-15, "a negative variance: %g", out[0]);
    cn_tensor *far = cn_full(ctx, CN_F64, CN_DIMS(1), -2000);
    check(cn_item(cn_soft_margin_loss(far, cn_ones_like(far), NULL)) == 2000, "soft_margin_loss does not overflow");
}

static void impossible_alignment(cn_ctx *ctx)
{
    check_group("impossible alignment");
    cn_tensor *x = cn_param(cn_log_softmax(cn_rand(ctx, CN_F64, CN_DIMS(2, 1, 3)), 2));
    cn_tensor *target = wholes(ctx, CN_DIMS(1, 2), (const int64_t[]){ 1, 1 }),
              *two = cn_full(ctx, CN_I64, CN_DIMS(1), 2);
    for (int zero = 0; zero < 2; zero++) {
        cn_tensor *loss = cn_ctc_loss(x, target, two, two, &(cn_ctc_desc){ .zero_infinity = zero });
        cn_keep(loss);
        check(cn_backward(loss), "%s", cn_error(ctx));
        const double value = cn_item(loss), slope = cn_get(cn_grad_of(x), CN_DIMS(0, 0, 1));
        check(zero ? value == 0 && slope == 0 : isinf(value) && isnan(slope), "loss %g, gradient %g", value, slope);
        cn_zero_grad(x);
        cn_release(loss);
    }
    cn_release(x);
}

/* ---- digits: in f32 the gradient of a long sequence is that in f64, nearly */

static bool long_gradient(cn_ctx *ctx, cn_tensor *logits, cn_dtype dtype, double *out, double *value)
{
    const int64_t steps = cn_size(logits, 0), labels = 150;
    cn_tensor *x = cn_param(cn_cast(logits, dtype)), *target = cn_remainder_s(cn_arange(ctx, CN_I64, 0, labels, 1), 29);
    cn_tensor *loss =
        cn_ctc_loss(cn_log_softmax(x, -1), cn_add_s(target, 1), cn_full(ctx, CN_I64, CN_SCALAR, (double)steps),
                    cn_full(ctx, CN_I64, CN_SCALAR, (double)labels), &(cn_ctc_desc){ .reduction = CN_SUM });
    cn_keep(loss);
    const bool ok = cn_backward(loss) && cn_read_f64(cn_grad_of(x), out, cn_numel(x));
    *value = cn_item(loss);
    cn_release(loss);
    cn_release(x);
    return ok;
}

static void long_sequence(cn_ctx *ctx)
{
    enum { STEPS = 1000, CLASSES = 30 };
    static double wide[STEPS * CLASSES], narrow[STEPS * CLASSES];
    double loss[2], worst = 0;
    check_group("a long sequence");
    cn_tensor *logits = cn_randn(ctx, CN_F32, CN_DIMS(STEPS, CLASSES));
    check(cn_eval(logits) && long_gradient(ctx, logits, CN_F64, wide, &loss[0]) &&
              long_gradient(ctx, logits, CN_F32, narrow, &loss[1]),
          "%s", cn_error(ctx));
    for (int i = 0; i < STEPS * CLASSES; i++) worst = fmax(worst, fabs(wide[i] - narrow[i]));
    check(loss[0] > 1000 && fabs(loss[1] / loss[0] - 1) < 2e-7, "loss %g, not %g", loss[1], loss[0]);
    check(worst < 4e-4, "a gradient in f32 is off by %g", worst);
}

/* ---- halves, handles */

static void halves(cn_ctx *ctx)
{
    check_group("halves");
    cn_tensor *x = cn_sub_s(cn_mul_s(cn_rand(ctx, CN_F32, CN_DIMS(40, 50)), 4), 2), *y = cn_rand_like(x);
    const double whole = cn_item(cn_bce_with_logits_loss(x, y, NULL)), bent = cn_item(cn_huber_loss(x, y, NULL));
    for (int i = 0; i < 2; i++) {
        const cn_dtype t = i ? CN_F16 : CN_BF16;
        cn_tensor *h = cn_bce_with_logits_loss(cn_cast(x, t), cn_cast(y, t), NULL);
        cn_tensor *b = cn_huber_loss(cn_cast(x, t), y, NULL);
        check(cn_type(h) == t && fabs(cn_item(h) - whole) < 0.01, "%s: %g, not %g", cn_dtype_name(t), cn_item(h),
              whole);
        check(cn_type(b) == CN_F32 && fabs(cn_item(b) - bent) < 0.01, "beside f32: %g, not %g", cn_item(b), bent);
    }
}

static void tidy(cn_ctx *ctx)
{
    check_group("tidy");
    cn_tensor *x = cn_rand(ctx, CN_F32, CN_DIMS(3, 4));
    const int64_t before = cn_count(ctx).handles;
    cn_tensor *loss = cn_triplet_margin_loss(x, x, x, NULL);
    check(loss && cn_count(ctx).handles == before + 1, "a loss leaves one handle: %lld",
          (long long)(cn_count(ctx).handles - before));
    check(!cn_mse_loss(x, cn_select(x, 0, 0), NULL), "shapes that differ");
    check(cn_count(ctx).handles == before + 2, "a refused one none: %lld",
          (long long)(cn_count(ctx).handles - before - 2));
    cn_error_clear(ctx);
}

/* ---- memory that runs out: each allocation fails once, and nothing worse than an error happens */

/* Each kind of loss once, added up, and the gradient. */
static bool losses_at_once(cn_ctx *ctx)
{
    cn_tensor *x = cn_param(cn_log_softmax(cn_rand(ctx, CN_F32, CN_DIMS(4, 2, 3)), 2)), *y = cn_rand_like(x);
    cn_tensor *two = cn_full(ctx, CN_I64, CN_DIMS(2), 2), *flat = cn_ones(ctx, CN_I64, CN_DIMS(4));
    cn_tensor *row = cn_reshape(x, CN_DIMS(4, 6)), *class = cn_ones(ctx, CN_I64, CN_DIMS(4));
    cn_tensor *loss = cn_ctc_loss(x, flat, cn_mul_s(two, 2), two, NULL);
    loss = cn_add(loss, cn_kl_div(x, y, &(cn_kl_div_desc){ .reduction = CN_BATCHMEAN }));
    loss = cn_add(loss, cn_gaussian_nll_loss(x, y, y, NULL));
    loss = cn_add(loss, cn_triplet_margin_loss(x, y, y, &(cn_triplet_margin_desc){ .swap = true }));
    loss = cn_add(loss, cn_multi_margin_loss(row, class, NULL));
    loss = cn_add(loss, cn_cosine_embedding_loss(row, row, class, NULL));
    const bool ok = loss && cn_backward(loss) && cn_eval_all(ctx) && !cn_failed(ctx);
    cn_release(x);
    return ok;
}

static void out_of_memory(void)
{
    check_group("out of memory");
    const int64_t stride = test_is_quick() ? 17 : 1;
    bool done = false;
    int64_t n = 1;
    for (; n < 20000 && !done; n += stride) {
        faulty f = { .fail_at = n };
        cn_ctx *ctx = cn_open(&(cn_desc){ .seed = 3, .threads = 1, .allocator = { faulty_resize, &f } });
        const bool ok = ctx && losses_at_once(ctx);
        done = ok && f.calls < n;
        check(ok || !ctx || cn_error_code(ctx) == CN_NO_MEMORY, "allocation %lld: %s", (long long)n, cn_error(ctx));
        cn_close(ctx);
        check(f.blocks == 0, "allocation %lld: %lld blocks are left", (long long)n, (long long)f.blocks);
    }
    check(done && n > 40, "no end after %lld allocations", (long long)n);
}

int main(void)
{
    cn_ctx *ctx = cn_open(&(cn_desc){ .seed = 5, .threads = 2 });
    if (!ctx) return 1;
    check_group("refusals");
    refuses_shapes(ctx);
    refuses_numbers(ctx);
    refuses_alignments(ctx);
    out_of_range(ctx);
    impossible_alignment(ctx);
    long_sequence(ctx);
    halves(ctx);
    tidy(ctx);
    out_of_memory();
    check_group("");
    check(!cn_failed(ctx), "an error is left: %s", cn_error(ctx));
    cn_close(ctx);
    return finish();
}
