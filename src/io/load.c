/* Loads a dict from a file or from memory. The first bytes decide the format. */
#include "core/errors.h"
#include "io/files.h"

typedef bool (*loader)(const cn__source *s, cn_dict *d);

static bool load_npy(const cn__source *s, cn_dict *d) { return cn__npy_load(s, d, "arr_0"); }

static bool load_zip(const cn__source *s, cn_dict *d)
{
    bool is_pt;
    return cn__pt_is(s, &is_pt) && (is_pt ? cn__pt_load : cn__npz_load)(s, d);
}

/* torch.save before PyTorch 1.6: pickles one after the other, the first of a magic number. */
static bool load_old_pt(const cn__source *s, cn_dict *d)
{
    (void)d;
    return cn__source_fail(s, CN_UNSUPPORTED,
                           "this is a file of torch.save before PyTorch 1.6: load it with PyTorch and save it again");
}

static bool begins(const cn__source *s, size_t at, const char *with, size_t n)
{
    return s->bytes >= at + n && !memcmp(s->data + at, with, n);
}

static loader loader_of(const cn__source *s)
{
    if (begins(s, 0, "\x93NUMPY", 6)) return load_npy;
    if (begins(s, 0, "PK\3\4", 4) || begins(s, 0, "PK\5\6", 4) || begins(s, 0, "PK\6\6", 4)) return load_zip;
    if (begins(s, 0,
               "\x80\2\x8a\nl\xfc\x9c"
               "F\xf9 j\xa8P\x19.",
               15))
        return load_old_pt;
    if (begins(s, 8, "{", 1)) return cn__safetensors_load;
    cn__source_fail(s, CN_BAD_FILE, s->bytes ? "not a safetensors, npz, npy or PyTorch file" : "the file is empty");
    return NULL;
}

static cn_dict *load(const cn__source *s)
{
    loader how = loader_of(s);
    cn_dict *d = how ? cn_dict_new(s->ctx) : NULL;
    if (d && how(s, d)) return d;
    cn_dict_free(d);
    return NULL;
}

cn_dict *cn_load_with(cn_ctx *ctx, const char *path, const cn_load_desc *desc)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    const cn_load_desc o = desc ? *desc : (cn_load_desc){ 0 };
    if (o.data) return load(&(cn__source){ ctx, path ? path : "from memory", o.data, o.bytes, NULL, o.structure });
    if (!path) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "load: path must not be NULL");
        return NULL;
    }
    cn__content *c = cn__content_open(ctx, path);
    if (!c) return NULL;
    const size_t after = c->bytes - (o.offset < c->bytes ? o.offset : c->bytes), bytes = o.bytes ? o.bytes : after;
    cn_dict *d = NULL;
    if (o.offset > c->bytes || bytes > after)
        cn__fail(ctx, CN_BAD_FILE, "load %.300s: it has %zu bytes, but %zu from %zu on are asked for", path, c->bytes,
                 bytes, o.offset);
    else d = load(&(cn__source){ ctx, path, c->data + o.offset, bytes, c, o.structure });
    cn__content_release(c);
    return d;
}

cn_dict *cn_load(cn_ctx *ctx, const char *path) { return cn_load_with(ctx, path, NULL); }

cn_dict *cn_load_memory(cn_ctx *ctx, const void *data, size_t bytes)
{
    CN__CALL call = cn__enter(ctx, NULL);
    if (!call.ctx) return NULL;
    if (!data && bytes) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "load_memory: data must not be NULL for %zu bytes", bytes);
        return NULL;
    }
    return load(&(cn__source){ ctx, "from memory", data, bytes, NULL, false });
}
