/* Template: dropout masks for one element type T. Other templates and dropout_cpu.c include it; T and NAME must be
   defined. */
#include "cpu/random_words.h"

/* Elements [start, start + n) of a dropout mask. */
static inline void NAME(dropout_fill)(void *mask, uint64_t start, int64_t n, const cn__dropout *d)
{
    enum { AT_ONCE = 256 };
    uint32_t words[AT_ONCE];
    T *out = mask;
    const T scale = (T)(d->p < 1 ? 1 / (1 - d->p) : 0);
    const float p = (float)d->p;
    for (int64_t i = 0, some; i < n; i += some) {
        some = n - i < AT_ONCE ? n - i : AT_ONCE;
        cn__draw_words(d->seed, d->stream, start + (uint64_t)i, some, words);
        for (int64_t k = 0; k < some; k++) out[i + k] = cn__unit_f32(words[k]) < p ? 0 : scale;
    }
}
