/* Template: the additions of scatter_add, index_add and embedding_backward, for one element type T. scatter.c includes
   it through cpu/each_type.h, which defines T and NAME. Whole numbers wrap around. */
CN__INLINE T NAME(sum_of)(T a, T b)
{
#if IS_FLOAT
    return a + b;
#else
    return (T)(U)((U)a + (U)b);
#endif
}

static void NAME(add)(const cn_kernel *k, const lines *l)
{
    T *out = (T *)k->out[0].data + l->out;
    const T *from = (const T *)l->source->data + l->from;
    if (l->count == 1) {
        for (int64_t a = 0; a < l->n; a++) {
            const int64_t t = cn__index_at(l->index, l->at + a * l->index_step);
            if (in_range(k, l, t)) out[t * l->out_step] = NAME(sum_of)(out[t * l->out_step], from[a * l->from_step]);
        }
        return;
    }
    for (int64_t a = 0; a < l->n; a++, from += l->from_step) {
        const int64_t at = l->at + a * l->index_step;
        if (l->shared) {
            const int64_t t = cn__index_at(l->index, at);
            if (!in_range(k, l, t)) continue;
            T *to = out + t * l->out_step;
            for (int64_t c = 0; c < l->count; c++) to[c] = NAME(sum_of)(to[c], from[c]);
        } else {
            for (int64_t c = 0; c < l->count; c++) {
                const int64_t t = cn__index_at(l->index, at + c);
                if (in_range(k, l, t)) out[t * l->out_step + c] = NAME(sum_of)(out[t * l->out_step + c], from[c]);
            }
        }
    }
}
