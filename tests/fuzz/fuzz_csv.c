/* Any bytes as comma-separated values. The first byte chooses how they are to be read. */
#include <stdlib.h>

#include "data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cn_ctx *cn;
    static const char *const targets[] = { "0", "y" };
    if (!cn && !(cn = cn_open(&(cn_desc){ .threads = 1 }))) return 0;
    if (size < 1) return 0;
    const cn_csv_desc desc = { .separator = data[0] & 1 ? ';' : 0,
                               .no_header = data[0] & 2,
                               .classes = data[0] & 4,
                               .target = &targets[data[0] >> 3 & 1],
                               .targets = data[0] & 4 ? 1 : data[0] >> 4 & 1 };
    cn__csv csv;
    bool ok = cn__csv_parse(cn, "input", (const char *)data + 1, size - 1, &desc, &csv);
    if (ok == cn_failed(cn)) abort();
    if (ok && csv.x.n != (size_t)csv.rows * (size_t)csv.features) abort();
    if (ok) cn__csv_close(cn, &csv);
    cn_error_clear(cn);
    return 0;
}
