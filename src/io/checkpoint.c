/* Checkpoints: the model is saved under its own names; optimizer, schedule, loader and random state under prefixes. */
#include <stdio.h>

#include "cairn/checkpoint.h"
#include "cairn/io.h"
#include "core/errors.h"
#include "core/object.h"
#include "nn/nn.h"

static bool fail_name(cn_ctx *ctx, const char *name)
{
    return cn__fail(ctx, CN_BAD_ARGUMENT, "checkpoint: extra has the name \"%s\", which the checkpoint uses itself",
                    name);
}

static bool add_extra(cn_dict *file, const cn_dict *extra)
{
    cn_ctx *ctx = cn_dict_context(file);
    for (int64_t i = 0; i < cn_dict_count(extra); i++) {
        const char *name = cn_dict_name(extra, i);
        if (cn_dict_get(file, name)) return fail_name(ctx, name);
        if (!cn_dict_set(file, name, cn_dict_at(extra, i))) return false;
    }
    for (int64_t i = 0; i < cn_dict_texts(extra); i++) {
        const char *name = cn_dict_text_name(extra, i);
        if (cn_dict_text(file, name)) return fail_name(ctx, name);
        if (!cn_dict_set_text(file, name, cn_dict_text(extra, name))) return false;
    }
    return true;
}

static bool collect(const cn_training *run, const cn_dict *extra, cn_dict *file)
{
    cn_ctx *ctx = cn_dict_context(file);
    bool ok = cn_module_save(run->model, file, "") && cn_random_save(ctx, file, "random/") &&
              cn_dict_set_whole(file, "step", run->step);
    if (ok && run->optim) ok = cn_optim_save(run->optim, file, "optim/");
    if (ok && run->schedule) ok = cn_schedule_save(run->schedule, file, "schedule/");
    if (ok && run->loader) ok = cn_loader_save(run->loader, file, "loader/");
    return ok && add_extra(file, extra);
}

/* Begins a call with a training. The context is NULL, with an error, unless its model is alive and there is no
   error. */
static cn__call enter(const cn_training *run, const char *who)
{
    const cn_module *m = run ? run->model : NULL;
    cn_ctx *ctx = cn_module_context(m);
    if (run && !m) ctx = run->optim ? cn_optim_context(run->optim) : NULL;
    cn__call call = cn__enter(ctx, NULL);
    if (!call.ctx || (cn__object_of(ctx, m, &cn__module_type, who) && !cn_failed(ctx))) return call;
    cn__leave(&call);
    return (cn__call){ NULL, false };
}

static bool has_path(cn_ctx *ctx, const char *path)
{
    return path || cn__fail(ctx, CN_BAD_ARGUMENT, "checkpoint: path must not be NULL");
}

bool cn_checkpoint_save(const cn_training *run, const cn_dict *extra, const char *path)
{
    CN__CALL call = enter(run, __func__);
    cn_ctx *ctx = call.ctx;
    if (!ctx || !has_path(ctx, path) || (extra && !cn__object_of(ctx, extra, &cn__dict_type, __func__))) return false;
    cn_dict *file = cn_dict_new(ctx);
    bool ok = file && collect(run, extra, file) && cn_save(file, path);
    cn_dict_free(file);
    return ok;
}

/* Loads the model last, so that it is unchanged if anything before it fails. */
bool cn_checkpoint_from(cn_training *run, const cn_dict *file)
{
    CN__CALL call = enter(run, __func__);
    cn_ctx *ctx = call.ctx;
    if (!ctx || !run || !cn__object_of(ctx, file, &cn__dict_type, __func__)) return false;
    int64_t step;
    if (!cn_dict_whole(file, "step", &step))
        return cn__fail(ctx, CN_BAD_FILE, "checkpoint: the file has no \"step\": it is a model, not a checkpoint");
    bool ok = true;
    if (run->optim) ok = cn_optim_load(run->optim, file, "optim/");
    if (ok && run->schedule) ok = cn_schedule_load(run->schedule, file, "schedule/");
    if (ok && run->loader) ok = cn_loader_load(run->loader, file, "loader/");
    ok = ok && cn_module_load(run->model, file, &(cn_module_load_desc){ .rename = cn__same_name });
    ok = ok && cn_random_load(ctx, file, "random/");
    if (ok) run->step = step;
    return ok;
}

bool cn_checkpoint_load(cn_training *run, const char *path)
{
    CN__CALL call = enter(run, __func__);
    if (!call.ctx || !has_path(call.ctx, path)) return false;
    cn_dict *file = cn_load(call.ctx, path);
    bool ok = file && cn_checkpoint_from(run, file);
    cn_dict_free(file);
    return ok;
}
