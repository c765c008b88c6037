/* Every operator, by its own cases: forward against its f64 reference in every dtype, every layout against the contiguous
   one, gradients against finite differences, planned against eager and 1 thread against 2 and 3 bit for bit, refusals,
   and that nothing is left behind.

       test_ops              all
       test_ops matmul       operators whose name contains it; =matmul: the one of that name
       test_ops --list       their names */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/property.h"
#include "support/reference_table.h"

/* Opened once; every case leaves them as it found them. */
enum { LAZY, LAZY_2, LAZY_3, EAGERLY, CONTEXTS };
static cn_ctx *contexts[CONTEXTS];

/* The operator's results in a context; false: an error stands. */
static bool run(cn_ctx *ctx, const trial *t, const inputs *x, trial_layout layout, output *results)
{
    cn_tensor *in[CN_MAX_IN], *out[CN_MAX_OUT] = { 0 };
    cn_scope s = cn_scope_begin(ctx);
    make_tensors(ctx, x, layout, in);
    bool ok = call(ctx, t, in, out);
    for (int j = 0; j < t->op->n_out; j++) ok = take_output(&results[j], ok ? out[j] : NULL) && ok;
    cn_scope_end(ctx, s);
    return ok;
}

/* ---- 1. forward against the reference ---- */

static double largest(const double *v, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(v[i])) most = fmax(most, fabs(v[i]));
    return most;
}

/* Elementwise operators round once. Where terms are summed, errors are of the size of the largest number seen, and grow
   with the root of how many there are; composites round halves at every step. */
static tolerance tolerance_of(const trial *t, const inputs *x, cn_dtype in, const output *got, const double *expected)
{
    static const double epsilon[CN_DTYPES] = {
        [CN_F16] = 0x1p-10, [CN_BF16] = 0x1p-7, [CN_F32] = 2e-5, [CN_F64] = 1e-10
    };
    double relative = fmax(epsilon[got->dtype], t->n_in && cn_dtype_is_float(in) ? epsilon[in] : 0);
    if (t->op->kind == CN_VIEW) return (tolerance){ 0, 0 };
    if (t->op->kind == CN_MAP || t->op->kind == CN_RANDOM) return (tolerance){ relative, 0 };
    double scale = largest(expected, got->numel), terms = 0;
    for (int k = 0; k < x->n; k++) {
        if (!x->in[k].present) continue;
        scale = fmax(scale, largest(x->in[k].v, x->in[k].numel));
        terms = fmax(terms, (double)x->in[k].numel / fmax(1, (double)got->numel));
    }
    bool halves = got->dtype == CN_F16 || got->dtype == CN_BF16;
    return (tolerance){ relative * sqrt(1 + terms / 16) * (halves && t->op->kind == CN_COMPOSITE ? 8 : 1), scale };
}

static void reference(const trial *t, const inputs *x, const output *results, ref_tensor *expected)
{
    for (int j = 0; j < t->op->n_out; j++) {
        const output *o = &results[j];
        expected[j] = (ref_tensor){ .present = true, .dtype = o->dtype, .ndim = o->shape.n, .numel = o->numel };
        memcpy(expected[j].shape, o->shape.v, sizeof o->shape.v);
        expected[j].v = calloc((size_t)o->numel + 1, sizeof(double));
        if (!expected[j].v) abort();
    }
    cn_arg args[CN_MAX_ARGS];
    cn_case_args(t->c, args);
    ref_call c = { t->n_in, t->op->n_out, x->in, expected, t->c->attrs, args };
    find_reference(t->op->name)->fn(&c);
}

/* A result's shape, where the kind alone decides it, and its dtype. */
static bool sane(const trial *t, const inputs *x, cn_dtype dtype, const output *o)
{
    if (o->shape.n < 0 || o->shape.n > CN_MAX_DIMS) return false;
    if (cn_dtype_is_float(dtype) && cn_dtype_is_float(o->dtype) && t->n_in && o->dtype != dtype &&
        strcmp(t->op->name, "cast"))
        return false;
    if (t->op->kind != CN_MAP || t->n_in == 0) return true;
    for (int d = 1; d <= o->shape.n; d++) {
        int64_t size = 1;
        for (int k = 0; k < x->n; k++)
            if (x->in[k].present && d <= x->in[k].ndim && x->in[k].shape[x->in[k].ndim - d] != 1)
                size = x->in[k].shape[x->in[k].ndim - d];
        if (o->shape.v[o->shape.n - d] != size) return false;
    }
    return true;
}

static void test_forward(const trial *t, cn_dtype dtype)
{
    inputs x;
    if (!takes(t, dtype) || !draw(t, dtype, LAYOUT_CONTIGUOUS, &x)) return;
    cn_ctx *ctx = contexts[LAZY];
    output results[CN_MAX_OUT] = { 0 };
    bool ok = run(ctx, t, &x, LAYOUT_CONTIGUOUS, results);
    bool refused = !ok && !cn_dtype_is_float(dtype) && cn_error_code(ctx) == CN_BAD_DTYPE;
    if (!refused) expect(t, FORWARD, ok, cn_dtype_name(dtype), cn_error(ctx));
    cn_error_clear(ctx);
    if (ok) {
        ref_tensor expected[CN_MAX_OUT];
        reference(t, &x, results, expected);
        for (int j = 0; j < t->op->n_out; j++) {
            difference d;
            char what[48];
            snprintf(what, sizeof what, "%s, result %d", cn_dtype_name(dtype), j);
            tolerance room = tolerance_of(t, &x, dtype, &results[j], expected[j].v);
            if (expect(t, FORWARD, sane(t, &x, dtype, &results[j]), what, "wrong shape or dtype"))
                expect(t, FORWARD, close_to(expected[j].v, &results[j], room, &d), what, d.words);
            free(expected[j].v);
        }
    }
    free_outputs(results, CN_MAX_OUT);
    free_inputs(&x);
}

/* ---- 2. layouts ---- */

static void compare_layout(const trial *t, cn_dtype dtype, const inputs *x, output *expected, output *got,
                           const char *what)
{
    bool exact = t->op->kind == CN_MAP || t->op->kind == CN_VIEW || t->op->kind == CN_INDEX;
    for (int j = 0; j < t->op->n_out; j++) {
        difference d;
        bool same = same_bits(&expected[j], &got[j], &d);
        if (!same && !exact && expected[j].numel == got[j].numel) {
            double *v = calloc((size_t)expected[j].numel + 1, sizeof *v);
            if (!v) abort();
            for (int64_t i = 0; i < expected[j].numel; i++) v[i] = output_at(&expected[j], i);
            same = close_to(v, &got[j], tolerance_of(t, x, dtype, &got[j], v), &d);
            free(v);
        }
        expect(t, LAYOUT, same, what, d.words);
    }
}

static void test_layout_of(const trial *t, cn_dtype dtype, trial_layout layout)
{
    inputs x;
    if (!takes(t, dtype) || !draw(t, dtype, layout, &x)) return;
    cn_ctx *ctx = contexts[LAZY];
    output expected[CN_MAX_OUT] = { 0 }, got[CN_MAX_OUT] = { 0 };
    char what[48];
    snprintf(what, sizeof what, "%s %s", cn_dtype_name(dtype), layout_name(layout));
    if (layout_applies(&x, layout)) {
        bool ok = run(ctx, t, &x, LAYOUT_CONTIGUOUS, expected) && run(ctx, t, &x, layout, got);
        /* `view` never copies: some layouts it must refuse */
        bool refused = !ok && strcmp(t->op->name, "view") == 0 && cn_error_code(ctx) == CN_BAD_SHAPE;
        if (ok) compare_layout(t, dtype, &x, expected, got, what);
        else if (!refused) expect(t, LAYOUT, false, what, cn_error(ctx));
        cn_error_clear(ctx);
    }
    free_outputs(expected, CN_MAX_OUT);
    free_outputs(got, CN_MAX_OUT);
    free_inputs(&x);
}

/* ---- 3 and 4. eager, planned, threads: bit for bit ---- */

/* Results, a loss made from them by a chain that fuses, and the gradients of all operands. */
enum { TRACED = CN_MAX_OUT + 1 + CN_MAX_IN };

static cn_tensor *loss_of(const trial *t, cn_tensor *const *out)
{
    cn_tensor *loss = NULL;
    for (int j = 0; j < t->op->n_out; j++) {
        if (!cn_dtype_is_float(cn_type(out[j]))) continue;
        cn_tensor *part = cn_sum(cn_add(cn_relu(cn_mul_s(out[j], 1.5)), out[j]), CN_ALL, false);
        loss = loss ? cn_add(loss, part) : part;
    }
    return loss;
}

static bool trace(cn_ctx *ctx, const trial *t, const inputs *x, output *results)
{
    cn_tensor *in[CN_MAX_IN], *out[CN_MAX_OUT] = { 0 }, *param[CN_MAX_IN] = { 0 };
    cn_scope s = cn_scope_begin(ctx);
    cn_seed(ctx, 7);
    make_tensors(ctx, x, LAYOUT_CONTIGUOUS, in);
    for (int k = 0; k < x->n && has_grad(t->op); k++)
        if (is_differentiable(t, x, k)) in[k] = param[k] = cn_param(in[k]);
    bool ok = call(ctx, t, in, out);
    for (int j = 0; j < t->op->n_out && ok; j++) cn_keep(out[j]);
    cn_tensor *loss = ok ? loss_of(t, out) : NULL;
    if (loss && cn_requires_grad(loss)) ok = cn_backward(loss);
    for (int j = 0; j < t->op->n_out; j++) ok = take_output(&results[j], ok ? out[j] : NULL) && ok;
    ok = take_output(&results[CN_MAX_OUT], ok ? loss : NULL) && ok;
    for (int k = 0; k < CN_MAX_IN; k++)
        ok = take_output(&results[CN_MAX_OUT + 1 + k], ok ? cn_grad_of(param[k]) : NULL) && ok;
    for (int j = 0; j < CN_MAX_OUT; j++)
        if (out[j]) cn_release(out[j]);
    for (int k = 0; k < CN_MAX_IN; k++)
        if (param[k]) cn_release(param[k]);
    cn_scope_end(ctx, s);
    return ok;
}

static void compare_traces(const trial *t, property p, const output *expected, const output *got, const char *what)
{
    difference d;
    char where[96] = "";
    bool same = true;
    for (int i = 0; i < TRACED && same; i++) {
        const char *part = i < CN_MAX_OUT ? "result" : i == CN_MAX_OUT ? "loss" : "gradient of operand";
        snprintf(where, sizeof where, "%s, %s %d", what, part, i <= CN_MAX_OUT ? i % CN_MAX_OUT : i - 1 - CN_MAX_OUT);
        same = same_bits(&expected[i], &got[i], &d);
    }
    expect(t, p, same, where, d.words);
}

static void test_traces(const trial *t, cn_dtype dtype, bool threads)
{
    static const char *const names[CONTEXTS] = { "", "2 threads", "3 threads", "eager" };
    inputs x;
    if (!takes(t, dtype) || !draw(t, dtype, LAYOUT_CONTIGUOUS, &x)) return;
    output expected[TRACED] = { 0 };
    bool ok = trace(contexts[LAZY], t, &x, expected);
    bool refused = !ok && !cn_dtype_is_float(dtype) && cn_error_code(contexts[LAZY]) == CN_BAD_DTYPE;
    if (!ok && !refused) expect(t, EAGER, false, cn_dtype_name(dtype), cn_error(contexts[LAZY]));
    cn_error_clear(contexts[LAZY]);
    for (int k = threads ? LAZY_2 : EAGERLY; k < CONTEXTS && ok; k++) {
        output got[TRACED] = { 0 };
        char what[64];
        snprintf(what, sizeof what, "%s %s", cn_dtype_name(dtype), names[k]);
        property p = k == EAGERLY ? EAGER : THREADS;
        if (trace(contexts[k], t, &x, got)) compare_traces(t, p, expected, got, what);
        else expect(t, p, false, what, cn_error(contexts[k]));
        cn_error_clear(contexts[k]);
        free_outputs(got, TRACED);
    }
    free_outputs(expected, TRACED);
    free_inputs(&x);
}

/* ---- 5. refusals ---- */

static void expect_refusal(const trial *t, cn_tensor *const *in, int n_in, bool says_why, const char *what)
{
    cn_ctx *ctx = contexts[LAZY];
    cn_tensor *out[CN_MAX_OUT] = { 0 };
    cn_arg args[CN_MAX_ARGS];
    cn_case_args(t->c, args);
    bool ok = cn_apply_n(t->op, in, n_in, t->c->attrs, args, out);
    bool right = !ok && !out[0] && cn_failed(ctx) == says_why && (!says_why || strstr(cn_error(ctx), t->op->name));
    char words[160];
    snprintf(words, sizeof words, "%s, error \"%s\"", ok ? "accepted" : "refused", cn_error(ctx));
    expect(t, REFUSAL, right, what, words);
    cn_error_clear(ctx);
}

static void test_refusals(const trial *t)
{
    inputs x;
    cn_dtype dtype = takes(t, CN_F32) ? CN_F32 : CN_I64;
    if (!draw(t, dtype, LAYOUT_CONTIGUOUS, &x)) return;
    cn_ctx *ctx = contexts[LAZY], *other = contexts[LAZY_2];
    cn_scope s = cn_scope_begin(ctx), far = cn_scope_begin(other);
    cn_tensor *in[CN_MAX_IN + 1] = { 0 }, *out[CN_MAX_OUT] = { 0 };
    make_tensors(ctx, &x, LAYOUT_CONTIGUOUS, in);
    int last = t->n_in - 1;
    for (int k = 0; k <= last; k++) {
        cn_tensor *whole = in[k];
        if (k < 32 && t->op->optional >> k & 1) continue;
        in[k] = NULL;
        bool others = false; /* they say which context gets the error */
        for (int j = 0; j <= last; j++) others |= in[j] != NULL;
        expect_refusal(t, in, t->n_in, others, "NULL operand");
        in[k] = whole;
    }
    in[t->n_in] = t->n_in ? in[0] : cn_scalar(ctx, CN_F32, 1);
    if (!t->op->variadic) expect_refusal(t, in, t->n_in + 1, true, "an operand too many");
    if (t->op->n_in > 1) expect_refusal(t, in, t->op->n_in - 1, true, "an operand too few");
    while (last > 0 && !in[last]) last--;
    if (last > 0) {
        cn_tensor *own = in[last];
        in[last] = make_tensor(other, &x.in[last], LAYOUT_CONTIGUOUS);
        expect_refusal(t, in, t->n_in, true, "operands of two contexts");
        expect(t, REFUSAL, cn_error_code(other) == CN_BAD_DEVICE, "operands of two contexts",
               "no error in the other one");
        cn_error_clear(other);
        in[last] = own;
    }
    bool works = call(ctx, t, in, out) && cn_eval(out[0]) && !cn_failed(ctx);
    expect(t, REFUSAL, works, "after the errors are cleared", cn_error(ctx));
    cn_scope_end(other, far);
    cn_scope_end(ctx, s);
    free_inputs(&x);
}

/* ---- 6. the record ---- */

/* Elementwise operators and reductions run on the GPU by what their record says. */
static bool is_expressed(const cn_op *op)
{
    bool takes_whole = op->dtypes & (CN_INTS | CN_BIT(CN_BOOL));
    if (op->kind == CN_MAP || op->kind == CN_RANDOM) return op->wgsl || op->wgsl_print;
    if (op->kind == CN_REDUCE) return op->wgsl_reducer && (!takes_whole || op->wgsl_reducer_whole);
    return true;
}

static void test_record(const cn_op *op)
{
    trial t = { .op = op };
    size_t length = op->doc ? strlen(op->doc) : 0;
    expect(&t, RECORD, op->name[0], "", "no name");
    expect(&t, RECORD, length && op->doc[length - 1] == '.', "", "doc is not a sentence");
    expect(&t, RECORD, op->n_cases >= 3, "", "fewer than 3 cases");
    expect(&t, RECORD, op->grad || op->no_grad || op->kind == CN_COMPOSITE, "", "operator without gradient or reason");
    expect(&t, RECORD, is_expressed(op), "", "a MAP, RANDOM or REDUCE without wgsl");
    expect(&t, RECORD, find_reference(op->name) != NULL, "", "no reference");
}

/* ---- all of it ---- */

static void expect_tidy(const trial *t, int which, const cn_counters *before)
{
    cn_ctx *ctx = contexts[which];
    cn_counters now = cn_count(ctx);
    char words[160];
    snprintf(words, sizeof words, "handles %lld → %lld, live bytes %lld → %lld, error \"%s\"",
             (long long)before->handles, (long long)now.handles, (long long)before->live_bytes,
             (long long)now.live_bytes, cn_error(ctx));
    expect(t, TIDY, now.handles == before->handles && now.live_bytes == before->live_bytes && !cn_failed(ctx), "",
           words);
    cn_error_clear(ctx);
}

/* On a system without LAPACK, calls of operators that need it fail and say so; tests/test_linalg.c checks that error. */
static bool lacks_library(const trial *t)
{
    inputs x;
    cn_ctx *ctx = contexts[LAZY];
    if (strncmp(t->op->name, "linalg_", 7) && strcmp(t->op->name, "cofactor") && strcmp(t->op->name, "thin_svd"))
        return false;
    if (!draw(t, CN_F32, LAYOUT_CONTIGUOUS, &x)) return false;
    output results[CN_MAX_OUT] = { 0 };
    const bool lacks = !run(ctx, t, &x, LAYOUT_CONTIGUOUS, results) && cn_error_code(ctx) == CN_UNSUPPORTED;
    free_outputs(results, CN_MAX_OUT);
    free_inputs(&x);
    cn_error_clear(ctx);
    return lacks;
}

static void test_case(const trial *t)
{
    static const cn_dtype dtypes[] = { CN_F64, CN_F32, CN_BF16, CN_I64, CN_F16, CN_I32, CN_I16, CN_U8, CN_I8, CN_BOOL };
    cn_counters before[CONTEXTS];
    bool thin = is_thin(t);
    if (lacks_library(t)) {
        skip();
        return;
    }
    for (int k = 0; k < CONTEXTS; k++) before[k] = cn_count(contexts[k]);
    int n_dtypes = !find_reference(t->op->name) ? 0 : t->n_in == 0 ? 1 : thin ? 3 : CN_DTYPES;
    for (int d = 0; d < n_dtypes; d++) test_forward(t, dtypes[d]);
    for (int l = LAYOUT_STRIDED; l < LAYOUTS && t->n_in; l++) {
        test_layout_of(t, CN_F32, (trial_layout)l);
        if (!thin) test_layout_of(t, takes(t, CN_F64) ? CN_F64 : CN_I64, (trial_layout)l);
    }
    try_gradients(contexts[LAZY], t);
    test_traces(t, takes(t, CN_F32) ? CN_F32 : CN_I64, true);
    if (!thin && t->n_in) {
        test_traces(t, CN_F64, true);
        test_traces(t, CN_BF16, false);
        test_traces(t, CN_I64, false);
    }
    if (t->number == 0) test_refusals(t);
    for (int k = 0; k < CONTEXTS; k++) expect_tidy(t, k, &before[k]);
}

static bool is_wanted(const char *name, const char *part)
{
    return part[0] == '=' ? strcmp(name, part + 1) == 0 : strstr(name, part) != NULL;
}

static bool needs_callbacks(const cn_op *op)
{
    return strcmp(op->name, "custom") == 0 || strcmp(op->name, "checkpoint") == 0;
}

int main(int argc, char **argv)
{
    int n_ops, operators = 0, cases = 0;
    const cn_op *const *ops = cn_ops(&n_ops);
    bool list = argc > 1 && strcmp(argv[1], "--list") == 0;
    const char *part = argc > 1 && !list ? argv[1] : "";
    for (int k = 0; k < CONTEXTS; k++) {
        contexts[k] = cn_open(
            &(cn_desc){ .device = "cpu", .seed = 7, .threads = k == EAGERLY ? 1 : k + 1, .eager = k == EAGERLY });
        if (!contexts[k]) return 1;
        if (cn_error_code(contexts[k]) == CN_UNSUPPORTED) { /* CAIRN_ISA names what this processor lacks */
            printf("%s\n", cn_error(contexts[k]));
            skip();
            return finish();
        }
        check(!cn_failed(contexts[k]), "open: %s", cn_error(contexts[k]));
    }
    for (int i = 0; i < n_ops; i++) {
        if (!is_wanted(ops[i]->name, part) || needs_callbacks(ops[i])) continue;
        if (list) printf("%s\n", ops[i]->name);
        if (list) continue;
        operators++;
        check_group(ops[i]->name);
        test_record(ops[i]);
        for (int c = 0; c < ops[i]->n_cases; c++, cases++)
            test_case(&(trial){ ops[i], &ops[i]->cases[c], c, count_operands(&ops[i]->cases[c]) });
    }
    for (int k = 0; k < CONTEXTS; k++) cn_close(contexts[k]);
    if (list) return 0;
    check_group("");
    check(operators > 0, "no operator's name fits %s", part);
    print_counts(operators, cases);
    return finish();
}
