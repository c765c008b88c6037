/* Makes a GPT from a file's tensors, and saves one with the options that its tensors do not show. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpt/gpt.h"
#include "nn/nn.h"

bool cn_gpt_save(cn_module *gpt, cn_dict *d)
{
    CN__CALL call = cn__call_object(gpt, &cn__module_type);
    if (!gpt && d) cn__object_of(cn_dict_context(d), gpt, &cn__module_type, __func__);
    if (!call.ctx || !cn__object_of(call.ctx, d, &cn__dict_type, __func__)) return false;
    const cn_gpt_desc *config = cn_gpt_config(gpt);
    if (!config)
        return cn__fail(call.ctx, CN_BAD_ARGUMENT, "gpt_save: the module must be a GPT, got a %s",
                        cn_module_type_of(gpt)->name);
    return cn_module_save(gpt, d, "") && cn_dict_set_text(d, "model", "gpt") &&
           cn_dict_set_whole(d, "heads", config->heads) && cn_dict_set_number(d, "dropout", config->dropout);
}

static int64_t count_layers(const cn_dict *file, const char *prefix)
{
    char name[64];
    for (int64_t n = 0;; n++) {
        snprintf(name, sizeof name, "%sh.%" PRId64 ".ln_1.weight", prefix, n);
        if (!cn_dict_get(file, name)) return n;
    }
}

/* Reads the model's sizes from the shapes of the file's tensors, and its options from the file's texts. */
static bool read_config(cn_ctx *ctx, const cn_dict *file, const char *prefix, cn_gpt_desc *d)
{
    char name[2][64];
    snprintf(name[0], sizeof name[0], "%swte.weight", prefix);
    snprintf(name[1], sizeof name[1], "%swpe.weight", prefix);
    cn_tensor *wte = cn_dict_get(file, name[0]), *wpe = cn_dict_get(file, name[1]);
    if (!wte || !wpe || cn_ndim(wte) != 2 || cn_ndim(wpe) != 2)
        return cn__fail(ctx, CN_NOT_FOUND,
                        "gpt_from: a GPT-2 file must have \"%s\" and \"%s\", each (rows, width); this one %s", name[0],
                        name[1], !wte || !wpe ? "lacks one of them" : "has them with another number of axes");
    const char *model = cn_dict_text(file, "model");
    *d = (cn_gpt_desc){ .vocab = cn_size(wte, 0), .context = cn_size(wpe, 0), .width = cn_size(wte, 1) };
    d->layers = count_layers(file, prefix);
    d->heads = d->width >= 64 && d->width % 64 == 0 ? d->width / 64 : 1;
    cn_dict_whole(file, "heads", &d->heads);
    cn_dict_number(file, "dropout", &d->dropout);
    d->untied = model && strcmp(model, "gpt") == 0 && cn_dict_get(file, "lm_head.weight");
    return true;
}

cn_module *cn_gpt_from(cn_ctx *ctx, const cn_dict *file, const cn_gpt_desc *desc)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx || !cn__object_of(ctx, file, &cn__dict_type, __func__)) return NULL;
    const char *prefix = cn_dict_get(file, "transformer.wte.weight") ? "transformer." : "";
    cn_gpt_desc d;
    if (!read_config(ctx, file, prefix, &d)) return NULL;
    if (desc && desc->heads) d.heads = desc->heads;
    if (desc && desc->dropout) d.dropout = desc->dropout;
    cn_module *m = cn_nn_gpt(ctx, &d);
    /* the file must have every parameter; its other tensors, masks and a tied output, are ignored */
    if (m && cn_module_load(m, file, &(cn_module_load_desc){ .prefix = prefix, .rename = cn__same_name })) return m;
    cn_module_free(m);
    return NULL;
}
