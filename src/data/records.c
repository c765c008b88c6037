/* Datasets that map a file into memory: records of one size, and tokens. */
#include <stdio.h>

#include "data/data.h"

/* ---- records */

typedef struct records {
    cn_dataset base;
    cn__file file;
    size_t header, record;
} records;

static bool records_get(const cn_dataset *d, int64_t index, cn__fetch *f, void *const *fields)
{
    const records *r = (const records *)d;
    const uint8_t *p = r->file.data + r->header + (size_t)index * r->record;
    (void)f;
    for (int i = 0; i < d->fields; i++) {
        size_t bytes = cn__field_bytes(&d->field[i]);
        if (bytes) memcpy(fields[i], p, bytes);
        p += bytes;
    }
    return true;
}

static void records_close(cn_dataset *d) { cn__file_close(d->object.ctx, &((records *)d)->file); }

cn_dataset *cn_dataset_records(cn_ctx *ctx, const char *path, const cn_records_desc *desc)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx) return NULL;
    if (!desc || desc->header < 0) {
        if (!desc) cn__fail(ctx, CN_BAD_ARGUMENT, "dataset_records: desc is NULL; it must have the fields");
        else cn__fail(ctx, CN_BAD_ARGUMENT, "dataset_records: header must be ≥ 0, got %lld", (long long)desc->header);
        return NULL;
    }
    if (!cn__check_fields(ctx, "dataset_records", desc->field, desc->fields, false)) return NULL;
    size_t record = 0;
    for (int i = 0; i < desc->fields; i++) record += cn__field_bytes(&desc->field[i]); /* each below 2^61 */
    cn__file file;
    if (!cn__file_map(ctx, "dataset_records", path, &file)) return NULL;
    size_t body = file.bytes - (size_t)desc->header;
    if (file.bytes < (size_t)desc->header || record == 0 || body % record) {
        cn__fail(ctx, CN_BAD_FILE,
                 "dataset_records: %s: %zu bytes are not a whole number of records of %zu bytes after a header of %lld",
                 path, file.bytes, record, (long long)desc->header);
        cn__file_close(ctx, &file);
        return NULL;
    }
    records *r = (records *)cn__dataset_new(ctx, sizeof *r, (int64_t)(body / record), desc->field, desc->fields);
    if (!r) {
        cn__file_close(ctx, &file);
        return NULL;
    }
    r->base.get = records_get;
    r->base.close = records_close;
    r->file = file;
    r->header = (size_t)desc->header;
    r->record = record;
    return &r->base;
}

/* ---- tokens */

static const size_t token_bytes[] = {
    [CN_TOKEN_U16] = 2, [CN_TOKEN_U8] = 1, [CN_TOKEN_U32] = 4, [CN_TOKEN_I32] = 4, [CN_TOKEN_I64] = 8
};

typedef struct tokens {
    cn_dataset base;
    cn__file file; /* unused for an array */
    const uint8_t *data;
    cn_tokens_desc desc;
} tokens;

static int64_t token_at(const tokens *t, int64_t i)
{
    size_t size = token_bytes[t->desc.type];
    const uint8_t *p = t->data + (size_t)i * size;
    uint64_t v = 0; /* in the byte order of this machine, as numpy writes it */
    uint16_t u16;
    uint32_t u32;
    switch (t->desc.type) {
    case CN_TOKEN_U8: return *p;
    case CN_TOKEN_U16: memcpy(&u16, p, size); return u16;
    case CN_TOKEN_U32: memcpy(&u32, p, size); return u32;
    case CN_TOKEN_I32: memcpy(&u32, p, size); return (int32_t)u32;
    case CN_TOKEN_I64: memcpy(&v, p, size); return (int64_t)v;
    }
    return 0;
}

static bool tokens_get(const cn_dataset *d, int64_t index, cn__fetch *f, void *const *fields)
{
    const tokens *t = (const tokens *)d;
    int64_t *x = fields[0], *y = fields[1], first = index * t->desc.stride;
    for (int64_t i = 0; i <= t->desc.context; i++) {
        int64_t v = token_at(t, first + i);
        if (v < 0 || (t->desc.vocab && v >= t->desc.vocab))
            return cn__fetch_fail(f, CN_BAD_INDEX,
                                  "token %lld is %lld; tokens must be ≥ 0 and below vocab (%lld, 0: any)",
                                  (long long)(first + i), (long long)v, (long long)t->desc.vocab);
        if (i < t->desc.context) x[i] = v;
        if (i > 0) y[i - 1] = v;
    }
    return true;
}

static void tokens_close(cn_dataset *d) { cn__file_close(d->object.ctx, &((tokens *)d)->file); }

static bool check_tokens(cn_ctx *ctx, const cn_tokens_desc *desc)
{
    if (!desc) return cn__fail(ctx, CN_BAD_ARGUMENT, "dataset_tokens: desc is NULL; it must have the context");
    if (desc->context < 1 || desc->context > INT32_MAX || desc->stride < 0 || desc->header < 0 || desc->vocab < 0 ||
        (unsigned)desc->type > CN_TOKEN_I64)
        return cn__fail(ctx, CN_BAD_ARGUMENT,
                        "dataset_tokens: context must be 1 to 2^31 - 1, stride, header and vocab ≥ 0, type 0 to %d; "
                        "got %lld, %lld, %lld, %lld and %d",
                        CN_TOKEN_I64, (long long)desc->context, (long long)desc->stride, (long long)desc->header,
                        (long long)desc->vocab, (int)desc->type);
    return true;
}

static cn_dataset *tokens_new(cn_ctx *ctx, const uint8_t *data, int64_t count, const cn_tokens_desc *desc)
{
    int64_t stride = desc->stride ? desc->stride : desc->context;
    int64_t windows = count > desc->context ? (count - desc->context - 1) / stride + 1 : 0;
    cn_field field[2] = { { CN_I64, CN_DIMS(desc->context), 0 }, { CN_I64, CN_DIMS(desc->context), 0 } };
    tokens *t = (tokens *)cn__dataset_new(ctx, sizeof *t, windows, field, 2);
    if (!t) return NULL;
    t->base.get = tokens_get;
    t->base.close = tokens_close;
    t->data = data;
    t->desc = *desc;
    t->desc.stride = stride;
    return &t->base;
}

cn_dataset *cn_dataset_token_array(cn_ctx *ctx, const void *array, int64_t count, const cn_tokens_desc *desc)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx || !check_tokens(ctx, desc)) return NULL;
    if (count < 0 || (!array && count)) {
        cn__fail(ctx, CN_BAD_ARGUMENT, "dataset_token_array: tokens must not be NULL and count ≥ 0, got %s and %lld",
                 array ? "an array" : "NULL", (long long)count);
        return NULL;
    }
    return tokens_new(ctx, array, count, desc);
}

cn_dataset *cn_dataset_tokens(cn_ctx *ctx, const char *path, const cn_tokens_desc *desc)
{
    cn__file file;
    CN__CALL call = cn__enter(ctx, __func__);
    if (!call.ctx || !check_tokens(ctx, desc) || !cn__file_map(ctx, "dataset_tokens", path, &file)) return NULL;
    size_t header = (size_t)desc->header, size = token_bytes[desc->type];
    if (file.bytes < header || (file.bytes - header) % size) {
        cn__fail(ctx, CN_BAD_FILE,
                 "dataset_tokens: %s: %zu bytes are not a whole number of tokens of %zu bytes after a header of %zu",
                 path, file.bytes, size, header);
        cn__file_close(ctx, &file);
        return NULL;
    }
    const uint8_t *data = file.data ? file.data + header : NULL;
    tokens *t = (tokens *)tokens_new(ctx, data, (int64_t)((file.bytes - header) / size), desc);
    if (t) t->file = file;
    else cn__file_close(ctx, &file);
    return t ? &t->base : NULL;
}

void cn_text_lower(char *text)
{
    for (; text && *text; text++)
        if (*text >= 'A' && *text <= 'Z') *text = (char)(*text - 'A' + 'a');
}
