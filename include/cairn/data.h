/* cairn/data.h: datasets, samplers and loaders, as torch.utils.data.

       cn_dataset *digits = cn_dataset_idx(cn, "images-idx3-ubyte", "labels-idx1-ubyte");
       cn_loader *loader = cn_loader_new(digits, &(cn_loader_desc){ .batch = 64, .shuffle = true, .workers = 2 });
       cn_batch b;
       for (int epoch = 0; epoch < 3; epoch++)
           for (cn_scope s = cn_scope_begin(cn); cn_loader_next(loader, &b); cn_scope_end(cn, s))
               train_step(b.x, b.y);                       false at the end of an epoch, or with an error: cn_failed

   A dataset declares its fields (element type, shape of one item) and writes an item straight into the batch's
   memory: no allocation and no copy an item. Worker threads do that ahead of the training step; they never touch a
   context or a tensor.
   Order      Always that of one thread. Random numbers are counted by (seed, epoch, index): shuffles and augmentations
              are the same for any number of workers, and for a run that was resumed.
   Ownership  A batch's tensors belong to the current scope, as an operator's result does, and borrow the loader's
              memory, which is used again when they are gone: begin a scope around each step, as above. Datasets and
              samplers may be freed at once: whoever uses them holds them. All are freed with the context.
   Threads    A dataset's callbacks run in several threads at a time: they may read what they share, not write it.
              Samplers run in the calling thread.
   Errors     What goes wrong with an item (a damaged file) becomes the error of the cn_loader_next that would have
              given its batch. After cn_error_clear the loader goes on with the next one. While an error stands, it
              does nothing. */
#ifndef CAIRN_DATA_H
#define CAIRN_DATA_H

#include "dict.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CN_MAX_FIELDS 8

/* ---- Random numbers of one item ---- */

typedef struct cn_draw {
    uint64_t seed, stream, next; /* the next number of this seed and stream */
    uint64_t held;               /* numbers come in fours: which four is in word, plus 1 */
    uint32_t word[4];
} cn_draw;

CN_API uint32_t cn_draw_u32(cn_draw *d);
CN_API double cn_draw_unit(cn_draw *d);                      /* [0, 1) */
CN_API double cn_draw_uniform(cn_draw *d, double low, double high);
CN_API int64_t cn_draw_below(cn_draw *d, int64_t n);         /* 0 .. n - 1, each as likely */
CN_API double cn_draw_normal(cn_draw *d);                    /* mean 0, deviation 1 */
CN_API bool cn_draw_chance(cn_draw *d, double p);

/* ---- Datasets ---- */

typedef struct cn_dataset cn_dataset;

typedef struct cn_field {
    cn_dtype dtype;
    cn_dims shape; /* of one item; -1: this size varies from item to item */
    double pad;    /* what fills up the shorter items of a batch */
} cn_field;

/* Where an item of varying shape goes: the callback finds a cn_room * in its place and asks for memory of the shape it
   needs. NULL: no memory, or a shape that is not the field's; return false then. */
typedef struct cn_room {
    cn_field field;
    cn_dims shape;
    void *data;
    size_t bytes; /* that data has room for */
    void *from;
} cn_room;
CN_API void *cn_room_take(cn_room *room, cn_dims shape);

/* Writes item `index`: fields[i] is the memory of field i, or its cn_room if its shape varies. False, with words in
   error: the item cannot be had. */
typedef bool (*cn_get_fn)(void *user, int64_t index, cn_draw *random, void *const *fields, char *error,
                          size_t error_size);

typedef struct cn_dataset_desc {
    int64_t count;
    int fields;
    cn_field field[CN_MAX_FIELDS];
    cn_get_fn get;
    void *user;
    void (*free_user)(void *user); /* may be NULL */
} cn_dataset_desc;
CN_API cn_dataset *cn_dataset_new(cn_ctx *ctx, const cn_dataset_desc *desc);
CN_API void cn_dataset_free(cn_dataset *d);

CN_API int64_t cn_dataset_count(const cn_dataset *d);
CN_API int cn_dataset_fields(const cn_dataset *d);
CN_API cn_field cn_dataset_field(const cn_dataset *d, int i);
CN_API int cn_dataset_classes(const cn_dataset *d);            /* of folders and text labels; else 0 */
CN_API const char *cn_dataset_class(const cn_dataset *d, int i);

/* From memory. Tensors: the first axis counts the items; their present values are used whatever is assigned later.
   Arrays are borrowed: field i is count items of field[i], one after the other. */
CN_API cn_dataset *cn_dataset_tensors(cn_tensor *const *t, int n);
CN_API cn_dataset *cn_dataset_arrays(cn_ctx *ctx, int64_t count, const cn_field *field, const void *const *data, int n);

/* A file of records of one size, mapped: each holds its fields one after the other, after a header that is passed over.
   CIFAR-10's: .field = { { CN_U8, CN_SCALAR }, { CN_U8, CN_DIMS(3, 32, 32) } }. */
typedef struct cn_records_desc {
    int64_t header; /* bytes */
    int fields;
    cn_field field[CN_MAX_FIELDS];
} cn_records_desc;
CN_API cn_dataset *cn_dataset_records(cn_ctx *ctx, const char *path, const cn_records_desc *desc);

/* MNIST's files, plain or .gz. x: f32, (1, h, w) for images; bytes are divided by 255. y: i64. labels may be NULL: x
   alone. */
CN_API cn_dataset *cn_dataset_idx(cn_ctx *ctx, const char *images, const char *labels);

/* Comma-separated numbers. x: f32 (features), the columns that are not targets, in their order. y: f32 (targets), or
   for classes i64: the number of the label in the sorted list of labels (by value, if all are numbers). A missing value
   is an error that says its line and column. */
typedef struct cn_csv_desc {
    char separator;             /* 0: ',' */
    bool no_header;             /* the first row is data; columns go by number, from 0 */
    const char *const *target;  /* names, or numbers in digits; none: no y */
    int targets;
    bool classes;               /* the one target is a label, in any words */
} cn_csv_desc;
CN_API cn_dataset *cn_dataset_csv(cn_ctx *ctx, const char *path, const cn_csv_desc *desc);

/* folder/class/any/file.png|jpg|jpeg|pgm|ppm|pnm|pbm. x: u8 (channels, height, width), y: i64, classes by name. */
typedef struct cn_folder_desc {
    int channels;          /* 3, or 1 for grey; 0: 3 */
    int64_t height, width; /* every image is resized to this; 0: it keeps its size, which may vary */
} cn_folder_desc;
CN_API cn_dataset *cn_dataset_folder(cn_ctx *ctx, const char *path, const cn_folder_desc *desc);

/* A file of tokens, one after the other, mapped; item i is the window at i * stride. x: i64 (context), y: the same
   shifted by one. The array is borrowed. */
typedef enum cn_token_type { CN_TOKEN_U16, CN_TOKEN_U8, CN_TOKEN_U32, CN_TOKEN_I32, CN_TOKEN_I64 } cn_token_type;
typedef struct cn_tokens_desc {
    cn_token_type type;
    int64_t context;  /* tokens in a window */
    int64_t stride;   /* 0: context, windows do not overlap */
    int64_t header;   /* bytes passed over */
    int64_t vocab;    /* tokens from here on are an error; 0: not looked at */
} cn_tokens_desc;
CN_API cn_dataset *cn_dataset_tokens(cn_ctx *ctx, const char *path, const cn_tokens_desc *desc);
CN_API cn_dataset *cn_dataset_token_array(cn_ctx *ctx, const void *tokens, int64_t count, const cn_tokens_desc *desc);
CN_API void cn_text_lower(char *text); /* A to Z; other bytes, and so UTF-8, stay as they are */

/* From other datasets. */
CN_API cn_dataset *cn_dataset_concat(cn_dataset *const *d, int n);                          /* of equal fields */
CN_API cn_dataset *cn_dataset_subset(cn_dataset *d, const int64_t *indices, int64_t count); /* copied */
/* Parts without common items, drawn at random; NULL if it fails. sizes: fractions that add up to 1, or counts. */
CN_API bool cn_dataset_split(cn_dataset *d, const double *sizes, int n, uint64_t seed, cn_dataset **parts);

/* A function of an item, run by the workers. in[i], out[i]: a field's memory, or its cn_room where the shape varies. */
typedef struct cn_map_call {
    int64_t index;
    cn_draw *random;
    int in_fields, out_fields;
    const cn_field *in_field, *out_field;
    const void *const *in;
    void *const *out;
    char *error;
    size_t error_size;
    void *from;
} cn_map_call;
typedef bool (*cn_map_fn)(void *user, const cn_map_call *call);
CN_API void *cn_map_scratch(const cn_map_call *call, size_t bytes); /* until the function returns; NULL: no memory */

typedef struct cn_map_desc {
    cn_map_fn fn;
    void *user;
    void (*free_user)(void *user);
    int fields; /* of the result; 0: those of the source */
    cn_field field[CN_MAX_FIELDS];
} cn_map_desc;
CN_API cn_dataset *cn_dataset_map(cn_dataset *d, const cn_map_desc *desc);

/* ---- Samplers: which items, in what order ---- */

typedef struct cn_data_sampler cn_data_sampler;

typedef struct cn_random_desc {
    bool replacement;
    int64_t samples; /* 0: as many as there are items */
} cn_random_desc;
CN_API cn_data_sampler *cn_data_sampler_sequential(cn_ctx *ctx, int64_t count);
CN_API cn_data_sampler *cn_data_sampler_random(cn_ctx *ctx, int64_t count, const cn_random_desc *desc);

typedef struct cn_weighted_desc {
    int64_t samples;     /* 0: as many as there are weights */
    bool no_replacement; /* no item twice in an epoch */
} cn_weighted_desc;
CN_API cn_data_sampler *cn_data_sampler_weighted(cn_ctx *ctx, const double *weights, int64_t count,
                                                 const cn_weighted_desc *desc);

/* This rank's share: every world-th item of the order all ranks agree on (the same seed). Shares are of one size: the
   order is filled up from its beginning, or its tail is dropped. */
typedef struct cn_distributed_desc {
    int rank, world; /* 0: 1 */
    bool in_order;   /* not shuffled */
    bool drop_last;
} cn_distributed_desc;
CN_API cn_data_sampler *cn_data_sampler_distributed(cn_ctx *ctx, int64_t count, const cn_distributed_desc *desc);
/* Of these alone, which are copied. */
CN_API cn_data_sampler *cn_data_sampler_subset(cn_ctx *ctx, const int64_t *indices, int64_t count, bool shuffle);

/* A user's own: writes the n indices of an epoch. */
typedef bool (*cn_sample_fn)(void *user, uint64_t seed, int64_t epoch, int64_t n, int64_t *indices);
CN_API cn_data_sampler *cn_data_sampler_new(cn_ctx *ctx, int64_t count, cn_sample_fn fn, void *user);
CN_API int64_t cn_data_sampler_count(const cn_data_sampler *s);
CN_API bool cn_data_sampler_indices(cn_data_sampler *s, uint64_t seed, int64_t epoch, int64_t *indices);
CN_API void cn_data_sampler_free(cn_data_sampler *s);

/* ---- Loaders ---- */

typedef struct cn_loader cn_loader;

typedef struct cn_batch {
    cn_tensor *x, *y;                 /* fields 0 and 1 */
    cn_tensor *field[CN_MAX_FIELDS];  /* (n, ...) */
    int fields;
    int64_t n;                        /* items */
    int64_t epoch, number;            /* which batch of which epoch, from 0 */
} cn_batch;

/* Makes a batch of n items: items[f][i] is field f of item i; ask out[f] for memory of the whole batch, (n, ...). Runs
   in a worker. Without one, fields of varying shape are filled up with their `pad`, at the end of each axis. */
typedef bool (*cn_collate_fn)(void *user, int64_t n, cn_draw *random, const cn_room *const *items, cn_room *out,
                              char *error, size_t error_size);

typedef struct cn_loader_desc {
    int64_t batch;       /* 0: 1 */
    bool shuffle;
    bool drop_last;      /* an incomplete last batch is left out */
    int workers;         /* 0: items are made in the calling thread */
    int prefetch;        /* batches made ahead, for each worker; 0: 2 */
    uint64_t seed;       /* 0: the context's */
    cn_data_sampler *sampler; /* instead of shuffle */
    cn_collate_fn collate;
    void *collate_user;
    int collate_fields;  /* what it gives: shapes of an item, as ever; 0: the dataset's */
    cn_field collate_field[CN_MAX_FIELDS];
} cn_loader_desc;

CN_API cn_loader *cn_loader_new(cn_dataset *d, const cn_loader_desc *desc);
CN_API void cn_loader_free(cn_loader *l);                      /* batches given out stay good */
CN_API bool cn_loader_next(cn_loader *l, cn_batch *batch);
CN_API int64_t cn_loader_batches(const cn_loader *l);          /* an epoch */
CN_API int64_t cn_loader_epoch(const cn_loader *l);            /* under way, from 0 */
/* The next batch is the first of this epoch: for who leaves one early. A loop that is left goes on where it was. */
CN_API bool cn_loader_reset(cn_loader *l, int64_t epoch);

/* Where it stands: what comes after cn_loader_load is what would have come after cn_loader_save. The names are prefix +
   "epoch" and so on. Loading into a loader of another dataset size or batch size is an error. */
CN_API bool cn_loader_save(const cn_loader *l, cn_dict *dict, const char *prefix);
CN_API bool cn_loader_load(cn_loader *l, const cn_dict *dict, const char *prefix);

#ifdef __cplusplus
}
#endif
#endif
