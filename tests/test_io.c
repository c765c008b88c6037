/* Files: what is saved is what is loaded, also by and from others; mapped memory; refusals in words.
   Damaged files and failing disks are in test_io_faults.c. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cairn/cairn.h"
#include "cairn/io.h"
#include "core/handle.h"
#include "io/files.h"
#include "io/json.h"
#include "support/check.h"
#include "support/dicts.h"
#include "support/scratch.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define REFERENCE    CAIRN_SOURCE_DIR "/tests/reference/io/"

static cn_ctx *cn;

static bool said(cn_code code, const char *message)
{
    bool ok = cn_error_code(cn) == code && strstr(cn_error(cn), message);
    if (!ok) printf("       %s: %s\n", cn_code_name(cn_error_code(cn)), cn_error(cn));
    cn_error_clear(cn);
    return ok;
}

/* ---- round trips ---- */

static void round_trips(void)
{
    static const char *const paths[] = { "all.safetensors", "./all.npz" };
    for (size_t i = 0; i < COUNT(paths); i++) {
        cn_dict *d = dict_of_everything(cn, i == 0);
        check(cn_save(d, paths[i]), "%s: %s", paths[i], cn_error(cn));
        cn_dict *e = cn_load(cn, paths[i]);
        const char *why = dicts_differ(d, e, true);
        check(!why, "%s: %s; %s", paths[i], why, cn_error(cn));
        size_t bytes;
        unsigned char *file = file_read(paths[i], &bytes);
        for (int shift = 0; shift < 3; shift++) { /* memory of any alignment */
            unsigned char *copy = malloc(bytes + 3);
            memcpy(copy + shift, file, bytes);
            cn_dict *m = cn_load_memory(cn, copy + shift, bytes);
            free(copy);
            why = dicts_differ(d, m, true);
            check(!why, "%s from memory: %s; %s", paths[i], why, cn_error(cn));
            cn_dict_free(m);
        }
        check(cn_save(e, paths[i]), "a file over the one it was loaded from: %s", cn_error(cn));
        why = dicts_differ(d, e, true);
        check(!why, "what was loaded is still there: %s", why);
        size_t again_bytes;
        unsigned char *again = file_read(paths[i], &again_bytes);
        check(again_bytes == bytes && !memcmp(file, again, bytes), "%s: the same dict gives the same file", paths[i]);
        free(file);
        free(again);
        cn_dict_free(d);
        cn_dict_free(e);
        cn_error_clear(cn);
    }
}

static void npy_round_trips(void)
{
    cn_dict *all = dict_of_everything(cn, false);
    for (int64_t i = 0; i < cn_dict_count(all); i++) {
        cn_dict *d = cn_dict_new(cn);
        cn_dict_set(d, "arr_0", cn_dict_at(all, i));
        check(cn_save(d, "one.npy"), "%s: %s", cn_dict_name(all, i), cn_error(cn));
        cn_dict *e = cn_load(cn, "one.npy");
        const char *why = dicts_differ(d, e, true);
        check(!why, "%s: %s; %s", cn_dict_name(all, i), why, cn_error(cn));
        cn_dict_free(d);
        cn_dict_free(e);
    }
    cn_dict_free(all);
}

static void nothing_at_all(void)
{
    static const char *const paths[] = { "nothing.safetensors", "nothing.npz" };
    for (size_t i = 0; i < COUNT(paths); i++) {
        cn_dict *d = cn_dict_new(cn);
        check(cn_save(d, paths[i]), "%s: %s", paths[i], cn_error(cn));
        cn_dict *e = cn_load(cn, paths[i]);
        check(e && cn_dict_count(e) == 0 && cn_dict_texts(e) == 0, "%s: %s", paths[i], cn_error(cn));
        cn_dict_free(d);
        cn_dict_free(e);
    }
}

/* As the format wants it: a header of whole 8 bytes, numbers aligned, every byte some tensor's. */
static void layout_of_a_file(void)
{
    cn_dict *d = dict_of_everything(cn, true);
    cn_save(d, "layout.safetensors");
    size_t bytes;
    unsigned char *file = file_read("layout.safetensors", &bytes);
    uint64_t header, sum = 0;
    memcpy(&header, file, 8);
    check(header % 8 == 0 && file[8] == '{', "a header of %llu bytes", (unsigned long long)header);
    cn__bump memory = { 0 };
    const cn__json *root = cn__json_read(cn, &memory, (char *)file + 8, (size_t)header, "layout");
    for (int64_t i = 0; i < cn_dict_count(d); i++) {
        cn_tensor *t = cn_dict_at(d, i);
        const cn__json *o = cn__json_get(cn__json_get(root, cn_dict_name(d, i)), "data_offsets");
        if (!check(o && o->n == 2, "%s has offsets", cn_dict_name(d, i))) break;
        size_t size = cn_dtype_size(cn_type(t)), n = (size_t)cn_numel(t) * size;
        check((uint64_t)o->v[0].whole % size == 0 && (uint64_t)(o->v[1].whole - o->v[0].whole) == n, "%s is aligned",
              cn_dict_name(d, i));
        sum += n;
    }
    check(8 + header + sum == bytes, "%zu bytes", bytes);
    cn__bump_free(&cn->memory, &memory);
    free(file);
    cn_dict_free(d);
}

/* ---- files of others ---- */

/* The numbers make_io.py puts everywhere. */
static bool has_values(cn_tensor *t, char kind)
{
    int64_t n = cn_numel(t);
    double *v = malloc(sizeof *v * (size_t)(n + 1));
    bool ok = t && cn_read_f64(t, v, n);
    for (int64_t i = 0; i < n && ok; i++) {
        int64_t w = (7 * i + 3) % 100;
        ok = v[i] == (kind == 'b'   ? w % 3 == 0
                      : kind == 'i' ? (double)(w - 50)
                      : kind == 'f' ? (double)(w - 50) / 4
                                    : (double)w);
    }
    free(v);
    return ok;
}

static bool is(cn_tensor *t, cn_dtype dtype, cn_dims shape, char kind)
{
    cn_dims s = cn_shape(t);
    return t && cn_type(t) == dtype && s.n == shape.n && !memcmp(s.v, shape.v, sizeof *s.v * (size_t)s.n) &&
           has_values(t, kind);
}

static void safetensors_of_others(void)
{
    static const struct {
        const char *name;
        cn_dtype dtype;
        char kind;
    } table[] = {
        { "bool", CN_BOOL, 'b' },   { "uint8", CN_U8, 'u' },      { "int8", CN_I8, 'i' },
        { "int16", CN_I16, 'i' },   { "uint16", CN_I32, 'u' },    { "int32", CN_I32, 'i' },
        { "uint32", CN_I64, 'u' },  { "int64", CN_I64, 'i' },     { "uint64", CN_I64, 'u' },
        { "float16", CN_F16, 'f' }, { "bfloat16", CN_BF16, 'f' }, { "float32", CN_F32, 'f' },
        { "float64", CN_F64, 'f' },
    };
    cn_dict *d = cn_load(cn, REFERENCE "all.safetensors");
    if (!check(d != NULL, "all.safetensors: %s", cn_error(cn))) return;
    for (size_t i = 0; i < COUNT(table); i++)
        check(is(cn_dict_get(d, table[i].name), table[i].dtype, CN_DIMS(2, 3, 4), table[i].kind), "%s", table[i].name);
    check(is(cn_dict_get(d, "scalar"), CN_F32, CN_SCALAR, 'f') &&
              is(cn_dict_get(d, "empty"), CN_F32, CN_DIMS(0, 5), 'f') &&
              is(cn_dict_get(d, "größe.重み"), CN_I8, CN_DIMS(3), 'i') && cn_dict_count(d) == 16,
          "a number, nothing, and a name in Unicode");
    const char *note = cn_dict_text(d, "note");
    check(cn_dict_texts(d) == 2 && note && !strcmp(note, "line\nwith \"quotes\" and ünïcode 🙂"), "metadata: %s",
          note);
    cn_dict_free(d);
    d = cn_load(cn, REFERENCE "misaligned.safetensors");
    check(d && is(cn_dict_get(d, "a"), CN_U8, CN_DIMS(3), 'u') && is(cn_dict_get(d, "b"), CN_F64, CN_DIMS(3), 'f') &&
              is(cn_dict_get(d, "c"), CN_I32, CN_DIMS(3), 'i') && is(cn_dict_get(d, "d"), CN_F16, CN_DIMS(3), 'f'),
          "numbers that are not aligned: %s", cn_error(cn));
    cn_dict_free(d);
    d = cn_load(cn, REFERENCE "nothing.safetensors");
    check(d && cn_dict_count(d) == 0, "an empty file of theirs: %s", cn_error(cn));
    cn_dict_free(d);
}

static void npy_of_others(void)
{
    static const struct {
        const char *name;
        cn_dtype dtype;
        char kind;
        cn_dims shape;
    } table[] = {
        { "b1", CN_BOOL, 'b', { 3, { 2, 3, 4 } } },       { "u1", CN_U8, 'u', { 3, { 2, 3, 4 } } },
        { "i1", CN_I8, 'i', { 3, { 2, 3, 4 } } },         { "little_i2", CN_I16, 'i', { 3, { 2, 3, 4 } } },
        { "little_u2", CN_I32, 'u', { 3, { 2, 3, 4 } } }, { "little_i4", CN_I32, 'i', { 3, { 2, 3, 4 } } },
        { "little_u4", CN_I64, 'u', { 3, { 2, 3, 4 } } }, { "little_i8", CN_I64, 'i', { 3, { 2, 3, 4 } } },
        { "little_u8", CN_I64, 'u', { 3, { 2, 3, 4 } } }, { "little_f2", CN_F16, 'f', { 3, { 2, 3, 4 } } },
        { "little_f4", CN_F32, 'f', { 3, { 2, 3, 4 } } }, { "little_f8", CN_F64, 'f', { 3, { 2, 3, 4 } } },
        { "big_i2", CN_I16, 'i', { 3, { 2, 3, 4 } } },    { "big_u4", CN_I64, 'u', { 3, { 2, 3, 4 } } },
        { "big_i8", CN_I64, 'i', { 3, { 2, 3, 4 } } },    { "big_f2", CN_F16, 'f', { 3, { 2, 3, 4 } } },
        { "big_f4", CN_F32, 'f', { 3, { 2, 3, 4 } } },    { "big_f8", CN_F64, 'f', { 3, { 2, 3, 4 } } },
        { "fortran", CN_F32, 'f', { 3, { 2, 3, 4 } } },   { "fortran_big", CN_I16, 'i', { 2, { 3, 5 } } },
        { "scalar", CN_F64, 'f', { 0, { 0 } } },          { "empty", CN_F32, 'f', { 2, { 4, 0 } } },
        { "version2", CN_F32, 'f', { 1, { 5 } } },        { "version3", CN_F32, 'f', { 1, { 5 } } },
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        char path[512];
        snprintf(path, sizeof path, REFERENCE "%s.npy", table[i].name);
        cn_dict *d = cn_load(cn, path);
        check(d && is(cn_dict_get(d, "arr_0"), table[i].dtype, table[i].shape, table[i].kind), "%s: %s", table[i].name,
              cn_error(cn));
        cn_dict_free(d);
        cn_error_clear(cn);
    }
}

static void npz_of_others(void)
{
    static const char *const names[] = { "stored", "deflated" };
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[512];
        snprintf(path, sizeof path, REFERENCE "%s.npz", names[i]);
        cn_dict *d = cn_load(cn, path);
        if (!d && i == 1 && strstr(cn_error(cn), "install zlib")) {
            skip();
            check(said(CN_UNSUPPORTED, "install zlib"), "without zlib: what to do");
            continue;
        }
        if (!check(d != NULL, "%s: %s", names[i], cn_error(cn))) continue;
        check(is(cn_dict_get(d, "weight"), CN_F32, CN_DIMS(2, 3), 'f') &&
                  is(cn_dict_get(d, "bias"), CN_F64, CN_DIMS(4), 'f') &&
                  is(cn_dict_get(d, "steps"), CN_I64, CN_SCALAR, 'i') &&
                  is(cn_dict_get(d, "nested/name"), CN_U8, CN_DIMS(2, 2), 'u') &&
                  is(cn_dict_get(d, "none"), CN_F32, CN_DIMS(0), 'f') &&
                  is(cn_dict_get(d, "fortran"), CN_I32, CN_DIMS(3, 4), 'i'),
              "%s: tensors", names[i]);
        const char *note = cn_dict_text(d, "note"), *plain = cn_dict_text(d, "bytes");
        check(note && !strcmp(note, "ünïcode 🙂") && plain && !strcmp(plain, "plain") && cn_dict_texts(d) == 2,
              "%s: texts", names[i]);
        cn_dict_free(d);
    }
    cn_dict *d = cn_load(cn, REFERENCE "nothing.npz");
    check(d && cn_dict_count(d) == 0, "an empty npz: %s", cn_error(cn));
    cn_dict_free(d);
}

static void put(unsigned char *to, int bytes, uint64_t v)
{
    for (int i = 0; i < bytes; i++, v >>= 8) to[i] = (unsigned char)v;
}

/* The zip file with some numbers of its directory in 64-bit extra fields: bit 0 the size, bit 1 the compressed size,
   bit 2 the place, in this order as the format wants them. Behind an extra field of another kind, as tools write them. */
static unsigned char *widened(const unsigned char *file, size_t bytes, unsigned which, size_t *size)
{
    static const int field[3] = { 24, 20, 42 };
    const unsigned char *end = file + bytes - 22, *p = file + cn__little(end + 16, 4);
    unsigned char *out = malloc(bytes + 64 * cn__little(end + 10, 2)), *to = out + (p - file), *start = to;
    memcpy(out, file, (size_t)(p - file));
    for (uint64_t n = cn__little(end + 10, 2); n--;) {
        const size_t name = 46 + cn__little(p + 28, 2), rest = cn__little(p + 30, 2) + cn__little(p + 32, 2);
        unsigned char *head = to, *extra = to + name + 6 + 4;
        memcpy(to, p, name);
        put(to + name, 2, 0x7075);
        put(to + name + 2, 2, 2);
        put(to + name + 4, 2, 0);
        for (int i = 0; i < 3; i++) {
            if (!(which >> i & 1)) continue;
            put(extra, 8, cn__little(p + field[i], 4));
            put(head + field[i], 4, UINT32_MAX);
            extra += 8;
        }
        put(to + name + 6, 2, 1);
        put(to + name + 8, 2, (uint64_t)(extra - to) - name - 10);
        put(head + 30, 2, (uint64_t)(extra - to) - name + cn__little(p + 30, 2));
        memcpy(extra, p + name, rest);
        to = extra + rest;
        p += name + rest;
    }
    memcpy(to, end, 22);
    put(to + 12, 4, (uint64_t)(to - start));
    *size = (size_t)(to + 22 - out);
    return out;
}

static void wide_fields_of_zip_files(void)
{
    static const char *const names[] = { "stored", "deflated" };
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[512];
        size_t bytes, size;
        snprintf(path, sizeof path, REFERENCE "%s.npz", names[i]);
        cn_dict *plain = cn_load(cn, path);
        if (!plain) { /* without zlib */
            cn_error_clear(cn);
            skip();
            continue;
        }
        unsigned char *file = file_read(path, &bytes);
        for (unsigned which = 0; which < 8; which++) {
            unsigned char *wide = widened(file, bytes, which, &size);
            cn_dict *d = cn_load_memory(cn, wide, size);
            const char *why = d ? dicts_differ(plain, d, true) : "refused";
            check(!why, "%s with wide fields %u: %s; %s", names[i], which, why, cn_error(cn));
            cn_error_clear(cn);
            cn_dict_free(d);
            free(wide);
        }
        free(file);
        cn_dict_free(plain);
    }
}

/* ---- mapped memory ---- */

static int mappings_of(const char *name)
{
    char line[1024];
    int n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f)) n += strstr(line, name) != NULL;
    if (f) fclose(f);
    return n;
}

/* Whether the system lists mappings at all. */
static bool sees_mappings(void)
{
    FILE *f = fopen("probe", "w+");
    if (!f || fputs("probe", f) < 0 || fflush(f)) return false;
    void *p = mmap(NULL, 5, PROT_READ, MAP_PRIVATE, fileno(f), 0);
    const bool seen = p != MAP_FAILED && mappings_of("/probe") == 1;
    if (p != MAP_FAILED) munmap(p, 5);
    fclose(f);
    return seen;
}

static cn_tensor *save_ramp(const char *path, int64_t n)
{
    cn_dict *d = cn_dict_new(cn);
    cn_scope s = cn_scope_begin(cn);
    cn_dict_set(d, "w", cn_arange(cn, CN_F32, 0, (double)n, 1));
    cn_dict_set(d, "b", cn_arange(cn, CN_F32, 0, (double)n, 1));
    cn_scope_end(cn, s);
    check(cn_save(d, path), "%s", cn_error(cn));
    cn_dict_free(d);
    d = cn_load(cn, path);
    cn_tensor *w = cn_keep(cn_dict_get(d, "w"));
    cn_dict_free(d);
    return w;
}

static void a_mapping_lives_as_long_as_its_tensors(void)
{
    cn_tensor *w = save_ramp("mapped.safetensors", 5000);
    if (!check(w != NULL, "%s", cn_error(cn))) return;
    const int one = sees_mappings();
    if (!one) skip();
    check(cn__result_of(w)->storage->borrowed && mappings_of("mapped.safetensors") == one, "a tensor lies in the file");
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *view = cn_keep(cn_slice(w, 0, 10, 20, 1));
    cn_eval(view);
    cn_release(w);
    check(cn_item(cn_sum(view, CN_ALL, false)) == 145 && mappings_of("mapped.safetensors") == one,
          "a view of it keeps the file");
    cn_release(view);
    cn_scope_end(cn, s);
    check(mappings_of("mapped.safetensors") == 0, "then it goes");
}

/* Nobody else means the old value, so that a step might take its memory over: not if it is the file's. */
static void a_parameter_leaves_the_file(const char *path)
{
    cn_scope s = cn_scope_begin(cn);
    cn_dict *d = cn_load(cn, path);
    cn_tensor *p = cn_param(cn_dict_get(d, "b"));
    cn_dict_free(d);
    const void *mapped = cn_data(p);
    for (int i = 0; i < 2; i++) {
        cn_backward(cn_sum(p, CN_ALL, false));
        cn_sgd_step(&p, NULL, 1, &(cn_sgd_step_desc){ .lr = 1 });
        cn_zero_grad(p);
        cn_eval_all(cn);
        check(cn_data(p) != mapped, "step %d: the parameter has memory of its own", i);
    }
    check(mappings_of(path) == 0, "nothing is left of the file: %d", mappings_of(path));
    check(cn_get(p, CN_DIMS(10)) == 8, "and its value: %g", cn_get(p, CN_DIMS(10)));
    cn_release(p);
    cn_scope_end(cn, s);
}

/* Every way to give a handle a new value, again and again: the file and other tensors of it stay as they are. */
static void assigning_never_writes_to_the_file(void)
{
    cn_tensor *w = save_ramp("assigned.safetensors", 3000);
    size_t bytes, after_bytes;
    unsigned char *before = file_read("assigned.safetensors", &bytes);
    cn_dict *other = cn_load(cn, "assigned.safetensors");
    const void *first = cn_data(w);
    const void *mapped = cn_data(cn_dict_get(other, "w"));
    for (int i = 0; i < 4; i++) {
        cn_scope s = cn_scope_begin(cn);
        cn_assign(w, cn_add_s(cn_mul_s(w, 2), 1));
        cn_eval_all(cn);
        cn_add_(w, w);
        cn_eval_all(cn);
        cn_slice_assign_(w, 0, 7, 9, 1, cn_full(cn, CN_F32, CN_DIMS(2), -2));
        cn_eval_all(cn);
        cn_set(w, CN_DIMS(5), -1);
        cn_scope_end(cn, s);
        check(cn_data(w) != first && cn_data(w) != mapped, "round %d: the value has memory of its own", i);
    }
    check(cn_get(w, CN_DIMS(5)) == -1 && cn_get(w, CN_DIMS(7)) == -2 &&
              cn_get(w, CN_DIMS(0)) == 4 * 4 * 4 * 2 + 4 * 4 * 2 + 4 * 2 + 2,
          "values are as computed: %g", cn_get(w, CN_DIMS(0)));
    cn_tensor *p = cn_param(cn_dict_get(other, "b"));
    for (int i = 0; i < 3; i++) {
        cn_backward(cn_sum(p, CN_ALL, false));
        cn_sgd_step(&p, NULL, 1, &(cn_sgd_step_desc){ .lr = 1 });
        cn_zero_grad(p);
        cn_eval_all(cn);
    }
    check(cn_get(p, CN_DIMS(10)) == 7, "steps of an optimizer: %g", cn_get(p, CN_DIMS(10)));
    check(cn_get(cn_dict_get(other, "w"), CN_DIMS(10)) == 10, "another tensor of the same file is as it was");
    cn_release(p);
    cn_dict_free(other);
    a_parameter_leaves_the_file("assigned.safetensors");
    unsigned char *after = file_read("assigned.safetensors", &after_bytes);
    check(bytes == after_bytes && !memcmp(before, after, bytes), "the file is as it was");
    cn_release(w);
    free(before);
    free(after);
}

/* Memory of a read-only file, written to by whoever got the pointer: a copy, not the file, and no crash. */
static void writing_through_the_pointer(void)
{
    cn_tensor *w = save_ramp("pointer.safetensors", 100);
    chmod("pointer.safetensors", 0444);
    ((float *)cn_data(w))[3] = 99;
    cn_dict *d = cn_load(cn, "pointer.safetensors");
    check(cn_get(w, CN_DIMS(3)) == 99 && cn_get(cn_dict_get(d, "w"), CN_DIMS(3)) == 3, "only this memory has it");
    cn_release(w);
    cn_dict_free(d);
}

/* A file inside another one, as cairn bundle makes them: mapped there too. */
static void a_part_of_a_file(void)
{
    enum { BEFORE = 4096 };
    cn_tensor *w = save_ramp("part.safetensors", 100);
    size_t bytes;
    unsigned char *file = file_read("part.safetensors", &bytes);
    static const char before[BEFORE], after[] = "after";
    FILE *f = fopen("whole", "wb");
    check(f && fwrite(before, 1, BEFORE, f) == BEFORE && fwrite(file, 1, bytes, f) == bytes && fputs(after, f) >= 0 &&
              fclose(f) == 0,
          "a file with a file inside");
    cn_dict *d = cn_load_with(cn, "whole", &(cn_load_desc){ .offset = BEFORE, .bytes = bytes });
    cn_tensor *inside = cn_dict_get(d, "w");
    check(inside && cn_get(inside, CN_DIMS(99)) == 99 && cn__result_of(inside)->storage->borrowed, "it is loaded: %s",
          cn_error(cn));
    cn_dict_free(d);
    d = cn_load_with(cn, "part.safetensors", &(cn_load_desc){ .bytes = bytes });
    check(d != NULL, "all of a file: %s", cn_error(cn));
    cn_dict_free(d);
    const cn_load_desc wrong[] = { { .offset = BEFORE + bytes + sizeof after },
                                   { .offset = BEFORE, .bytes = bytes + sizeof after },
                                   { .offset = SIZE_MAX, .bytes = 2 },
                                   { .offset = 2, .bytes = SIZE_MAX } };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        check(!cn_load_with(cn, "whole", &wrong[i]) && cn_error_code(cn) == CN_BAD_FILE &&
                  strstr(cn_error(cn), "are asked for"),
              "part %zu is refused: %s", i, cn_error(cn));
        cn_error_clear(cn);
    }
    free(file);
    cn_release(w);
}

/* What cannot be mapped is read. */
static void a_pipe_is_read(void)
{
    cn_tensor *w = save_ramp("piped.safetensors", 2000);
    size_t bytes;
    unsigned char *file = file_read("piped.safetensors", &bytes);
    int ends[2];
    if (pipe(ends)) {
        skip();
        free(file);
        cn_release(w);
        return;
    }
    if (!check(bytes < 65536 && write(ends[1], file, bytes) == (ssize_t)bytes, "a pipe")) return;
    close(ends[1]);
    char path[64];
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    cn_dict *d = cn_load(cn, path);
    check(d && cn_get(cn_dict_get(d, "w"), CN_DIMS(1999)) == 1999, "from a pipe: %s", cn_error(cn));
    close(ends[0]);
    free(file);
    cn_dict_free(d);
    cn_release(w);
}

/* ---- refusals ---- */

static cn_dict *load_header(const char *header, size_t data_bytes)
{
    uint64_t n = strlen(header);
    unsigned char *file = calloc(1, 8 + (size_t)n + data_bytes);
    memcpy(file, &n, 8);
    memcpy(file + 8, header, (size_t)n);
    cn_dict *d = cn_load_memory(cn, file, 8 + (size_t)n + data_bytes);
    free(file);
    return d;
}

static void headers_that_are_wrong(void)
{
    static const struct {
        const char *header;
        size_t bytes;
        cn_code code;
        const char *message;
    } table[] = {
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, CN_OK, "" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 7, CN_BAD_FILE, "cut off" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 9, CN_BAD_FILE,
          "1 bytes follow the last" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 8, CN_BAD_FILE, "needs 8 bytes" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, CN_BAD_FILE, "data_offsets" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", 8, CN_BAD_FILE, "data_offsets" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,9]}}", 8, CN_BAD_FILE, "data_offsets" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8.0]}}", 8, CN_BAD_FILE, "data_offsets" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, CN_BAD_FILE, "data_offsets" },
        { "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, CN_BAD_FILE, "no shape" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, CN_BAD_FILE, "shape is impossible" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}", 8, CN_BAD_FILE, "whole number" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0, CN_BAD_FILE,
          "shape is impossible" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4611686018427387904,0],\"data_offsets\":[0,0]}}", 0,
          CN_BAD_FILE, "shape is impossible" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, CN_UNSUPPORTED,
          "9 axes" },
        { "{\"a\":{\"dtype\":\"F8_E5M2\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, CN_UNSUPPORTED,
          "dtype F8_E5M2; supported are" },
        { "{\"a\":{\"shape\":[4],\"data_offsets\":[0,4]}}", 4, CN_BAD_FILE, "no dtype" },
        { "{\"a\":4}", 0, CN_BAD_FILE, "no dtype" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
          3, CN_BAD_FILE, "overlap" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
          2, CN_BAD_FILE, "overlap" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[3,5]}}",
          5, CN_BAD_FILE, "gap" },
        { "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
          4, CN_BAD_FILE, "occurs twice" },
        { "{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]},\"e\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]},"
          "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}   ",
          3, CN_OK, "" },
        { "{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2, CN_BAD_FILE, "0 inside" },
        { "{\"__metadata__\":{\"a\":1}}", 0, CN_BAD_FILE, "not a text" },
        { "{\"__metadata__\":[]}", 0, CN_BAD_FILE, "not an object" },
        { "{\"__metadata__\":{\"a\":\"x\\u0000y\"}}", 0, CN_BAD_FILE, "not a text" },
        { "{", 0, CN_BAD_FILE, "JSON" },
        { "[]", 0, CN_BAD_FILE, "not a safetensors" },
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        cn_dict *d = load_header(table[i].header, table[i].bytes);
        check((d != NULL) == (table[i].code == CN_OK) && said(table[i].code, table[i].message), "%s with %zu bytes",
              table[i].header, table[i].bytes);
        cn_dict_free(d);
    }
    unsigned char absurd[16] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{', '}' };
    check(!cn_load_memory(cn, absurd, sizeof absurd) && said(CN_BAD_FILE, "a header of 18446744073709551615"),
          "an absurd length");
    check(!cn_load_memory(cn, "ab", 2) && said(CN_BAD_FILE, "not a safetensors"), "two bytes");
    check(!cn_load_memory(cn, NULL, 0) && said(CN_BAD_FILE, "empty"), "no bytes");
}

static cn_dict *load_npy(const char *header, size_t data_bytes)
{
    size_t n = strlen(header);
    unsigned char *file = calloc(1, 10 + n + data_bytes);
    memcpy(file, "\x93NUMPY\1\0", 8);
    file[8] = (unsigned char)n;
    memcpy(file + 10, header, n);
    cn_dict *d = cn_load_memory(cn, file, 10 + n + data_bytes);
    free(file);
    return d;
}

static void npy_headers_that_are_wrong(void)
{
    static const struct {
        const char *header;
        size_t bytes;
        cn_code code;
        const char *message;
    } table[] = {
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8, CN_OK, "" },
        { "{\"shape\":(1,2),\"fortran_order\":True,\"descr\":\"|u1\"}\n", 2, CN_OK, "" },
        { "{'descr': '=i8', 'fortran_order': False, 'shape': ()}", 8, CN_OK, "" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 7, CN_BAD_FILE,
          "needs 8 bytes, the file has 7" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 9, CN_BAD_FILE, "has 9" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2), }", 8, CN_BAD_FILE, "must be a tuple" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': 2, }", 8, CN_BAD_FILE, "must be a tuple" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", 8, CN_BAD_FILE, "size is missing" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 8, CN_BAD_FILE, "too large" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", 0, CN_BAD_FILE,
          "impossible" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 4, CN_UNSUPPORTED,
          "more than 8 axes" },
        { "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }", 8, CN_BAD_FILE, "must be True or False" },
        { "{'descr': '<f4', 'shape': (2,), }", 8, CN_BAD_FILE, "is missing" },
        { "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8, CN_BAD_FILE, "occurs twice" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}", 8, CN_BAD_FILE, "unknown" },
        { "{'descr': '<f4' 'fortran_order': False, 'shape': (2,), }", 8, CN_BAD_FILE, "a comma" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } x", 8, CN_BAD_FILE, "unexpected text" },
        { "{'descr': '<f4", 8, CN_BAD_FILE, "does not end" },
        { "", 8, CN_BAD_FILE, "must be a dictionary" },
        { "{'descr': '<f3', 'fortran_order': False, 'shape': (2,), }", 6, CN_UNSUPPORTED, "'<f3'" },
        { "{'descr': '<f16', 'fortran_order': False, 'shape': (2,), }", 32, CN_UNSUPPORTED, "'<f16'" },
        { "{'descr': '|S3', 'fortran_order': False, 'shape': (2,), }", 6, CN_UNSUPPORTED, "'|S3'" },
        { "{'descr': '|S3', 'fortran_order': False, 'shape': (), }", 6, CN_BAD_FILE, "with 6 bytes" },
        { "{'descr': '<U1', 'fortran_order': False, 'shape': (), }", 3, CN_BAD_FILE, "with 3 bytes" },
        { "{'descr': '<M8[s]', 'fortran_order': False, 'shape': (), }", 8, CN_UNSUPPORTED, "'<M8[s]'" },
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        cn_dict *d = load_npy(table[i].header, table[i].bytes);
        check((d != NULL) == (table[i].code == CN_OK) && said(table[i].code, table[i].message), "%s with %zu bytes",
              table[i].header, table[i].bytes);
        cn_dict_free(d);
    }
    check(!cn_load_memory(cn, "\x93NUMPY\4\0\0\0", 10) && said(CN_UNSUPPORTED, "got 4"), "a later version");
}

static void files_that_are_refused(void)
{
    static const struct {
        const char *path;
        cn_code code;
        const char *message;
    } table[] = {
        { "not_there.safetensors", CN_BAD_FILE, "load not_there.safetensors: No such file" },
        { ".", CN_BAD_FILE, "Is a directory" },
        { "/dev/null", CN_BAD_FILE, "empty" },
        { CAIRN_SOURCE_DIR "/tests/test_io.c", CN_BAD_FILE, "not a safetensors, npz, npy or PyTorch file" },
        { REFERENCE "float8.safetensors", CN_UNSUPPORTED, "F8_E4M3" },
        { REFERENCE "large_u64.safetensors", CN_UNSUPPORTED, "above the largest i64" },
        { REFERENCE "complex.npy", CN_UNSUPPORTED, "'<c8'" },
        { REFERENCE "objects.npy", CN_UNSUPPORTED, "pickled Python objects" },
        { REFERENCE "records.npy", CN_UNSUPPORTED, "records" },
        { REFERENCE "other.npz", CN_UNSUPPORTED, "\"readme.txt\" is not an .npy file" },
    };
    for (size_t i = 0; i < COUNT(table); i++)
        check(!cn_load(cn, table[i].path) && said(table[i].code, table[i].message), "%s", table[i].path);
    check(!cn_load(cn, NULL) && said(CN_BAD_ARGUMENT, "path must not be NULL"), "no path");
    check(!cn_load(NULL, "x") && !cn_save(NULL, "x.npz") && !cn_load_memory(NULL, "x", 1) && !cn_failed(cn),
          "NULL in gives NULL out");
}

static void dicts_that_are_refused(void)
{
    cn_dict *d = cn_dict_new(cn);
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *t = cn_ones(cn, CN_F32, CN_DIMS(2)), *half = cn_ones(cn, CN_BF16, CN_DIMS(2));
    cn_dict_set(d, "a", t);
    check(!cn_save(d, "x.bin") && said(CN_BAD_ARGUMENT, "must end in .safetensors"), "a name that says nothing");
    check(!cn_save(d, ".npy") && said(CN_BAD_ARGUMENT, "must end in"), "a name that is only an ending");
    cn_dict_set(d, "b", half);
    check(!cn_save(d, "x.npy") && said(CN_UNSUPPORTED, "got 2 and 0"), "npy has one tensor");
    check(!cn_save(d, "x.npz") && said(CN_UNSUPPORTED, "NumPy has no bf16, the dtype of \"b\""), "bf16 is not NumPy's");
    cn_dict_set(d, "b", t);
    cn_dict_set_text(d, "a", "text");
    check(!cn_save(d, "x.npz") && said(CN_BAD_ARGUMENT, "a tensor and a text"), "one name twice");
    check(cn_save(d, "x.safetensors"), "which safetensors can: %s", cn_error(cn));
    cn_dict_set_text(d, "bad", "\xff");
    check(!cn_save(d, "x.safetensors") && said(CN_BAD_ARGUMENT, "not UTF-8"), "texts are UTF-8");
    cn_dict_free(d);
    d = cn_dict_new(cn);
    cn_dict_set(d, "\xc3", t);
    check(!cn_save(d, "x.safetensors") && said(CN_BAD_ARGUMENT, "not UTF-8"), "names are UTF-8");
    check(!cn_save(d, "x.npz") && said(CN_BAD_ARGUMENT, "must be UTF-8"), "names are UTF-8 in npz");
    cn_dict_free(d);
    d = cn_dict_new(cn);
    cn_dict_set(d, "__metadata__", t);
    check(!cn_save(d, "x.safetensors") && said(CN_BAD_ARGUMENT, "__metadata__"), "a name that is taken");
    check(!cn_matmul(t, cn_ones(cn, CN_F32, CN_DIMS(3, 3))), "sizes that differ");
    check(cn_failed(cn) && !cn_save(d, "standing.npz") && access("standing.npz", F_OK),
          "nothing is saved while an error stands");
    cn_error_clear(cn);
    cn_scope_end(cn, s);
    cn_dict_free(d);
}

/* ---- parts of checkpoints ---- */

static void prefixes(void)
{
    cn_dict *d = cn_dict_new(cn);
    cn_scope s = cn_scope_begin(cn);
    static const char *const names[] = { "w", "optim/0/m", "optim/1/m", "optimum", "optim/" };
    for (size_t i = 0; i < COUNT(names); i++) cn_dict_set(d, names[i], cn_full(cn, CN_F32, CN_SCALAR, (double)i));
    cn_scope_end(cn, s);
    cn_dict_set_text(d, "optim/step", "12");
    cn_dict_set_text(d, "note", "x");
    cn_dict *p = cn_dict_prefixed(d, "optim/");
    check(p && cn_dict_count(p) == 3 && cn_dict_texts(p) == 1, "%s", cn_error(cn));
    check(cn_item(cn_dict_get(p, "1/m")) == 2 && cn_item(cn_dict_get(p, "")) == 4 &&
              !strcmp(cn_dict_text(p, "step"), "12"),
          "by their rests");
    cn_dict_free(d);
    check(cn_item(cn_dict_get(p, "0/m")) == 1, "on its own");
    cn_dict_free(p);
    check(!cn_dict_prefixed(NULL, "a") && !cn_failed(cn), "NULL in gives NULL out");
}

static double draw(cn_ctx *c)
{
    cn_scope s = cn_scope_begin(c);
    double v = cn_item(cn_rand(c, CN_F64, CN_SCALAR));
    cn_scope_end(c, s);
    return v;
}

static void random_state(void)
{
    cn_ctx *a = cn_open(&(cn_desc){ .seed = UINT64_MAX - 5, .threads = 1 }), *b = cn_open(&(cn_desc){ .threads = 1 });
    draw(a), draw(a);
    cn_dict *d = cn_dict_new(a);
    check(cn_random_save(a, d, "random/") && cn_save(d, "random.safetensors"), "%s", cn_error(a));
    double next[3];
    for (int i = 0; i < 3; i++) next[i] = draw(a);
    cn_dict *e = cn_load(b, "random.safetensors");
    check(cn_random_load(b, e, "random/"), "%s", cn_error(b));
    for (int i = 0; i < 3; i++) check(draw(b) == next[i], "number %d after loading", i);
    check(!cn_random_load(b, e, "other/") && cn_error_code(b) == CN_NOT_FOUND, "no state: %s", cn_error(b));
    cn_error_clear(b);
    cn_dict_set_text(e, "random/seed", "-1");
    check(!cn_random_load(b, e, "random/") && cn_error_code(b) == CN_BAD_FILE, "not a state: %s", cn_error(b));
    check(!cn_random_load(b, NULL, "") && !cn_random_save(NULL, e, "") && !cn_random_save(b, e, NULL),
          "NULL in gives false out");
    cn_close(a);
    cn_close(b);
}

static void tables(void)
{
    cn_dict *d = cn_dict_new(cn);
    cn_scope s = cn_scope_begin(cn);
    cn_dict_set(d, "encoder.weight", cn_zeros(cn, CN_F32, CN_DIMS(128, 784)));
    cn_dict_set(d, "größe", cn_zeros(cn, CN_BF16, CN_DIMS(3)));
    cn_dict_set(d, "evil\x1b[2J", cn_zeros(cn, CN_I64, CN_SCALAR));
    cn_scope_end(cn, s);
    cn_dict_set_text(d, "step", "1200");
    cn_dict_set_text(d, "description",
                     "a text of more than seventy-two characters, of which only those are shown, 🙂🙂🙂");
    static const char wanted[] =
        "name            type  shape        bytes\n"
        "encoder.weight  f32   [128,784]  401,408\n"
        "größe           bf16  [3]              6\n"
        "evil?[2J        i64   []               8\n"
        "3 tensors, 100,356 numbers, 401,422 bytes\n"
        "\n"
        "step         1200\n"
        "description  a text of more than seventy-two characters, of which only those are show…\n";
    char text[1024], part[40];
    size_t n = cn_dict_print(d, text, sizeof text);
    check(n == strlen(text) && !strcmp(text, wanted), "printed:\n%s", text);
    check(cn_dict_print(d, part, sizeof part) == n && strlen(part) == sizeof part - 1 &&
              !strncmp(part, wanted, sizeof part - 1),
          "in part");
    check(cn_dict_print(d, NULL, 0) == n && cn_dict_print(NULL, part, sizeof part) == 0 && !part[0], "in no memory");
    cn_dict_free(d);
    d = cn_dict_new(cn);
    cn_dict_print(d, text, sizeof text);
    check(!strcmp(text, "0 tensors, 0 numbers, 0 bytes\n"), "nothing: %s", text);
    cn_dict_free(d);
}

int main(void)
{
    if (!enter_scratch()) return finish();
    cn = cn_open(&(cn_desc){ .seed = 1, .threads = 2 });
    cn_scope s = cn_scope_begin(cn);
    round_trips();
    npy_round_trips();
    nothing_at_all();
    layout_of_a_file();
    safetensors_of_others();
    npy_of_others();
    npz_of_others();
    wide_fields_of_zip_files();
    a_mapping_lives_as_long_as_its_tensors();
    assigning_never_writes_to_the_file();
    writing_through_the_pointer();
    a_part_of_a_file();
    a_pipe_is_read();
    headers_that_are_wrong();
    npy_headers_that_are_wrong();
    files_that_are_refused();
    dicts_that_are_refused();
    prefixes();
    random_state();
    tables();
    cn_scope_end(cn, s);
    check(!cn_failed(cn), "no error is left: %s", cn_error(cn));
    cn_close(cn);
    return finish();
}
