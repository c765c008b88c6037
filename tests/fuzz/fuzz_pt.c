/* Any bytes as a file of torch.save; or, if they are no zip file, as its pickle, beside storages of some sizes. */
#include <string.h>

#include "load.h"
#include "support/zips.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char numbers[48] = { 1, 0, 0, 0x3f, 1 };
    if (bytes >= 2 && !memcmp(data, "PK", 2)) {
        fuzz_load(data, bytes);
        return 0;
    }
    const zip_piece pieces[] = {
        { "x/data.pkl", data, bytes }, { "x/byteorder", "little", 6 }, { "x/data/0", numbers, 6 },
        { "x/data/1", numbers, 6 },    { "x/data/2", numbers, 6 },     { "x/data/3", numbers, 12 },
        { "x/data/4", numbers, 24 },   { "x/data/5", numbers, 48 },    { "x/data/6", numbers, 12 },
        { "x/data/7", numbers, 12 },   { "x/data/8", numbers, 24 },    { "x/data/9", numbers, 48 },
    };
    size_t size;
    unsigned char *zip = zip_of(pieces, (int)(sizeof pieces / sizeof *pieces), &size);
    fuzz_load(zip, size);
    free(zip);
    return 0;
}
