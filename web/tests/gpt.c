/* Trains a small GPT with dropout for some steps from one seed, on the device that CAIRN_DEVICE names, and prints

       weights HASH        of the bits of all initial weights
       dropout HASH        of the bits of one dropout mask
       STEP LOSS           for each step

   for web/tests/run.mjs, which compares the lines of a native run with those of a page.  gpt [steps] [small]
   small: a GPT of a twentieth of the work, for software GPUs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"

enum { VOCAB = 64, CONTEXT = 32, BATCH = 8 };

static uint64_t hash(uint64_t h, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) h = (h ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return h;
}

static bool hash_tensor(uint64_t *h, cn_tensor *t)
{
    const size_t bytes = (size_t)cn_numel(t) * sizeof(float);
    float *v = malloc(bytes + 1);
    bool ok = v && cn_read(t, v, bytes);
    if (ok) *h = hash(*h, v, bytes);
    free(v);
    return ok;
}

static bool print_weights(cn_module *gpt)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    const cn_params p = cn_parameters(gpt);
    for (int i = 0; i < p.n; i++)
        if (!hash_tensor(&h, p.v[i])) return false;
    printf("weights %016" PRIx64 "\n", h);
    return true;
}

static bool print_mask(cn_ctx *cn)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    cn_scope s = cn_scope_begin(cn);
    bool ok = hash_tensor(&h, cn_dropout(cn_ones(cn, CN_F32, CN_DIMS(1000)), 0.3, true));
    cn_scope_end(cn, s);
    if (ok) printf("dropout %016" PRIx64 "\n", h);
    return ok;
}

/* A text that can be learned: a walk through the vocabulary with a step that depends on the row. */
static void fill(int32_t *tokens, int32_t *targets, const cn_gpt_desc *d, int batch, int step)
{
    const int length = (int)d->context, vocab = (int)d->vocab;
    for (int b = 0; b < batch; b++) {
        for (int t = 0; t < length; t++) {
            const int at = step * 7 + b * 3 + t * (1 + b % 3);
            tokens[b * length + t] = at % vocab;
            targets[b * length + t] = (at + 1 + b % 3) % vocab;
        }
    }
}

int main(int argc, char **argv)
{
    static int32_t tokens[BATCH * CONTEXT], targets[BATCH * CONTEXT];
    const int steps = argc > 1 ? atoi(argv[1]) : 200;
    const bool small = argc > 2 && strcmp(argv[2], "small") == 0;
    const int batch = small ? 4 : BATCH;
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 42 });
    const cn_gpt_desc desc = { .vocab = small ? 32 : VOCAB,
                               .context = small ? 16 : CONTEXT,
                               .layers = small ? 1 : 2,
                               .heads = small ? 2 : 4,
                               .width = small ? 32 : 64,
                               .dropout = 0.1 };
    cn_module *gpt = cn_nn_gpt(cn, &desc);
    cn_optim *opt = gpt ? cn_adamw(cn, cn_parameters(gpt), &(cn_adamw_desc){ .lr = 1e-3 }) : NULL;
    bool ok = opt && print_weights(gpt) && print_mask(cn);
    for (int step = 1; ok && step <= steps; step++) {
        cn_scope s = cn_scope_begin(cn);
        fill(tokens, targets, &desc, batch, step);
        cn_tensor *loss = cn_gpt_loss(gpt, cn_from(cn, CN_I32, CN_DIMS(batch, desc.context), tokens),
                                      cn_from(cn, CN_I32, CN_DIMS(batch, desc.context), targets));
        ok = cn_backward(loss) && cn_step(opt);
        if (ok) printf("%d %.9g\n", step, cn_item(loss));
        cn_scope_end(cn, s);
    }
    if (cn && cn_failed(cn)) fprintf(stderr, "%s\n", cn_error(cn));
    cn_close(cn);
    return ok ? 0 : 1;
}
