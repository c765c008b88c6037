/* One run of lines of scatter, scatter_add and their kin, for elements of type T; PUT(a, b) is what a becomes. */
static void NAME(const cn_kernel *k, const lines *l)
{
    T *out = (T *)k->out[0].data + l->out;
    const T *from = (const T *)l->source->data + l->from;
    if (l->count == 1) {
        for (int64_t a = 0; a < l->n; a++) {
            int64_t t = cn__index_at(l->index, l->at + a * l->index_step);
            if (in_range(k, l, t)) out[t * l->out_step] = PUT(out[t * l->out_step], from[a * l->from_step]);
        }
        return;
    }
    for (int64_t a = 0; a < l->n; a++, from += l->from_step) {
        int64_t at = l->at + a * l->index_step;
        if (l->shared) {
            int64_t t = cn__index_at(l->index, at);
            if (!in_range(k, l, t)) continue;
            T *to = out + t * l->out_step;
            for (int64_t c = 0; c < l->count; c++) to[c] = PUT(to[c], from[c]);
        } else {
            for (int64_t c = 0; c < l->count; c++) {
                int64_t t = cn__index_at(l->index, at + c);
                if (in_range(k, l, t)) out[t * l->out_step + c] = PUT(out[t * l->out_step + c], from[c]);
            }
        }
    }
}
#undef T
#undef NAME
#undef PUT
