/* State dicts between PyTorch and Cairn. What PyTorch wrote for a layer loads by its names, strictly, and gives
   PyTorch's output; what Cairn writes after its parameters have changed has the same names, types and shapes, and loads
   again. That PyTorch loads it too: reference/check_transfer.py, with the file this leaves where it runs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"
#include "support/scratch.h"

enum { MOST = 8 }; /* inputs or outputs of a layer */

#define CONV(...)     (&(cn_nn_conv_desc){ __VA_ARGS__ })
#define INSTANCE(...) (&(cn_nn_instance_norm_desc){ __VA_ARGS__ })
#define RNN(...)      (&(cn_rnn_desc){ __VA_ARGS__ })
#define BLOCK(...)    (&(cn_transformer_desc){ __VA_ARGS__ })

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
#include "reference/transfer.def"
#undef LAYER
    return NULL;
}

static const char *const layers[] = {
#define LAYER(case_, maker) case_,
#include "reference/transfer.def"
#undef LAYER
};
enum { LAYERS = sizeof layers / sizeof *layers };

/* linear, "in" and 0: linear/in/0 */
static const char *entry(char room[128], const char *layer, const char *part, int i)
{
    snprintf(room, 128, "%s/%s/%d", layer, part, i);
    return room;
}

static cn_module *loaded(cn_ctx *cn, const char *layer, const cn_dict *file)
{
    char prefix[128];
    snprintf(prefix, sizeof prefix, "%s/state/", layer);
    cn_error_clear(cn); /* of the layer before */
    cn_module *m = make(cn, layer);
    cn_module_train(m, false);
    bool ok = cn_module_load(m, file, &(cn_module_load_desc){ .prefix = prefix });
    return check(ok, "%s does not load: %s", layer, cn_error(cn)) ? m : NULL;
}

/* Runs the layer on its stored inputs. How many outputs, as many as are stored; 0: it failed. */
static int run(cn_ctx *cn, const char *layer, cn_module *m, const cn_dict *file, cn_tensor **out)
{
    char room[128];
    cn_tensor *in[MOST];
    int n_in = 0, n_out = 0;
    while (n_in < MOST && (in[n_in] = cn_dict_get(file, entry(room, layer, "in", n_in)))) n_in++;
    while (n_out < MOST && cn_dict_get(file, entry(room, layer, "out", n_out))) n_out++;
    bool ok = n_in > 0 && n_out > 0 && cn_forward_all(m, in, n_in, out, n_out);
    return check(ok, "%s: %d in, %d out: %s", layer, n_in, n_out, cn_error(cn)) ? n_out : 0;
}

static bool same_shape(cn_tensor *a, cn_tensor *b)
{
    cn_dims x = cn_shape(a), y = cn_shape(b);
    return x.n == y.n && memcmp(x.v, y.v, (size_t)x.n * sizeof *x.v) == 0;
}

/* The largest difference, of tensors of one shape. */
static double distance(cn_tensor *a, cn_tensor *b)
{
    return cn_item(cn_max(cn_abs(cn_sub(cn_cast(a, CN_F64), cn_cast(b, CN_F64))), CN_ALL, false));
}

static void compare(const char *layer, cn_tensor *const *got, int n, const cn_dict *file, double tolerance)
{
    char room[128];
    for (int i = 0; i < n; i++) {
        cn_tensor *want = cn_dict_get(file, entry(room, layer, "out", i));
        if (!check(same_shape(want, got[i]) && cn_type(want) == cn_type(got[i]), "%s: another shape or type", room))
            continue;
        double d = distance(want, got[i]);
        check(d <= tolerance, "%s differs by %g: %s", room, d, cn_error(cn_context(want)));
    }
}

/* Changed parameters, inputs and what comes out now, under the names they had. */
static void save(cn_ctx *cn, const char *layer, cn_module *m, const cn_dict *file, cn_dict *back)
{
    char room[128], prefix[128];
    cn_tensor *t, *out[MOST];
    snprintf(prefix, sizeof prefix, "%s/state/", layer);
    cn_no_grad_begin(cn);
    cn_params p = cn_parameters(m);
    for (int i = 0; i < p.n; i++) cn_assign(p.v[i], cn_add_s(cn_mul_s(p.v[i], 0.75), 0.125));
    cn_no_grad_end(cn);
    check(cn_module_save(m, back, prefix), "%s does not save: %s", layer, cn_error(cn));
    for (int i = 0; i < MOST && (t = cn_dict_get(file, entry(room, layer, "in", i))); i++) cn_dict_set(back, room, t);
    int n = run(cn, layer, m, file, out);
    for (int i = 0; i < n; i++) cn_dict_set(back, entry(room, layer, "out", i), out[i]);
    double d = n ? distance(out[0], cn_dict_get(file, entry(room, layer, "out", 0))) : NAN;
    check(d > 1e-3, "%s: its output has changed by %g only", layer, d);
}

static void there_and_back(cn_ctx *cn, const cn_dict *file, const char *path)
{
    cn_dict *back = cn_dict_new(cn);
    for (int i = 0; i < LAYERS; i++) {
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *out[MOST];
        cn_module *m = loaded(cn, layers[i], file);
        if (m) {
            compare(layers[i], out, run(cn, layers[i], m, file, out), file, 1e-5);
            save(cn, layers[i], m, file, back);
        }
        cn_module_free(m);
        cn_scope_end(cn, s);
    }
    check(cn_save(back, path), "%s: %s", path, cn_error(cn));
    cn_dict_free(back);
}

/* The same state dicts by torch.save: each layer loads its own, strictly, and has the same values then. */
static void from_torch_save(cn_ctx *cn, const cn_dict *file)
{
    cn_dict *pt = cn_load(cn, CAIRN_SOURCE_DIR "/tests/reference/transfer.pt");
    int64_t seen = 0;
    for (int i = 0; i < LAYERS && check(pt != NULL, "%s", cn_error(cn)); i++) {
        char prefix[128], name[256];
        snprintf(prefix, sizeof prefix, "%s.", layers[i]);
        cn_module *m = make(cn, layers[i]);
        check(cn_module_load(m, pt, &(cn_module_load_desc){ .prefix = prefix }), "%s of transfer.pt: %s", layers[i],
              cn_error(cn));
        cn_named_list named = cn_module_named(m);
        for (int k = 0; k < named.n; k++, seen++) {
            snprintf(name, sizeof name, "%s/state/%s", layers[i], named.v[k].name);
            cn_tensor *want = cn_dict_get(file, name), *got = cn_module_get(m, named.v[k].name);
            check(want && same_shape(want, got) && distance(want, got) == 0, "%s differs in transfer.pt", name);
        }
        cn_module_free(m);
    }
    check(seen == cn_dict_count(pt), "%d tensors of transfer.pt, which has %d", (int)seen, (int)cn_dict_count(pt));
    cn_dict_free(pt);
}

/* Every name PyTorch wrote is in Cairn's file, of the same type and shape, and no other. No layer was left out. */
static void names_stay(const cn_dict *file, const cn_dict *back)
{
    for (int64_t i = 0; i < cn_dict_count(file); i++) {
        const char *name = cn_dict_name(file, i);
        cn_tensor *was = cn_dict_at(file, i), *is = cn_dict_get(back, name);
        if (check(is != NULL, "%s is missing in what Cairn wrote", name))
            check(cn_type(was) == cn_type(is) && same_shape(was, is), "%s has another type or shape", name);
    }
    check(cn_dict_count(file) == cn_dict_count(back), "%d names, of PyTorch's %d", (int)cn_dict_count(back),
          (int)cn_dict_count(file));
}

/* Strict means strict: a name too many, one too few, another shape. Nothing has changed then. */
static void refusals(cn_ctx *cn, const cn_dict *file)
{
    static const char *const wrong[][2] = { { "linear_no_bias", "linear" },
                                            { "linear", "linear_no_bias" },
                                            { "batch_norm1d", "batch_norm2d" },
                                            { "linear", "rms_norm" } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char prefix[128];
        snprintf(prefix, sizeof prefix, "%s/state/", wrong[i][1]);
        cn_module *m = make(cn, wrong[i][0]);
        cn_tensor *weight = cn_module_get(m, "weight"), *before = cn_clone(cn_detach(weight));
        cn_eval(before);
        bool ok = cn_module_load(m, file, &(cn_module_load_desc){ .prefix = prefix });
        check(!ok && cn_failed(cn), "%s took the state of %s", wrong[i][0], wrong[i][1]);
        cn_error_clear(cn);
        check(distance(before, weight) == 0, "%s was changed by what it refused", wrong[i][0]);
        cn_module_free(m);
    }
}

int main(void)
{
    if (!enter_scratch()) return finish();
    const char *path = "transfer_back.safetensors";
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1 });
    cn_dict *file = cn_load(cn, CAIRN_SOURCE_DIR "/tests/reference/transfer.safetensors");
    if (check(file != NULL, "%s", cn_error(cn))) {
        there_and_back(cn, file, path);
        from_torch_save(cn, file);
        refusals(cn, file);
        cn_dict *back = cn_load(cn, path);
        if (check(back != NULL, "%s", cn_error(cn))) {
            names_stay(file, back);
            for (int i = 0; i < LAYERS; i++) {
                cn_tensor *out[MOST];
                cn_module *m = loaded(cn, layers[i], back);
                if (m) compare(layers[i], out, run(cn, layers[i], m, back, out), back, 0);
                cn_module_free(m);
            }
        }
    }
    check(!cn_failed(cn), "%s", cn_error(cn));
    cn_close(cn);
    return finish();
}
