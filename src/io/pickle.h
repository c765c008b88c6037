/* io/pickle.h: reads the pickles of torch.save into a tree.

       cn__bump memory = { 0 };
       const cn__value *root = cn__pickle_read(source, &memory);    NULL: an error is set
       cn__bump_free(&ctx->memory, &memory);                        frees the tree

   A pickle is a program for a machine with a stack, which may call any function of Python. This reader runs nothing: it
   knows the instructions that torch.save writes, protocols 2 to 5, and four things to call, which it does itself:
   OrderedDict, _rebuild_tensor_v2, _rebuild_parameter, and the storage of a tensor. Everything else is an error that
   names it. Tensors are checked: they lie inside their storages.
   The tree takes memory in proportion to the pickle, and points into it. It may share parts and contain itself. */
#ifndef CN_IO_PICKLE_H
#define CN_IO_PICKLE_H

#include "cairn/op.h"
#include "core/context.h"
#include "io/files.h"

typedef enum cn__value_type {
    CN__VALUE_NONE,
    CN__VALUE_BOOL,
    CN__VALUE_WHOLE,
    CN__VALUE_REAL,
    CN__VALUE_TEXT,
    CN__VALUE_TUPLE,
    CN__VALUE_LIST,
    CN__VALUE_DICT,
    CN__VALUE_GLOBAL,
    CN__VALUE_STORAGE,
    CN__VALUE_TENSOR,
} cn__value_type;

/* The numbers of one or more tensors: an entry of the file. */
typedef struct cn__saved_storage {
    cn_dtype dtype;
    const char *key; /* the entry is data/KEY; not ended by 0 */
    size_t key_bytes;
    int64_t numel;
} cn__saved_storage;

typedef struct cn__saved_tensor {
    const cn__saved_storage *storage;
    cn_layout layout; /* its elements all lie inside the storage */
} cn__saved_tensor;

typedef struct cn__value {
    uint8_t type;  /* cn__value_type */
    bool ordered;  /* DICT: an OrderedDict */
    uint8_t which; /* GLOBAL: its place in the table of pickle.c */
    size_t n;      /* TEXT: bytes; TUPLE, LIST, DICT: members */
    union {
        int64_t whole; /* BOOL, WHOLE */
        double real;
        const char *text; /* UTF-8, not ended by 0 */
        struct {
            struct cn__member *first, *last;
        };
        const cn__saved_storage *storage;
        const cn__saved_tensor *tensor;
    };
} cn__value;

typedef struct cn__member {
    struct cn__member *next;
    const cn__value *key; /* DICT: a TEXT or a WHOLE */
    const cn__value *value;
} cn__member;

const cn__value *cn__pickle_read(const cn__source *s, cn__bump *memory);

#endif
