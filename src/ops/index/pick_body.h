/* One run of picked elements of type T. */
static void NAME(const cn_kernel *k, const cn__pick *p)
{
    T *out = (T *)k->out[0].data + p->at;
    const T *x = (const T *)k->in[0].data + p->x;
    for (int64_t c = 0; c < p->count; c++) {
        int64_t t = cn__index_at(&k->in[1], p->index + c);
        bool fine = t >= 0 && t < p->size;
        if (!fine) cn_kernel_fault(k, t, p->size);
        out[c] = fine ? x[t * p->step + c * p->next] : 0;
    }
}
#undef T
#undef NAME
