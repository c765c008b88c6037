/* Any bytes as a PBM, PGM or PPM image: every pixel of what is accepted is looked at. */
#include <stdlib.h>

#include "data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cn__fetch f = { 0 };
    cn__picture p;
    unsigned sum = 0;
    if (cn__pnm_decode(data, size, &f, &p)) {
        for (int64_t i = 0; i < p.channels * p.height * p.width; i++) sum += p.data[i];
        if (sum > 255 * (uint64_t)(p.channels * p.height * p.width)) abort();
    } else if (!f.code || !f.error[0]) abort(); /* a refusal says why */
    cn__arena_free(&f.arena);
    return 0;
}
