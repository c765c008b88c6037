#include "support/faulty.h"

#include <stdlib.h>
#include <string.h>

void *faulty_resize(void *user, void *p, size_t old_bytes, size_t new_bytes)
{
    faulty *f = user;
    if (new_bytes == 0) {
        if (p) f->blocks--, f->bytes -= old_bytes;
        if (p) memset(p, 0xdd, old_bytes); /* whoever still reads it shall notice */
        free(p);
        return NULL;
    }
    if (++f->calls == f->fail_at) return NULL;
    void *q = realloc(p, new_bytes);
    if (!q) return NULL;
    f->blocks += p == NULL;
    f->bytes += new_bytes - (p ? old_bytes : 0);
    return q;
}
