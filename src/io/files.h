/* io/files.h: what the file formats share.

   content   The bytes of a file in memory, mapped or read. It is counted: each tensor that borrows from it holds a
             reference.
   source    Bytes to load from, and their name for errors.
   sink      A file that is being saved: a temporary file, which is renamed when it is complete. */
#ifndef CN_IO_FILES_H
#define CN_IO_FILES_H

#include "cairn/io.h"
#include "core/object.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "files hold numbers as memory does: Cairn needs a little-endian machine"
#endif

/* content.c */
typedef struct cn__content {
    cn_ctx *ctx;
    unsigned char *data;
    size_t bytes, room; /* room: capacity of data, if it is not mapped */
    int refs;
    bool mapped;
} cn__content;
cn__content *cn__content_open(cn_ctx *ctx, const char *path); /* NULL: an error is set */
cn__content *cn__content_new(cn_ctx *ctx, size_t bytes);      /* memory for the caller to fill */
void cn__content_release(void *content);                      /* frees it with the last reference */

typedef struct cn__source {
    cn_ctx *ctx;
    const char *name; /* the path, for errors */
    const unsigned char *data;
    size_t bytes;
    cn__content *content; /* data lies in it, and tensors may borrow it; NULL: tensors must copy */
    bool structure;       /* of cn_load_desc */
} cn__source;
/* Fails with "load NAME: message"; returns false. */
__attribute__((format(printf, 3, 4))) bool cn__source_fail(const cn__source *s, cn_code code, const char *message, ...);
#ifdef __clang_analyzer__
#define cn__source_fail(...) (cn__source_fail(__VA_ARGS__), false)
#endif

static inline uint64_t cn__little(const unsigned char *p, int bytes)
{
    uint64_t v = 0;
    for (int i = bytes; i-- > 0;) v = v << 8 | p[i];
    return v;
}

/* element.c: types of numbers in files */
typedef struct cn__element {
    char kind;    /* 'b' bool, 'i', 'u', 'f' IEEE, 'B' bfloat; 0: unknown */
    uint8_t size; /* bytes */
    bool big;     /* big-endian */
} cn__element;
/* The bytes of a tensor of this type and shape. False: a size is negative, or the product overflows. */
bool cn__element_bytes(cn__element e, cn_dims shape, size_t *bytes);
/* A tensor of data inside the source; the caller has checked that it is complete. It borrows the data if possible, else
   it copies or converts them. */
cn_tensor *cn__element_tensor(const cn__source *s, cn__element e, cn_dims shape, const unsigned char *data,
                              const char *name);

/* sink.c */
typedef struct cn__sink {
    cn_ctx *ctx;
    const char *path; /* as the user wrote it, for errors */
    char *target;     /* the final path, with links resolved */
    char *temporary;  /* NULL: target is written directly */
    int file;
    uint64_t at;       /* bytes written */
    unsigned int mode; /* of the file that is replaced; 0: there is none */
} cn__sink;
bool cn__sink_open(cn__sink *s, cn_ctx *ctx, const char *path);
bool cn__sink_write(cn__sink *s, const void *data, size_t bytes);
bool cn__sink_close(cn__sink *s, bool complete); /* false: an error is set, and the temporary file is removed */

bool cn__sink_write_tensor(cn__sink *s, cn_tensor *t); /* its elements, row-major */
static inline size_t cn__tensor_bytes(cn_tensor *t) { return (size_t)cn_numel(t) * cn_dtype_size(cn_type(t)); }

/* Formats. load inserts into a new dict. save expects that every tensor is evaluated. */
bool cn__safetensors_load(const cn__source *s, cn_dict *d);
bool cn__safetensors_save(const cn_dict *d, cn__sink *to);
bool cn__npy_load(const cn__source *s, cn_dict *d, const char *name);
bool cn__npy_save(const cn_dict *d, cn__sink *to);
bool cn__npz_load(const cn__source *s, cn_dict *d);
bool cn__npz_save(const cn_dict *d, cn__sink *to);
bool cn__pt_is(const cn__source *s, bool *is); /* whether a zip file is one of torch.save */
bool cn__pt_load(const cn__source *s, cn_dict *d);

#endif
