/* Template: how scatter_add, index_add, embedding_backward and scatter_fold combine elements, for one element type T.
   scatter.c includes it through cpu/each_type.h, which defines T and NAME. Whole numbers wrap around. */
#if IS_FLOAT
CN__INLINE T NAME(sum_of)(T a, T b) { return a + b; }
CN__INLINE T NAME(product_of)(T a, T b) { return a * b; }
#else
CN__INLINE T NAME(sum_of)(T a, T b) { return (T)(U)((U)a + (U)b); }
CN__INLINE T NAME(product_of)(T a, T b) { return (T)(U)((uint64_t)a * (uint64_t)b); }
#endif
CN__INLINE T NAME(larger_of)(T a, T b) { return a >= b || IS_NAN(a) ? a : b; }
CN__INLINE T NAME(smaller_of)(T a, T b) { return a <= b || IS_NAN(a) ? a : b; }

/* of: a constant after inlining */
CN__INLINE void NAME(fold)(const cn_kernel *k, const lines *l, T (*of)(T a, T b))
{
    T *out = (T *)k->out[0].data + l->out;
    const T *from = (const T *)l->source->data + l->from;
    if (l->count == 1) {
        for (int64_t a = 0; a < l->n; a++) {
            const int64_t t = cn__index_at(l->index, l->at + a * l->index_step);
            if (in_range(k, l, t)) out[t * l->out_step] = of(out[t * l->out_step], from[a * l->from_step]);
        }
        return;
    }
    for (int64_t a = 0; a < l->n; a++, from += l->from_step) {
        const int64_t at = l->at + a * l->index_step;
        if (l->shared) {
            const int64_t t = cn__index_at(l->index, at);
            if (!in_range(k, l, t)) continue;
            T *to = out + t * l->out_step;
            for (int64_t c = 0; c < l->count; c++) to[c] = of(to[c], from[c]);
        } else {
            for (int64_t c = 0; c < l->count; c++) {
                const int64_t t = cn__index_at(l->index, at + c);
                if (in_range(k, l, t)) out[t * l->out_step + c] = of(out[t * l->out_step + c], from[c]);
            }
        }
    }
}

static void NAME(add)(const cn_kernel *k, const lines *l) { NAME(fold)(k, l, NAME(sum_of)); }
static void NAME(mul)(const cn_kernel *k, const lines *l) { NAME(fold)(k, l, NAME(product_of)); }
static void NAME(max)(const cn_kernel *k, const lines *l) { NAME(fold)(k, l, NAME(larger_of)); }
static void NAME(min)(const cn_kernel *k, const lines *l) { NAME(fold)(k, l, NAME(smaller_of)); }
