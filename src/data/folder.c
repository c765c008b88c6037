/* A dataset of image files in folders. The folder just below the given one is the class: folder/class/.../file. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>

#include "data/data.h"

enum { MAX_DEPTH = 16 };

typedef struct folder {
    cn_dataset base;
    cn__vec paths; /* of char *, sorted, class by class */
    cn__vec first; /* of size_t: the first path of each class */
    int channels;
} folder;

static bool is_image(const char *name)
{
    static const char *const kinds[] = { ".png", ".jpg", ".jpeg", ".pgm", ".ppm", ".pnm", ".pbm" };
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcasecmp(dot, kinds[i])) return true;
    return false;
}

static void free_texts(cn_ctx *ctx, cn__vec *texts)
{
    for (size_t i = 0; i < texts->n; i++) cn__free_text(ctx, ((char **)texts->v)[i]);
    cn__vec_free(&ctx->memory, texts, sizeof(char *));
}

static char *join(cn_ctx *ctx, const char *a, const char *b)
{
    size_t bytes = strlen(a) + strlen(b) + 2;
    char *path = cn__alloc(ctx, bytes);
    if (path) snprintf(path, bytes, "%s/%s", a, b);
    return path;
}

/* Lists the names in a folder, sorted, without the hidden ones. */
static bool list(cn_ctx *ctx, const char *path, cn__vec *names)
{
    DIR *dir = opendir(path);
    if (!dir) return cn__fail(ctx, CN_BAD_FILE, "dataset_folder: %s: %s", path, strerror(errno));
    bool ok = true;
    for (struct dirent *e; ok && (e = readdir(dir));) {
        if (e->d_name[0] == '.') continue;
        ok = cn__vec_reserve(&ctx->memory, names, names->n + 1, sizeof(char *)) || cn__no_memory(ctx, "dataset_folder");
        char *copy = ok ? cn__copy_text(ctx, e->d_name) : NULL;
        if (copy) ((char **)names->v)[names->n++] = copy;
        ok = copy;
    }
    closedir(dir);
    cn__sort_texts(names);
    return ok;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static bool collect(folder *d, const char *path, int depth);

static bool collect_one(folder *d, const char *path, const char *name, int depth)
{
    cn_ctx *ctx = d->base.object.ctx;
    char *full = join(ctx, path, name);
    if (!full) return false;
    if (is_folder(full) || !is_image(name)) {
        bool ok = !is_folder(full) || depth == MAX_DEPTH || collect(d, full, depth + 1);
        cn__free_text(ctx, full);
        return ok;
    }
    if (cn__push(&ctx->memory, &d->paths, &full, sizeof full)) return true;
    cn__free_text(ctx, full);
    return cn__no_memory(ctx, "dataset_folder");
}

static bool collect(folder *d, const char *path, int depth)
{
    cn_ctx *ctx = d->base.object.ctx;
    cn__vec names = { 0 };
    bool ok = list(ctx, path, &names);
    for (size_t i = 0; i < names.n && ok; i++) ok = collect_one(d, path, ((char **)names.v)[i], depth);
    free_texts(ctx, &names);
    return ok;
}

static bool collect_class(folder *d, const char *path, const char *name)
{
    cn_ctx *ctx = d->base.object.ctx;
    char *full = join(ctx, path, name);
    if (!full) return false;
    bool ok = true;
    if (is_folder(full)) {
        ok = cn__vec_reserve(&ctx->memory, &d->first, d->first.n + 1, sizeof(size_t)) ||
             cn__no_memory(ctx, "dataset_folder");
        ok = ok && cn__add_class(&d->base, name, strlen(name));
        if (ok) ((size_t *)d->first.v)[d->first.n++] = d->paths.n;
        ok = ok && collect(d, full, 1);
    }
    cn__free_text(ctx, full);
    return ok;
}

static bool collect_classes(folder *d, const char *path)
{
    cn_ctx *ctx = d->base.object.ctx;
    cn__vec names = { 0 };
    bool ok = list(ctx, path, &names);
    for (size_t i = 0; i < names.n && ok; i++) ok = collect_class(d, path, ((char **)names.v)[i]);
    free_texts(ctx, &names);
    d->base.count = (int64_t)d->paths.n;
    if (ok && !d->paths.n)
        ok = cn__fail(ctx, CN_BAD_FILE,
                      "dataset_folder: %s: no images found; images must lie in a folder for each class", path);
    return ok;
}

/* ---- items */

static bool resize_into(cn__fetch *f, const cn__picture *p, const cn_dims *shape, uint8_t *out)
{
    cn__picture to = { p->channels, shape->v[1], shape->v[2], out };
    return cn__picture_resize(&f->arena, p, CN_FILTER_BILINEAR, &to) || cn__fetch_no_memory(f);
}

static int64_t class_of(const folder *d, size_t index)
{
    const size_t *first = d->first.v;
    size_t low = 0, high = d->first.n; /* search the last class that begins at or before index */
    while (high - low > 1) {
        size_t mid = (low + high) / 2;
        if (first[mid] <= index) low = mid;
        else high = mid;
    }
    return (int64_t)low;
}

static bool folder_get(const cn_dataset *base, int64_t index, cn__fetch *f, void *const *fields)
{
    const folder *d = (const folder *)base;
    const char *path = ((char **)d->paths.v)[index];
    const uint8_t *data;
    size_t bytes;
    cn__picture p;
    if (!cn__file_read(f, path, &data, &bytes)) return false;
    if (!cn__picture_decode(data, bytes, d->channels, f, &p)) {
        char message[sizeof f->error];
        memcpy(message, f->error, sizeof message);
        return cn__fetch_fail(f, f->code, "%.120s: %.120s", path, message);
    }
    *(int64_t *)fields[1] = class_of(d, (size_t)index);
    if (!cn__field_varies(&base->field[0])) return resize_into(f, &p, &base->field[0].shape, fields[0]);
    uint8_t *x = cn_room_take(fields[0], CN_DIMS(p.channels, p.height, p.width));
    if (!x) return cn__fetch_no_memory(f);
    memcpy(x, p.data, (size_t)(p.channels * p.height * p.width));
    return true;
}

static void folder_close(cn_dataset *base)
{
    folder *d = (folder *)base;
    cn_ctx *ctx = base->object.ctx;
    free_texts(ctx, &d->paths);
    cn__vec_free(&ctx->memory, &d->first, sizeof(size_t));
}

cn_dataset *cn_dataset_folder(cn_ctx *ctx, const char *path, const cn_folder_desc *desc)
{
    static const cn_folder_desc defaults = { 0 };
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (!path) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "dataset_folder: path is NULL");
        return NULL;
    }
    if (!desc) desc = &defaults;
    int channels = desc->channels ? desc->channels : 3;
    if ((channels != 1 && channels != 3) || desc->height < 0 || desc->width < 0 || desc->height > 1 << 15 ||
        desc->width > 1 << 15 || !desc->height != !desc->width) {
        cn__fail(
            ctx, CN_BAD_ARGUMENT,
            "dataset_folder: channels must be 1 or 3, height and width 1 to 32768 or both 0; got %d, %lld and %lld",
            channels, (long long)desc->height, (long long)desc->width);
        return NULL;
    }
    int64_t height = desc->height ? desc->height : -1, width = desc->width ? desc->width : -1;
    cn_field field[2] = { { CN_U8, CN_DIMS(channels, height, width), 0 }, { .dtype = CN_I64 } };
    folder *d = (folder *)cn__dataset_new(ctx, sizeof *d, 0, field, 2);
    if (!d) return NULL;
    d->base.get = folder_get;
    d->base.close = folder_close;
    d->channels = channels;
    if (collect_classes(d, path)) return &d->base;
    cn__object_free(&d->base);
    return NULL;
}
