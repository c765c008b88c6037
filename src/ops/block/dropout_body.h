/* Elements [start, start + n) of a dropout mask, for one T. */
static inline void NAME(dropout_fill)(T *out, uint64_t start, int64_t n, const cn__dropout *d)
{
    const T scale = (T)(d->p < 1 ? 1 / (1 - d->p) : 0);
    for (int64_t i = 0; i < n;) {
        const uint64_t at = start + (uint64_t)i;
        const cn__philox_out r = cn__philox(d->seed, d->stream, at >> 2);
        for (int lane = (int)(at & 3); lane < 4 && i < n; lane++, i++)
            out[i] = cn__unit_f32(r.v[lane]) < (float)d->p ? 0 : scale;
    }
}
