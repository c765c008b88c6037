#include "support/samples.h"

#include "cairn/cairn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- files */

void write_file(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f)) {
        printf("cannot write %s\n", path);
        exit(1);
    }
}

void write_text(const char *path, const char *text) { write_file(path, text, strlen(text)); }

static void write_idx_files(void)
{
    unsigned char images[16 + 23 * 6] = { 0, 0, 8, 3, 0, 0, 0, 23, 0, 0, 0, 2, 0, 0, 0, 3 },
                                   labels[8 + 23] = { 0, 0, 8, 1, 0, 0, 0, 23 };
    for (int i = 0; i < 23; i++) {
        memset(images + 16 + i * 6, i, 6);
        labels[8 + i] = (unsigned char)(i % 10);
    }
    write_file("images-idx3", images, sizeof images);
    write_file("labels-idx1", labels, sizeof labels);
}

static void write_images(void)
{
    char path[64];
    mkdir("pictures", 0777);
    mkdir("pictures/dark", 0777);
    mkdir("pictures/bright", 0777);
    mkdir("pictures/bright/deep", 0777);
    for (int i = 0; i < 12; i++) {
        int h = 4 + i % 3, w = 5 + i % 4;
        char image[256];
        int n = snprintf(image, sizeof image, "P5\n# a comment\n%d %d\n255\n", w, h);
        for (int k = 0; k < h * w; k++) image[n++] = (char)(i * 7 + k + (i % 2 ? 0 : 128));
        snprintf(path, sizeof path, "pictures/%s%02d.pgm", i % 2 ? "dark/" : i % 4 ? "bright/" : "bright/deep/", i);
        write_file(path, image, (size_t)n);
    }
}

void write_samples(void)
{
    write_idx_files();
    write_images();
    write_text("table.csv", "a,label,b\n1,cat,2\n3,\"dog\",4.5\r\n-1e3,cat,0\n0,ant,7\n5,dog,6\n");
    uint16_t tokens[100];
    for (int i = 0; i < 100; i++) tokens[i] = (uint16_t)(i * 7 % 50);
    write_file("tokens.bin", tokens, sizeof tokens);
    unsigned char records[4 + 19 * 7] = "HEAD";
    for (int i = 0; i < 19 * 7; i++) records[4 + i] = (unsigned char)(i * 3);
    write_file("records.bin", records, sizeof records);
}

/* ---- datasets */

static float array_x[31 * 4];
static int64_t array_y[31];

/* Once: the workers of another loader may read them. */
static void fill_arrays(void)
{
    static bool filled;
    for (int i = 0; i < 31 * 4 && !filled; i++) array_x[i] = (float)i * 0.5f;
    for (int i = 0; i < 31 && !filled; i++) array_y[i] = i % 5;
    filled = true;
}

static cn_dataset *make_arrays(cn_ctx *cn)
{
    fill_arrays();
    cn_field field[2] = { { CN_F32, CN_DIMS(2, 2), 0 }, { .dtype = CN_I64 } };
    return cn_dataset_arrays(cn, 31, field, CN_LIST(const void *, array_x, array_y));
}

static cn_dataset *make_tensors(cn_ctx *cn)
{
    cn_tensor *t[2] = { cn_reshape(cn_arange(cn, CN_F32, 0, 60, 1), CN_DIMS(20, 3)), cn_arange(cn, CN_I64, 0, 20, 1) };
    return cn_dataset_tensors(t, 2);
}

static bool get_noise(void *user, int64_t index, cn_draw *random, void *const *fields, char *error, size_t error_size)
{
    (void)user, (void)error, (void)error_size;
    double *x = fields[0];
    for (int i = 0; i < 5; i++) x[i] = (double)index + cn_draw_normal(random);
    *(int32_t *)fields[1] = (int32_t)cn_draw_below(random, 1000);
    return true;
}

static cn_dataset *make_own(cn_ctx *cn)
{
    return cn_dataset_new(cn, &(cn_dataset_desc){ .count = 37,
                                                  .fields = 2,
                                                  .get = get_noise,
                                                  .field = { { CN_F64, CN_DIMS(5), 0 }, { .dtype = CN_I32 } } });
}

static bool get_words(void *user, int64_t index, cn_draw *random, void *const *fields, char *error, size_t error_size)
{
    (void)user, (void)error, (void)error_size;
    int64_t n = 1 + cn_draw_below(random, 6), *x = cn_room_take(fields[0], CN_DIMS(n, 2));
    if (!x) return false;
    for (int64_t i = 0; i < 2 * n; i++) x[i] = index * 100 + i;
    *(int64_t *)fields[1] = n;
    return true;
}

static cn_dataset *make_varying(cn_ctx *cn)
{
    return cn_dataset_new(cn, &(cn_dataset_desc){ .count = 29,
                                                  .fields = 2,
                                                  .get = get_words,
                                                  .field = { { CN_I64, CN_DIMS(-1, 2), -7 }, { .dtype = CN_I64 } } });
}

static cn_dataset *make_records(cn_ctx *cn)
{
    return cn_dataset_records(
        cn, "records.bin",
        &(cn_records_desc){ .header = 4, .fields = 2, .field = { { .dtype = CN_U8 }, { CN_U8, CN_DIMS(2, 3), 0 } } });
}

cn_dataset *sample_idx(cn_ctx *cn) { return cn_dataset_idx(cn, "images-idx3", "labels-idx1"); }

static cn_dataset *make_csv(cn_ctx *cn)
{
    return cn_dataset_csv(cn, "table.csv",
                          &(cn_csv_desc){ .target = (const char *[]){ "label" }, .targets = 1, .classes = true });
}

static cn_dataset *make_tokens(cn_ctx *cn)
{
    return cn_dataset_tokens(cn, "tokens.bin", &(cn_tokens_desc){ .context = 8, .stride = 5 });
}

static cn_dataset *make_folder(cn_ctx *cn)
{
    return cn_dataset_folder(cn, "pictures", &(cn_folder_desc){ .channels = 1, .height = 6, .width = 6 });
}

static cn_dataset *make_any_size(cn_ctx *cn) { return cn_dataset_folder(cn, "pictures", NULL); }

static cn_dataset *make_concat(cn_ctx *cn)
{
    cn_dataset *d[3] = { sample_idx(cn), sample_idx(cn), sample_idx(cn) };
    cn_dataset *all = cn_dataset_concat(d, 3);
    for (int i = 0; i < 3; i++) cn_dataset_free(d[i]);
    return all;
}

static cn_dataset *make_subset(cn_ctx *cn)
{
    cn_dataset *d = make_own(cn), *s = cn_dataset_subset(d, CN_LIST(int64_t, 3, 30, 3, 7, 0, 12, 36));
    cn_dataset_free(d);
    return s;
}

static cn_dataset *make_split(cn_ctx *cn)
{
    cn_dataset *d = make_own(cn), *parts[2];
    cn_dataset_split(d, CN_LIST(double, 0.7, 0.3), 5, parts);
    cn_dataset_free(d);
    return parts[0];
}

static bool add_noise(void *user, const cn_map_call *call)
{
    (void)user;
    const double *in = call->in[0];
    float *out = call->out[0], *scratch = cn_map_scratch(call, 5 * sizeof *scratch);
    if (!scratch) return false;
    for (int i = 0; i < 5; i++) scratch[i] = (float)(in[i] * 2);
    for (int i = 0; i < 5; i++) out[i] = scratch[i] + (float)cn_draw_unit(call->random);
    return true;
}

static cn_dataset *make_map(cn_ctx *cn)
{
    cn_dataset *d = make_own(cn);
    cn_dataset *m =
        cn_dataset_map(d, &(cn_map_desc){ .fn = add_noise, .fields = 1, .field = { { CN_F32, CN_DIMS(5), 0 } } });
    cn_dataset_free(d);
    return m;
}

static cn_dataset *make_transform(cn_ctx *cn)
{
    cn_dataset *d = make_any_size(cn);
    cn_transform *t = cn_transform_new(cn);
    cn_transform_random_resized_crop(t, 9, 8);
    cn_transform_random_crop(t, 7, 6, 1);
    cn_transform_random_hflip(t, 0.5);
    cn_transform_random_vflip(t, 0.5);
    cn_transform_random_rotation(t, -30, 30);
    cn_transform_color_jitter(t, 0.4, 0.4, 0.4, 0.2);
    cn_transform_random_erasing(t, 0.5, 0.25);
    cn_transform_cutout(t, 2);
    cn_dataset *out = cn_dataset_transform(d, t);
    cn_transform_free(t);
    cn_dataset_free(d);
    return out;
}

const sample_kind sample_kinds[] = {
    { "arrays", make_arrays, false },     { "tensors", make_tensors, false }, { "own", make_own, true },
    { "varying", make_varying, true },    { "records", make_records, false }, { "idx", sample_idx, false },
    { "csv", make_csv, false },           { "tokens", make_tokens, false },   { "folder", make_folder, false },
    { "any size", make_any_size, false }, { "concat", make_concat, false },   { "subset", make_subset, true },
    { "split", make_split, true },        { "map", make_map, true },          { "transform", make_transform, true },
};
const int sample_kinds_count = sizeof sample_kinds / sizeof *sample_kinds;

/* ---- tapes */

void tape_add(tape *t, const void *data, size_t bytes)
{
    if (t->n + bytes > t->capacity) {
        t->capacity = 2 * (t->n + bytes);
        t->data = realloc(t->data, t->capacity);
        if (!t->data) exit(1);
    }
    if (bytes) memcpy(t->data + t->n, data, bytes);
    t->n += bytes;
}

void tape_batch(tape *t, const cn_batch *b)
{
    tape_add(t, &b->n, sizeof b->n);
    tape_add(t, &b->epoch, sizeof b->epoch);
    tape_add(t, &b->number, sizeof b->number);
    for (int i = 0; i < b->fields; i++) {
        cn_dims shape = cn_shape(b->field[i]);
        tape_add(t, shape.v, (size_t)shape.n * sizeof *shape.v);
        tape_add(t, cn_data(b->field[i]), (size_t)cn_numel(b->field[i]) * cn_dtype_size(cn_type(b->field[i])));
    }
}

int tape_epochs(tape *t, cn_loader *l, cn_ctx *cn, int epochs)
{
    int batches = 0;
    cn_batch b;
    for (int e = 0; e < epochs; e++)
        for (cn_scope s = cn_scope_begin(cn); cn_loader_next(l, &b); cn_scope_end(cn, s), batches++) tape_batch(t, &b);
    return batches;
}

bool tapes_equal(const tape *a, const tape *b) { return a->n == b->n && (!a->n || !memcmp(a->data, b->data, a->n)); }

void tape_free(tape *t)
{
    free(t->data);
    *t = (tape){ 0 };
}
