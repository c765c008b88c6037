/* Fills a context's table of kernels: the portable entries first, then the faster ones over them, as BLIS does. */
#include "ops/kernels.h"

#include <string.h>

extern const void *const cn__kernel_tables_baseline[];
#if defined(__x86_64__)
extern const void *const cn__kernel_tables_avx2[], *const cn__kernel_tables_avx512[];
#endif

static const void *const *const tables[CN__ISAS] = {
    [CN__BASELINE] = cn__kernel_tables_baseline,
#if defined(__x86_64__)
    [CN__AVX2] = cn__kernel_tables_avx2,
    [CN__AVX512] = cn__kernel_tables_avx512,
#endif
};

typedef struct span {
    size_t offset, bytes;
} span;

static const span spans[] = {
#define CN__KERNELS(name) { offsetof(cn__kernels, name), sizeof(cn__##name##_kernels) },
#include "ops/kernels.def"
#undef CN__KERNELS
};

/* Both are structs of pointers. A NULL pointer leaves the entry below as it is. */
static void lay_over(char *table, const char *faster, size_t bytes)
{
    static const void *const none = NULL;
    for (size_t at = 0; at < bytes; at += sizeof none)
        if (memcmp(faster + at, &none, sizeof none)) memcpy(table + at, faster + at, sizeof none);
}

void cn__kernels_fill(cn__kernels *k, cn__isa best)
{
    memset(k, 0, sizeof *k);
    for (int isa = CN__BASELINE; isa <= (int)best && isa < CN__ISAS; isa++)
        for (size_t i = 0; i < sizeof spans / sizeof *spans && tables[isa]; i++)
            lay_over((char *)k + spans[i].offset, tables[isa][i], spans[i].bytes);
}
