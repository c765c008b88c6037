/* Random words in bulk, on any machine. cpu/random_words.h computes the same words faster, for kernels. */
#include "core/philox.h"

#include <string.h>

void cn__random_words(uint64_t seed, uint64_t stream, uint64_t first, int64_t n, uint32_t *words)
{
    for (int64_t taken; n > 0; first += (uint64_t)taken, words += taken, n -= taken) {
        const cn__philox_out block = cn__philox(seed, stream, first / 4);
        const int64_t skip = (int64_t)(first % 4);
        taken = 4 - skip < n ? 4 - skip : n;
        if (taken == 4) memcpy(words, block.v, sizeof block.v);
        else memcpy(words, block.v + skip, (size_t)taken * sizeof *words);
    }
}
