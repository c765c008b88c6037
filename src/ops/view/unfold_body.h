/* unfold_body.h: unfold_backward for elements of type T, included by unfold.c through cpu/each_type.h: each element of
   the result is the sum of g over the windows that contain it. */
static void NAME(gather)(const cn_kernel *k, void *user, int64_t begin, int64_t end, int thread)
{
    (void)k, (void)thread;
    const gather *j = user;
    const T *g = j->g;
    T *out = j->out;
    int64_t i = begin % j->inner, p = begin / j->inner % j->length, o = begin / j->inner / j->length;
    while (begin < end) {
        int64_t first = p < j->size ? 0 : (p - j->size) / j->step + 1, last = p / j->step; /* windows that reach p */
        if (last >= j->windows) last = j->windows - 1;
        for (; i < j->inner && begin < end; i++, begin++) {
            T sum = 0;
            for (int64_t w = first; w <= last; w++)
                sum += g[((o * j->windows + w) * j->inner + i) * j->size + p - w * j->step];
            out[begin] = sum;
        }
        i = 0;
        if (++p == j->length) p = 0, o++;
    }
}
