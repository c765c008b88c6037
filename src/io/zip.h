/* io/zip.h: numbers of the zip format, and what it needs beside them. */
#ifndef CN_IO_ZIP_H
#define CN_IO_ZIP_H

#include "io/files.h"

enum {
    CN__ZIP_LOCAL = 0x04034b50,     /* before each entry; 30 bytes and the name */
    CN__ZIP_CENTRAL = 0x02014b50,   /* of each entry, at the end; 46 bytes and the name */
    CN__ZIP_END = 0x06054b50,       /* 22 bytes and a comment */
    CN__ZIP_END64 = 0x06064b50,     /* 56 bytes: what does not fit in END */
    CN__ZIP_LOCATOR64 = 0x07064b50, /* 20 bytes, before END: where END64 is */
    CN__ZIP_EXTRA64 = 1,            /* sizes and offset that do not fit in 32 bits */
    CN__ZIP_STORED = 0,
    CN__ZIP_DEFLATED = 8,
    CN__ZIP_ENCRYPTED = 1, /* flags */
    CN__ZIP_UTF8 = 1 << 11,
};

typedef struct cn__crc {
    uint32_t table[256];
} cn__crc;
void cn__crc_open(cn__crc *c);
uint32_t cn__crc_add(const cn__crc *c, uint32_t crc, const void *data, size_t bytes); /* begins with 0 */

/* Fills out, exactly. False: an error stands. */
bool cn__inflate(const cn__source *s, const char *name, const unsigned char *in, size_t in_bytes, unsigned char *out,
                 size_t out_bytes);

#endif
