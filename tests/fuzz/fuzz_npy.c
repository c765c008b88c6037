/* Any bytes as an npy or npz file. */
#include "load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    fuzz_load(data, bytes);
    return 0;
}
