/* Saves a dict. The end of the path decides the format. */
#include "core/errors.h"
#include "io/files.h"
#include "io/npy.h"

typedef bool (*saver)(const cn_dict *d, cn__sink *to);

static bool ends(const char *path, const char *with)
{
    size_t n = strlen(path), w = strlen(with);
    return n > w && strcmp(path + n - w, with) == 0;
}

/* Refuses what NumPy's files cannot hold. single: npy, which holds one tensor. */
static bool fits_numpy(const cn_dict *d, const char *path, bool single)
{
    cn_ctx *ctx = cn_dict_context(d);
    if (single && (cn_dict_count(d) != 1 || cn_dict_texts(d)))
        return cn__fail(ctx, CN_UNSUPPORTED,
                        "save %.200s: an npy file must have 1 tensor and 0 texts, got %lld and %lld", path,
                        (long long)cn_dict_count(d), (long long)cn_dict_texts(d));
    for (int64_t i = 0; i < cn_dict_count(d); i++) {
        cn_dtype t = cn_type(cn_dict_at(d, i));
        if (cn__npy_descr(t)) continue;
        return cn__fail(ctx, CN_UNSUPPORTED,
                        "save %.200s: NumPy has no %s, the dtype of \"%.100s\": cast it, or save as .safetensors", path,
                        cn_dtype_name(t), cn_dict_name(d, i));
    }
    return true;
}

static saver saver_of(const cn_dict *d, const char *path)
{
    if (ends(path, ".safetensors")) return cn__safetensors_save;
    bool npy = ends(path, ".npy"), npz = ends(path, ".npz");
    if (npy || npz) return fits_numpy(d, path, npy) ? (npy ? cn__npy_save : cn__npz_save) : NULL;
    cn__fail(cn_dict_context(d), CN_BAD_ARGUMENT, "save %.300s: the path must end in .safetensors, .npz or .npy", path);
    return NULL;
}

/* Evaluates first, so that an error leaves no file behind. */
static bool evaluate(const cn_dict *d)
{
    for (int64_t i = 0; i < cn_dict_count(d); i++)
        if (!cn_eval(cn_dict_at(d, i))) return false;
    return true;
}

bool cn_save(const cn_dict *d, const char *path)
{
    CN__CALL call = cn__call_quietly(d, &cn__dict_type);
    cn_ctx *ctx = call.ctx;
    if (!ctx || cn_failed(ctx)) return false;
    if (!path) return cn__fail(ctx, CN_BAD_ARGUMENT, "save: path must not be NULL");
    saver how = saver_of(d, path);
    cn__sink to;
    if (!how || !evaluate(d) || !cn__sink_open(&to, ctx, path)) return false;
    return cn__sink_close(&to, how(d, &to));
}
