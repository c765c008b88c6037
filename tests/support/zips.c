#include "support/zips.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static unsigned char *put(unsigned char *p, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++, v >>= 8) *p++ = (unsigned char)v;
    return p;
}

static unsigned char *put_bytes(unsigned char *p, const void *data, size_t bytes)
{
    if (bytes) memcpy(p, data, bytes);
    return p + bytes;
}

/* What the two records of an entry share. */
static unsigned char *put_common(unsigned char *p, const zip_piece *e)
{
    p = put(p, 0, 6); /* version, flags, method */
    p = put(p, 0, 8); /* time, checksum */
    p = put(p, e->bytes, 4);
    p = put(p, e->bytes, 4);
    p = put(p, strlen(e->name), 2);
    return put(p, 0, 2);
}

unsigned char *zip_of(const zip_piece *pieces, int n, size_t *bytes)
{
    size_t room = 22;
    for (int i = 0; i < n; i++) room += 30 + 46 + 2 * strlen(pieces[i].name) + pieces[i].bytes;
    unsigned char *zip = malloc(room), *p = zip, *place = zip;
    for (int i = 0; i < n; i++) {
        p = put_common(put_bytes(p, "PK\3\4", 4), &pieces[i]);
        p = put_bytes(p, pieces[i].name, strlen(pieces[i].name));
        p = put_bytes(p, pieces[i].data, pieces[i].bytes);
    }
    unsigned char *directory = p;
    for (int i = 0; i < n; i++) {
        p = put_common(put(put_bytes(p, "PK\1\2", 4), 0, 2), &pieces[i]);
        p = put(p, 0, 8);
        p = put(p, 0, 2); /* comment, disk, attributes */
        p = put(p, (uint64_t)(place - zip), 4);
        p = put_bytes(p, pieces[i].name, strlen(pieces[i].name));
        place += 30 + strlen(pieces[i].name) + pieces[i].bytes;
    }
    unsigned char *end = p;
    p = put(put_bytes(p, "PK\5\6", 4), 0, 4);
    p = put(put(p, (uint64_t)n, 2), (uint64_t)n, 2);
    p = put(put(p, (uint64_t)(end - directory), 4), (uint64_t)(directory - zip), 4);
    p = put(p, 0, 2);
    *bytes = (size_t)(p - zip);
    return zip;
}
