/* io/zip.h: reads zip files: the directory, the entries, their checksums, decompression.

       cn__zip z;
       bool ok = cn__zip_open(&z, source);
       for (uint64_t i = 0; ok && i < z.entries; i++) {
           cn__zip_entry e;
           cn__source bytes;
           ok = cn__zip_next(&z, &e) && cn__zip_unpack(&z, &e, "name for errors", &bytes) && use(&bytes);
           cn__content_release(bytes.content);
       }
       ok = ok && cn__zip_end(&z);

   Nothing in the file is trusted. An entry that is not compressed is not copied. */
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
    CN__ZIP_LOCAL_BYTES = 30,
    CN__ZIP_CENTRAL_BYTES = 46,
    CN__ZIP_END64_BYTES = 56,
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

typedef struct cn__zip {
    const cn__source *s;
    uint64_t entries, directory, at, end; /* how many entries; the directory, the next record in it, and its end */
    uint64_t packed; /* bytes of the entries so far; more than the file has means that entries overlap */
    bool unchecked;  /* a checksum of 0 may mean that there is none */
    cn__crc crc;
} cn__zip;
typedef struct cn__zip_entry {
    const char *name; /* points into the file; not ended by 0 */
    size_t name_bytes;
    int flags, method;
    uint32_t crc;
    uint64_t packed, unpacked, at; /* packed, unpacked: bytes; at: place of the local header */
} cn__zip_entry;
bool cn__zip_open(cn__zip *z, const cn__source *s);
bool cn__zip_next(cn__zip *z, cn__zip_entry *e);
bool cn__zip_end(cn__zip *z); /* after the last entry: whether the directory ends there */
/* Where the bytes of an entry begin, after its local header. */
bool cn__zip_start(const cn__zip *z, const cn__zip_entry *e, uint64_t *start);
/* The content of an entry, whose checksum is right. The caller releases out->content, also after an error. */
bool cn__zip_unpack(cn__zip *z, const cn__zip_entry *e, const char *name, cn__source *out);

/* Decompresses to exactly out_bytes bytes. False: an error is set. */
bool cn__inflate(const cn__source *s, const char *name, const unsigned char *in, size_t in_bytes, unsigned char *out,
                 size_t out_bytes);

#endif
