/* fuzz.h: what every fuzz target is.

   A target is one file, tests/fuzz/fuzz_NAME.c, with one function; small inputs to begin with are in
   tests/fuzz/corpus/NAME/, words worth trying in tests/fuzz/NAME.dict. scripts/fuzz.sh builds and runs them all.
   The function must accept any bytes, return 0, and leave nothing behind; what it finds wrong itself it reports by
   fuzz_require. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static inline void fuzz_require(int ok, const char *words)
{
    if (ok) return;
    fprintf(stderr, "does not hold: %s\n", words);
    abort();
}

#endif
