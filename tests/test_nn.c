/* Modules as such: names, trees, states, summaries, modules of one's own. Layers: test_layers.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/faulty.h"

static cn_module *small_model(cn_ctx *cn)
{
    return cn_nn_sequential(cn, cn_nn_linear(cn, 6, 5, NULL), cn_nn_function(cn, cn_relu),
                            cn_nn_residual(cn, cn_nn_linear(cn, 5, 5, &(cn_linear_desc){ .no_bias = true })),
                            cn_nn_linear(cn, 5, 2, NULL));
}

static void names_and_counts(cn_ctx *cn)
{
    check_group("names");
    cn_module *m = small_model(cn);
    const char *expected[] = { "0.weight", "0.bias", "2.inner.weight", "3.weight", "3.bias" };
    cn_named_list named = cn_module_named(m);
    check(named.n == 5, "%d names", named.n);
    for (int i = 0; i < named.n && i < 5; i++) {
        check(strcmp(named.v[i].name, expected[i]) == 0, "name %d is %s", i, named.v[i].name);
        check(cn_module_get(m, expected[i]) == named.v[i].tensor, "%s found by name", expected[i]);
    }
    check(cn_module_count(m) == 6 * 5 + 5 + 25 + 10 + 2, "%lld numbers", (long long)cn_module_count(m));
    check(cn_module_get(m, "0.nothing") == NULL && cn_module_get(m, "9.weight") == NULL &&
              cn_module_get(m, "0") == NULL && cn_module_get(m, "0.weight.x") == NULL && cn_module_get(m, "") == NULL,
          "what is not there is NULL");
    check(cn_module_find(m, "2.inner") == cn_module_at(cn_module_at(m, 2), 0), "a child by its name");
    check(cn_module_find(m, "2.outer") == NULL, "a child that is not there");
    check(!cn_failed(cn), "looking is no error: %s", cn_error(cn));
    cn_module_free(m);
}

static void tied_weights(cn_ctx *cn)
{
    check_group("tied");
    cn_module *m =
        cn_nn_list(cn, cn_nn_linear(cn, 3, 3, NULL), cn_nn_linear(cn, 3, 3, &(cn_linear_desc){ .no_bias = true }));
    static const cn_module_type tied = { .name = "Tied" };
    cn_module *t = cn_module_new(cn, &tied);
    check(cn_module_share(t, "weight", cn_module_get(m, "0.weight")) != NULL, "sharing");
    check(cn_module_append(m, t), "appended");
    check(cn_parameters(m).n == 3 && cn_module_named(m).n == 4, "once as a parameter, twice as a name");
    check(cn_forward(m, cn_ones(cn, CN_F32, CN_DIMS(1, 3))) == NULL && cn_failed(cn), "a list has no forward");
    cn_error_clear(cn);
    cn_module_free(m);
}

static void modes(cn_ctx *cn)
{
    check_group("modes");
    cn_module *m = small_model(cn);
    cn_module *inner = cn_module_find(m, "2.inner");
    check(cn_module_training(inner), "training at the start");
    cn_module_train(m, false);
    check(!cn_module_training(m) && !cn_module_training(inner), "down to the leaves");
    check(cn_module_freeze(m, true) && !cn_requires_grad(cn_module_get(m, "3.bias")), "frozen");
    check(cn_module_freeze(m, false) && cn_requires_grad(cn_module_get(m, "3.bias")), "and not");
    check(cn_module_to(m, "cpu"), "to where it is");
    check(!cn_module_to(m, "gpu:7") && cn_error_code(cn) == CN_BAD_DEVICE, "to where nothing is");
    cn_error_clear(cn);
    cn_module_free(m);
}

static void states(cn_ctx *cn)
{
    check_group("states");
    cn_module *a = small_model(cn), *b = small_model(cn);
    cn_tensor *x = cn_keep(cn_randn(cn, CN_F32, CN_DIMS(3, 6)));
    float ya[6], yb[6];
    cn_read(cn_forward(a, x), ya, sizeof ya);
    cn_read(cn_forward(b, x), yb, sizeof yb);
    check(memcmp(ya, yb, sizeof ya) != 0, "two models differ");
    cn_dict *d = cn_dict_new(cn);
    check(cn_module_save(a, d, "model.") && cn_dict_count(d) == 5, "saved");
    check(!cn_module_load(b, d, NULL) && cn_error_code(cn) == CN_NOT_FOUND, "other names: %s", cn_error(cn));
    cn_error_clear(cn);
    check(cn_module_load(b, d, &(cn_module_load_desc){ .prefix = "model." }), "loaded: %s", cn_error(cn));
    cn_read(cn_forward(b, x), yb, sizeof yb);
    check(memcmp(ya, yb, sizeof ya) == 0, "and equal");
    cn_module *c = cn_nn_sequential(cn, cn_nn_linear(cn, 6, 4, NULL));
    check(!cn_module_load(c, d, &(cn_module_load_desc){ .prefix = "model." }) && cn_error_code(cn) == CN_BAD_SHAPE,
          "shapes: %s", cn_error(cn));
    cn_error_clear(cn);
    cn_module *e = cn_nn_sequential(cn, cn_nn_linear(cn, 6, 5, NULL));
    check(!cn_module_load(e, d, &(cn_module_load_desc){ .prefix = "model." }) && cn_error_code(cn) == CN_NOT_FOUND,
          "too much: %s", cn_error(cn));
    cn_error_clear(cn);
    check(cn_module_load(e, d, &(cn_module_load_desc){ .prefix = "model.", .lenient = true }), "unless lenient: %s",
          cn_error(cn));
    check(cn_get(cn_module_get(e, "0.bias"), CN_DIMS(2)) == cn_get(cn_module_get(a, "0.bias"), CN_DIMS(2)),
          "and there it is");
    cn_module_free(a), cn_module_free(b), cn_module_free(c), cn_module_free(e), cn_dict_free(d);
    cn_release(x);
}

/* ---- a module of one's own, with two results ---- */

typedef struct split {
    cn_module *a, *b;
    cn_tensor *calls;
} split;

static bool split_forward(cn_module *m, cn_tensor *const *in, int n_in, cn_tensor **out, int n_out)
{
    split *s = cn_module_data(m);
    if (n_in != 2) return false;
    cn_assign(s->calls, cn_add_s(s->calls, 1));
    out[0] = cn_forward(s->a, in[0]);
    if (n_out > 1) out[1] = cn_forward(s->b, in[1]);
    return out[0] != NULL;
}

static const cn_module_type split_type = { .name = "Split", .forward_all = split_forward, .data_bytes = sizeof(split) };

static void own_module(cn_ctx *cn)
{
    check_group("own module");
    cn_module *m = cn_module_new(cn, &split_type);
    split *s = cn_module_data(m);
    s->a = cn_module_child(m, "a", cn_nn_linear(cn, 4, 2, NULL));
    s->b = cn_module_child(m, "b", cn_nn_linear(cn, 4, 3, NULL));
    s->calls = cn_module_buffer(m, "calls", cn_zeros(cn, CN_I64, CN_SCALAR));
    cn_scope scope = cn_scope_begin(cn);
    cn_tensor *x = cn_ones(cn, CN_F32, CN_DIMS(5, 4)), *in[2] = { x, x }, *out[2];
    check(cn_forward_all(m, in, 2, out, 2) && cn_size(out[0], 1) == 2 && cn_size(out[1], 1) == 3, "two results");
    cn_backward(cn_add(cn_sum(out[0], CN_ALL, false), cn_sum(out[1], CN_ALL, false)));
    check(cn_grad_of(cn_module_get(m, "b.bias")) && cn_get(cn_grad_of(cn_module_get(m, "b.bias")), CN_DIMS(0)) == 5,
          "gradients");
    check(cn_item_i64(s->calls) == 1, "its buffer counts");
    cn_scope_end(cn, scope);
    check(strcmp(cn_module_named(m).v[0].name, "calls") == 0 && cn_module_named(m).v[0].buffer,
          "buffers are named, before children");
    check(cn_module_child(m, "a", cn_nn_linear(cn, 1, 1, NULL)) == NULL && cn_failed(cn), "a name twice: %s",
          cn_error(cn));
    cn_error_clear(cn);
    check(cn_module_child(m, "c.d", cn_nn_linear(cn, 1, 1, NULL)) == NULL && cn_failed(cn), "a dot in a name: %s",
          cn_error(cn));
    cn_error_clear(cn);
    cn_module_free(s->a);
    check(cn_failed(cn), "a child is its parent's: %s", cn_error(cn));
    cn_error_clear(cn);
    cn_module_free(m);
}

static void summary(cn_ctx *cn)
{
    check_group("summary");
    cn_module *m = small_model(cn);
    const int64_t evaluations = cn_count(cn).evaluations;
    char text[2048], little[20];
    size_t n = cn_summary(m, cn_ones(cn, CN_F32, CN_DIMS(7, 6)), text, sizeof text);
    check(n == strlen(text) && n > 100, "%zu letters", n);
    check(strstr(text, "Linear(5, 5, no bias)") && strstr(text, "(7,2)") && strstr(text, "parameters 72, trained 72"),
          "\n%s", text);
    check(cn_count(cn).evaluations == evaluations, "nothing was computed");
    check(cn_module_training(m), "still training");
    check(cn_summary(m, NULL, little, sizeof little) > sizeof little && strlen(little) == sizeof little - 1,
          "cut to the room there is");
    check(cn_summary(m, cn_ones(cn, CN_F32, CN_DIMS(7, 9)), text, sizeof text) == 0 && cn_failed(cn),
          "a wrong input: %s", cn_error(cn));
    cn_error_clear(cn);
    cn_module_free(m);
}

static void refusals(cn_ctx *cn)
{
    check_group("refusals");
    check(cn_nn_linear(cn, -1, 4, NULL) == NULL && cn_failed(cn), "negative sizes");
    cn_module *m = cn_nn_sequential(cn, cn_nn_linear(cn, 2, 2, NULL), NULL);
    check(m == NULL, "a part that failed");
    cn_error_clear(cn);
    check(cn_nn_sequential(cn, NULL) == NULL && cn_failed(cn), "a NULL part: %s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_nn_sequential_of(cn, NULL, 2) && !strncmp(cn_error(cn), "nn_sequential: ", 15), "no array: %s",
          cn_error(cn));
    cn_error_clear(cn);
    check(!cn_nn_list_of(cn, NULL, -1) && strstr(cn_error(cn), "got -1"), "a negative number: %s", cn_error(cn));
    cn_error_clear(cn);
    cn_tensor *same = cn_ones(cn, CN_F32, CN_DIMS(2));
    check(cn_forward(cn_nn_sequential_of(cn, NULL, 0), same) == same, "no module at all: %s", cn_error(cn));
    cn_error_clear(cn);
    check(cn_forward(NULL, NULL) == NULL && cn_parameters(NULL).n == 0 && !cn_module_load(NULL, NULL, NULL),
          "NULL in, NULL out");
    check(cn_set_default_dtype(cn, CN_F64), "f64");
    m = cn_nn_linear(cn, 2, 2, NULL);
    check(cn_type(cn_module_get(m, "weight")) == CN_F64, "makes f64 parameters");
    check(!cn_set_default_dtype(cn, CN_I64) && cn_failed(cn), "i64 is no type for parameters");
    cn_error_clear(cn);
    cn_set_default_dtype(cn, CN_F32);
}

/* Memory that runs out while a model is made, saved, loaded and shown. */
static bool whole_life(cn_ctx *cn)
{
    cn_module *m = small_model(cn);
    cn_dict *d = cn_dict_new(cn);
    char text[512];
    bool ok = cn_module_save(m, d, "x.") && cn_module_load(m, d, &(cn_module_load_desc){ .prefix = "x." }) &&
              cn_summary(m, cn_ones(cn, CN_F32, CN_DIMS(2, 6)), text, sizeof text) > 0;
    return ok && cn_eval(cn_forward(m, cn_ones(cn, CN_F32, CN_DIMS(2, 6)))) && !cn_failed(cn);
}

static void out_of_memory(void)
{
    check_group("out of memory");
    int64_t n = 1;
    for (bool done = false; !done && n < 2000; n++) {
        faulty f = { .fail_at = n };
        cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1, .allocator = { faulty_resize, &f } });
        if (cn) {
            bool ok = whole_life(cn);
            check(ok || cn_error_code(cn) == CN_NO_MEMORY, "allocation %lld: %s", (long long)n, cn_error(cn));
            done = ok && f.calls < n;
            cn_close(cn);
        }
        check(f.blocks == 0, "allocation %lld: %lld blocks left", (long long)n, (long long)f.blocks);
    }
    check(n > 20 && n < 2000, "%lld allocations", (long long)n);
}

int main(void)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 3 });
    names_and_counts(cn);
    tied_weights(cn);
    modes(cn);
    states(cn);
    own_module(cn);
    summary(cn);
    refusals(cn);
    check(!cn_failed(cn), "no error left: %s", cn_error(cn));
    cn_close(cn);
    out_of_memory();
    return finish();
}
