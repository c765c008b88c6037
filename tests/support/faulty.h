/* faulty.h: an allocator that fails when told, and knows what is still out.

       faulty f = { .fail_at = 7 };                                                    the seventh call gives nothing; 0: all work
       cn_ctx *cn = cn_open(&(cn_desc){ .allocator = { faulty_resize, &f } });
       ...
       cn_close(cn);                                                                   f.blocks and f.bytes are 0 again */
#ifndef TESTS_FAULTY_H
#define TESTS_FAULTY_H

#include <stddef.h>
#include <stdint.h>

typedef struct faulty {
    int64_t calls, fail_at, blocks;
    size_t bytes;
} faulty;

void *faulty_resize(void *user, void *p, size_t old_bytes, size_t new_bytes);

#endif
