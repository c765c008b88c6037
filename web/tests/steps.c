/* Trains a small network for many steps, on the device that CAIRN_DEVICE names, and prints

       step N BYTES        after each step, which reads nothing back; BYTES of the heap are in use
       loss N LOSS         after every 100th
       weights HASH        of the bits of all weights at the end
       recoveries N        how often a lost GPU was had again

   for web/tests/run.mjs, which looks at each line what the program has asked of the browser.  steps [n] */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "cairn/cairn.h"

enum { BATCH = 16, IN = 8, HIDDEN = 32, OUT = 4 };

static bool print_weights(cn_module *net)
{
    float v[IN * HIDDEN];
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    const cn_params p = cn_parameters(net);
    for (int i = 0; i < p.n; i++) {
        const size_t bytes = (size_t)cn_numel(p.v[i]) * sizeof *v;
        if (bytes > sizeof v || !cn_read(p.v[i], v, bytes)) return false;
        for (size_t k = 0; k < bytes; k++) h = (h ^ ((const unsigned char *)v)[k]) * UINT64_C(0x100000001b3);
    }
    printf("weights %016" PRIx64 "\n", h);
    return true;
}

static bool train(cn_ctx *cn, cn_module *net, cn_optim *opt, int step)
{
    float x[BATCH * IN];
    int32_t y[BATCH];
    for (int i = 0; i < BATCH * IN; i++) x[i] = (float)((step * 13 + i * 7) % 29) / 29;
    for (int i = 0; i < BATCH; i++) y[i] = (step + i) % OUT;
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *out = cn_forward(net, cn_from(cn, CN_F32, CN_DIMS(BATCH, IN), x));
    cn_tensor *loss = cn_cross_entropy(out, cn_from(cn, CN_I32, CN_DIMS(BATCH), y), NULL);
    bool ok = cn_backward(loss) && cn_step(opt);
    if (ok) printf("step %d %zu\n", step, (size_t)mallinfo().uordblks);
    if (ok && step % 100 == 0) {
        printf("loss %d %.9g\n", step, cn_item(loss));
        ok = !cn_failed(cn);
    }
    cn_scope_end(cn, s);
    return ok;
}

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? atoi(argv[1]) : 1000;
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 42 });
    cn_module *net = cn_nn_sequential(cn, cn_nn_linear(cn, IN, HIDDEN, NULL), cn_nn_function(cn, cn_relu),
                                      cn_nn_dropout(cn, 0.1), cn_nn_linear(cn, HIDDEN, OUT, NULL));
    cn_optim *opt = net ? cn_adamw(cn, cn_parameters(net), &(cn_adamw_desc){ .lr = 1e-2 }) : NULL;
    bool ok = opt != NULL;
    for (int step = 1; ok && step <= steps; step++) ok = train(cn, net, opt, step);
    ok = ok && print_weights(net);
    printf("recoveries %" PRId64 "\n", cn_gpu_counted(cn).recoveries);
    if (cn && cn_failed(cn)) fprintf(stderr, "%s\n", cn_error(cn));
    cn_close(cn);
    return ok ? 0 : 1;
}
