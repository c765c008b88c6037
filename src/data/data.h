/* data/data.h: the types behind datasets, samplers and transforms, and the functions that they share.

   The context's thread and the worker threads do different work. The context's thread creates and frees objects, with
   the context's memory. Worker threads make items. They never touch a context: memory that a worker needs beside the
   batch comes from its arena, which uses malloc. */
#ifndef CN_DATA_DATA_H
#define CN_DATA_DATA_H

#include <stdio.h>

#include "cairn/cairn.h"
#include "core/errors.h"
#include "core/object.h"

/* ---- arena.c: a worker's scratch memory for one item */

typedef struct cn__arena {
    struct cn__chunk *chunks; /* the newest is the first and the largest */
    size_t used;
} cn__arena;
void *cn__arena_alloc(cn__arena *a, size_t bytes); /* aligned to 64 bytes, not zeroed; NULL: no memory */
void cn__arena_reset(cn__arena *a);                /* keeps its largest chunk */
void cn__arena_free(cn__arena *a);

/* A shard of a stream, while a loader reads it. One thread at a time uses it. */
typedef struct cn__cursor {
    void *at;      /* what the stream's open function returned */
    int64_t items; /* read so far */
    bool opened, ended;
    bool busy; /* a worker reads it; crew.c */
} cn__cursor;

/* The state of a worker while it makes an item. */
typedef struct cn__fetch {
    cn_draw random;
    cn__cursor *cursor; /* of the item's shard; NULL: the item is of no stream */
    cn__arena arena;
    cn_code code;
    char error[256];
} cn__fetch;
__attribute__((format(printf, 3, 4))) bool cn__fetch_fail(cn__fetch *f, cn_code code, const char *message,
                                                          ...); /* returns false */
bool cn__fetch_no_memory(cn__fetch *f);
#ifdef __clang_analyzer__
#define cn__fetch_fail(...)    (cn__fetch_fail(__VA_ARGS__), false)
#define cn__fetch_no_memory(f) (cn__fetch_no_memory(f), false)
#endif

void cn__room_open(cn_room *room, const cn_field *field, cn__arena *from); /* from NULL: malloc */
void cn__room_close(cn_room *room);

/* ---- draw.c */

cn_draw cn__item_draw(uint64_t seed, int64_t epoch, int64_t index);
enum { CN__STREAM_ORDER, CN__STREAM_SPLIT, CN__STREAM_BATCH };     /* BATCH + i is the stream of batch i */
cn_draw cn__order_draw(uint64_t seed, int64_t epoch, int64_t use); /* a stream that belongs to no item */
void cn__shuffle(cn_draw *d, int64_t *v, int64_t n);

/* ---- dataset.c */

struct cn_dataset {
    cn__object object;
    int64_t count;
    int fields;
    cn_field field[CN_MAX_FIELDS];
    bool (*get)(const cn_dataset *d, int64_t index, cn__fetch *f, void *const *fields); /* in any thread */
    void (*close)(cn_dataset *d);
    cn__vec classes;          /* of char *, sorted */
    const cn_dataset *stream; /* that its items come from: itself, or its source; NULL: items have numbers */
};
cn_dataset *cn__dataset_new(cn_ctx *ctx, size_t bytes, int64_t count, const cn_field *field, int fields);
bool cn__dataset_get(const cn_dataset *d, int64_t index, cn__fetch *f, void *const *fields);
bool cn__has_numbers(const cn_dataset *d, const char *who); /* false: it is a stream, and an error stands */
bool cn__check_fields(cn_ctx *ctx, const char *who, const cn_field *field, int fields, bool may_vary);
bool cn__field_varies(const cn_field *f);
size_t cn__field_bytes(const cn_field *f); /* of one item; its shape is fixed */
size_t cn__shape_bytes(cn_dtype dtype, cn_dims shape);
bool cn__add_class(cn_dataset *d, const char *name, size_t length); /* appends it */
void cn__sort_texts(cn__vec *texts);
void cn__call_free(cn_ctx *ctx, void (*free_user)(void *user), void *user); /* a function of the program */

/* ---- stream.c */

int64_t cn__stream_shards(const cn_dataset *d); /* 0: it is no stream */
/* Called by workers. False: f has the error, and the shard has ended. */
bool cn__cursor_open(const cn_dataset *d, cn__cursor *c, const cn_shard *shard, cn__fetch *f);
void cn__cursor_close(const cn_dataset *d, cn__cursor *c);

/* ---- file.c */

typedef struct cn__file {
    const uint8_t *data;
    size_t bytes;
    bool mapped;     /* false: data is the context's memory */
    size_t capacity; /* of that memory */
} cn__file;
bool cn__file_map(cn_ctx *ctx, const char *who, const char *path, cn__file *out);
bool cn__file_unzip(cn_ctx *ctx, const char *who, const char *path, cn__file *out); /* a .gz file, into memory */
void cn__file_close(cn_ctx *ctx, cn__file *file);
bool cn__file_read(cn__fetch *f, const char *path, const uint8_t **data,
                   size_t *bytes); /* for workers: into the arena */

/* ---- parsers: their input is untrusted memory, and they read nothing else */

typedef struct cn__idx {
    uint8_t type; /* 8 u8, 9 i8, 11 i16, 12 i32, 13 f32, 14 f64 */
    int ndim;
    int64_t shape[CN_MAX_DIMS];
    int64_t items, item_numel;
    const uint8_t *data;
    size_t element;
} cn__idx;
bool cn__idx_parse(const uint8_t *data, size_t bytes, cn__idx *out, char *error, size_t error_size);
void cn__idx_item(const cn__idx *x, int64_t index, float *out);

typedef struct cn__csv {
    int64_t rows;
    int features, targets;
    cn__vec x, y;    /* of float; of float, or of int64_t for classes */
    cn_dict *labels; /* number of each label, in the order of appearance; NULL: no classes */
} cn__csv;
/* Errors name the file as `name`. */
bool cn__csv_parse(cn_ctx *ctx, const char *name, const char *text, size_t bytes, const cn_csv_desc *desc,
                   cn__csv *out);
void cn__csv_close(cn_ctx *ctx, cn__csv *csv);

/* A decoded image file: u8, (channels, height, width), in the arena of the fetch. */
typedef struct cn__picture {
    int64_t channels, height, width;
    uint8_t *data;
} cn__picture;
bool cn__picture_decode(const uint8_t *data, size_t bytes, int channels, cn__fetch *f, cn__picture *out);
bool cn__pnm_decode(const uint8_t *data, size_t bytes, cn__fetch *f, cn__picture *out);
bool cn__png_decode(const uint8_t *data, size_t bytes, cn__fetch *f, cn__picture *out);
bool cn__jpeg_decode(const uint8_t *data, size_t bytes, cn__fetch *f, cn__picture *out);
/* p is (height, width, channels) here. */
bool cn__jpeg_write(FILE *file, const cn__picture *p, int quality, cn__fetch *f);
bool cn__picture_alloc(cn__fetch *f, int64_t channels, int64_t height, int64_t width, cn__picture *out);
/* The caller sets the size and the memory of out. False: no memory. */
bool cn__picture_resize(cn__arena *a, const cn__picture *in, cn_image_filter filter, cn__picture *out);

/* ---- image.c, colour.c, filter.c, warp.c: f32 (channels, height, width) */

typedef struct cn__image {
    int64_t channels, height, width;
    float *data;
} cn__image;
bool cn__image_new(cn__arena *a, int64_t channels, int64_t height, int64_t width, cn__image *out);
/* The caller sets the size and the memory of out. */
bool cn__image_resize(cn__arena *a, const cn__image *in, cn__image *out); /* bilinear; false: no memory */
void cn__image_crop(const cn__image *in, int64_t top, int64_t left, cn__image *out);
/* out(x, y) = in((m0 x + m1 y + m2) / d, (m3 x + m4 y + m5) / d), d = m6 x + m7 y + 1; of the same size */
void cn__image_warp(const cn__image *in, const double *m, bool nearest, double fill, cn__image *out);
/* Turned clockwise, sheared, scaled, then moved by (x, y). The map is the one that a warp needs. */
typedef struct cn__affine {
    double degrees, x, y, scale, shear_x, shear_y; /* shears in degrees */
} cn__affine;
void cn__affine_map(const cn__affine *a, double center_x, double center_y, double *m);
/* Of four corners (x, y), one after the other. False: there is none. */
bool cn__perspective_map(const double *from, const double *to, double *m);
/* In place. */
void cn__image_flip(cn__image *x, bool horizontal);
void cn__image_fill(cn__image *x, int64_t top, int64_t left, int64_t height, int64_t width, float value);
void cn__image_brightness(cn__image *x, double factor);
void cn__image_contrast(cn__image *x, double factor);
void cn__image_saturation(cn__image *x, double factor);
void cn__image_hue(cn__image *x, double turn);         /* turn 1 is a whole circle */
void cn__image_grey(cn__image *x);                     /* channel 0 becomes the luminance */
void cn__image_invert(cn__image *x, double threshold); /* 1 - v where v ≥ threshold */
void cn__image_posterize(cn__image *x, int bits);
void cn__image_autocontrast(cn__image *x);
void cn__image_equalize(cn__image *x);
/* False: no memory. */
bool cn__image_blur(cn__arena *a, cn__image *x, int64_t kernel_height, int64_t kernel_width, double sigma);
bool cn__image_sharpness(cn__arena *a, cn__image *x, double factor);

/* ---- sampler.c */

struct cn_data_sampler {
    cn__object object;
    int64_t count;  /* indices in an epoch */
    int64_t domain; /* every index is below it; -1: not known */
    bool (*fill)(const cn_data_sampler *s, uint64_t seed, int64_t epoch, int64_t *out);
    void (*close)(cn_data_sampler *s);
    /* Samplers of batches: cut, in place of fill, also writes the sizes of batches and returns their number; -1: it
       failed. */
    int64_t (*cut)(const cn_data_sampler *s, uint64_t seed, int64_t epoch, int64_t *out, int64_t *sizes);
    int64_t largest; /* items of a batch at most */
    int64_t batches; /* in an epoch; -1: it varies */
};

/* Also if the program has freed it. Of samplers of batches it writes `sizes` and *batches, too. */
bool cn__sampler_fill(cn_data_sampler *s, uint64_t seed, int64_t epoch, int64_t *indices, int64_t *sizes,
                      int64_t *batches);

extern const cn__object_type cn__dataset_type, cn__data_sampler_type, cn__transform_type;

#endif
