/* Parts of checkpoints: dicts without a prefix, and the state of the random numbers. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/errors.h"
#include "io/files.h"

cn_dict *cn_dict_prefixed(const cn_dict *d, const char *prefix)
{
    CN__CALL call = cn__call_object(d, &cn__dict_type);
    if (!call.ctx) return NULL;
    if (!prefix) {
        cn__fail(call.ctx, CN_BAD_ARGUMENT, "dict_prefixed: prefix must not be NULL");
        return NULL;
    }
    size_t n = strlen(prefix);
    cn_dict *out = cn_dict_new(cn_dict_context(d));
    bool ok = out != NULL;
    for (int64_t i = 0; i < cn_dict_count(d) && ok; i++) {
        const char *name = cn_dict_name(d, i);
        if (strncmp(name, prefix, n) == 0) ok = cn_dict_set(out, name + n, cn_dict_at(d, i));
    }
    for (int64_t i = 0; i < cn_dict_texts(d) && ok; i++) {
        const char *name = cn_dict_text_name(d, i);
        if (strncmp(name, prefix, n) == 0) ok = cn_dict_set_text(out, name + n, cn_dict_text(d, name));
    }
    if (ok) return out;
    cn_dict_free(out);
    return NULL;
}

static bool join(cn_ctx *ctx, char *out, size_t size, const char *prefix, const char *name)
{
    int n = snprintf(out, size, "%s%s", prefix, name);
    return (size_t)n < size || cn__fail(ctx, CN_BAD_ARGUMENT,
                                        "random state: the name must have at most %zu characters, got %d", size - 1, n);
}

static bool set_u64(cn_ctx *ctx, cn_dict *d, const char *prefix, const char *name, uint64_t value)
{
    char full[256], text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return join(ctx, full, sizeof full, prefix, name) && cn_dict_set_text(d, full, text);
}

static bool get_u64(cn_ctx *ctx, const cn_dict *d, const char *prefix, const char *name, uint64_t *value)
{
    char full[256], *end;
    if (!join(ctx, full, sizeof full, prefix, name)) return false;
    const char *text = cn_dict_text(d, full);
    if (!text) return cn__fail(ctx, CN_NOT_FOUND, "random state: the dict has no text \"%s\"", full);
    errno = 0;
    *value = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && !errno) return true;
    return cn__fail(ctx, CN_BAD_FILE, "random state: \"%s\" must be a whole number ≥ 0, got \"%.40s\"", full, text);
}

static cn__call enter(cn_ctx *ctx, const cn_dict *d, const char *prefix, const char *who)
{
    cn__call call = cn__enter(ctx, who);
    if (!call.ctx) return call;
    if (!prefix) cn__fail(ctx, CN_BAD_ARGUMENT, "%s: prefix must not be NULL", cn__called(ctx, who));
    else if (cn__object_of(ctx, d, &cn__dict_type, who)) return call;
    cn__leave(&call);
    return (cn__call){ NULL, false };
}

bool cn_random_save(cn_ctx *ctx, cn_dict *d, const char *prefix)
{
    CN__CALL call = enter(ctx, d, prefix, __func__);
    return call.ctx && set_u64(ctx, d, prefix, "seed", ctx->seed) &&
           set_u64(ctx, d, prefix, "stream", ctx->next_stream);
}

bool cn_random_load(cn_ctx *ctx, const cn_dict *d, const char *prefix)
{
    uint64_t seed, stream;
    CN__CALL call = enter(ctx, d, prefix, __func__);
    if (!call.ctx) return false;
    if (!get_u64(ctx, d, prefix, "seed", &seed) || !get_u64(ctx, d, prefix, "stream", &stream)) return false;
    ctx->seed = seed;
    ctx->next_stream = stream;
    return true;
}
