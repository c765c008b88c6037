/* cairn/data.h: datasets, samplers and loaders, as torch.utils.data.

       cn_dataset *digits = cn_dataset_idx(cn, "images-idx3-ubyte", "labels-idx1-ubyte");
       cn_loader *loader = cn_loader_new(digits, &(cn_loader_desc){ .batch = 64, .shuffle = true, .workers = 2 });
       cn_batch b;
       for (int epoch = 0; epoch < 3; epoch++)
           for (cn_scope s = cn_scope_begin(cn); cn_loader_next(loader, &b); cn_scope_end(cn, s))
               train_step(b.x, b.y);

   cn_loader_next returns false at the end of an epoch and after an error; cn_failed says which.
   A dataset declares its fields (element type and shape of one item). It writes each item straight into the memory of
   the batch, without an allocation or a copy. Worker threads make items ahead of the training step. They never touch a
   context or a tensor.
   Order      Batches come in the order that one thread would produce. Random numbers depend on (seed, epoch, index)
              alone, so shuffles and augmentations are the same for any number of workers and in a resumed run.
   Ownership  The tensors of a batch belong to the current scope, as the results of operators do. They borrow memory of
              the loader, which is used again once they are freed: begin a scope around each step, as above. Datasets
              and samplers may be freed at any time: objects that use them hold them. The context frees all of them.
   Threads    The callbacks of a dataset run in several threads at a time. They may read what they share, but not write
              it. A worker that uses its context is an error of that context. Samplers run in the calling thread.
   Errors     If an item fails (a damaged file), the cn_loader_next that would have returned its batch fails instead.
              After cn_error_clear the loader continues with the next batch. While the context has an error, the loader
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
    uint64_t seed, stream, next; /* next: number of the next draw of this seed and stream */
    uint64_t held;               /* draws come in blocks of four: the block in word, plus 1 */
    uint32_t word[4];
} cn_draw;

CN_API uint32_t cn_draw_u32(cn_draw *d);
CN_API double cn_draw_unit(cn_draw *d);                      /* [0, 1) */
CN_API double cn_draw_uniform(cn_draw *d, double low, double high);
CN_API int64_t cn_draw_below(cn_draw *d, int64_t n);         /* uniform in 0 .. n - 1 */
CN_API double cn_draw_normal(cn_draw *d);                    /* mean 0, deviation 1 */
CN_API bool cn_draw_chance(cn_draw *d, double p);            /* true with probability p */

/* ---- Datasets ---- */

typedef struct cn_dataset cn_dataset;

typedef struct cn_field {
    cn_dtype dtype;
    cn_dims shape; /* of one item; a size of -1 varies from item to item */
    double pad;    /* value that fills up the shorter items of a batch */
} cn_field;

/* Memory for an item whose shape varies. The callback receives a cn_room * for such a field and asks it for memory of
   the shape that the item has. NULL: no memory, or a shape that the field does not allow; the callback returns false
   then. */
typedef struct cn_room {
    cn_field field;
    cn_dims shape;
    void *data;
    size_t bytes; /* capacity of data */
    void *from;   /* internal */
} cn_room;
CN_API void *cn_room_take(cn_room *room, cn_dims shape);

/* Writes item `index`. fields[i] is the memory of field i, or a cn_room * if the shape of the field varies. If the item
   cannot be made, it writes a message to error and returns false. */
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
CN_API int cn_dataset_classes(const cn_dataset *d);            /* of folders and of labels; others: 0 */
CN_API const char *cn_dataset_class(const cn_dataset *d, int i);

/* From memory. Tensors: the first axis counts the items; the dataset keeps their present values. Arrays are borrowed:
   data[i] has `count` items of field[i], one after the other. */
CN_API cn_dataset *cn_dataset_tensors(cn_tensor *const *t, int n);
CN_API cn_dataset *cn_dataset_arrays(cn_ctx *ctx, int64_t count, const cn_field *field, const void *const *data, int n);

/* A file of records of one size, mapped. A record holds its fields one after the other. The header is skipped.
   CIFAR-10: .field = { { CN_U8, CN_SCALAR }, { CN_U8, CN_DIMS(3, 32, 32) } }. */
typedef struct cn_records_desc {
    int64_t header; /* bytes */
    int fields;
    cn_field field[CN_MAX_FIELDS];
} cn_records_desc;
CN_API cn_dataset *cn_dataset_records(cn_ctx *ctx, const char *path, const cn_records_desc *desc);

/* The files of MNIST, plain or .gz. x: f32, (1, h, w) for images; bytes are divided by 255. y: i64. Without labels
   (NULL) there is only x. */
CN_API cn_dataset *cn_dataset_idx(cn_ctx *ctx, const char *images, const char *labels);

/* Comma-separated numbers. x: f32 (features), the columns that are not targets, in their order. y: f32 (targets); with
   classes i64, the number of the label in the sorted list of labels (by value if all labels are numbers). A missing
   value is an error that names its line and column. */
typedef struct cn_csv_desc {
    char separator;             /* 0: ',' */
    bool no_header;             /* the first row is data; columns are named by number, from 0 */
    const char *const *target;  /* names of columns, or numbers as text; none: no y */
    int targets;
    bool classes;               /* the one target is a label: any text */
} cn_csv_desc;
CN_API cn_dataset *cn_dataset_csv(cn_ctx *ctx, const char *path, const cn_csv_desc *desc);

/* Image files folder/class/any/file.png|jpg|jpeg|pgm|ppm|pnm|pbm. x: u8 (channels, height, width), y: i64, the number
   of the class in the sorted list of classes. */
typedef struct cn_folder_desc {
    int channels;          /* 3, or 1 for grey; 0: 3 */
    int64_t height, width; /* every image is resized to this; 0: images keep their sizes */
} cn_folder_desc;
CN_API cn_dataset *cn_dataset_folder(cn_ctx *ctx, const char *path, const cn_folder_desc *desc);

/* A file of tokens, one after the other, mapped; or a borrowed array of tokens. Item i is the window at i * stride.
   x: i64 (context), y: the same, shifted by one token. */
typedef enum cn_token_type { CN_TOKEN_U16, CN_TOKEN_U8, CN_TOKEN_U32, CN_TOKEN_I32, CN_TOKEN_I64 } cn_token_type;
typedef struct cn_tokens_desc {
    cn_token_type type;
    int64_t context;  /* tokens in a window */
    int64_t stride;   /* 0: context, windows do not overlap */
    int64_t header;   /* bytes that are skipped */
    int64_t vocab;    /* a token ≥ vocab is an error; 0: not checked */
} cn_tokens_desc;
CN_API cn_dataset *cn_dataset_tokens(cn_ctx *ctx, const char *path, const cn_tokens_desc *desc);
CN_API cn_dataset *cn_dataset_token_array(cn_ctx *ctx, const void *tokens, int64_t count, const cn_tokens_desc *desc);
CN_API void cn_text_lower(char *text); /* A to Z; other bytes, and so UTF-8, do not change */

/* A stream: items that come one after the other, without a number and without a count (PyTorch's IterableDataset). It
   is cut into shards, which workers read at the same time, each shard in one thread at a time. A batch has items of one
   shard. Batches come from the shards in turn, so they depend on `shards`, but not on the number of workers. An epoch
   ends when all shards have ended; the last batch of each shard may be incomplete. */
typedef struct cn_shard {
    int64_t shard, shards; /* this one of so many: read every shards-th item, or every shards-th file */
    int64_t epoch;
    uint64_t seed;         /* of the loader */
} cn_shard;
typedef enum cn_stream_result { CN_STREAM_ITEM, CN_STREAM_END, CN_STREAM_ERROR } cn_stream_result;
/* Begins an epoch of a shard. Returns its cursor, or NULL after it has written a message to error. */
typedef void *(*cn_stream_open_fn)(void *user, const cn_shard *shard, char *error, size_t error_size);
/* Writes the next item as a cn_get_fn does. CN_STREAM_ERROR: the batch fails; the next one begins after this item. */
typedef cn_stream_result (*cn_stream_next_fn)(void *cursor, cn_draw *random, void *const *fields, char *error,
                                              size_t error_size);
typedef struct cn_stream_desc {
    int fields;
    cn_field field[CN_MAX_FIELDS];
    int64_t shards; /* 0: 1 */
    cn_stream_open_fn open;
    cn_stream_next_fn next;
    void (*close)(void *cursor);   /* may be NULL */
    void *user;
    void (*free_user)(void *user); /* may be NULL */
} cn_stream_desc;
/* cn_dataset_count of it is -1. It can be mapped and transformed; it has no subsets or parts, and no sampler. A loader
   that resumes within an epoch reads the items before its position once more. */
CN_API cn_dataset *cn_dataset_stream(cn_ctx *ctx, const cn_stream_desc *desc);

/* From other datasets. */
CN_API cn_dataset *cn_dataset_concat(cn_dataset *const *d, int n);                          /* of equal fields */
CN_API cn_dataset *cn_dataset_subset(cn_dataset *d, const int64_t *indices, int64_t count); /* copied */
/* Random parts without common items. sizes: fractions that sum to 1, or counts. False: an error; all parts are NULL. */
CN_API bool cn_dataset_split(cn_dataset *d, const double *sizes, int n, uint64_t seed, cn_dataset **parts);

/* A function of each item, which workers run. in[i], out[i]: memory of a field, or a cn_room * if its shape varies. */
typedef struct cn_map_call {
    int64_t index;
    cn_draw *random;
    int in_fields, out_fields;
    const cn_field *in_field, *out_field;
    const void *const *in;
    void *const *out;
    char *error;
    size_t error_size;
    void *from; /* internal */
} cn_map_call;
typedef bool (*cn_map_fn)(void *user, const cn_map_call *call);
CN_API void *cn_map_scratch(const cn_map_call *call, size_t bytes); /* lives until fn returns; NULL: no memory */

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

/* The share of one rank: every world-th item of an order that is the same on all ranks with the same seed. All shares
   have one size: the order is repeated from its beginning to fill them, or its last items are dropped. */
typedef struct cn_distributed_desc {
    int rank, world; /* 0: 1 */
    bool in_order;   /* not shuffled */
    bool drop_last;
} cn_distributed_desc;
CN_API cn_data_sampler *cn_data_sampler_distributed(cn_ctx *ctx, int64_t count, const cn_distributed_desc *desc);
/* These indices alone; they are copied. */
CN_API cn_data_sampler *cn_data_sampler_subset(cn_ctx *ctx, const int64_t *indices, int64_t count, bool shuffle);

/* A function of yours, which writes the n indices of an epoch. */
typedef bool (*cn_sample_fn)(void *user, uint64_t seed, int64_t epoch, int64_t n, int64_t *indices);
CN_API cn_data_sampler *cn_data_sampler_new(cn_ctx *ctx, int64_t count, cn_sample_fn fn, void *user);

/* Samplers of whole batches (PyTorch's batch_sampler): a loader with such a sampler has no batch, shuffle or drop_last
   of its own. Buckets: batches of items of similar length, in a random order. The items are shuffled; each pool of
   batch · pool items is sorted by length and cut into batches; the batches are shuffled. */
typedef struct cn_buckets_desc {
    int64_t batch;  /* items; 0: 1 */
    int64_t pool;   /* batches that are sorted together; 0: 100 */
    bool in_order;  /* sorted by length altogether, shortest first; nothing is shuffled */
    bool drop_last; /* the incomplete batch is skipped */
} cn_buckets_desc;
CN_API cn_data_sampler *cn_data_sampler_buckets(cn_ctx *ctx, const int64_t *lengths, int64_t count,
                                                const cn_buckets_desc *desc); /* lengths are copied */
/* A function of yours: it writes at most n indices, batch by batch, and the size of each batch, 1 to `batch`. It returns
   the number of batches, which may vary from epoch to epoch; -1: it failed. There is room for n sizes. */
typedef int64_t (*cn_sample_batches_fn)(void *user, uint64_t seed, int64_t epoch, int64_t n, int64_t *indices,
                                        int64_t *sizes);
CN_API cn_data_sampler *cn_data_sampler_batches(cn_ctx *ctx, int64_t count, int64_t batch, cn_sample_batches_fn fn,
                                                void *user);
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
    int64_t epoch, number;            /* number of the epoch and of the batch in it, from 0 */
} cn_batch;

/* Makes a batch of n items: items[f][i] is field f of item i. It asks out[f] for memory of the batch, (n, ...). It
   runs in a worker. Without such a function, items of varying shape are padded with `pad` at the end of each axis. */
typedef bool (*cn_collate_fn)(void *user, int64_t n, cn_draw *random, const cn_room *const *items, cn_room *out,
                              char *error, size_t error_size);

typedef struct cn_loader_desc {
    int64_t batch;       /* 0: 1 */
    bool shuffle;
    bool drop_last;      /* an incomplete last batch is skipped */
    int workers;         /* 0: items are made in the calling thread */
    int prefetch;        /* batches that are made ahead, for each worker; 0: 2 */
    uint64_t seed;       /* 0: the context's */
    cn_data_sampler *sampler; /* instead of shuffle; a sampler of batches: instead of batch and drop_last, too */
    cn_collate_fn collate;
    void *collate_user;
    int collate_fields;  /* fields of its result, with shapes of one item; 0: those of the dataset */
    cn_field collate_field[CN_MAX_FIELDS];
} cn_loader_desc;

/* On a GPU a batch is copied to its memory. With workers, the copy of the next batch begins when this one is returned
   (PyTorch: pin_memory and non_blocking): it travels with the step of this batch, without a submission of its own. */
CN_API cn_loader *cn_loader_new(cn_dataset *d, const cn_loader_desc *desc);
CN_API void cn_loader_free(cn_loader *l);                      /* batches stay valid */
CN_API bool cn_loader_next(cn_loader *l, cn_batch *batch);
/* In an epoch. A stream: -1. A sampler of a varying number of batches: -1 before the first batch of an epoch. */
CN_API int64_t cn_loader_batches(const cn_loader *l);
CN_API int64_t cn_loader_epoch(const cn_loader *l);            /* number of the present epoch, from 0 */
/* The next batch becomes the first of this epoch. Without it, a loop that was left early continues where it stopped. */
CN_API bool cn_loader_reset(cn_loader *l, int64_t epoch);

/* The position of the loader: batches after cn_loader_load are those that follow cn_loader_save. The names in the dict
   are prefix + "epoch" and so on. It is an error if the size of the dataset or of the batch has changed. */
CN_API bool cn_loader_save(const cn_loader *l, cn_dict *dict, const char *prefix);
CN_API bool cn_loader_load(cn_loader *l, const cn_dict *dict, const char *prefix);

#ifdef __cplusplus
}
#endif
#endif
