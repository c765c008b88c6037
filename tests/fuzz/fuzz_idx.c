/* Any bytes as an idx file: every item of what is accepted is read. */
#include <stdlib.h>

#include "data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cn__idx x;
    char words[160] = "";
    if (!cn__idx_parse(data, size, &x, words, sizeof words)) {
        if (!words[0]) abort(); /* a refusal says why */
        return 0;
    }
    float *item = malloc((size_t)x.item_numel * sizeof *item);
    for (int64_t i = 0; i < x.items && item; i++) cn__idx_item(&x, i, item);
    free(item);
    return 0;
}
