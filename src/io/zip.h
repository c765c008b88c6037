/* io/zip.h: constants of the zip format, its checksum, and decompression. */
#ifndef CN_IO_ZIP_H
#define CN_IO_ZIP_H

#include "io/files.h"

enum {
    CN__ZIP_LOCAL = 0x04034b50,     /* header before each entry: 30 bytes and the name */
    CN__ZIP_CENTRAL = 0x02014b50,   /* record of each entry in the directory: 46 bytes and the name */
    CN__ZIP_END = 0x06054b50,       /* end of the directory: 22 bytes and a comment */
    CN__ZIP_END64 = 0x06064b50,     /* 64-bit form of END: 56 bytes */
    CN__ZIP_LOCATOR64 = 0x07064b50, /* place of END64, just before END: 20 bytes */
    CN__ZIP_EXTRA64 = 1,            /* extra field for sizes and offsets above 32 bits */
    CN__ZIP_STORED = 0,
    CN__ZIP_DEFLATED = 8,
    CN__ZIP_ENCRYPTED = 1, /* bits of the flags */
    CN__ZIP_UTF8 = 1 << 11,
};

/* CRC-32. table[k][b]: what byte b contributes if k more bytes follow. */
typedef struct cn__crc {
    uint32_t table[8][256];
} cn__crc;
void cn__crc_open(cn__crc *c);
uint32_t cn__crc_add(const cn__crc *c, uint32_t crc, const void *data, size_t bytes); /* the first crc is 0 */

/* Decompresses to exactly out_bytes bytes. False: an error is set. */
bool cn__inflate(const cn__source *s, const char *name, const unsigned char *in, size_t in_bytes, unsigned char *out,
                 size_t out_bytes);

#endif
