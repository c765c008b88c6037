/* Forwards of ONNX models without gradients, again and again: what a model keeps of earlier forwards must not show.
   Each result is compared with that of a module that was just loaded, where gradients are recorded: it keeps nothing. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/onnx_write.h"

#define SIZES(...) \
    (const int[]) { __VA_ARGS__, -2 }
#define SINGLE \
    (const int[]) { -2 }

enum { AGAIN = 6 }; /* forwards, until the model repeats what it did */

static cn_ctx *cn;

static void weight(onnx_bytes *g, const char *name, const int *sizes, int n)
{
    static float v[64 * 512];
    for (int i = 0; i < n; i++) v[i] = 0.1f * sinf((float)(i * 37 % 101) + (float)n);
    onnx_floats_tensor(g, 5, name, sizes, v);
}

static onnx_bytes subtract_model(void) /* y = a - b · w */
{
    onnx_bytes g = { 0 };
    onnx_node_text(&g, 1, "Mul b w -> c", NULL);
    onnx_node_text(&g, 1, "Sub a c -> y", NULL);
    weight(&g, "w", SIZES(6), 6);
    onnx_value_info(&g, 11, "a", 1, SIZES(-1, 6));
    onnx_value_info(&g, 11, "b", 1, SIZES(-1, 6));
    onnx_value_info(&g, 12, "y", 1, SIZES(-1, 6));
    return onnx_model_of(&g, 18);
}

static onnx_bytes net_model(void) /* a convolution and its normalisation, an LSTM, two products */
{
    onnx_bytes g = { 0 }, hidden = { 0 };
    onnx_int_attribute(&hidden, "hidden_size", 16);
    onnx_node_text(&g, 1, "Unsqueeze x one -> image", NULL);
    onnx_node_text(&g, 1, "Conv image k -> h", NULL);
    onnx_node_text(&g, 1, "BatchNormalization h scale shift mean var -> n", NULL);
    onnx_node_text(&g, 1, "Relu n -> r", NULL);
    onnx_node_text(&g, 1, "Reshape r rows -> s", NULL);
    onnx_node_text(&g, 1, "LSTM s lw lr -> l", &hidden);
    onnx_node_text(&g, 1, "Reshape l flat -> f", NULL);
    onnx_node_text(&g, 1, "MatMul f w1 -> m", NULL);
    onnx_node_text(&g, 1, "Mul w2 two -> w3", NULL); /* depends on weights alone */
    onnx_node_text(&g, 1, "MatMul m w3 -> y", NULL);
    onnx_wholes_tensor(&g, 5, "one", SIZES(1), (const int64_t[]){ 1 });
    onnx_wholes_tensor(&g, 5, "rows", SIZES(3), (const int64_t[]){ 6, -1, 24 });
    onnx_wholes_tensor(&g, 5, "flat", SIZES(2), (const int64_t[]){ -1, 16 });
    onnx_floats_tensor(&g, 5, "two", SINGLE, (const float[]){ 2 });
    weight(&g, "k", SIZES(4, 1, 3, 3), 36);
    weight(&g, "scale", SIZES(4), 4);
    weight(&g, "shift", SIZES(4), 4);
    weight(&g, "mean", SIZES(4), 4);
    onnx_floats_tensor(&g, 5, "var", SIZES(4), (const float[]){ 1, 2, 0.5f, 1 });
    weight(&g, "lw", SIZES(1, 64, 24), 64 * 24);
    weight(&g, "lr", SIZES(1, 64, 16), 64 * 16);
    weight(&g, "w1", SIZES(16, 512), 16 * 512);
    weight(&g, "w2", SIZES(512, 64), 64 * 512);
    onnx_value_info(&g, 11, "x", 1, SIZES(-1, 8, 8));
    onnx_value_info(&g, 12, "y", 1, SIZES(-1, 64));
    return onnx_model_of(&g, 18);
}

static cn_module *load(onnx_bytes bytes)
{
    cn_module *m = cn_onnx_load_memory(cn, bytes.v, bytes.n);
    check(m != NULL, "it loads: %s", cn_error(cn));
    onnx_free(&bytes);
    return m;
}

static cn_tensor *run(cn_module *m, cn_tensor *a, cn_tensor *b)
{
    const cn_onnx_value in[] = { { .tensor = a }, { .tensor = b } };
    cn_onnx_value out = { 0 };
    return cn_onnx_run(m, in, b ? 2 : 1, &out, 1) ? out.tensor : NULL;
}

/* The result of a new module with m's weights, which keeps nothing. */
static cn_tensor *expected(onnx_bytes bytes, cn_module *m, cn_tensor *a, cn_tensor *b)
{
    cn_module *fresh = load(bytes);
    cn_dict *d = cn_dict_new(cn);
    check(cn_module_save(m, d, "") && cn_module_load(fresh, d, NULL), "its weights: %s", cn_error(cn));
    cn_tensor *y = run(fresh, a, b);
    if (y) cn_eval(y);
    cn_module_free(fresh);
    return y;
}

static void same(cn_tensor *got, cn_tensor *want, const char *what)
{
    check(got && want && cn_allclose(got, want, 1e-4, 1e-5, false), "%s: %s", what, cn_error(cn));
    cn_error_clear(cn);
}

static cn_tensor *repeat(cn_module *m, cn_tensor *a, cn_tensor *b)
{
    cn_tensor *y = NULL;
    for (int i = 0; i < AGAIN; i++) y = run(m, a, b);
    return y;
}

static cn_tensor *drawn(cn_dims shape)
{
    cn_tensor *x = cn_randn(cn, CN_F32, shape);
    cn_eval(x);
    return x;
}

/* ---- inputs ---- */

static void test_inputs(void)
{
    check_group("inputs");
    cn_module *m = load(subtract_model());
    cn_tensor *a = drawn(CN_DIMS(6, 6)), *b = drawn(CN_DIMS(6, 6)), *c = drawn(CN_DIMS(6, 6));
    cn_tensor *turned = cn_transpose(drawn(CN_DIMS(6, 6)), 0, 1), *row = cn_expand(drawn(CN_DIMS(1, 6)), CN_DIMS(6, 6));
    cn_tensor *both = drawn(CN_DIMS(12, 6)), *first = cn_narrow(both, 0, 0, 6), *last = cn_narrow(both, 0, 6, 6);
    cn_eval(turned), cn_eval(row), cn_eval(first), cn_eval(last);
    const struct {
        cn_tensor *a, *b;
        const char *what;
    } pairs[] = { { a, a, "one tensor twice" },    { a, b, "two tensors" },
                  { b, a, "the other way round" }, { c, c, "another one twice" },
                  { turned, b, "turned" },         { a, turned, "turned, too" },
                  { row, a, "expanded" },          { first, last, "two parts" },
                  { last, first, "exchanged" },    { first, first, "one part twice" },
                  { first, a, "a part" } };
    for (int way = 0; way < 2; way++) { /* recorded for each in turn, and then mixed */
        cn_module *n = way ? load(subtract_model()) : m;
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
            cn_tensor *want = expected(subtract_model(), n, pairs[i].a, pairs[i].b);
            cn_no_grad_begin(cn);
            same(way ? run(n, pairs[i].a, pairs[i].b) : repeat(n, pairs[i].a, pairs[i].b), want, pairs[i].what);
            if (way) (void)repeat(n, a, a);
            cn_no_grad_end(cn);
        }
        if (way) cn_module_free(n);
    }
    cn_no_grad_begin(cn);
    cn_tensor *pending = cn_add(a, b), *y = repeat(m, a, b), *kept = y;
    cn_tensor *want = cn_sub(a, cn_mul(b, cn_module_get(m, "w")));
    same(run(m, pending, b), cn_sub(pending, cn_mul(b, cn_module_get(m, "w"))), "an input that is pending");
    (void)run(m, c, c);
    same(kept, want, "an earlier result stays");
    cn_no_grad_end(cn);
    cn_module_free(m);
}

/* The module's own weight as an input. */
static void test_own_weight(void)
{
    check_group("a weight as an input");
    cn_module *m = load(subtract_model());
    cn_tensor *w = cn_reshape(cn_module_get(m, "w"), CN_DIMS(1, 6)), *a = drawn(CN_DIMS(1, 6)),
              *b = drawn(CN_DIMS(1, 6));
    cn_tensor *first = expected(subtract_model(), m, a, w), *second = expected(subtract_model(), m, a, b);
    cn_no_grad_begin(cn);
    cn_eval(w);
    same(repeat(m, a, w), first, "the weight");
    same(run(m, a, b), second, "another tensor in its place");
    cn_no_grad_end(cn);
    cn_module_free(m);
}

/* ---- values that decide what is done: a condition, a shape ---- */

static onnx_bytes condition_model(void)
{
    onnx_bytes g = { 0 }, attributes = { 0 };
    const char *const names[] = { "then_branch", "else_branch" }, *const nodes[] = { "Neg x -> z", "Exp x -> z" };
    for (int i = 0; i < 2; i++) {
        onnx_bytes body = { 0 }, a = { 0 };
        onnx_node_text(&body, 1, nodes[i], NULL);
        onnx_value_info(&body, 12, "z", 1, SIZES(4));
        onnx_text_field(&a, 1, names[i]);
        onnx_message(&a, 6, &body);
        onnx_number(&a, 20, 5);
        onnx_message(&attributes, 5, &a);
    }
    onnx_node_text(&g, 1, "If c -> y", &attributes);
    onnx_value_info(&g, 11, "x", 1, SIZES(4));
    onnx_value_info(&g, 11, "c", 9, SINGLE);
    onnx_value_info(&g, 12, "y", 1, SIZES(4));
    return onnx_model_of(&g, 18);
}

static onnx_bytes shape_model(void)
{
    onnx_bytes g = { 0 };
    onnx_node_text(&g, 1, "Reshape x s -> r", NULL);
    onnx_node_text(&g, 1, "ReduceSum r last -> y", NULL);
    onnx_wholes_tensor(&g, 5, "last", SIZES(1), (const int64_t[]){ -1 });
    onnx_value_info(&g, 11, "x", 1, SIZES(4));
    onnx_value_info(&g, 11, "s", 7, SIZES(2));
    onnx_value_info(&g, 12, "y", 1, SIZES(-1, 1));
    return onnx_model_of(&g, 18);
}

static void test_values(void)
{
    check_group("values that decide");
    cn_module *m = load(condition_model());
    cn_tensor *x = drawn(CN_DIMS(4));
    cn_tensor *yes = cn_from(cn, CN_BOOL, CN_SCALAR, &(const bool){ true }),
              *no = cn_from(cn, CN_BOOL, CN_SCALAR, &(const bool){ false });
    cn_no_grad_begin(cn);
    for (int i = 0; i < 2; i++) {
        same(repeat(m, x, yes), cn_neg(x), "true");
        same(repeat(m, x, no), cn_exp(x), "false");
    }
    cn_module_free(m);
    m = load(shape_model());
    cn_tensor *wide = cn_from(cn, CN_I64, CN_DIMS(2), (const int64_t[]){ 1, 4 }),
              *high = cn_from(cn, CN_I64, CN_DIMS(2), (const int64_t[]){ 2, 2 });
    for (int i = 0; i < 2; i++) {
        same(repeat(m, x, wide), cn_sum(cn_reshape(x, CN_DIMS(1, 4)), CN_DIMS(1), true), "one row");
        same(repeat(m, x, high), cn_sum(cn_reshape(x, CN_DIMS(2, 2)), CN_DIMS(1), true), "two rows");
    }
    cn_no_grad_end(cn);
    cn_module_free(m);
}

/* ---- weights that change ---- */

static void train(cn_module *m, cn_tensor *x)
{
    cn_module_train(m, true);
    cn_optim *opt = cn_adamw(cn, cn_parameters(m), &(cn_adam_desc){ .lr = 0.05 });
    for (int i = 0; i < 3; i++) {
        cn_scope s = cn_scope_begin(cn);
        cn_optim_zero_grad(opt);
        cn_backward(cn_mean(cn_square(cn_forward(m, x)), CN_ALL, false));
        check(cn_step(opt), "a step: %s", cn_error(cn));
        cn_scope_end(cn, s);
    }
    cn_optim_free(opt);
    cn_module_train(m, false);
}

static void test_weights(void)
{
    check_group("weights");
    cn_module *m = load(net_model());
    cn_tensor *x = drawn(CN_DIMS(3, 8, 8)), *other = drawn(CN_DIMS(5, 8, 8));
    const char *const names[] = { "k", "scale", "shift", "mean", "var", "lw", "lr", "w1", "w2" };
    for (size_t i = 0; i < sizeof names / sizeof *names + 1; i++) {
        cn_no_grad_begin(cn);
        cn_tensor *y = repeat(m, x, NULL), *z = repeat(m, other, NULL);
        cn_no_grad_end(cn);
        same(y, expected(net_model(), m, x, NULL), i ? names[i - 1] : "as loaded");
        same(z, expected(net_model(), m, other, NULL), "another batch size");
        if (i == sizeof names / sizeof *names) break;
        cn_tensor *w = cn_module_get(m, names[i]);
        cn_no_grad_begin(cn);
        check(w && cn_assign(w, cn_mul_s(w, 1.5)), "%s is assigned: %s", names[i], cn_error(cn));
        cn_no_grad_end(cn);
    }
    for (int round = 0; round < 3; round++) { /* a forward between steps of training, as an evaluation does */
        train(m, x);
        cn_no_grad_begin(cn);
        cn_tensor *y = round == 1 ? run(m, x, NULL) : repeat(m, x, NULL);
        cn_no_grad_end(cn);
        same(y, expected(net_model(), m, x, NULL), "after steps of an optimizer");
    }
    cn_module *fresh = load(net_model());
    cn_dict *d = cn_dict_new(cn);
    check(cn_module_save(fresh, d, "") && cn_module_load(m, d, NULL), "weights of a file: %s", cn_error(cn));
    cn_no_grad_begin(cn);
    cn_tensor *y = run(m, x, NULL);
    cn_no_grad_end(cn);
    same(y, expected(net_model(), fresh, x, NULL), "after loading");
    cn_module_free(fresh);
    cn_module_free(m);
}

/* Random numbers are drawn anew each time. */
static void test_random(void)
{
    check_group("random numbers");
    onnx_bytes g = { 0 };
    onnx_node_text(&g, 1, "RandomNormalLike x -> r", NULL);
    onnx_node_text(&g, 1, "Add x r -> y", NULL);
    onnx_value_info(&g, 11, "x", 1, SIZES(8));
    onnx_value_info(&g, 12, "y", 1, SIZES(8));
    cn_module *m = load(onnx_model_of(&g, 18));
    cn_tensor *x = drawn(CN_DIMS(8)), *before = NULL;
    cn_no_grad_begin(cn);
    for (int i = 0; i < 2 * AGAIN; i++) {
        cn_tensor *y = run(m, x, NULL);
        if (before) check(y && !cn_allclose(y, before, 0, 0, false), "forward %d draws anew", i);
        before = y;
    }
    cn_no_grad_end(cn);
    cn_module_free(m);
}

int main(void)
{
    cn = cn_open(&(cn_desc){ .seed = 1 });
    if (!check(cn != NULL, "a context")) return finish();
    test_inputs();
    test_own_weight();
    test_values();
    test_weights();
    test_random();
    check(!cn_failed(cn), "no error is left: %s", cn_error(cn));
    cn_close(cn);
    return finish();
}
