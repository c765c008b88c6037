/* versus.c: runs one case on two devices and compares results, a loss made from them, and gradients. */
#include "trials/versus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cn_tensor *loss_of(cn_tensor *const *out, int n)
{
    cn_tensor *loss = NULL;
    for (int j = 0; j < n; j++) {
        if (!cn_dtype_is_float(cn_type(out[j]))) continue;
        cn_tensor *part = cn_sum(cn_add(cn_relu(cn_mul_s(out[j], 1.5)), out[j]), CN_ALL, false);
        loss = loss ? cn_add(loss, part) : part;
    }
    return loss;
}

bool trace_case(cn_ctx *ctx, const trial *t, const inputs *x, trial_layout layout, bool gradients, int *n,
                output *results)
{
    cn_tensor *in[CN_MAX_IN], *out[CN_MAX_OUT] = { 0 }, *param[CN_MAX_IN] = { 0 };
    cn_scope s = cn_scope_begin(ctx);
    cn_seed(ctx, 7);
    make_tensors(ctx, x, layout, in);
    for (int k = 0; k < x->n && gradients; k++)
        if (is_differentiable(t, x, k)) in[k] = param[k] = cn_param(in[k]);
    bool ok = call(ctx, t, in, out);
    while (ok && *n > 1 && !out[*n - 1]) --*n;
    for (int j = 0; j < *n && ok; j++) cn_keep(out[j]);
    cn_tensor *loss = ok && gradients ? loss_of(out, *n) : NULL;
    if (loss && cn_requires_grad(loss)) ok = cn_backward(loss);
    for (int j = 0; j < *n; j++) ok = take_output(&results[j], ok ? out[j] : NULL) && ok;
    if (loss) ok = take_output(&results[CN_MAX_OUT], ok ? loss : NULL) && ok;
    for (int k = 0; k < CN_MAX_IN && gradients; k++)
        ok = take_output(&results[CN_MAX_OUT + 1 + k], ok ? cn_grad_of(param[k]) : NULL) && ok;
    for (int j = 0; j < *n; j++)
        if (out[j]) cn_release(out[j]);
    for (int k = 0; k < CN_MAX_IN; k++)
        if (param[k]) cn_release(param[k]);
    cn_scope_end(ctx, s);
    return ok;
}

/* The GPU computes in f32, whatever the dtype. Its functions are good to about 1e-5; the error of a sum is relative to
   its largest term. */
static tolerance tolerance_of(const trial *t, const output *expected, const double *v)
{
    static const double epsilon[CN_DTYPES] = {
        [CN_F16] = 0x1p-9, [CN_BF16] = 0x1p-6, [CN_F32] = 1e-4, [CN_F64] = 1e-4
    };
    double most = 0;
    for (int64_t i = 0; i < expected->numel; i++)
        if (isfinite(v[i])) most = fmax(most, fabs(v[i]));
    bool moves =
        t->op->kind == CN_VIEW || (t->op->kind == CN_INDEX && t->op->dtypes); /* those for floats alone compute */
    bool exact = moves || !cn_dtype_is_float(expected->dtype);
    if (exact && expected->dtype == CN_F64) return (tolerance){ 1e-6, fmax(most, 1e-3) }; /* as f32 has it, sums too */
    return exact ? (tolerance){ 0, 0 } : (tolerance){ epsilon[expected->dtype], fmax(most, 1e-3) };
}

static void note(versus *v, bool ok, const trial *t, const char *where, const char *words)
{
    char line[400];
    snprintf(line, sizeof line, "%s case %d %s: %s", t->op->name, t->number, where, words);
    v->note(v->user, ok, line);
}

static void measure(versus *v, const double *expected, const output *got, double scale)
{
    if (!cn_dtype_is_float(got->dtype)) return;
    for (int64_t i = 0; i < got->numel; i++) {
        double d = fabs(expected[i] - output_at(got, i)) / fmax(1, scale);
        if (isfinite(d)) v->worst = fmax(v->worst, d);
    }
}

void name_traced(char *to, size_t room, int i)
{
    const char *part = i < CN_MAX_OUT ? "result" : i == CN_MAX_OUT ? "loss" : "gradient of operand";
    snprintf(to, room, "%s %d", part, i <= CN_MAX_OUT ? i % CN_MAX_OUT : i - 1 - CN_MAX_OUT);
}

static void compare(versus *vs, const trial *t, const output *expected, const output *got, int i, const char *what)
{
    if (!expected->data && !got->data) return;
    char part[32], where[sizeof part + 96];
    name_traced(part, sizeof part, i);
    snprintf(where, sizeof where, "%.90s, %s", what, part);
    if (expected->numel != got->numel || expected->dtype != got->dtype) {
        note(vs, false, t, where, "shape or dtype");
        return;
    }
    double *v = trial_memory((size_t)expected->numel, sizeof *v);
    for (int64_t k = 0; k < expected->numel; k++) v[k] = output_at(expected, k);
    difference d = { "" };
    tolerance room = tolerance_of(t, expected, v);
    if (i >= CN_MAX_OUT && room.relative == 0) room = (tolerance){ 1e-5, 1 };
    measure(vs, v, got, room.scale);
    note(vs, close_to(v, got, room, &d), t, where, d.words);
    free(v);
}

void versus_case(versus *v, const trial *t, cn_dtype dtype, trial_layout layout, bool gradients)
{
    inputs x;
    if ((t->n_in && !takes(t, dtype)) || !draw(t, dtype, layout, &x)) return;
    if (layout != LAYOUT_CONTIGUOUS && !layout_applies(&x, layout)) {
        free_inputs(&x);
        return;
    }
    output expected[TRACED] = { 0 }, got[TRACED] = { 0 };
    char what[64];
    snprintf(what, sizeof what, "%s %s", cn_dtype_name(dtype), layout_name(layout));
    /* First on the device that is tried: the other one then gives as many results. */
    int n = t->op->n_out;
    const bool ok = trace_case(v->tried, t, &x, layout, gradients, &n, got);
    if (trace_case(v->expected, t, &x, layout, gradients, &n, expected)) {
        if (!ok) note(v, false, t, what, cn_error(v->tried));
        for (int i = 0; i < TRACED && ok; i++) compare(v, t, &expected[i], &got[i], i, what);
    }
    cn_error_clear(v->expected);
    cn_error_clear(v->tried);
    free_outputs(expected, TRACED);
    free_outputs(got, TRACED);
    free_inputs(&x);
}

bool needs_callbacks(const cn_op *op) { return strcmp(op->name, "custom") == 0 || strcmp(op->name, "checkpoint") == 0; }
