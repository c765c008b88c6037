/* unfold_backward for one element type: T NAME(...) adds up, for each element of the result, the windows it lay in. */
static void NAME(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k, (void)thread;
    const gather *j = user;
    const T *g = j->g;
    T *out = j->out;
    for (int64_t e = begin; e < end; e++) {
        int64_t i = e % j->inner, p = e / j->inner % j->length, o = e / j->inner / j->length;
        int64_t first = p < j->size ? 0 : (p - j->size) / j->step + 1, last = p / j->step; /* windows that reach p */
        if (last >= j->windows) last = j->windows - 1;
        T sum = 0;
        for (int64_t w = first; w <= last; w++) sum += g[((o * j->windows + w) * j->inner + i) * j->size + p - w * j->step];
        out[e] = sum;
    }
}
#undef T
#undef NAME
