/* Any bytes as the signature of an operator. */
#include "fuzz.h"

#include <string.h>

#include "cairn/signature.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);
    if (!text) return 0;
    memcpy(text, data, bytes);
    text[bytes] = 0;
    cn_signature s;
    bool ok = cn_signature_parse(text, &s);
    fuzz_require(ok == !s.error[0], "an error exactly where the text is refused");
    fuzz_require(!ok || (s.name[0] && s.n_out >= 1 && s.n_in <= CN_MAX_PARAMETERS), "a name and a result");
    free(text);
    return 0;
}
