/* The CPU kernels of batch_norm and its backward operator. */
#include "ops/block/batch_norm_cpu.h"

#include <math.h>

#include "cpu/isa.h"

enum {
    CHANNELS = CN__NORM_CHANNELS,
    LANES = 16,  /* partial sums */
    BLOCK = 512, /* elements summed in T; the sums of blocks are added in f64 */
};

typedef struct moments {
    double shift, x, xx, g, gx; /* sums of x - shift, (x - shift)², g, g (x - shift) */
} moments;

typedef struct channel {
    double mean, var, r, gh; /* r = 1 / sqrt(var + eps); gh = sum of g (x - mean) r */
} channel;

#if !CN__ONLY_F32
static channel channel_of(const cn__batch_image *im, const moments *m)
{
    const double mean = m->x / im->count, var = m->xx / im->count - mean * mean;
    channel c = { .mean = m->shift + mean, .var = var < 0 ? 0 : var };
    c.r = 1 / sqrt(c.var + im->eps);
    c.gh = im->count > 0 ? (m->gx - mean * m->g) * c.r : 0;
    return c;
}
#endif

#define TEMPLATE "ops/block/batch_norm_body.h"
#define TYPES    CN__UP_TO_AVX2(CN__FLOAT_TYPES) /* bound by memory: AVX-512 would not be faster */
#include "cpu/each_type.h"

const cn__batch_norm_kernels CN__FOR_ISA(cn__batch_norm_kernels) = {
    .forward = CN__F32_F64_UP_TO_AVX2(forward),
    .backward = CN__F32_F64_UP_TO_AVX2(backward),
};
