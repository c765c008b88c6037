/* load.h: bytes as a file: an error in words, or a dict whose every number can be read, and which survives saving. */
#ifndef TESTS_FUZZ_LOAD_H
#define TESTS_FUZZ_LOAD_H

#include "cairn/cairn.h"
#include "cairn/io.h"
#include "fuzz.h"
#include "support/dicts.h"

static inline void fuzz_load(const uint8_t *data, size_t bytes)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_dict *d = cn_load_memory(cn, data, bytes);
    fuzz_require((d != NULL) == !cn_failed(cn), "a dict or an error");
    cn_code code = cn_error_code(cn);
    fuzz_require(d || code == CN_BAD_FILE || code == CN_UNSUPPORTED, "the error is about the file");
    if (d) dict_touch(d);
    cn_close(cn);
}

#endif
