/* The idx files of MNIST as datasets. A file has the bytes 0 0 type ndim, then the sizes, then the numbers; all are
   big-endian. */
#include <stdio.h>

#include "data/data.h"

static uint32_t big_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static size_t element_bytes(uint8_t type)
{
    static const uint8_t bytes[] = { [8] = 1, [9] = 1, [11] = 2, [12] = 4, [13] = 4, [14] = 8 };
    return type < sizeof bytes ? bytes[type] : 0;
}

bool cn__idx_parse(const uint8_t *data, size_t bytes, cn__idx *out, char *error, size_t error_size)
{
    *out = (cn__idx){ 0 };
    if (bytes < 4 || data[0] || data[1] || !element_bytes(data[2])) {
        snprintf(error, error_size, "not an idx file: it must begin with the bytes 0 0 and a known type");
        return false;
    }
    out->type = data[2];
    out->ndim = data[3];
    out->element = element_bytes(out->type);
    size_t header = 4 + 4 * (size_t)out->ndim;
    if (out->ndim < 1 || out->ndim >= CN_MAX_DIMS || bytes < header) {
        snprintf(error, error_size, "the header has %d axes in a file of %zu bytes; 1 to %d axes are allowed",
                 out->ndim, bytes, CN_MAX_DIMS - 1);
        return false;
    }
    size_t body = bytes - header, wanted = out->element;
    out->item_numel = 1;
    for (int i = 0; i < out->ndim; i++) {
        uint32_t size = big_u32(data + 4 + 4 * i);
        out->shape[i] = size;
        if (size == 0 || wanted > body / size) { /* compared by division: the product may overflow */
            snprintf(error, error_size,
                     size ? "the sizes in the header need more than the %zu bytes that follow it"
                          : "a size in the header is 0; %zu bytes follow it",
                     body);
            return false;
        }
        wanted *= size;
        if (i > 0) out->item_numel *= size;
    }
    if (wanted != body) {
        snprintf(error, error_size, "the header needs %zu bytes, but %zu follow it", wanted, body);
        return false;
    }
    out->items = out->shape[0];
    out->data = data + header;
    return true;
}

static double big_float(const uint8_t *p, size_t bytes)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < bytes; i++) bits = bits << 8 | p[i];
    float f;
    double d;
    uint32_t low = (uint32_t)bits;
    memcpy(&f, &low, sizeof f);
    memcpy(&d, &bits, sizeof d);
    return bytes == 4 ? f : d;
}

static float number_at(const cn__idx *x, const uint8_t *p)
{
    switch (x->type) {
    case 9: return (int8_t)*p;
    case 11: return (int16_t)(p[0] << 8 | p[1]);
    case 12: return (float)(int32_t)big_u32(p);
    default: return (float)big_float(p, x->element);
    }
}

void cn__idx_item(const cn__idx *x, int64_t index, float *out)
{
    const uint8_t *p = x->data + (size_t)(index * x->item_numel) * x->element;
    if (x->type == 8)
        for (int64_t i = 0; i < x->item_numel; i++) out[i] = (float)p[i] / 255;
    else
        for (int64_t i = 0; i < x->item_numel; i++) out[i] = number_at(x, p + (size_t)i * x->element);
}

/* ---- as a dataset */

typedef struct idx_set {
    cn_dataset base;
    cn__file file[2];
    cn__idx idx[2];
} idx_set;

static bool idx_get(const cn_dataset *d, int64_t index, cn__fetch *f, void *const *fields)
{
    const idx_set *s = (const idx_set *)d;
    (void)f;
    cn__idx_item(&s->idx[0], index, fields[0]);
    if (d->fields > 1) *(int64_t *)fields[1] = s->idx[1].data[index];
    return true;
}

static void idx_close(cn_dataset *d)
{
    idx_set *s = (idx_set *)d;
    for (int i = 0; i < 2; i++) cn__file_close(d->object.ctx, &s->file[i]);
}

static bool open_idx(cn_ctx *ctx, const char *path, cn__file *file, cn__idx *idx)
{
    size_t length = strlen(path);
    bool zipped = length > 3 && !strcmp(path + length - 3, ".gz");
    if (!(zipped ? cn__file_unzip : cn__file_map)(ctx, "dataset_idx", path, file)) return false;
    char message[160];
    if (cn__idx_parse(file->data, file->bytes, idx, message, sizeof message)) return true;
    cn__file_close(ctx, file);
    return cn__fail(ctx, CN_BAD_FILE, "dataset_idx: %s: %s", path, message);
}

/* The shape of an image is (1, h, w), as in the rest of the library. */
static cn_field field_of(const cn__idx *x)
{
    cn_field f = { .dtype = CN_F32 };
    if (x->ndim == 3) f.shape.v[f.shape.n++] = 1;
    for (int i = 1; i < x->ndim; i++) f.shape.v[f.shape.n++] = x->shape[i];
    return f;
}

static bool labels_fit(cn_ctx *ctx, const cn__idx *x, const cn__idx *y)
{
    if (y->type != 8 || y->ndim != 1)
        return cn__fail(ctx, CN_BAD_FILE, "dataset_idx: labels must be u8 (type 8) with 1 axis, got type %d with %d",
                        y->type, y->ndim);
    if (y->items != x->items)
        return cn__fail(ctx, CN_BAD_FILE, "dataset_idx: there are %lld labels for %lld images", (long long)y->items,
                        (long long)x->items);
    return true;
}

cn_dataset *cn_dataset_idx(cn_ctx *ctx, const char *images, const char *labels)
{
    cn__file file[2] = { 0 };
    cn__idx idx[2] = { 0 };
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (!images) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "dataset_idx: path is NULL");
        return NULL;
    }
    bool ok = open_idx(ctx, images, &file[0], &idx[0]) &&
              (!labels || (open_idx(ctx, labels, &file[1], &idx[1]) && labels_fit(ctx, &idx[0], &idx[1])));
    cn_field field[2] = { ok ? field_of(&idx[0]) : (cn_field){ 0 }, { .dtype = CN_I64 } };
    idx_set *s = ok ? (idx_set *)cn__dataset_new(ctx, sizeof *s, idx[0].items, field, labels ? 2 : 1) : NULL;
    if (!s) {
        for (int i = 0; i < 2; i++) cn__file_close(ctx, &file[i]);
        return NULL;
    }
    s->base.get = idx_get;
    s->base.close = idx_close;
    memcpy(s->file, file, sizeof file);
    memcpy(s->idx, idx, sizeof idx);
    return &s->base;
}
