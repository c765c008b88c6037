/* Datasets and samplers: what is in them, and that files from outside, whatever they hold, give items or an error. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "data/data.h"
#include "support/check.h"
#include "support/samples.h"
#include "support/scratch.h"

/* One batch of all items of a dataset, in order. */
static cn_batch all_of(cn_dataset *d)
{
    cn_batch b = { 0 };
    cn_loader *l = cn_loader_new(d, &(cn_loader_desc){ .batch = cn_dataset_count(d) ? cn_dataset_count(d) : 1 });
    cn_loader_next(l, &b);
    cn_loader_free(l);
    return b;
}

static void refused(cn_ctx *cn, void *result, cn_code code, const char *message, const char *what)
{
    check(!result && cn_error_code(cn) == code && strstr(cn_error(cn), message), "%s: %s: \"%s\" has \"%s\"", what,
          cn_code_name(cn_error_code(cn)), cn_error(cn), message);
    cn_error_clear(cn);
}

/* ---- kinds */

static void idx_files(cn_ctx *cn)
{
    cn_dataset *d = sample_idx(cn);
    check(cn_dataset_count(d) == 23 && cn_dataset_fields(d) == 2, "23 images and labels");
    cn_batch b = all_of(d);
    check(cn_ndim(b.x) == 4 && cn_size(b.x, 1) == 1 && cn_size(b.x, 2) == 2 && cn_size(b.x, 3) == 3, "(n, 1, h, w)");
    check(cn_type(b.x) == CN_F32 && cn_type(b.y) == CN_I64, "f32 and i64");
    for (int64_t i = 0; i < 23; i++)
        check((float)cn_get(b.x, CN_DIMS(i, 0, 1, 2)) == (float)i / 255 && cn_get(b.y, CN_DIMS(i)) == (double)(i % 10),
              "item %d", (int)i);
    check(cn_dataset_fields(cn_dataset_idx(cn, "images-idx3", NULL)) == 1, "images alone");

    const unsigned char floats[] = { 0, 0, 13, 1, 0, 0, 0, 2, 0x3f, 0x80, 0, 0, 0xc0, 0x20, 0, 0 }, /* 1, -2.5 */
        shorts[] = { 0, 0, 11, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0xff, 0xfe, 1, 0 };                       /* -2, 256 */
    write_file("floats", floats, sizeof floats);
    write_file("shorts", shorts, sizeof shorts);
    b = all_of(cn_dataset_idx(cn, "floats", NULL));
    check(cn_get(b.x, CN_DIMS(0)) == 1 && cn_get(b.x, CN_DIMS(1)) == -2.5, "floats");
    b = all_of(cn_dataset_idx(cn, "shorts", NULL));
    check(cn_get(b.x, CN_DIMS(0, 0)) == -2 && cn_get(b.x, CN_DIMS(0, 1)) == 256, "shorts");
}

static void bad_idx_files(cn_ctx *cn)
{
    unsigned char good[] = { 0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6 };
    const struct {
        int at, value, bytes;
        const char *message;
    } damage[] = { { 0, 1, 18, "not an idx" },  { 2, 10, 18, "not an idx" }, { 2, 99, 18, "not an idx" },
                   { 3, 0, 18, "0 axes" },      { 3, 8, 18, "8 axes" },      { 3, 255, 18, "255 axes" },
                   { 4, 255, 18, "more than" }, { 11, 4, 18, "more than" },  { 11, 2, 18, "needs 4" },
                   { 7, 0, 18, "is 0" },        { 0, 0, 17, "more than" },   { 0, 0, 9, "2 axes in a file of 9" },
                   { 0, 0, 3, "not an idx" },   { 0, 0, 0, "not an idx" },   { 2, 14, 18, "more than" } };
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        unsigned char was = good[damage[i].at];
        good[damage[i].at] = (unsigned char)damage[i].value;
        write_file("damaged", good, (size_t)damage[i].bytes);
        good[damage[i].at] = was;
        refused(cn, cn_dataset_idx(cn, "damaged", NULL), CN_BAD_FILE, damage[i].message, "damaged idx");
    }
    write_file("good", good, sizeof good);
    check(cn_dataset_idx(cn, "good", NULL), "the same undamaged: %s", cn_error(cn));
    refused(cn, cn_dataset_idx(cn, "nowhere", NULL), CN_BAD_FILE, "nowhere: No such file", "no file");
    refused(cn, cn_dataset_idx(cn, "pictures", NULL), CN_BAD_FILE, "directory", "a folder");
    refused(cn, cn_dataset_idx(cn, "images-idx3", "floats"), CN_BAD_FILE, "labels must be u8", "labels of floats");
    const unsigned char few[] = { 0, 0, 8, 1, 0, 0, 0, 2, 7, 7 };
    write_file("few", few, sizeof few);
    refused(cn, cn_dataset_idx(cn, "images-idx3", "few"), CN_BAD_FILE, "2 labels for 23", "too few labels");
}

/* Two labels, 5 and 9, as gzip writes them. */
static void zipped_idx_files(cn_ctx *cn)
{
    static const unsigned char zipped[] = { 31, 139, 8,  0,  0,   0, 0, 0,   2,   255, 99,  96, 224, 96, 100,
                                            96, 96,  96, 98, 229, 4, 0, 248, 224, 55,  145, 10, 0,   0,  0 };
    write_file("zipped.gz", zipped, sizeof zipped);
    cn_dataset *d = cn_dataset_idx(cn, "zipped.gz", NULL);
    if (cn_error_code(cn) == CN_UNSUPPORTED) {
        check(strstr(cn_error(cn), "zlib"), "without zlib: %s", cn_error(cn));
        skip();
    } else if (d) {
        cn_batch b = all_of(d);
        check((float)cn_get(b.x, CN_DIMS(1)) == 9.0f / 255, "unzipped");
    } else check(false, "zipped: %s", cn_error(cn));
    cn_error_clear(cn);
    write_file("cut.gz", zipped, 20);
    cn_dataset *cut = cn_dataset_idx(cn, "cut.gz", NULL);
    check(!cut && cn_failed(cn), "cut off: %s", cn_error(cn));
    cn_error_clear(cn);
}

static void csv_files(cn_ctx *cn)
{
    cn_dataset *d = cn_dataset_csv(
        cn, "table.csv", &(cn_csv_desc){ .target = (const char *[]){ "label" }, .targets = 1, .classes = true });
    cn_batch b = all_of(d);
    const double x[5][2] = { { 1, 2 }, { 3, 4.5 }, { -1000, 0 }, { 0, 7 }, { 5, 6 } }, y[5] = { 1, 2, 1, 0, 2 };
    for (int64_t i = 0; i < 5; i++)
        check(cn_get(b.x, CN_DIMS(i, 0)) == x[i][0] && cn_get(b.x, CN_DIMS(i, 1)) == x[i][1] &&
                  cn_get(b.y, CN_DIMS(i)) == y[i],
              "row %d", (int)i);
    check(cn_dataset_classes(d) == 3 && !strcmp(cn_dataset_class(d, 0), "ant") &&
              !strcmp(cn_dataset_class(d, 2), "dog") && !cn_dataset_class(d, 3),
          "classes in order");

    write_text("numbers.csv", "x,y\n0,10\n0,9\n0,10\n0,-1\n");
    d = cn_dataset_csv(cn, "numbers.csv",
                       &(cn_csv_desc){ .target = (const char *[]){ "y" }, .targets = 1, .classes = true });
    b = all_of(d);
    check(!strcmp(cn_dataset_class(d, 0), "-1") && !strcmp(cn_dataset_class(d, 2), "10") &&
              cn_get(b.y, CN_DIMS(0)) == 2 && cn_get(b.y, CN_DIMS(1)) == 1 && cn_get(b.y, CN_DIMS(3)) == 0,
          "labels that are numbers, by value");

    write_text("odd.csv", "\xEF\xBB\xBF\"x,1\";\"say \"\"hi\"\"\" ; z\r\n\r\n1; 2 ;\"3\"\r\n\n4;5;6");
    d = cn_dataset_csv(
        cn, "odd.csv",
        &(cn_csv_desc){ .separator = ';', .target = (const char *[]){ "z", "say \"hi\"" }, .targets = 2 });
    b = all_of(d);
    check(d && cn_size(b.x, 1) == 1 && cn_size(b.y, 1) == 2 && cn_size(b.x, 0) == 2, "odd.csv: %s", cn_error(cn));
    check(cn_get(b.x, CN_DIMS(1, 0)) == 4 && cn_get(b.y, CN_DIMS(0, 0)) == 3 && cn_get(b.y, CN_DIMS(1, 1)) == 5,
          "odd numbers");

    write_text("plain.csv", "1,2,3\n4,5,6\n");
    d = cn_dataset_csv(cn, "plain.csv",
                       &(cn_csv_desc){ .no_header = true, .target = (const char *[]){ "1" }, .targets = 1 });
    b = all_of(d);
    check(cn_dataset_count(d) == 2 && cn_get(b.x, CN_DIMS(1, 1)) == 6 && cn_get(b.y, CN_DIMS(1, 0)) == 5, "by number");
    check(cn_dataset_fields(cn_dataset_csv(cn, "plain.csv", NULL)) == 1, "no target");
}

/* Three bytes in front of the text are part of neither a name nor a number, quoted or not. */
static void marked_csv_files(cn_ctx *cn)
{
    static const char *const texts[] = { "\xEF\xBB\xBFx,y\n1,2\n3,4\n", "\xEF\xBB\xBF\"x\",y\n1,2\n3,4\n" };
    for (int i = 0; i < 2; i++) {
        write_text("marked.csv", texts[i]);
        cn_dataset *d =
            cn_dataset_csv(cn, "marked.csv", &(cn_csv_desc){ .target = (const char *[]){ "x" }, .targets = 1 });
        cn_batch b = all_of(d);
        check(d && cn_get(b.y, CN_DIMS(1, 0)) == 3 && cn_get(b.x, CN_DIMS(1, 0)) == 4,
              "the first name after a byte-order mark: %s", cn_error(cn));
        cn_error_clear(cn);
    }
    write_text("marked.csv", "\xEF\xBB\xBF"
                             "1,2\n3,4\n");
    cn_dataset *d = cn_dataset_csv(cn, "marked.csv", &(cn_csv_desc){ .no_header = true });
    cn_batch b = all_of(d);
    check(d && cn_dataset_count(d) == 2 && cn_get(b.x, CN_DIMS(0, 0)) == 1,
          "the first number after a byte-order mark: %s", cn_error(cn));
    cn_error_clear(cn);
    write_text("marked.csv", "\xEF\xBB\xBF");
    refused(cn, cn_dataset_csv(cn, "marked.csv", NULL), CN_BAD_FILE, "is empty", "a mark alone");
}

static void bad_csv_files(cn_ctx *cn)
{
    const struct {
        const char *text, *message;
    } wrong[] = { { "a,b\n1,2\n3,\n", "line 3, column 2 (b): missing value" },
                  { "a,b\n1,2\n\n,4\n", "line 4, column 1 (a): missing value" },
                  { "a,b\n1,2\n3\n", "line 3 has 1 fields, expected 2" },
                  { "a,b\n1,2,3\n", "line 2 has 3 fields or more, expected 2" },
                  { "a,b\n1,x7\n", "line 2, column 2 (b): not a number: x7" },
                  { "a,b\n1,nan\n", "not a number" },
                  { "a,b\n1,1e99\n", "too large" },
                  { "a,b\n1,0x\n", "not a number" },
                  { "a,b\n1,\"2\n3,4\n", "line 2, column 2 (b): the quoted text does not end" },
                  { "a,b\n\"1\"x,2\n", "text follows the closing quote" },
                  { "", "is empty" },
                  { "\n\n", "is empty" },
                  { "a,\"b\n\"\n1,\"2\n\"\n", "line 3, column 2" } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_text("wrong.csv", wrong[i].text);
        refused(cn, cn_dataset_csv(cn, "wrong.csv", NULL), CN_BAD_FILE, wrong[i].message, wrong[i].text);
    }
    write_file("zeros.csv", "a\n\0\n", 4);
    refused(cn, cn_dataset_csv(cn, "zeros.csv", NULL), CN_BAD_FILE, "bytes that are 0", "zeros in the text");
    write_text("labels.csv", "a,b\n1,\n");
    const char *b[] = { "b", "a" }, *c[] = { "c" }, *twice[] = { "b", "1" };
    refused(cn, cn_dataset_csv(cn, "labels.csv", &(cn_csv_desc){ .target = b, .targets = 1, .classes = true }),
            CN_BAD_FILE, "line 2, column 2 (b): missing", "a missing label");
    refused(cn, cn_dataset_csv(cn, "labels.csv", &(cn_csv_desc){ .target = c, .targets = 1 }), CN_NOT_FOUND,
            "target column c does not exist", "no such target");
    refused(cn, cn_dataset_csv(cn, "labels.csv", &(cn_csv_desc){ .target = twice, .targets = 2 }), CN_NOT_FOUND,
            "twice", "a target twice");
    refused(cn, cn_dataset_csv(cn, "labels.csv", &(cn_csv_desc){ .target = b, .targets = 2 }), CN_BAD_FILE,
            "every column", "no features");
    refused(cn, cn_dataset_csv(cn, "labels.csv", &(cn_csv_desc){ .target = b, .targets = 2, .classes = true }),
            CN_BAD_ARGUMENT, "targets must be 1 with classes, got 2", "two labels");
}

static void records_and_tokens(cn_ctx *cn)
{
    const cn_records_desc desc = { .header = 4,
                                   .fields = 2,
                                   .field = { { .dtype = CN_U8 }, { CN_U8, CN_DIMS(2, 3), 0 } } };
    cn_dataset *d = cn_dataset_records(cn, "records.bin", &desc);
    cn_batch b = all_of(d);
    check(cn_dataset_count(d) == 19 && cn_get(b.x, CN_DIMS(2)) == 42 && cn_get(b.y, CN_DIMS(2, 1, 2)) == 60, "records");
    cn_records_desc wrong = desc;
    wrong.header = 5;
    refused(cn, cn_dataset_records(cn, "records.bin", &wrong), CN_BAD_FILE, "not a whole number of records of 7",
            "a wrong header");
    wrong.header = 1 << 20;
    refused(cn, cn_dataset_records(cn, "records.bin", &wrong), CN_BAD_FILE, "not a whole number", "a header too long");
    wrong = desc;
    wrong.field[0].shape = CN_DIMS(INT64_MAX, INT64_MAX);
    refused(cn, cn_dataset_records(cn, "records.bin", &wrong), CN_BAD_SHAPE, "too large", "an absurd record");

    d = cn_dataset_tokens(cn, "tokens.bin", &(cn_tokens_desc){ .context = 8 });
    b = all_of(d);
    check(cn_dataset_count(d) == 12, "12 windows of 8 in 100 tokens: %d", (int)cn_dataset_count(d));
    bool right = true;
    for (int64_t w = 0; w < 12; w++)
        for (int64_t i = 0; i < 8; i++)
            right = right && cn_get(b.x, CN_DIMS(w, i)) == (double)((w * 8 + i) * 7 % 50) &&
                    cn_get(b.y, CN_DIMS(w, i)) == (double)((w * 8 + i + 1) * 7 % 50);
    check(right, "tokens, and the next ones");
    check(cn_dataset_count(cn_dataset_tokens(cn, "tokens.bin", &(cn_tokens_desc){ .context = 99, .stride = 1 })) == 1 &&
              cn_dataset_count(cn_dataset_tokens(cn, "tokens.bin", &(cn_tokens_desc){ .context = 100 })) == 0,
          "the last window needs one token more");
    check(all_of(cn_dataset_tokens(cn, "tokens.bin", &(cn_tokens_desc){ .context = 8, .vocab = 49 })).x == NULL &&
              strstr(cn_error(cn), "token 7 is 49; tokens must be ≥ 0 and below vocab (49"),
          "beyond the vocabulary: %s", cn_error(cn));
    cn_error_clear(cn);
    refused(cn,
            cn_dataset_tokens(cn, "tokens.bin", &(cn_tokens_desc){ .context = 8, .type = CN_TOKEN_I64, .header = 1 }),
            CN_BAD_FILE, "whole number of tokens", "half a token");
    refused(cn, cn_dataset_tokens(cn, "tokens.bin", &(cn_tokens_desc){ .context = 0 }), CN_BAD_ARGUMENT, "context",
            "no context");
    const char text[] = "hello";
    b = all_of(cn_dataset_token_array(cn, text, 5, &(cn_tokens_desc){ .type = CN_TOKEN_U8, .context = 4 }));
    check(cn_get(b.x, CN_DIMS(0, 0)) == 'h' && cn_get(b.y, CN_DIMS(0, 3)) == 'o', "bytes");
    char upper[] = "Ärger IN Z";
    cn_text_lower(upper);
    check(!strcmp(upper, "Ärger in z"), "lower case: %s", upper);
}

static void tensors_and_arrays(cn_ctx *cn)
{
    cn_tensor *x = cn_keep(cn_reshape(cn_arange(cn, CN_F32, 0, 12, 1), CN_DIMS(4, 3)));
    cn_dataset *d = cn_dataset_tensors(&x, 1);
    cn_dataset *turned = cn_dataset_tensors(&(cn_tensor *){ cn_transpose(x, 0, 1) }, 1);
    cn_eval(x);
    cn_mul_s_(x, 0); /* the dataset has the value of before */
    cn_eval_all(cn);
    check(cn_get(all_of(d).x, CN_DIMS(3, 2)) == 11, "values as they were: %g", cn_get(all_of(d).x, CN_DIMS(3, 2)));
    check(cn_dataset_count(turned) == 3 && cn_get(all_of(turned).x, CN_DIMS(2, 3)) == 11, "a view");
    cn_tensor *uneven[2] = { x, cn_zeros(cn, CN_F32, CN_DIMS(5)) };
    refused(cn, cn_dataset_tensors(uneven, 2), CN_BAD_SHAPE, "tensor 1 has 5 items, tensor 0 has 4", "uneven tensors");
    cn_field field = { CN_F32, CN_DIMS(-1), 0 };
    refused(cn, cn_dataset_arrays(cn, 3, &field, CN_LIST(const void *, x)), CN_BAD_SHAPE, "≥ 0, got -1",
            "arrays do not vary");
    refused(cn, cn_dataset_new(cn, &(cn_dataset_desc){ .count = 1, .fields = 1 }), CN_BAD_ARGUMENT, "function",
            "no function");
    cn_release(x);
}

static void folders(cn_ctx *cn)
{
    cn_dataset *d = cn_dataset_folder(cn, "pictures", &(cn_folder_desc){ .channels = 1 });
    check(cn_dataset_count(d) == 12 && cn_dataset_classes(d) == 2 && !strcmp(cn_dataset_class(d, 0), "bright"),
          "12 of 2 kinds");
    cn_loader *l = cn_loader_new(d, NULL);
    cn_batch b;
    int n = 0, dark = 0;
    for (; cn_loader_next(l, &b); n++) {
        dark += (int)cn_get(b.y, CN_DIMS(0));
        if (n == 0) /* 02.pgm: names sort before folders' contents by name alone */
            check(cn_size(b.x, 2) == 6 && cn_size(b.x, 3) == 7 && cn_get(b.x, CN_DIMS(0, 0, 1, 1)) == 128 + 14 + 8,
                  "its first");
    }
    check(n == 12 && dark == 6 && !cn_failed(cn), "six are dark: %s", cn_error(cn));
    write_text("pictures/dark/99.pgm", "P5 4 4 255\nshort");
    d = cn_dataset_folder(cn, "pictures", NULL);
    l = cn_loader_new(d, &(cn_loader_desc){ .workers = 2 });
    while (cn_loader_next(l, &b)) {}
    check(strstr(cn_error(cn), "loader: item 12: pictures/dark/99.pgm: ") && strstr(cn_error(cn), "cut off"),
          "message: %s", cn_error(cn));
    cn_error_clear(cn);
    cn_loader_free(l);
    remove("pictures/dark/99.pgm");
    refused(cn, cn_dataset_folder(cn, "nowhere", NULL), CN_BAD_FILE, "nowhere: No such", "no folder");
    refused(cn, cn_dataset_folder(cn, "pictures/dark", NULL), CN_BAD_FILE, "no images found", "no classes");
    refused(cn, cn_dataset_folder(cn, "pictures", &(cn_folder_desc){ .height = 3 }), CN_BAD_ARGUMENT, "got 3, 3 and 0",
            "half a size");
}

/* ---- derived */

static void derived(cn_ctx *cn)
{
    cn_dataset *d = sample_idx(cn), *parts[3];
    check(cn_dataset_split(d, CN_LIST(double, 0.5, 0.3, 0.2), 9, parts), "split: %s", cn_error(cn));
    check(cn_dataset_count(parts[0]) == 12 && cn_dataset_count(parts[1]) == 7 && cn_dataset_count(parts[2]) == 4,
          "23 items as 12, 7, 4: %d %d %d", (int)cn_dataset_count(parts[0]), (int)cn_dataset_count(parts[1]),
          (int)cn_dataset_count(parts[2]));
    int seen[23] = { 0 }, in_order = 0, last = -1;
    for (int p = 0; p < 3; p++) {
        cn_batch b = all_of(parts[p]);
        for (int64_t i = 0; i < b.n; i++) {
            int item = (int)lrint(cn_get(b.x, CN_DIMS(i, 0, 0, 0)) * 255);
            seen[item]++;
            in_order += item > last;
            last = item;
        }
    }
    bool once = true;
    for (int i = 0; i < 23; i++) once = once && seen[i] == 1;
    check(once && in_order < 20, "every item in one part, at random");
    check(cn_dataset_split(d, CN_LIST(double, 20, 3), 1, parts) && cn_dataset_count(parts[1]) == 3, "by numbers");
    check(!cn_dataset_split(d, CN_LIST(double, 20, 4), 1, parts) &&
              strstr(cn_error(cn), "sum to 24, but the dataset has 23") && !parts[0],
          "too many: %s", cn_error(cn));
    cn_error_clear(cn);
    check(!cn_dataset_split(d, CN_LIST(double, 0.5, 0.4), 1, parts) && cn_failed(cn), "no fractions of 1: %s",
          cn_error(cn));
    cn_error_clear(cn);
    check(!cn_dataset_split(d, CN_LIST(double, NAN, 0.4), 1, parts) && cn_failed(cn), "not a number: %s", cn_error(cn));
    cn_error_clear(cn);

    cn_dataset *s = cn_dataset_subset(d, CN_LIST(int64_t, 22, 0, 22));
    check(cn_get(all_of(s).y, CN_DIMS(2)) == 2 && cn_get(all_of(s).y, CN_DIMS(1)) == 0, "a subset");
    refused(cn, cn_dataset_subset(d, CN_LIST(int64_t, 23)), CN_BAD_INDEX,
            "index 23 is out of range: the dataset has 23 items", "beyond the end");
    cn_dataset *joined = cn_dataset_concat(CN_LIST(cn_dataset *, s, d));
    cn_batch b = all_of(joined);
    check(b.n == 26 && cn_get(b.y, CN_DIMS(2)) == 2 && cn_get(b.y, CN_DIMS(3)) == 0 && cn_get(b.y, CN_DIMS(25)) == 2,
          "one after the other");
    refused(cn, cn_dataset_concat(CN_LIST(cn_dataset *, d, cn_dataset_idx(cn, "images-idx3", NULL))), CN_BAD_SHAPE,
            "dataset 1", "other fields");
    refused(cn, cn_dataset_map(d, NULL), CN_BAD_ARGUMENT, "function", "no function");
}

/* ---- samplers */

static bool sample_squares(void *user, uint64_t seed, int64_t epoch, int64_t n, int64_t *indices)
{
    (void)user, (void)seed;
    for (int64_t i = 0; i < n; i++) indices[i] = (i * i + epoch) % n;
    return true;
}

static void simple_samplers(cn_ctx *cn)
{
    int64_t v[100], w[100];
    cn_data_sampler *s = cn_data_sampler_sequential(cn, 5);
    check(cn_data_sampler_indices(s, 1, 0, v) && v[0] == 0 && v[4] == 4, "sequential");
    s = cn_data_sampler_subset(cn, CN_LIST(int64_t, 9, 2, 7), true);
    bool moved = false;
    for (int64_t epoch = 0; epoch < 9; epoch++) {
        cn_data_sampler_indices(s, 1, epoch, v);
        moved = moved || v[0] != 9;
        check(v[0] + v[1] + v[2] == 18 && v[0] * v[1] * v[2] == 126, "a subset in epoch %d", (int)epoch);
    }
    check(moved, "and shuffled");
    s = cn_data_sampler_new(cn, 7, sample_squares, NULL);
    check(cn_data_sampler_indices(s, 1, 2, v) && v[3] == (9 + 2) % 7, "a user's own");
    s = cn_data_sampler_random(cn, 10, &(cn_random_desc){ .samples = 4 });
    int count[10] = { 0 };
    for (int64_t epoch = 0; epoch < 2000; epoch++) {
        cn_data_sampler_indices(s, 3, epoch, v);
        check(v[0] != v[1] && v[0] != v[2] && v[0] != v[3] && v[1] != v[2] && v[1] != v[3] && v[2] != v[3],
              "four different ones");
        for (int i = 0; i < 4; i++) count[v[i]]++;
    }
    for (int i = 0; i < 10; i++)
        check(abs(count[i] - 800) < 130, "item %d was drawn %d times of about 800", i, count[i]);
    s = cn_data_sampler_random(cn, 10, &(cn_random_desc){ .samples = 25 });
    cn_data_sampler_indices(s, 3, 0, v);
    memset(count, 0, sizeof count);
    for (int i = 0; i < 25; i++) count[v[i]]++;
    for (int i = 0; i < 10; i++) check(count[i] == 2 || count[i] == 3, "25 of 10: item %d comes %d times", i, count[i]);
    s = cn_data_sampler_random(cn, 10, &(cn_random_desc){ .samples = 100, .replacement = true });
    cn_data_sampler_indices(s, 3, 0, v);
    cn_data_sampler_indices(s, 3, 0, w);
    check(!memcmp(v, w, sizeof v), "the same seed and epoch, the same order");
    memset(count, 0, sizeof count);
    for (int i = 0; i < 100; i++) count[v[i]]++;
    bool even = true;
    for (int i = 0; i < 10; i++) even = even && count[i] == 10;
    check(!even, "with replacement");
    refused(cn, cn_data_sampler_random(cn, 0, &(cn_random_desc){ .samples = 3 }), CN_BAD_ARGUMENT, "3 samples from 0",
            "three of none");
    refused(cn, cn_data_sampler_sequential(cn, -1), CN_BAD_ARGUMENT, "-1", "a negative count");
}

static void weighted_sampler(cn_ctx *cn)
{
    enum { N = 40000 };
    static int64_t v[N];
    const double weight[5] = { 1, 0, 3, 0.5, 5.5 };
    int count[5] = { 0 }, first[5] = { 0 };
    cn_data_sampler *s = cn_data_sampler_weighted(cn, weight, 5, &(cn_weighted_desc){ .samples = N });
    check(cn_data_sampler_indices(s, 1, 0, v), "weighted");
    for (int i = 0; i < N; i++) count[v[i]]++;
    for (int i = 0; i < 5; i++) {
        double p = weight[i] / 10, deviation = sqrt(N * p * (1 - p));
        check(fabs(count[i] - N * p) <= 4.5 * deviation, "item %d: %d times, %.0f awaited", i, count[i], N * p);
    }
    s = cn_data_sampler_weighted(cn, weight, 5, &(cn_weighted_desc){ .samples = 4, .no_replacement = true });
    for (int64_t epoch = 0; epoch < 4000; epoch++) {
        cn_data_sampler_indices(s, 1, epoch, v);
        first[v[0]]++;
        check(v[0] + v[1] + v[2] + v[3] == 9 && v[0] != v[1], "each of the four once");
    }
    for (int i = 0; i < 5; i++) {
        double p = weight[i] / 10, deviation = sqrt(4000 * p * (1 - p));
        check(fabs(first[i] - 4000 * p) <= 4.5 * deviation, "item %d comes first %d times, %.0f awaited", i, first[i],
              4000 * p);
    }
    refused(cn, cn_data_sampler_weighted(cn, weight, 5, &(cn_weighted_desc){ .samples = 5, .no_replacement = true }),
            CN_BAD_ARGUMENT, "5 samples without replacement from 4", "more than there are");
    refused(cn, cn_data_sampler_weighted(cn, CN_LIST(double, 1, -1), NULL), CN_BAD_ARGUMENT, "weight 1 is -1",
            "a negative weight");
    refused(cn, cn_data_sampler_weighted(cn, CN_LIST(double, 0, 0), NULL), CN_BAD_ARGUMENT, "no weight",
            "no weight at all");
    refused(cn, cn_data_sampler_weighted(cn, CN_LIST(double, NAN), NULL), CN_BAD_ARGUMENT, "nan", "not a number");
}

static void distributed_sampler(cn_ctx *cn)
{
    enum { N = 23, WORLD = 4 };
    for (int mode = 0; mode < 4; mode++) {
        bool drop = mode % 2, in_order = mode / 2;
        int count[N] = { 0 }, total = 0;
        int64_t v[N], first = 0;
        for (int rank = 0; rank < WORLD; rank++) {
            cn_data_sampler *s = cn_data_sampler_distributed(
                cn, N, &(cn_distributed_desc){ .rank = rank, .world = WORLD, .drop_last = drop, .in_order = in_order });
            check(cn_data_sampler_count(s) == (drop ? 5 : 6), "a share: %d", (int)cn_data_sampler_count(s));
            cn_data_sampler_indices(s, 7, 3, v);
            for (int i = 0; i < cn_data_sampler_count(s); i++) count[v[i]]++;
            total += (int)cn_data_sampler_count(s);
            if (rank == 0) first = v[0];
            if (in_order) check(v[1] == rank + WORLD, "rank %d in order", rank);
            if (rank == 3 && !drop) check(v[5] == first, "filled up from the beginning: %d", (int)v[5]);
        }
        int missing = 0, twice = 0;
        for (int i = 0; i < N; i++) missing += count[i] == 0, twice += count[i] > 1;
        check(total == (drop ? 20 : 24) && missing == (drop ? 3 : 0) && twice == (drop ? 0 : 1),
              "mode %d: %d missing, %d twice", mode, missing, twice);
    }
    int64_t v[6] = { 0 };
    cn_data_sampler *s =
        cn_data_sampler_distributed(cn, 2, &(cn_distributed_desc){ .rank = 4, .world = 5, .in_order = true });
    check(cn_data_sampler_count(s) == 1 && cn_data_sampler_indices(s, 1, 0, v) && v[0] == 0, "more ranks than items");
    refused(cn, cn_data_sampler_distributed(cn, 2, &(cn_distributed_desc){ .rank = 2, .world = 2 }), CN_BAD_ARGUMENT,
            "got rank 2 of world 2", "a rank too many");
}

static void draws(void)
{
    cn_draw d = cn__item_draw(1, 0, 5), same = cn__item_draw(1, 0, 5), other = cn__item_draw(1, 1, 5),
            third = cn__item_draw(1, 0, 6);
    uint32_t a = cn_draw_u32(&d);
    check(a == cn_draw_u32(&same) && a != cn_draw_u32(&other) && a != cn_draw_u32(&third), "by seed, epoch and index");
    double sum = 0, squares = 0, unit = 0;
    int64_t below[7] = { 0 };
    for (int i = 0; i < 70000; i++) {
        double x = cn_draw_normal(&d);
        sum += x;
        squares += x * x;
        unit += cn_draw_unit(&d);
        below[cn_draw_below(&d, 7)]++;
    }
    check(fabs(sum / 70000) < 0.02 && fabs(squares / 70000 - 1) < 0.03 && fabs(unit / 70000 - 0.5) < 0.006, "moments");
    for (int i = 0; i < 7; i++) check(fabs((double)below[i] - 10000) < 450, "%d below 7: %d times", i, (int)below[i]);
    check(cn_draw_below(&d, 0) == 0 && cn_draw_below(&d, INT64_MAX) >= 0, "ends");
}

int main(void)
{
    if (!enter_scratch()) return finish();
    write_samples();
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 2, .threads = 1 });
    idx_files(cn);
    bad_idx_files(cn);
    zipped_idx_files(cn);
    csv_files(cn);
    marked_csv_files(cn);
    bad_csv_files(cn);
    records_and_tokens(cn);
    tensors_and_arrays(cn);
    folders(cn);
    derived(cn);
    simple_samplers(cn);
    weighted_sampler(cn);
    distributed_sampler(cn);
    draws();
    check(!cn_failed(cn), "no error is left: %s", cn_error(cn));
    cn_close(cn);
    return finish();
}
