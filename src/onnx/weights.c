/* Makes tensors of TensorProtos: from raw bytes where they lie, from typed fields, from files beside the model. */
#include "onnx/weights.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cairn/ops.h"
#include "core/errors.h"

static const struct type_row {
    const char *name;
    cn__element element; /* kind 0: there is no dtype for it */
    cn_dtype dtype;
    uint8_t field; /* the field of TensorProto that holds such elements if they are not raw */
} types[] = {
    [ONNX_UNDEFINED] = { "undefined", { 0, 0, 0 }, CN_F32, 0 },
    [ONNX_FLOAT] = { "float", { 'f', 4, 0 }, CN_F32, 4 },
    [ONNX_UINT8] = { "uint8", { 'u', 1, 0 }, CN_U8, 5 },
    [ONNX_INT8] = { "int8", { 'i', 1, 0 }, CN_I8, 5 },
    [ONNX_UINT16] = { "uint16", { 'u', 2, 0 }, CN_I32, 5 },
    [ONNX_INT16] = { "int16", { 'i', 2, 0 }, CN_I16, 5 },
    [ONNX_INT32] = { "int32", { 'i', 4, 0 }, CN_I32, 5 },
    [ONNX_INT64] = { "int64", { 'i', 8, 0 }, CN_I64, 7 },
    [ONNX_STRING] = { "string", { 0, 0, 0 }, CN_F32, 6 },
    [ONNX_BOOL] = { "bool", { 'b', 1, 0 }, CN_BOOL, 5 },
    [ONNX_FLOAT16] = { "float16", { 'f', 2, 0 }, CN_F16, 5 },
    [ONNX_DOUBLE] = { "double", { 'f', 8, 0 }, CN_F64, 10 },
    [ONNX_UINT32] = { "uint32", { 'u', 4, 0 }, CN_I64, 11 },
    [ONNX_UINT64] = { "uint64", { 'u', 8, 0 }, CN_I64, 11 },
    [14] = { "complex64", { 0, 0, 0 }, CN_F32, 0 },
    [15] = { "complex128", { 0, 0, 0 }, CN_F32, 0 },
    [ONNX_BFLOAT16] = { "bfloat16", { 'B', 2, 0 }, CN_BF16, 5 },
    [17] = { "float8e4m3fn", { 0, 0, 0 }, CN_F32, 0 },
    [18] = { "float8e4m3fnuz", { 0, 0, 0 }, CN_F32, 0 },
    [19] = { "float8e5m2", { 0, 0, 0 }, CN_F32, 0 },
    [20] = { "float8e5m2fnuz", { 0, 0, 0 }, CN_F32, 0 },
    [21] = { "uint4", { 0, 0, 0 }, CN_F32, 0 },
    [22] = { "int4", { 0, 0, 0 }, CN_F32, 0 },
};

static const struct type_row *row_of(int type)
{
    return type >= 0 && (size_t)type < sizeof types / sizeof *types && types[type].name ? &types[type] : NULL;
}

bool cn__onnx_dtype(int type, cn_dtype *out)
{
    const struct type_row *r = row_of(type);
    if (!r || !r->element.kind) return false;
    *out = r->dtype;
    return true;
}

const char *cn__onnx_type_name(int type)
{
    const struct type_row *r = row_of(type);
    return r ? r->name : "of an unknown type";
}

/* ---- files beside the model ---- */

/* A relative path without "..": it stays in the model's folder, unless a link leads out of it. */
static bool stays(const char *location)
{
    if (!*location || *location == '/' || *location == '\\' || strchr(location, ':')) return false;
    for (const char *p = location; *p;) {
        const size_t n = strcspn(p, "/\\");
        if (n == 2 && !strncmp(p, "..", 2)) return false;
        p += n + (p[n] != 0);
    }
    return true;
}

/* Whether a path, with links resolved, is in the folder of another. */
static bool in_folder_of(const char *path, const char *other)
{
    char real[PATH_MAX], folder[PATH_MAX];
    if (!realpath(path, real) || !realpath(other, folder)) return false;
    char *slash = strrchr(folder, '/');
    if (slash) slash[1] = 0;
    return slash && !strncmp(real, folder, strlen(folder));
}

/* The same where the model's own link is not followed: its folder is asked for. */
static bool in_folder(const char *path, const char *model)
{
    char here[PATH_MAX];
    const char *slash = strrchr(model, '/');
    const int n = snprintf(here, sizeof here, "%.*s.", slash ? (int)(slash - model) + 1 : 0, model);
    char real[PATH_MAX], folder[PATH_MAX];
    if (n < 0 || (size_t)n >= sizeof here || !realpath(path, real) || !realpath(here, folder)) return false;
    const size_t length = strlen(folder);
    return !strncmp(real, folder, length) && (real[length] == '/' || (length && folder[length - 1] == '/'));
}

static cn__content *open_beside(onnx_weights *w, const char *location)
{
    char path[2048];
    const char *slash = strrchr(w->path, '/');
    const int folder = slash ? (int)(slash - w->path) + 1 : 0;
    const int n = snprintf(path, sizeof path, "%.*s%s", folder, w->path, location);
    struct stat st;
    if (n < 0 || (size_t)n >= sizeof path || (!stat(path, &st) && !S_ISREG(st.st_mode))) {
        cn__onnx_fail(&w->reader, CN_BAD_FILE, "external data \"%.100s\": the path is too long or no file", location);
        return NULL;
    }
    if (!stat(path, &st) && !in_folder(path, w->path) && !in_folder_of(path, w->path)) {
        cn__onnx_fail(&w->reader, CN_BAD_FILE, "external data \"%.100s\": a link leads out of the model's folder",
                      location);
        return NULL;
    }
    return cn__content_open(w->reader.ctx, path);
}

static cn__content *beside(onnx_weights *w, const onnx_tensor *t)
{
    const char *location = t->location ? t->location : "";
    for (onnx_beside *b = w->beside; b; b = b->next)
        if (!strcmp(b->location, location)) return b->content;
    if (!w->path || !stays(location)) {
        cn__onnx_fail(&w->reader, CN_BAD_FILE,
                      "tensor \"%.100s\" has its data in \"%.100s\", which must be a file in the model's folder",
                      t->name, location);
        return NULL;
    }
    onnx_beside *b = cn__onnx_new(&w->reader, 1, sizeof *b);
    if (!b || !(b->content = open_beside(w, location))) return NULL;
    b->location = location;
    b->next = w->beside;
    w->beside = b;
    return b->content;
}

void cn__onnx_weights_close(onnx_weights *w)
{
    for (onnx_beside *b = w->beside; b; b = b->next) cn__content_release(b->content);
    w->beside = NULL;
    cn__content_release(w->content);
    w->content = NULL;
}

/* ---- elements ---- */

/* Elements of typed fields, as bytes. */
static cn__content *decoded(onnx_weights *w, const onnx_tensor *t, const struct type_row *row, size_t bytes)
{
    const int fixed = row->field == 4 ? 4 : row->field == 10 ? 8 : 0;
    const size_t size = row->element.size;
    cn__content *c = cn__content_new(w->reader.ctx, bytes);
    size_t at = 0;
    cn__wire body = t->body;
    for (cn__field f; c && cn__wire_next(&body, &f);) {
        if (f.number != row->field) continue;
        const int64_t n = cn__field_count(&f, fixed);
        if (n < 0 || (uint64_t)n > (bytes - at) / size) {
            at = bytes + 1;
            break;
        }
        cn__wire in = f.bytes;
        for (int64_t i = 0; i < n; i++, at += size) {
            uint64_t v = f.value;
            if (f.kind == CN__WIRE_BYTES && fixed) v = cn__little(in.at, fixed), in.at += fixed;
            else if (f.kind == CN__WIRE_BYTES) cn__wire_varint(&in, &v);
            for (size_t k = 0; k < size; k++) c->data[at + k] = (unsigned char)(v >> (8 * k));
        }
    }
    if (!c || at == bytes) return c;
    cn__onnx_fail(&w->reader, CN_BAD_FILE, "tensor \"%.100s\" has %zu bytes of elements, its shape needs %zu", t->name,
                  at > bytes ? bytes + size : at, bytes);
    cn__content_release(c);
    return NULL;
}

/* The content in which the tensor's bytes lie, and where. The caller releases it. */
static cn__content *find_bytes(onnx_weights *w, const onnx_tensor *t, const struct type_row *row, size_t bytes,
                               const unsigned char **at)
{
    if (t->external) {
        cn__content *c = beside(w, t);
        if (!c) return NULL;
        const bool fits = t->offset <= c->bytes && bytes <= c->bytes - t->offset;
        if (!fits || (t->has_length && t->length != bytes)) {
            cn__onnx_fail(&w->reader, CN_BAD_FILE,
                          "tensor \"%.100s\" needs %zu bytes, but has %llu from %llu on of a file of %zu", t->name,
                          bytes, (unsigned long long)(t->has_length ? t->length : bytes), (unsigned long long)t->offset,
                          c->bytes);
            return NULL;
        }
        *at = c->data + t->offset;
        c->refs++;
        return c;
    }
    if (!t->has_raw) {
        cn__content *c = decoded(w, t, row, bytes);
        if (c) *at = c->data;
        return c;
    }
    if (cn__wire_left(&t->raw) != bytes) {
        cn__onnx_fail(&w->reader, CN_BAD_FILE, "tensor \"%.100s\" has %zu bytes, its shape needs %zu", t->name,
                      cn__wire_left(&t->raw), bytes);
        return NULL;
    }
    *at = t->raw.at;
    w->content->refs++;
    return w->content;
}

/* An error of the host's context becomes one of the model's. */
static cn_tensor *checked(onnx_weights *w, cn_ctx *ctx, cn_tensor *t)
{
    if (!t && ctx != w->reader.ctx) {
        cn__fail(w->reader.ctx, cn_error_code(ctx), "%s", cn_error(ctx));
        cn_error_clear(ctx);
    }
    return t;
}

static bool shape_of(onnx_weights *w, const char *name, int ndim, const int64_t *dims, cn__element e, cn_dims *shape,
                     size_t *bytes)
{
    if (ndim > CN_MAX_DIMS)
        return cn__onnx_fail(&w->reader, CN_UNSUPPORTED, "tensor \"%.100s\" has %d axes; at most %d are allowed", name,
                             ndim, CN_MAX_DIMS);
    *shape = (cn_dims){ .n = ndim };
    for (int i = 0; i < ndim; i++) shape->v[i] = dims[i];
    return cn__element_bytes(e, *shape, bytes) ||
           cn__onnx_fail(&w->reader, CN_BAD_FILE,
                         "tensor \"%.100s\": the shape is impossible: a size is negative, or it overflows", name);
}

cn_tensor *cn__onnx_tensor(onnx_weights *w, const onnx_tensor *t, cn_ctx *ctx)
{
    const struct type_row *row = row_of(t->type);
    cn_dims shape;
    size_t bytes;
    if (!row || !row->element.kind) {
        cn__onnx_fail(&w->reader, CN_UNSUPPORTED, "tensor \"%.100s\" has elements %s (%d); there is no dtype for them",
                      t->name, cn__onnx_type_name(t->type), t->type);
        return NULL;
    }
    if (!shape_of(w, t->name, t->ndim, t->dims, row->element, &shape, &bytes)) return NULL;
    if (!bytes) return checked(w, ctx, cn_from(ctx, row->dtype, shape, ""));
    const unsigned char *at;
    cn__content *c = find_bytes(w, t, row, bytes, &at);
    if (!c) return NULL;
    const bool same = ctx == w->reader.ctx;
    cn__source s = { ctx, w->reader.name, c->data, c->bytes, same ? c : NULL, false };
    cn_tensor *made = cn__element_tensor(&s, row->element, shape, at, t->name);
    cn__content_release(c);
    return checked(w, ctx, made);
}

/* Flat places of the values: the indices themselves, or (values, axes) coordinates. */
static cn_tensor *places(cn_tensor *indices, const onnx_sparse *t)
{
    if (cn_ndim(indices) != 2) return indices;
    cn_tensor *flat = NULL;
    int64_t stride = 1;
    for (int d = t->ndim; d-- > 0; stride *= t->dims[d]) {
        cn_tensor *part = cn_mul_s(cn_select(indices, 1, d), (double)stride);
        flat = flat ? cn_add(flat, part) : part;
    }
    return flat;
}

cn_tensor *cn__onnx_dense(onnx_weights *w, const onnx_sparse *t, cn_ctx *ctx)
{
    cn_dims shape;
    size_t bytes;
    const struct type_row *row = row_of(t->values.type);
    if (!row || !row->element.kind) return cn__onnx_tensor(w, &t->values, ctx); /* says what is wrong */
    if (!shape_of(w, t->values.name, t->ndim, t->dims, row->element, &shape, &bytes)) return NULL;
    cn_tensor *values = cn__onnx_tensor(w, &t->values, ctx), *indices = cn__onnx_tensor(w, &t->indices, ctx);
    if (!values || !indices) return NULL;
    cn_tensor *zeros = cn_zeros(ctx, cn_type(values), shape);
    return checked(w, ctx, cn_put(zeros, places(indices, t), values, false));
}
