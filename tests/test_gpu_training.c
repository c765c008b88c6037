/* Training on the GPU and on the CPU: from the same seed a GPT and a CNN, both with dropout, have the same losses for
   50 steps. A step is one submission without a readback, uploads only the batch, and needs few dispatches.
   Skipped where there is no GPU, real or software (scripts/gpu.sh). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"

enum { STEPS = 50, BATCH = 8, CONTEXT = 24, VOCAB = 40, SIDE = 12, CLASSES = 5 };

typedef struct net {
    const char *name;
    cn_module *(*make)(cn_ctx *cn);
    cn_tensor *(*loss)(cn_module *m, int step); /* uploads a batch */
    size_t batch_bytes;                         /* on the GPU */
} net;

/* ---- a GPT over letters that follow a rule ---- */

static cn_module *make_gpt(cn_ctx *cn)
{
    return cn_nn_gpt(
        cn, &(cn_gpt_desc){ .vocab = VOCAB, .context = CONTEXT, .layers = 2, .heads = 4, .width = 32, .dropout = 0.1 });
}

static cn_tensor *gpt_loss(cn_module *m, int step)
{
    int64_t tokens[BATCH][CONTEXT], targets[BATCH][CONTEXT];
    for (int b = 0; b < BATCH; b++) {
        for (int t = 0; t < CONTEXT; t++) {
            tokens[b][t] = (step * 7 + b * 3 + t * t) % VOCAB;
            targets[b][t] = (step * 7 + b * 3 + (t + 1) * (t + 1)) % VOCAB;
        }
    }
    cn_ctx *cn = cn_module_context(m);
    cn_tensor *x = cn_from(cn, CN_I64, CN_DIMS(BATCH, CONTEXT), tokens);
    return cn_gpt_loss(m, x, cn_from(cn, CN_I64, CN_DIMS(BATCH, CONTEXT), targets));
}

/* ---- a CNN over waves ---- */

static cn_module *make_cnn(cn_ctx *cn)
{
    return cn_nn_sequential(cn, cn_nn_conv2d(cn, 1, 8, 3, &(cn_nn_conv_desc){ .padding = 1 }),
                            cn_nn_batch_norm2d(cn, 8, NULL), cn_nn_relu(cn), cn_nn_max_pool2d(cn, 2, NULL),
                            cn_nn_conv2d(cn, 8, 12, 3, NULL), cn_nn_relu(cn), cn_nn_flatten(cn, 1, -1),
                            cn_nn_dropout(cn, 0.2), cn_nn_linear(cn, 12 * 4 * 4, CLASSES, NULL));
}

static cn_tensor *cnn_loss(cn_module *m, int step)
{
    float images[BATCH][SIDE * SIDE];
    int64_t classes[BATCH];
    for (int b = 0; b < BATCH; b++) {
        classes[b] = (b + step) % CLASSES;
        for (int i = 0; i < SIDE * SIDE; i++)
            images[b][i] = (float)sin(i * (0.2 + 0.3 * (double)classes[b]) + 0.1 * step + b);
    }
    cn_ctx *cn = cn_module_context(m);
    cn_tensor *x = cn_from(cn, CN_F32, CN_DIMS(BATCH, 1, SIDE, SIDE), images);
    return cn_cross_entropy(cn_forward(m, x), cn_from(cn, CN_I64, CN_DIMS(BATCH), classes), NULL);
}

/* ---- both ---- */

/* Checks every step after the first two, in which plans are made and memory grows. */
static void check_step(const net *n, int step, cn_gpu_counters a, cn_gpu_counters b)
{
    if (step < 2) return;
    check(b.submissions - a.submissions == 1, "%s step %d: %lld submissions", n->name, step,
          (long long)(b.submissions - a.submissions));
    check(b.readbacks == a.readbacks && b.downloaded_bytes == a.downloaded_bytes, "%s step %d: %lld readbacks", n->name,
          step, (long long)(b.readbacks - a.readbacks));
    check(b.uploaded_bytes - a.uploaded_bytes == (int64_t)n->batch_bytes,
          "%s step %d: %lld bytes up, the batch has %zu", n->name, step,
          (long long)(b.uploaded_bytes - a.uploaded_bytes), n->batch_bytes);
    check(b.fallbacks == a.fallbacks, "%s step %d: on the CPU in part", n->name, step);
    check(b.pipelines == a.pipelines && b.bind_groups == a.bind_groups,
          "%s step %d: %lld pipelines, %lld bind groups made", n->name, step, (long long)(b.pipelines - a.pipelines),
          (long long)(b.bind_groups - a.bind_groups));
}

static bool train(const net *n, const char *device, double *losses)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .device = device, .seed = 11 });
    if (!cn || !check(!cn_failed(cn), "%s on %s: %s", n->name, device, cn_error(cn))) return false;
    cn_module *m = n->make(cn);
    cn_optim *opt = cn_adamw(cn, cn_parameters(m), &(cn_adamw_desc){ .lr = 3e-3 });
    cn_tensor *kept[STEPS];
    for (int i = 0; i < STEPS; i++) {
        cn_gpu_counters before = cn_gpu_counted(cn);
        cn_scope s = cn_scope_begin(cn);
        kept[i] = cn_keep(n->loss(m, i));
        cn_backward(kept[i]);
        cn_step(opt);
        cn_eval_all(cn);
        cn_scope_end(cn, s);
        if (!strcmp(device, "gpu")) check_step(n, i, before, cn_gpu_counted(cn));
    }
    for (int i = 0; i < STEPS; i++) losses[i] = cn_item(kept[i]); /* read late */
    cn_gpu_counters c = cn_gpu_counted(cn);
    if (!strcmp(device, "gpu"))
        printf("%s: %lld dispatches a step, %lld pipelines\n", n->name, (long long)(c.dispatches / STEPS),
               (long long)c.pipelines);
    bool ok = check(!cn_failed(cn), "%s on %s: %s", n->name, device, cn_error(cn));
    cn_close(cn);
    return ok;
}

static void compare(const net *n)
{
    check_group(n->name);
    double cpu[STEPS], gpu[STEPS], most = 0;
    if (!train(n, "cpu", cpu) || !train(n, "gpu", gpu)) return;
    for (int i = 0; i < STEPS; i++) {
        most = fmax(most, fabs(cpu[i] - gpu[i]));
        check(fabs(cpu[i] - gpu[i]) < 1e-3, "%s step %d: %.6f on the CPU, %.6f on the GPU", n->name, i, cpu[i], gpu[i]);
    }
    check(cpu[STEPS - 1] < 0.9 * cpu[0], "%s learns: %.3f, then %.3f", n->name, cpu[0], cpu[STEPS - 1]);
    printf("%s: loss %.4f to %.4f, at most %.1e apart\n", n->name, cpu[0], cpu[STEPS - 1], most);
}

static int64_t forward_dispatches(int layers)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .device = "gpu", .seed = 11 });
    cn_module *m =
        cn_nn_gpt(cn, &(cn_gpt_desc){ .vocab = VOCAB, .context = CONTEXT, .layers = layers, .heads = 4, .width = 32 });
    cn_eval_all(cn);
    int64_t n = 0;
    for (int i = 0; i < 2; i++) {
        cn_scope s = cn_scope_begin(cn);
        cn_gpu_counters before = cn_gpu_counted(cn);
        cn_tensor *loss = gpt_loss(m, i);
        if (i == 0) {
            char plan[16384];
            cn_plan_print(loss, plan, sizeof plan);
            check(strstr(plan, "matmul+add+gelu") != NULL, "fused names in the plan: %s", plan);
        }
        cn_eval(loss);
        n = cn_gpu_counted(cn).dispatches - before.dispatches;
        cn_scope_end(cn, s);
    }
    check(!cn_failed(cn), "forward: %s", cn_error(cn));
    cn_close(cn);
    return n;
}

static void count_dispatches(void)
{
    check_group("dispatches");
    int64_t one = forward_dispatches(1), two = forward_dispatches(2);
    check(two > one && two - one <= 14, "a block's forward: %lld dispatches", (long long)(two - one));
    printf("a transformer block's forward: %lld dispatches\n", (long long)(two - one));
}

int main(void)
{
    static const net nets[] = {
        { "gpt", make_gpt, gpt_loss, 2 * BATCH * CONTEXT * 4 },
        { "cnn", make_cnn, cnn_loss, BATCH * (SIDE * SIDE + 1) * 4 },
    };
    cn_ctx *probe = cn_open(NULL);
    if (!cn_gpu_available(probe)) {
        printf("no GPU: %s\n", cn_gpu_why_not(probe));
        skip();
    } else {
        for (int i = 0; i < 2; i++) compare(&nets[i]);
        count_dispatches();
    }
    cn_close(probe);
    return finish();
}
