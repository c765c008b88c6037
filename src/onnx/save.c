/* cn_onnx_save: runs a module once or twice, and writes what its forward calls. */
#include "nn/module.h"
#include "onnx/put.h"
#include "onnx/rewrite.h"
#include "onnx/run.h"

/* ---- modules ---- */

enum { MOST = 16 }; /* inputs, and results */

static void remember_mode(void *user, cn_module *m)
{
    (void)user;
    m->was_training = m->training;
}
static void restore_mode(void *user, cn_module *m)
{
    (void)user;
    m->training = m->was_training;
}

/* x with its samples repeated, so that axis `axis` has the size n. */
static cn_tensor *resized(cn_tensor *x, int axis, int64_t n)
{
    const int64_t had = cn_size(x, axis);
    cn_tensor *at = cn_arange(x->ctx, CN_I64, 0, (double)n, 1);
    return cn_index_select(x, axis, cn_remainder_s(at, (double)had));
}

typedef struct saving {
    cn_module *m;
    cn_tensor *const *in;
    int n_in, n_out;
    const char *path;
    const cn_onnx_options *options;
    cn_named_list named;
} saving;

static int batch_axis(const saving *s, int i)
{
    const int axis = s->options->batch_axes ? s->options->batch_axes[i] : 0;
    return axis >= 0 && axis < cn_ndim(s->in[i]) ? axis : -1;
}

/* The batch of the example: 0 if inputs have none, or have batches of different sizes. */
static int64_t batch_of(const saving *s)
{
    int64_t batch = 0;
    for (int i = 0; i < s->n_in; i++) {
        const int axis = batch_axis(s, i);
        const int64_t n = axis < 0 ? batch : cn_size(s->in[i], axis);
        if (n == 0 || (batch && n != batch)) return 0;
        batch = n;
    }
    return batch;
}

/* The forward with a batch of n samples. False: it fails. */
static bool forward(const saving *s, int64_t n, cn_tensor **in, cn_tensor **out)
{
    for (int i = 0; i < s->n_in; i++) {
        const int axis = batch_axis(s, i);
        in[i] = s->in[i];
        if (n && axis >= 0 && cn_size(in[i], axis) != n) in[i] = resized(in[i], axis, n);
    }
    if (!cn_forward_all(s->m, in, s->n_in, out, s->n_out)) return false;
    for (int i = 0; i < s->n_out; i++)
        if (!out[i])
            return cn__fail(cn_module_context(s->m), CN_BAD_ARGUMENT,
                            "onnx_save: the module does not return a result %d of %d", i, s->n_out);
    return true;
}

/* Two traces. *fixed: the batch cannot be symbolic. A forward that another batch makes fail is no error. */
static bool save_dynamic(const saving *s, int64_t batch, bool *fixed)
{
    cn_ctx *ctx = cn_module_context(s->m);
    cn_tensor *in[2][MOST], *out[2][MOST];
    const int64_t first = batch == 1 ? 2 : batch; /* sizes of 1 broadcast: they say too little */
    *fixed = !forward(s, first, in[0], out[0]) || !forward(s, 2 * first + 1, in[1], out[1]);
    if (*fixed) {
        const bool memory = cn_error_code(ctx) == CN_NO_MEMORY;
        if (!memory) cn_error_clear(ctx);
        return !memory;
    }
    const cn_onnx_graph g = { in[0], s->n_in, out[0], s->n_out, in[1], out[1], s->named.v, s->named.n, NULL };
    return cn__onnx_write_graph(ctx, &g, s->path, s->options, fixed);
}

static bool save_fixed(const saving *s)
{
    cn_tensor *in[MOST], *out[MOST];
    bool fixed;
    if (!forward(s, 0, in, out)) return false;
    const cn_onnx_graph g = { in, s->n_in, out, s->n_out, NULL, NULL, s->named.v, s->named.n, NULL };
    return cn__onnx_write_graph(cn_module_context(s->m), &g, s->path, s->options, &fixed);
}

static bool save_module(const saving *s)
{
    cn_ctx *ctx = cn_module_context(s->m);
    const int64_t batch = s->options->fixed_batch ? 0 : batch_of(s);
    bool fixed = true, ok = true;
    for (int i = 0; i < s->named.n && ok; i++) ok = cn_eval(s->named.v[i].tensor);
    if (!ok || !cn_onnx_trace_begin(ctx)) return false;
    cn_scope scope = cn_scope_begin(ctx);
    if (batch) ok = save_dynamic(s, batch, &fixed);
    if (ok && fixed && batch)
        cn__log(ctx,
                "onnx_save: %.200s serves %lld samples only: its forward with another number calls other operators",
                s->path, (long long)batch);
    if (ok && fixed) ok = save_fixed(s);
    cn_scope_end(ctx, scope);
    cn_onnx_trace_end(ctx);
    return ok;
}

bool cn_onnx_save(cn_module *m, cn_tensor *const *in, int n_in, const char *path, const cn_onnx_options *options)
{
    CN__CALL call = cn__call_object(m, &cn__module_type);
    if (!call.ctx || cn_failed(call.ctx)) return false;
    const cn_onnx_options *o = options ? options : &cn__onnx_usual_options;
    if (!cn__onnx_check_options(call.ctx, path, o)) return false;
    CN__USE used = cn__object_use(m);
    if (cn__onnx_imported(m)) return cn__onnx_rewrite(cn__onnx_imported(m), path, o);
    if (!cn__onnx_check_list(call.ctx, in, n_in, 1, "inputs")) return false;
    if (n_in > MOST || o->n_outputs < 0 || o->n_outputs > MOST)
        return cn__fail(call.ctx, CN_BAD_ARGUMENT,
                        "onnx_save: at most %d inputs and results are allowed, got %d and %d", MOST, n_in,
                        o->n_outputs);
    const saving s = { m, in, n_in, o->n_outputs ? o->n_outputs : 1, path, o, cn_module_named(m) };
    const uint64_t stream = call.ctx->next_stream; /* writing uses up no random numbers */
    cn_module_apply(m, remember_mode, NULL);
    cn_module_train(m, false);
    const bool ok = !cn_failed(call.ctx) && save_module(&s);
    cn_module_apply(m, restore_mode, NULL);
    call.ctx->next_stream = stream;
    return ok;
}
