/* Forwards of ONNX models without gradients: what depends on weights alone is kept, and forwards are repeated. Every
   result is compared with that of a forward that records gradients, which keeps and repeats nothing. */
#include <math.h>
#include <stdio.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/onnx_write.h"

#define SIZES(...) \
    (const int[]) { __VA_ARGS__, -2 }

enum { FORWARDS = 6 }; /* enough for one to be recorded, and repeated */

static cn_ctx *cn;

/* y = (flatten(relu(norm(conv(x)))) · transpose(w)) + b, where x and b are inputs. */
static cn_module *new_model(void)
{
    float conv[3 * 2 * 3 * 3], norm[4][3], w[4 * 48];
    for (int i = 0; i < 54; i++) conv[i] = (float)(i % 7 - 3) / 5;
    for (int i = 0; i < 12; i++) norm[i / 3][i % 3] = 0.5f + (float)i / 10;
    for (int i = 0; i < 192; i++) w[i] = (float)(i % 11 - 5) / 9;
    onnx_bytes g = { 0 };
    onnx_node_text(&g, 1, "Conv x conv.weight -> c", NULL);
    onnx_node_text(&g, 1, "BatchNormalization c norm.weight norm.bias norm.mean norm.var -> n", NULL);
    onnx_node_text(&g, 1, "Relu n -> r", NULL);
    onnx_node_text(&g, 1, "Flatten r -> f", NULL);
    onnx_node_text(&g, 1, "Transpose w -> wt", NULL);
    onnx_node_text(&g, 1, "MatMul f wt -> h", NULL);
    onnx_node_text(&g, 1, "Add h b -> y", NULL);
    onnx_floats_tensor(&g, 5, "conv.weight", SIZES(3, 2, 3, 3), conv);
    onnx_floats_tensor(&g, 5, "norm.weight", SIZES(3), norm[0]);
    onnx_floats_tensor(&g, 5, "norm.bias", SIZES(3), norm[1]);
    onnx_floats_tensor(&g, 5, "norm.mean", SIZES(3), norm[2]);
    onnx_floats_tensor(&g, 5, "norm.var", SIZES(3), norm[3]);
    onnx_floats_tensor(&g, 5, "w", SIZES(4, 48), w);
    onnx_value_info(&g, 11, "x", 1, SIZES(-1, 2, 6, 6));
    onnx_value_info(&g, 11, "b", 1, SIZES(-1, 4));
    onnx_value_info(&g, 12, "y", 1, SIZES(-1, 4));
    onnx_bytes model = onnx_model_of(&g, 13);
    cn_module *m = cn_onnx_load_memory(cn, model.v, model.n);
    onnx_free(&model);
    return m;
}

static cn_tensor *run(cn_module *m, cn_tensor *x, cn_tensor *b)
{
    cn_onnx_value in[] = { { .name = "x", .tensor = x }, { .name = "b", .tensor = b } }, out = { .name = "y" };
    return cn_onnx_run(m, in, 2, &out, 1) ? out.tensor : NULL;
}

/* Whether a forward without gradients gives what one with gradients gives. */
static bool agrees(cn_module *m, cn_tensor *x, cn_tensor *b)
{
    cn_scope s = cn_scope_begin(cn);
    cn_no_grad_begin(cn);
    cn_tensor *got = run(m, x, b);
    const double size = got ? cn_item(cn_max(cn_abs(got), CN_ALL, false)) : NAN;
    cn_no_grad_end(cn);
    cn_tensor *want = run(m, x, b);
    const bool ok = got && want && size > 0.1 && cn_allclose(got, want, 1e-5, 1e-5, false);
    cn_scope_end(cn, s);
    return ok && !cn_failed(cn);
}

static cn_tensor *drawn(cn_dims shape)
{
    cn_tensor *t = cn_keep(cn_randn(cn, CN_F32, shape));
    cn_eval(t);
    return t;
}

static cn_tensor *images(int64_t n) { return drawn(CN_DIMS(n, 2, 6, 6)); }

static void test_inputs(void)
{
    check_group("other inputs");
    cn_module *m = new_model();
    if (!check(m != NULL, "it loads: %s", cn_error(cn))) return;
    int right = 0;
    cn_tensor *last = NULL;
    for (int i = 0; i < 3 * FORWARDS; i++) {
        cn_tensor *x = images(1 + i % 2), *b = drawn(CN_DIMS(1 + i % 2, 4));
        right += agrees(m, x, b);
        cn_release(x);
        cn_release(last);
        last = b;
    }
    cn_release(last);
    check(right == 3 * FORWARDS, "%d of %d forwards are right: %s", right, 3 * FORWARDS, cn_error(cn));
    for (int i = right = 0; i < 4 * 20; i++) { /* more shapes than are remembered */
        cn_tensor *x = images(1 + i % 20), *b = drawn(CN_DIMS(1, 4));
        right += agrees(m, x, b);
        cn_release(x);
        cn_release(b);
    }
    check(right == 80, "20 shapes: %d of 80 forwards are right: %s", right, cn_error(cn));
    cn_module_free(m);
}

/* y = x - 2·b: inputs in one memory, while the forward is recorded, are none later. */
static void test_shared_inputs(void)
{
    check_group("inputs that share memory");
    const float two = 2, one[] = { 1, 1, 1, 1 };
    onnx_bytes g = { 0 };
    onnx_floats_tensor(&g, 5, "two", (const int[]){ -2 }, &two);
    onnx_floats_tensor(&g, 5, "w", SIZES(4), one);
    onnx_node_text(&g, 1, "Mul b two -> d", NULL);
    onnx_node_text(&g, 1, "Mul d w -> e", NULL);
    onnx_node_text(&g, 1, "Sub x e -> y", NULL);
    onnx_value_info(&g, 11, "x", 1, SIZES(4));
    onnx_value_info(&g, 11, "b", 1, SIZES(4));
    onnx_value_info(&g, 12, "y", 1, SIZES(4));
    onnx_bytes bytes = onnx_model_of(&g, 13);
    cn_module *m[3];
    for (int i = 0; i < 3; i++) m[i] = cn_onnx_load_memory(cn, bytes.v, bytes.n);
    onnx_free(&bytes);
    cn_tensor *both = drawn(CN_DIMS(8)), *x = cn_keep(cn_narrow(both, 0, 0, 4)), *b = drawn(CN_DIMS(4));
    cn_tensor *half = cn_keep(cn_narrow(both, 0, 4, 4));
    int right = 0;
    for (int i = 0; i < FORWARDS; i++) right += agrees(m[0], x, x) && agrees(m[1], x, half);
    right += agrees(m[0], x, b) && agrees(m[0], b, x) && agrees(m[1], x, b) && agrees(m[1], b, half);
    check(right == FORWARDS + 1, "one tensor, or two parts of it: %d of %d", right, FORWARDS + 1);
    cn_tensor *w = cn_module_get(m[2], "w");
    for (int i = right = 0; i < FORWARDS; i++) right += agrees(m[2], b, w);
    right += agrees(m[2], b, x) && agrees(m[2], x, b);
    check(right == FORWARDS + 1, "a weight as an input: %d of %d", right, FORWARDS + 1);
    for (int i = 0; i < 3; i++) cn_module_free(m[i]);
    cn_release(both);
    cn_release(half);
    cn_release(x);
    cn_release(b);
}

static void test_weights(void)
{
    check_group("other weights");
    cn_module *m = new_model(), *other = new_model();
    cn_tensor *x = images(3), *b = drawn(CN_DIMS(3, 4));
    cn_optim *opt = cn_adam(cn, cn_parameters(m), &(cn_adam_desc){ .lr = 0.1 });
    int right = 0;
    for (int i = 0; i < 4 * FORWARDS; i++) {
        right += agrees(m, x, b);
        if (i % FORWARDS < FORWARDS - 1) continue;
        cn_scope s = cn_scope_begin(cn);
        cn_backward(cn_sum(cn_square(run(m, x, b)), CN_ALL, false));
        cn_step(opt);
        cn_optim_zero_grad(opt);
        cn_scope_end(cn, s);
    }
    check(right == 4 * FORWARDS, "steps of an optimizer between: %d of %d: %s", right, 4 * FORWARDS, cn_error(cn));
    cn_tensor *w = cn_module_get(m, "w"), *mean = cn_module_get(m, "norm.mean");
    for (int i = right = 0; i < 4 * FORWARDS; i++) {
        if (i % FORWARDS == 0) cn_assign(i % 2 ? mean : w, cn_randn_like(i % 2 ? mean : w));
        if (i % FORWARDS == 1) cn_assign(mean, cn_add_s(mean, 0.5));
        right += agrees(m, x, b);
    }
    check(right == 4 * FORWARDS, "assignments between: %d of %d", right, 4 * FORWARDS);
    for (int i = right = 0; i < 4; i++) {
        cn_module_train(m, true);
        cn_scope s = cn_scope_begin(cn);
        cn_eval(run(m, x, b)); /* moves the running statistics */
        cn_scope_end(cn, s);
        cn_module_train(m, false);
        for (int k = 0; k < FORWARDS; k++) right += agrees(m, x, b);
    }
    check(right == 4 * FORWARDS, "training mode between: %d of %d", right, 4 * FORWARDS);
    cn_dict *d = cn_dict_new(cn);
    check(cn_module_save(other, d, "") && cn_module_load(m, d, NULL), "other weights are loaded: %s", cn_error(cn));
    for (int k = right = 0; k < FORWARDS; k++) right += agrees(m, x, b);
    check(right == FORWARDS && cn_allclose(run(m, x, b), run(other, x, b), 0, 0, false), "and used: %d", right);
    cn_optim_free(opt);
    cn_module_free(m);
    cn_module_free(other);
    cn_release(x);
    cn_release(b);
}

/* Another library may write to memory that it was given. */
static void test_shared_weights(void)
{
    check_group("weights that another library has");
    cn_module *m = new_model();
    cn_tensor *x = images(2), *b = drawn(CN_DIMS(2, 4));
    int right = 0;
    for (int k = 0; k < FORWARDS; k++) right += agrees(m, x, b);
    DLManagedTensor *shared = cn_to_dlpack(cn_module_get(m, "w")),
                    *taps = cn_to_dlpack(cn_module_get(m, "conv.weight"));
    if (check(shared && taps, "they are exported: %s", cn_error(cn))) {
        for (int k = 0; k < FORWARDS; k++) {
            ((float *)shared->dl_tensor.data)[5 + k] += 3;
            ((float *)taps->dl_tensor.data)[7 + k] += 2;
            cn_scope s = cn_scope_begin(cn);
            cn_module *same = new_model(); /* with the same numbers, which nobody has seen yet */
            cn_dict *d = cn_dict_new(cn);
            cn_module_save(m, d, "");
            cn_module_load(same, d, NULL);
            cn_no_grad_begin(cn);
            cn_tensor *got = run(m, x, b);
            cn_no_grad_end(cn);
            right += cn_allclose(got, run(same, x, b), 1e-5, 1e-5, false);
            cn_scope_end(cn, s);
            cn_module_free(same);
        }
        shared->deleter(shared);
        taps->deleter(taps);
    }
    check(right == 2 * FORWARDS, "%d of %d forwards are right: %s", right, 2 * FORWARDS, cn_error(cn));
    cn_module_free(m);
    cn_release(x);
    cn_release(b);
}

static void test_growth(void)
{
    check_group("memory");
    cn_module *m = new_model();
    cn_tensor *x = images(2), *b = drawn(CN_DIMS(2, 4));
    int64_t live = 0;
    cn_no_grad_begin(cn);
    for (int i = 0; i < 2000; i++) {
        cn_scope s = cn_scope_begin(cn);
        cn_eval(run(m, x, b));
        cn_scope_end(cn, s);
        if (i == 20) live = cn_count(cn).live_bytes;
    }
    const int64_t nodes = cn_count(cn).nodes;
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *y = run(m, x, b), *z = run(m, x, b);
    check(cn_count(cn).nodes - nodes <= 2, "a repeated forward makes a node for its result, and %lld more",
          (long long)(cn_count(cn).nodes - nodes - 2));
    cn_assign(y, cn_zeros(cn, CN_F32, CN_DIMS(2, 4)));
    check(cn_item(cn_max(cn_abs(z), CN_ALL, false)) > 0.1, "results are values of their own");
    cn_scope_end(cn, s);
    cn_no_grad_end(cn);
    check(cn_count(cn).live_bytes == live, "%lld bytes more after 2,000 forwards",
          (long long)(cn_count(cn).live_bytes - live));
    cn_module_free(m);
    cn_release(x);
    cn_release(b);
}

int main(void)
{
    cn = cn_open(&(cn_desc){ .seed = 5 });
    test_inputs();
    test_shared_inputs();
    test_weights();
    test_shared_weights();
    test_growth();
    check(!cn_failed(cn), "no error is left: %s", cn_error(cn));
    cn_close(cn);
    return finish();
}
