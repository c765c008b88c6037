/* core/alloc.h: the memory of a context: the allocator that the user gave, pools of blocks, growing arrays, and memory
   that is freed all at once. */
#ifndef CN_CORE_ALLOC_H
#define CN_CORE_ALLOC_H

#include <string.h>

#include "cairn/base.h"

#define CN__BLOCK         16  /* sizes of small blocks are multiples of this */
#define CN__BLOCK_CLASSES 128 /* small blocks have up to 2 KiB */
#define CN__LINE          64  /* small blocks whose size is a multiple of this are aligned to it */
#define CN__LARGE_CLASSES 9   /* large blocks are powers of two from 4 KiB to 1 MiB; beyond, the allocator is called */

typedef struct cn__memory {
    cn_allocator allocator;
    _Atomic(void *) *thread;                  /* of the context, for a program's allocator: call.h */
    void *free_blocks[CN__BLOCK_CLASSES + 1]; /* by size: chained free blocks */
    uint8_t chunks_of[CN__BLOCK_CLASSES + 1]; /* by size: chunks so far, while they grow */
    void *free_large[CN__LARGE_CLASSES];
    void *chunks;             /* the memory that small blocks are cut from, chained */
    void **heir;              /* gets the chunks when the memory is closed: exports use some; NULL: nobody */
    int64_t calls;            /* of the allocator */
    size_t limit, live, peak; /* bytes of tensors, counted by storage.c; a limit of 0 is none */
    void *cached[48];         /* freed storages, kept for reuse: chained, by power of two */
    size_t cached_bytes;
} cn__memory;

void cn__memory_open(cn__memory *m, const cn_allocator *a);
void cn__memory_close(cn__memory *m);
void cn__chunks_free(const cn_allocator *a, void *chunks);
void *cn__resize(cn__memory *m, void *p, size_t old_bytes, size_t new_bytes);
void *cn__block_new(cn__memory *m, size_t bytes); /* not zeroed; NULL: no memory */
void cn__block_free(cn__memory *m, void *p, size_t bytes);

/* A growing array of plain elements. */
typedef struct cn__vec {
    void *v;
    size_t n, capacity; /* in elements */
} cn__vec;
bool cn__vec_reserve(cn__memory *m, cn__vec *a, size_t n, size_t element);
void cn__vec_free(cn__memory *m, cn__vec *a, size_t element);

/* Appends a copy of an element of `size` bytes. False: no memory, and the array is unchanged. */
static inline bool cn__push(cn__memory *m, cn__vec *a, const void *element, size_t size)
{
    if (!cn__vec_reserve(m, a, a->n + 1, size)) return false;
    memcpy((char *)a->v + a->n++ * size, element, size);
    return true;
}

/* Memory that is freed all at once: a plan lies in it. */
typedef struct cn__bump {
    void *chunks;
    size_t used, size;
} cn__bump;
void *cn__bump_new(cn__memory *m, cn__bump *b, size_t bytes); /* zeroed, 16-byte aligned */
void cn__bump_free(cn__memory *m, cn__bump *b);

#endif
