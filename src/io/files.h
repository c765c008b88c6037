/* io/files.h: what every file format is written with.

   content   what a file holds, in memory: mapped, or read. Counted: each tensor that borrows from it has a share.
   source    bytes to load from, and what to call them in errors.
   sink      a file being saved: a temporary one that gets its name when all is well. */
#ifndef CN_IO_FILES_H
#define CN_IO_FILES_H

#include "cairn/io.h"
#include "core/object.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "files are written as numbers lie in memory: little-endian machines only"
#endif

/* content.c */
typedef struct cn__content {
    cn_ctx *ctx;
    unsigned char *data;
    size_t bytes, room; /* room: of the memory, if it is not mapped */
    int shares;
    bool mapped;
} cn__content;
cn__content *cn__content_open(cn_ctx *ctx, const char *path); /* one share; NULL: an error stands */
cn__content *cn__content_new(cn_ctx *ctx, size_t bytes);      /* memory to fill; one share */
void cn__content_give(void *content);                         /* a share back */

typedef struct cn__source {
    cn_ctx *ctx;
    const char *who; /* the path */
    const unsigned char *data;
    size_t bytes;
    cn__content *content; /* that data lies in; NULL: memory that may go, so tensors copy */
} cn__source;
bool cn__source_fail(const cn__source *s, cn_code code, const char *words, ...); /* "load PATH: words"; returns false */

static inline uint64_t cn__little(const unsigned char *p, int bytes)
{
    uint64_t v = 0;
    for (int i = bytes; i-- > 0;) v = v << 8 | p[i];
    return v;
}

/* element.c: numbers as files have them */
typedef struct cn__element {
    char kind;    /* 'b' bool, 'i', 'u', 'f' IEEE, 'B' bfloat; 0: no such type */
    uint8_t size; /* bytes */
    bool big;     /* big-endian */
} cn__element;
/* The bytes of a tensor of this type and shape; false: negative sizes, or more than can be. */
bool cn__element_bytes(cn__element e, cn_dims shape, size_t *bytes);
/* From data inside the source, checked to be all there: borrowed where that is possible, else copied or converted. */
cn_tensor *cn__element_tensor(const cn__source *s, cn__element e, cn_dims shape, const unsigned char *data,
                              const char *name);

/* sink.c */
typedef struct cn__sink {
    cn_ctx *ctx;
    const char *path; /* as the user said it, for errors */
    char *target;     /* where the file will be: links followed */
    char *temporary;  /* NULL: target is written directly */
    int file;
    uint64_t at;       /* bytes written */
    unsigned int mode; /* of the file that is there; 0: none is */
} cn__sink;
bool cn__sink_open(cn__sink *s, cn_ctx *ctx, const char *path);
bool cn__sink_put(cn__sink *s, const void *data, size_t bytes);
bool cn__sink_close(cn__sink *s, bool complete); /* false: abandoned, and an error stands; nothing is left over */

bool cn__sink_put_tensor(cn__sink *s, cn_tensor *t); /* its numbers, row-major */
static inline size_t cn__tensor_bytes(cn_tensor *t) { return (size_t)cn_numel(t) * cn_dtype_size(cn_type(t)); }

/* Formats: loading puts into a new dict; saving finds every tensor evaluated. */
bool cn__safetensors_load(const cn__source *s, cn_dict *d);
bool cn__safetensors_save(const cn_dict *d, cn__sink *to);
bool cn__npy_load(const cn__source *s, cn_dict *d, const char *name);
bool cn__npy_save(const cn_dict *d, cn__sink *to);
bool cn__npz_load(const cn__source *s, cn_dict *d);
bool cn__npz_save(const cn_dict *d, cn__sink *to);

#endif
