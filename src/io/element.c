/* Makes tensors of the numbers in a file. Types that Cairn has are borrowed; others are widened to a larger type. */
#include "core/host.h"
#include "core/handle.h"
#include "io/files.h"

/* The dtype that holds such elements. False: none does. */
static bool dtype_of(cn__element e, cn_dtype *out)
{
    static const struct {
        char kind;
        uint8_t size;
        cn_dtype dtype;
    } table[] = {
        { 'b', 1, CN_BOOL }, { 'u', 1, CN_U8 },  { 'i', 1, CN_I8 },   { 'i', 2, CN_I16 }, { 'u', 2, CN_I32 },
        { 'i', 4, CN_I32 },  { 'u', 4, CN_I64 }, { 'i', 8, CN_I64 },  { 'u', 8, CN_I64 }, { 'f', 2, CN_F16 },
        { 'f', 4, CN_F32 },  { 'f', 8, CN_F64 }, { 'B', 2, CN_BF16 },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].kind != e.kind || table[i].size != e.size) continue;
        *out = table[i].dtype;
        return true;
    }
    return false;
}

bool cn__element_bytes(cn__element e, cn_dims shape, size_t *bytes)
{
    int64_t all = 8; /* counts sizes of 0 as 1 and elements as 8 bytes, so that strides cannot overflow either */
    bool empty = false;
    for (int i = 0; i < shape.n; i++) {
        if (shape.v[i] < 0 || __builtin_mul_overflow(all, shape.v[i] ? shape.v[i] : 1, &all) || all > INT64_MAX / 8)
            return false;
        empty |= shape.v[i] == 0;
    }
    if ((uint64_t)all > SIZE_MAX) return false;
    *bytes = empty ? 0 : (size_t)all / 8 * e.size;
    return true;
}

static uint64_t load(cn__element e, const unsigned char *p)
{
    if (!e.big) return cn__little(p, e.size);
    uint64_t v = 0;
    for (int i = 0; i < e.size; i++) v = v << 8 | p[i];
    return v;
}

/* Widens one number. False: it does not fit. */
static bool convert(cn__element e, const unsigned char *from, unsigned char *to, size_t to_size)
{
    uint64_t v = load(e, from);
    int unused = 64 - 8 * e.size;
    if (e.kind == 'i' && unused < 64) v = (uint64_t)((int64_t)(v << unused) >> unused);
    if (e.kind == 'u' && v > INT64_MAX) return false;
    memcpy(to, &v, to_size);
    return true;
}

static cn_tensor *borrow(const cn__source *s, cn__content *c, cn_dtype dtype, cn_dims shape, const unsigned char *data)
{
    if (!cn__host_device(s->ctx)) return cn_from(s->ctx, dtype, shape, data);
    cn_tensor *t = cn_borrow(s->ctx, dtype, shape, (void *)data, cn__content_release, c);
    if (!t) return NULL;
    cn__result_of(t)->storage->inside = true;
    c->refs++;
    return t;
}

static cn_tensor *converted(const cn__source *s, cn__element e, cn_dtype dtype, cn_dims shape,
                            const unsigned char *data, const char *name)
{
    int64_t n = 1;
    for (int i = 0; i < shape.n; i++) n *= shape.v[i];
    size_t size = cn_dtype_size(dtype);
    cn__content *c = cn__content_new(s->ctx, (size_t)n * size);
    if (!c) return NULL;
    bool ok = true;
    for (int64_t i = 0; i < n && ok; i++) ok = convert(e, data + i * e.size, c->data + i * (int64_t)size, size);
    if (!ok) cn__source_fail(s, CN_UNSUPPORTED, "tensor \"%.100s\" has a u64 above the largest i64 (2^63 - 1)", name);
    cn_tensor *t = ok ? borrow(s, c, dtype, shape, c->data) : NULL;
    cn__content_release(c);
    return t;
}

cn_tensor *cn__element_tensor(const cn__source *s, cn__element e, cn_dims shape, const unsigned char *data,
                              const char *name)
{
    cn_dtype dtype;
    size_t bytes;
    if (!dtype_of(e, &dtype) || !cn__element_bytes(e, shape, &bytes)) {
        cn__source_fail(s, CN_UNSUPPORTED,
                        "tensor \"%.100s\" has elements of kind '%c' with %d bytes; there is no dtype for them", name,
                        e.kind, e.size);
        return NULL;
    }
    bool same = e.size == cn_dtype_size(dtype) && !(e.big && e.size > 1) && !(e.kind == 'u' && e.size == 8);
    if (bytes && !same) return converted(s, e, dtype, shape, data, name);
    bool aligned = (uintptr_t)data % cn_dtype_size(dtype) == 0;
    bool borrowable = s->content && bytes && aligned && dtype != CN_BOOL; /* cn_from makes every bool 0 or 1 */
    return borrowable ? borrow(s, s->content, dtype, shape, data) : cn_from(s->ctx, dtype, shape, data);
}
