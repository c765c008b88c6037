/* Metas that results share. A meta takes 152 bytes, and neighbouring results mostly have the same: the context
   remembers the latest metas, one for each value of a hash, and a result that is alike takes a reference. */
#include "core/meta.h"

typedef struct cn__meta {
    cn_meta meta;
    int64_t refs; /* of results, and of the context's table */
} cn__meta;

static bool alike(const cn_meta *a, const cn_meta *b)
{
    const cn_layout *x = &a->layout, *y = &b->layout;
    bool same = a->dtype == b->dtype && x->ndim == y->ndim && x->offset == y->offset;
    for (int d = 0; same && d < y->ndim; d++) same = x->shape[d] == y->shape[d] && x->stride[d] == y->stride[d];
    return same;
}

static size_t slot_of(const cn_meta *m)
{
    uint64_t h = (uint64_t)m->dtype | (uint64_t)m->layout.ndim << 8;
    h = (h ^ (uint64_t)m->layout.offset) * 0x9e3779b97f4a7c15u;
    for (int d = 0; d < m->layout.ndim; d++)
        h = (h ^ (uint64_t)m->layout.shape[d] ^ (uint64_t)m->layout.stride[d] << 32) * 0x9e3779b97f4a7c15u;
    return (size_t)(h >> 58);
}
_Static_assert(CN__METAS == 64, "slot_of gives 6 bits");

void cn__meta_release(cn_ctx *ctx, const cn_meta *meta)
{
    cn__meta *m = (cn__meta *)meta; /* meta is its first member */
    if (m && --m->refs == 0) cn__block_free(&ctx->memory, m, sizeof *m);
}

const cn_meta *cn__meta_share(cn_ctx *ctx, const cn_meta *meta)
{
    cn__meta **slot = &ctx->metas[slot_of(meta)];
    if (!*slot || !alike(&(*slot)->meta, meta)) {
        cn__meta *m = cn__block_new(&ctx->memory, sizeof *m);
        if (!m) return NULL;
        m->meta = *meta;
        m->refs = 1;
        if (*slot) cn__meta_release(ctx, &(*slot)->meta);
        *slot = m;
    }
    (*slot)->refs++;
    return &(*slot)->meta;
}
