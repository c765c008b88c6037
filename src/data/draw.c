/* Random numbers by position (Philox). The key is the seed; the counter is the stream, the epoch and the number of the
   draw. A stream below 2^63 is the index of an item; the others belong to the library. */
#include <math.h>

#include "core/philox.h"
#include "data/data.h"

#define OWN_STREAMS ((uint64_t)1 << 63)

static cn_draw at(uint64_t seed, uint64_t stream, int64_t epoch)
{
    return (cn_draw){ .seed = seed, .stream = stream, .next = (uint64_t)epoch << 34 };
}

cn_draw cn__item_draw(uint64_t seed, int64_t epoch, int64_t index) { return at(seed, (uint64_t)index, epoch); }
cn_draw cn__order_draw(uint64_t seed, int64_t epoch, int64_t use)
{
    return at(seed, OWN_STREAMS | (uint64_t)use, epoch);
}

uint32_t cn_draw_u32(cn_draw *d)
{
    if (!d) return 0;
    uint64_t block = d->next >> 2;
    if (d->held != block + 1) {
        cn__philox_out four = cn__philox(d->seed, d->stream, block);
        memcpy(d->word, four.v, sizeof d->word);
        d->held = block + 1;
    }
    return d->word[d->next++ & 3];
}

double cn_draw_unit(cn_draw *d)
{
    uint32_t high = cn_draw_u32(d);
    return cn__unit_f64(high, cn_draw_u32(d));
}

double cn_draw_uniform(cn_draw *d, double low, double high) { return low + (high - low) * cn_draw_unit(d); }
bool cn_draw_chance(cn_draw *d, double p) { return cn_draw_unit(d) < p; }

/* Multiplies a random word by n and returns the upper half. Lower halves that would favour some results are rejected
   (Lemire, 2019). */
static int64_t below_u32(cn_draw *d, uint32_t n)
{
    uint64_t product = (uint64_t)cn_draw_u32(d) * n;
    if ((uint32_t)product < n) {
        uint32_t odd = (0u - n) % n;
        while ((uint32_t)product < odd) product = (uint64_t)cn_draw_u32(d) * n;
    }
    return (int64_t)(product >> 32);
}

int64_t cn_draw_below(cn_draw *d, int64_t n)
{
    if (!d || n <= 1) return 0;
    if (n <= UINT32_MAX) return below_u32(d, (uint32_t)n);
    uint64_t m = (uint64_t)n, limit = UINT64_MAX - (UINT64_MAX - m + 1) % m,
             r; /* larger numbers would favour small remainders */
    do {
        r = (uint64_t)cn_draw_u32(d) << 32;
        r |= cn_draw_u32(d);
    } while (r > limit);
    return (int64_t)(r % m);
}

/* Box-Muller transform. */
double cn_draw_normal(cn_draw *d)
{
    double radius = sqrt(-2 * log(1 - cn_draw_unit(d)));
    return radius * cos(2 * 3.14159265358979323846 * cn_draw_unit(d));
}

void cn__shuffle(cn_draw *d, int64_t *v, int64_t n)
{
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = cn_draw_below(d, i + 1), t = v[i];
        v[i] = v[j];
        v[j] = t;
    }
}
