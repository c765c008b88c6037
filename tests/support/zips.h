/* zips.h: zip files in memory, without compression. Their checksums are 0: torch.save can leave them out. */
#ifndef TESTS_ZIPS_H
#define TESTS_ZIPS_H

#include <stddef.h>

typedef struct zip_piece {
    const char *name;
    const void *data;
    size_t bytes;
} zip_piece;

unsigned char *zip_of(const zip_piece *pieces, int n, size_t *bytes); /* free() it */

#endif
