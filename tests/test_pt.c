/* Files of torch.save: what PyTorch wrote is what is loaded; pickles that were made to do harm. Files with damaged bytes
   are in test_io_faults.c, state dicts of layers in test_transfer.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"
#include "cairn/io.h"
#include "support/check.h"
#include "support/dicts.h"
#include "support/scratch.h"
#include "support/zips.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define REFERENCE    CAIRN_SOURCE_DIR "/tests/reference/pt/"

static cn_ctx *cn;

static bool said(cn_code code, const char *message)
{
    bool ok = cn_error_code(cn) == code && strstr(cn_error(cn), message);
    if (!ok) printf("       %s: %s\n", cn_code_name(cn_error_code(cn)), cn_error(cn));
    cn_error_clear(cn);
    return ok;
}

static cn_dict *load(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, REFERENCE "%s", name);
    cn_dict *d = cn_load(cn, path);
    check(d != NULL, "%s: %s", name, cn_error(cn));
    return d;
}

/* ---- what PyTorch wrote: element i of a tensor of make_pt.py is i % 5 - 2 ---- */

static double value_at(int64_t i) { return (double)(i % 5) - 2; }

static double as(cn_dtype t, double v) { return t == CN_BOOL ? v != 0 : t == CN_U8 && v < 0 ? v + 256 : v; }

/* Whether a tensor has this type and shape, and element i is that of the base at offset + Σ index·stride. */
static bool is(const cn_dict *d, const char *name, cn_dtype t, cn_dims shape, int64_t offset, cn_dims stride)
{
    cn_tensor *x = cn_dict_get(d, name);
    cn_dims s = cn_shape(x);
    if (!x || cn_type(x) != t || s.n != shape.n || memcmp(s.v, shape.v, (size_t)s.n * sizeof *s.v)) return false;
    double v[64];
    if (!cn_read(cn_cast(x, CN_F64), v, (size_t)cn_numel(x) * sizeof *v)) return false;
    for (int64_t i = 0; i < cn_numel(x); i++) {
        int64_t rest = i, at = offset;
        for (int k = shape.n - 1; k >= 0; rest /= shape.v[k--]) at += rest % shape.v[k] * stride.v[k];
        if (v[i] != as(t, value_at(at))) return false;
    }
    return true;
}

static bool is_plain(const cn_dict *d, const char *name, cn_dtype t, cn_dims shape)
{
    cn_dims stride = { .n = shape.n };
    int64_t step = 1;
    for (int k = shape.n - 1; k >= 0; step *= shape.v[k--]) stride.v[k] = step;
    return is(d, name, t, shape, 0, stride);
}

static void every_dtype(void)
{
    static const struct {
        const char *name;
        cn_dtype dtype;
    } table[] = {
        { "bool", CN_BOOL },   { "uint8", CN_U8 },    { "int8", CN_I8 },     { "int16", CN_I16 },
        { "int32", CN_I32 },   { "int64", CN_I64 },   { "float16", CN_F16 }, { "bfloat16", CN_BF16 },
        { "float32", CN_F32 }, { "float64", CN_F64 },
    };
    cn_dict *d = load("dtypes.pt");
    for (size_t i = 0; i < COUNT(table); i++)
        check(is_plain(d, table[i].name, table[i].dtype, CN_DIMS(2, 3)), "%s", table[i].name);
    check(cn_dict_count(d) == CN_DTYPES && COUNT(table) == CN_DTYPES, "%d tensors", (int)cn_dict_count(d));
    cn_dict_free(d);
}

static void views_are(const cn_dict *d, const char *from)
{
    check_group(from);
    check(is_plain(d, "base", CN_F32, CN_DIMS(4, 6)), "base");
    check(is(d, "transposed", CN_F32, CN_DIMS(6, 4), 0, CN_DIMS(1, 6)), "transposed");
    check(is(d, "part", CN_F32, CN_DIMS(2, 3), 8, CN_DIMS(6, 1)), "part");
    check(is(d, "column", CN_F32, CN_DIMS(4), 1, CN_DIMS(6)), "column");
    check(is(d, "steps", CN_F32, CN_DIMS(2, 2), 0, CN_DIMS(12, 3)), "steps");
    check(is(d, "number", CN_F32, CN_SCALAR, 15, CN_SCALAR), "number");
    check(is(d, "none", CN_F32, CN_DIMS(0, 6), 0, CN_DIMS(6, 1)), "none");
    check(is(d, "empty", CN_F32, CN_DIMS(0, 3), 0, CN_DIMS(3, 1)), "empty");
    check(is(d, "expanded", CN_F32, CN_DIMS(2, 3), 0, CN_DIMS(0, 1)), "expanded");
    check(is_plain(d, "tied", CN_F32, CN_DIMS(3)) && is_plain(d, "again", CN_F32, CN_DIMS(3)) &&
              is_plain(d, "other", CN_F32, CN_DIMS(3, 1)),
          "tied");
    check(is(d, "permuted", CN_F32, CN_DIMS(4, 2, 3), 0, CN_DIMS(1, 12, 4)), "permuted");
    check(is_plain(d, "parameter", CN_F32, CN_DIMS(2)), "parameter");
    check(cn_item(cn_dict_get(d, "single")) == 2.5 && cn_ndim(cn_dict_get(d, "single")) == 0, "single");
    check(cn_dict_count(d) == 15 && cn_dict_texts(d) == 0, "%d tensors", (int)cn_dict_count(d));
    check_group("");
}

static void views_of_storages(void)
{
    int64_t before = cn_count(cn).live_bytes;
    cn_dict *d = load("views.pt");
    check(cn_count(cn).live_bytes - before <= 2 * 64, "%d bytes were copied, more than two empty tensors take",
          (int)(cn_count(cn).live_bytes - before));
    views_are(d, "mapped");
    cn_assign(cn_dict_get(d, "tied"), cn_zeros(cn, CN_F32, CN_DIMS(3)));
    cn_eval(cn_dict_get(d, "tied"));
    check(is_plain(d, "again", CN_F32, CN_DIMS(3)) && is(d, "expanded", CN_F32, CN_DIMS(2, 3), 0, CN_DIMS(0, 1)),
          "an assignment changes one tensor of a storage");
    check(cn_save(d, "views.safetensors"), "%s", cn_error(cn));
    cn_dict *again = cn_load(cn, "views.safetensors");
    const char *why = dicts_differ(d, again, true);
    check(!why, "through safetensors: %s", why);
    cn_dict_free(again);
    cn_dict_free(d);

    size_t bytes;
    unsigned char *file = file_read(REFERENCE "views.pt", &bytes);
    for (int shift = 0; shift < 3; shift++) { /* memory of any alignment */
        unsigned char *copy = malloc(bytes + 3);
        memcpy(copy + shift, file, bytes);
        d = cn_load_memory(cn, copy + shift, bytes);
        free(copy);
        if (check(d != NULL, "from memory: %s", cn_error(cn))) views_are(d, "from memory");
        cn_dict_free(d);
    }
    free(file);
}

static void has_text(const cn_dict *d, const char *name, const char *text)
{
    const char *got = cn_dict_text(d, name);
    check(got && !strcmp(got, text), "%s is %s, not %s", name, got, text);
}

static void a_checkpoint(void)
{
    cn_dict *d = load("checkpoint.pt");
    check(is_plain(d, "weights.0", CN_F32, CN_DIMS(2)) && is_plain(d, "weights.1", CN_F32, CN_DIMS(3)), "weights");
    check(cn_dict_get(d, "model.0.weight") && cn_dict_get(d, "model.1.running_mean") &&
              cn_type(cn_dict_get(d, "model.1.num_batches_tracked")) == CN_I64 &&
              cn_dict_get(d, "optimizer.state.3.momentum_buffer"),
          "the names of tensors");
    has_text(d, "epoch", "3");
    has_text(d, "best", "0.25");
    has_text(d, "far", "-1099511627776");
    has_text(d, "note", "größe 🙂");
    has_text(d, "resumed", "1");
    has_text(d, "7.0", "1");
    has_text(d, "7.1.0", "2.5");
    has_text(d, "7.1.1", "x");
    has_text(d, "optimizer.param_groups.0.momentum", "0.90000000000000002");
    has_text(d, "optimizer.param_groups.0.params.3", "3");
    check(!cn_dict_text(d, "nothing"), "None is left out");
    cn_module *net = cn_nn_sequential(cn, cn_nn_linear(cn, 2, 3, NULL), cn_nn_batch_norm1d(cn, 3, NULL));
    check(cn_module_load(net, d, &(cn_module_load_desc){ .prefix = "model." }), "%s", cn_error(cn));
    check(cn_item(cn_max(cn_abs(cn_sub(cn_module_get(net, "0.weight"), cn_dict_get(d, "model.0.weight"))), CN_ALL,
                         false)) == 0,
          "the weights of the module");
    cn_module_free(net);
    cn_dict_free(d);
}

static void other_forms(void)
{
    static const char *const names[] = { "protocol4.pt", "deflated.pt" };
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[512];
        snprintf(path, sizeof path, REFERENCE "%s", names[i]);
        cn_dict *d = cn_load(cn, path);
        if (!d && i == 1 && strstr(cn_error(cn), "install zlib")) {
            skip();
            cn_error_clear(cn);
            continue;
        }
        check(is_plain(d, "a", CN_F32, CN_DIMS(2)) && is_plain(d, "b.0", CN_F32, CN_DIMS(3)), "%s: %s", names[i],
              cn_error(cn));
        cn_dict_free(d);
    }
    cn_dict *d = load("tensor.pt");
    check(is_plain(d, "value", CN_F32, CN_DIMS(2, 2)) && cn_dict_count(d) == 1, "one tensor");
    cn_dict_free(d);
    d = load("no_checksum.pt");
    check(is_plain(d, "a", CN_F32, CN_DIMS(2)), "a file without checksums");
    cn_dict_free(d);
}

static void files_that_are_refused(void)
{
    static const struct {
        const char *path;
        const char *message;
    } table[] = {
        { REFERENCE "legacy.pt", "before PyTorch 1.6" },
        { REFERENCE "complex.pt", "torch.ComplexFloatStorage" },
        { REFERENCE "module.pt", "torch.nn.modules.activation.ReLU" },
    };
    for (size_t i = 0; i < COUNT(table); i++)
        check(!cn_load(cn, table[i].path) && said(CN_UNSUPPORTED, table[i].message), "%s", table[i].path);
}

/* ---- pickles made by hand ---- */

static const float numbers[4] = { -2, -1, 0, 1 };
static const zip_piece storage = { "x/data/0", numbers, sizeof numbers };

static cn_dict *load_zip(const zip_piece *pieces, int n)
{
    size_t bytes;
    unsigned char *zip = zip_of(pieces, n, &bytes);
    cn_dict *d = cn_load_memory(cn, zip, bytes);
    free(zip);
    return d;
}
#define LOAD(...) load_zip((const zip_piece[]){ __VA_ARGS__ }, (int)COUNT(((const zip_piece[]){ __VA_ARGS__ })))

static cn_dict *load_pickle(const char *pickle, size_t bytes) { return LOAD({ "x/data.pkl", pickle, bytes }, storage); }

/* Pieces of pickles. A storage of 4 floats; a tensor of it, whose offset, sizes and strides are given. */
#define PROTO                    "\x80\2"
#define TEXT1(t)                 "X\1\0\0\0" t
#define ORDERED                  "ccollections\nOrderedDict\n)R"
#define STORAGE(type, key, n)    "(X\7\0\0\0storagectorch\n" type "\n" TEXT1(key) "X\3\0\0\0cpu" n "tQ"
#define FLOATS                   STORAGE("FloatStorage", "0", "K\4")
#define REBUILD                  "ctorch._utils\n_rebuild_tensor_v2\n"
#define TENSOR_OF(storage, rest) REBUILD "(" storage rest "\x89" ORDERED "tR"
#define TENSOR(rest)             TENSOR_OF(FLOATS, rest)
#define IN_DICT(v)               PROTO "}" TEXT1("a") v "s."
#define WHOLE                    TENSOR("K\0K\4\x85K\1\x85")

static void hand_made(void)
{
    static const struct {
        const char *what;
        const char *pickle;
        size_t bytes;
        cn_code code; /* CN_OK: it loads */
        const char *message;
    } table[] = {
#define ROW(what, pickle, code, message) { what, pickle, sizeof(pickle) - 1, code, message }
        ROW("a tensor", IN_DICT(WHOLE), CN_OK, ""),
        ROW("nothing", PROTO "}.", CN_OK, ""),
        ROW("the end of the storage", IN_DICT(TENSOR("K\2K\2\x85K\1\x85")), CN_OK, ""),
        ROW("strides of 0", IN_DICT(TENSOR("K\3M\0\4M\0\4\x86K\0K\0\x86")), CN_OK, ""),
        ROW("a dict in a tuple", PROTO "}" TEXT1("a") WHOLE "s\x85.", CN_OK, ""),
        ROW("an integer of 64 bits", IN_DICT("\x8a\x08\0\0\0\0\0\0\0\x80"), CN_OK, ""),
        ROW("a text of Python 2", IN_DICT("U\2hi"), CN_OK, ""),

        ROW("no bytes", "", CN_BAD_FILE, "cut off"),
        ROW("protocol 1", "\x80\1}.", CN_BAD_FILE, "protocol 2 to 5"),
        ROW("no protocol", "}q\0.", CN_BAD_FILE, "protocol 2 to 5"),
        ROW("bytes after the end", PROTO "}..", CN_BAD_FILE, "bytes follow"),
        ROW("no value", PROTO ".", CN_BAD_FILE, "one value"),
        ROW("two values", PROTO "}}.", CN_BAD_FILE, "one value"),
        ROW("a mark is left", PROTO "}(.", CN_BAD_FILE, "one value"),
        ROW("no mark", PROTO "t.", CN_BAD_FILE, "a mark is missing"),
        ROW("operands below a mark", PROTO "NN(\x86.", CN_BAD_FILE, "lacks operands"),
        ROW("a list below a mark", PROTO "](Na.", CN_BAD_FILE, "something else than a list"),
        ROW("no operands", PROTO "R.", CN_BAD_FILE, "lacks operands"),

        ROW("os.system", PROTO "cos\nsystem\nX\5\0\0\0ls -l\x85R.", CN_UNSUPPORTED, "needs os.system of Python"),
        ROW("os.system by STACK_GLOBAL", "\x80\4\x8c\2os\x8c\6system\x93\x8c\2ls\x85R.", CN_UNSUPPORTED,
            "needs os.system of Python"),
        ROW("a name of another module", PROTO "cevil\nOrderedDict\n)R.", CN_UNSUPPORTED, "evil.OrderedDict"),
        ROW("another name of a module", PROTO "ctorch._utils\n_import_dotted_name\n.", CN_UNSUPPORTED,
            "_import_dotted"),
        ROW("eval", PROTO "cbuiltins\neval\n.", CN_UNSUPPORTED, "builtins.eval"),
        ROW("REDUCE of a text", PROTO "X\2\0\0\0os)R.", CN_BAD_FILE, "cannot be called"),
        ROW("a storage is called", PROTO "ctorch\nFloatStorage\n)R.", CN_BAD_FILE, "type of storage"),
        ROW("INST", PROTO "(ios\nsystem\n.", CN_UNSUPPORTED, "instruction 0x69 at byte 3"),
        ROW("OBJ", PROTO "(cos\nsystem\no.", CN_UNSUPPORTED, "os.system"),
        ROW("NEWOBJ", PROTO "ccollections\nOrderedDict\n)\x81.", CN_UNSUPPORTED, "instruction 0x81"),
        ROW("EXT1", PROTO "\x82\1.", CN_UNSUPPORTED, "instruction 0x82"),
        ROW("PERSID", PROTO "P0\n.", CN_UNSUPPORTED, "instruction 0x50"),
        ROW("PROTO again", PROTO PROTO "}.", CN_UNSUPPORTED, "instruction 0x80"),
        ROW("DUP", PROTO "}2.", CN_UNSUPPORTED, "instruction 0x32"),
        ROW("attributes of a dict", PROTO "}}b.", CN_BAD_FILE, "something else than an OrderedDict"),
        ROW("attributes of a tensor", PROTO WHOLE "}b.", CN_BAD_FILE, "something else than an OrderedDict"),
        ROW("a class as a value", IN_DICT("ccollections\nOrderedDict\n"), CN_UNSUPPORTED, "neither a tensor nor"),
        ROW("a storage as a value", IN_DICT(FLOATS), CN_UNSUPPORTED, "neither a tensor nor"),
        ROW("arguments of OrderedDict", PROTO "ccollections\nOrderedDict\n]\x85R.", CN_BAD_FILE, "no arguments"),

        ROW("a memo far away", PROTO "}r\xff\xff\xff\x7f.", CN_BAD_FILE, "numbered in their order"),
        ROW("a memo twice", PROTO "}q\0q\0.", CN_BAD_FILE, "numbered in their order"),
        ROW("a memo of nothing", PROTO "q\0}.", CN_BAD_FILE, "lacks operands"),
        ROW("not in the memo", PROTO "h\0.", CN_BAD_FILE, "not in the memo"),
        ROW("a list in itself", PROTO "]q\0h\0a.", CN_BAD_FILE, "nested deeper than 128"),
        ROW("a dict in itself", PROTO "}q\0" TEXT1("a") "h\0s.", CN_BAD_FILE, "nested deeper than 128"),
        ROW("a key of a list", PROTO "}]Ns.", CN_BAD_FILE, "neither a text nor a whole number"),
        ROW("an odd number of items", PROTO "}(Nu.", CN_BAD_FILE, "something else than a dict"),
        ROW("a name twice", PROTO "}(" TEXT1("a") WHOLE TEXT1("a") WHOLE "u.", CN_BAD_FILE, "the name \"a\""),
        ROW("names that are empty", PROTO "}(X\0\0\0\0}(X\0\0\0\0K\1" TEXT1("a") "K\2u" TEXT1("a") "K\3u.", CN_OK, ""),
        ROW("a name by two ways",
            PROTO "}(" TEXT1("a") "]Na"
                                  "X\3\0\0\0a.0K\1u.",
            CN_OK, ""),
        ROW("a name of two values",
            PROTO "}(" TEXT1("a") "]K\2a"
                                  "X\3\0\0\0a.0K\1u.",
            CN_BAD_FILE, "the name \"a.0\""),
        ROW("a name with a 0 inside", PROTO "}X\3\0\0\0a\0bK\1s.", CN_BAD_FILE, "a name has a 0 inside"),
        ROW("a text with a 0", IN_DICT("X\3\0\0\0a\0b"), CN_BAD_FILE, "has a 0 inside"),
        ROW("a text that is no UTF-8", IN_DICT("X\2\0\0\0\xc0\x80"), CN_BAD_FILE, "not UTF-8"),
        ROW("a long text", IN_DICT("X\xff\xff\xff\xff"), CN_BAD_FILE, "cut off"),
        ROW("a very long text", IN_DICT("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"), CN_BAD_FILE, "cut off"),
        ROW("a long frame", "\x80\4\x95\xff\xff\xff\xff\xff\xff\xff\xff}.", CN_BAD_FILE, "cut off"),
        ROW("an integer of 72 bits", IN_DICT("\x8a\x09\0\0\0\0\0\0\0\0\1"), CN_BAD_FILE, "more than 64 bits"),

        ROW("an offset beyond", IN_DICT(TENSOR("K\1K\4\x85K\1\x85")), CN_BAD_FILE, "beyond its storage"),
        ROW("a negative offset", IN_DICT(TENSOR("J\xff\xff\xff\xffK\4\x85K\1\x85")), CN_BAD_FILE, "an offset"),
        ROW("a negative size", IN_DICT(TENSOR("K\0J\xff\xff\xff\xff\x85K\1\x85")), CN_BAD_FILE, "from 0 on"),
        ROW("a negative stride", IN_DICT(TENSOR("K\3K\4\x85J\xff\xff\xff\xff\x85")), CN_BAD_FILE, "from 0 on"),
        ROW("a stride beyond", IN_DICT(TENSOR("K\0K\2\x85K\4\x85")), CN_BAD_FILE, "beyond its storage"),
        ROW("a huge stride", IN_DICT(TENSOR("K\0K\3\x85\x8a\x08\0\0\0\0\0\0\0\x40\x85")), CN_BAD_FILE, "beyond its"),
        ROW("a huge size", IN_DICT(TENSOR("K\0\x8a\x08\0\0\0\0\0\0\0\x40\x85K\0\x85")), CN_BAD_FILE, "beyond its"),
        ROW("sizes that overflow", IN_DICT(TENSOR("K\0\x8a\5\0\0\0\0\1\x8a\5\0\0\0\0\1\x86K\0K\0\x86")), CN_BAD_FILE,
            "beyond its"),
        ROW("a large number of repetitions", IN_DICT(TENSOR("K\0J\0\0\0\x40\x85K\0\x85")), CN_UNSUPPORTED,
            "repeats the elements"),
        ROW("an empty tensor far away", IN_DICT(TENSOR("K\5K\0\x85K\1\x85")), CN_BAD_FILE, "beyond its"),
        ROW("fewer strides than sizes", IN_DICT(TENSOR("K\0K\4\x85)")), CN_BAD_FILE, "as many strides"),
        ROW("a size that is a text", IN_DICT(TENSOR("K\0U\1a\x85K\1\x85")), CN_BAD_FILE, "not a whole number"),
        ROW("9 axes", IN_DICT(TENSOR("K\0(K\1K\1K\1K\1K\1K\1K\1K\1K\1t(K\1K\1K\1K\1K\1K\1K\1K\1K\1t")), CN_UNSUPPORTED,
            "9 axes"),
        ROW("a tensor of no storage", IN_DICT(TENSOR_OF("N", "K\0K\4\x85K\1\x85")), CN_BAD_FILE, "must have a storage"),
        ROW("too few arguments", IN_DICT(REBUILD "(" FLOATS "tR"), CN_BAD_FILE, "6 or 7 arguments"),
        ROW("hooks", IN_DICT(REBUILD "(" FLOATS "K\0K\4\x85K\1\x85\x89]tR"), CN_BAD_FILE, "hooks"),
        ROW("a conjugated tensor", IN_DICT(REBUILD "(" FLOATS "K\0K\4\x85K\1\x85\x89" ORDERED "}U\4conj\x88stR"),
            CN_BAD_FILE, "conjugated"),
        ROW("metadata of nothing", IN_DICT(REBUILD "(" FLOATS "K\0K\4\x85K\1\x85\x89" ORDERED "}tR"), CN_OK, ""),
        ROW("a parameter of nothing", IN_DICT("ctorch._utils\n_rebuild_parameter\n(N\x88" ORDERED "tR"), CN_BAD_FILE,
            "_rebuild_parameter"),
        ROW("a missing storage", IN_DICT(TENSOR_OF(STORAGE("FloatStorage", "1", "K\4"), "K\0K\4\x85K\1\x85")),
            CN_BAD_FILE, "data/1 is missing"),
        ROW("a larger storage", IN_DICT(TENSOR_OF(STORAGE("FloatStorage", "0", "K\5"), "K\0K\4\x85K\1\x85")),
            CN_BAD_FILE, "5 elements of f32, got 16 bytes"),
        ROW("a smaller storage", IN_DICT(TENSOR_OF(STORAGE("FloatStorage", "0", "K\3"), "K\0K\3\x85K\1\x85")),
            CN_BAD_FILE, "3 elements of f32, got 16 bytes"),
        ROW("a storage of 2^62 elements",
            IN_DICT(TENSOR_OF(STORAGE("FloatStorage", "0", "\x8a\x08\4\0\0\0\0\0\0\x40"), "K\0K\4\x85K\1\x85")),
            CN_BAD_FILE, "got 16 bytes"),
        ROW("a storage of -4 elements",
            IN_DICT(TENSOR_OF(STORAGE("FloatStorage", "0", "J\xfc\xff\xff\xff"), "K\0K\0\x85K\1\x85")), CN_BAD_FILE,
            "a storage must have"),
        ROW("a storage of another type",
            PROTO "}(" TEXT1("a") WHOLE TEXT1("b")
                TENSOR_OF(STORAGE("IntStorage", "0", "K\4"), "K\0K\4\x85K\1\x85") "u.",
            CN_BAD_FILE, "another dtype"),
        ROW("a storage that is no tuple", PROTO "NQ.", CN_BAD_FILE, "tuple of 5"),
        ROW("a module as a storage", PROTO "(X\6\0\0\0moduleNNNNtQ.", CN_BAD_FILE, "a storage must have"),
        ROW("a type that has no dtype", PROTO "ctorch\nQInt8Storage\n.", CN_UNSUPPORTED, "torch.QInt8Storage"),
#undef ROW
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        cn_dict *d = load_pickle(table[i].pickle, table[i].bytes);
        check(table[i].code == CN_OK ? d && !cn_failed(cn) : !d && said(table[i].code, table[i].message), "%s: %s",
              table[i].what, cn_error(cn));
        if (d) dict_touch(d);
        cn_dict_free(d);
        cn_error_clear(cn);
        for (size_t n = 0; n < table[i].bytes && table[i].code == CN_OK; n++) { /* cut off at every byte */
            d = load_pickle(table[i].pickle, n);
            check(!d && cn_failed(cn), "%s, %zu bytes of it", table[i].what, n);
            cn_error_clear(cn);
        }
    }
}

/* Lists that have the list before them twice: 2^40 tensors. */
static void a_bomb(void)
{
    char pickle[2048];
    size_t n = 0;
    memcpy(pickle, PROTO "]" WHOLE "a", n = sizeof(PROTO "]" WHOLE "a") - 1);
    for (int i = 0; i < 40; i++) {
        const char level[] = { 'q', (char)i, ']', '(', 'h', (char)i, 'h', (char)i, 'e', '\x86' };
        memcpy(pickle + n, level, sizeof level);
        n += sizeof level;
    }
    pickle[n++] = '.';
    check(!load_pickle(pickle, n) && said(CN_BAD_FILE, "uses its values too often"), "a bomb");
}

/* One byte of the record of data.pkl in the directory is changed. */
static bool is_refused(const zip_piece *data, size_t at, int by, const char *message)
{
    size_t bytes, from_end = 22 + 46 + strlen(storage.name) + 46 + strlen(data->name);
    unsigned char *zip = zip_of((const zip_piece[]){ *data, storage }, 2, &bytes);
    zip[bytes - from_end + at] = (unsigned char)(zip[bytes - from_end + at] + by);
    bool refused = !cn_load_memory(cn, zip, bytes) && said(CN_BAD_FILE, message);
    free(zip);
    return refused;
}

/* A writer of deflate's bits: codes begin with their highest bit. */
static size_t write_code(unsigned char *out, size_t at, unsigned code, int bits)
{
    for (int i = bits - 1; i >= 0; i--, at++)
        if (code >> i & 1) out[at / 8] |= (unsigned char)(1 << at % 8);
    return at;
}

/* A list of 2 million empty tuples in 14 KB. */
static void a_compressed_bomb(void)
{
    enum { REPEATS = 8500, UNPACKED = 5 + 258 * REPEATS + 2 };
    static const char first[] = "\x80\2]()", last[] = "e.";
    unsigned char *packed = calloc(1, 32 + REPEATS * 13 / 8);
    size_t at = write_code(packed, 0, 6, 3); /* the last block, of fixed codes */
    for (int i = 0; i < 5; i++) at = write_code(packed, at, 0x30 + (unsigned char)first[i], 8);
    for (int i = 0; i < REPEATS; i++) at = write_code(packed, at, 0xc5 << 5, 13); /* the byte before, 258 times */
    for (int i = 0; i < 2; i++) at = write_code(packed, at, 0x30 + (unsigned char)last[i], 8);
    at = write_code(packed, at, 0, 7);

    size_t bytes;
    unsigned char *file = zip_of(&(zip_piece){ "x/data.pkl", packed, (at + 7) / 8 }, 1, &bytes);
    unsigned char *entry = file + bytes - 22 - 46 - strlen("x/data.pkl"); /* in the directory */
    entry[10] = 8;                                                        /* deflate */
    for (int i = 0; i < 4; i++) entry[24 + i] = (unsigned char)(UNPACKED >> 8 * i);
    check(!cn_load_memory(cn, file, bytes) && said(CN_BAD_FILE, "data.pkl: at most 1"), "a compressed bomb");
    free(packed);
    free(file);
}

/* Bools take one byte each in the pickle, and a name each in the dict. */
static void long_lists(void)
{
    enum { FLAGS = 150000 };
    static const char first[] = PROTO "}X\x16\0\0\0flags.of.all.examples.](";
    const size_t n = sizeof first - 1;
    char *pickle = malloc(n + FLAGS + 3);
    memcpy(pickle, first, n);
    memset(pickle + n, '\x88', FLAGS);
    memcpy(pickle + n + FLAGS, "es.", 3);
    cn_dict *d = load_pickle(pickle, n + FLAGS + 3);
    check(d && cn_dict_texts(d) == FLAGS, "%s", cn_error(cn));
    cn_dict_free(d);
    cn_error_clear(cn);
    free(pickle);
}

static void archives_that_are_refused(void)
{
    static const char pickle[] = IN_DICT(WHOLE);
    const zip_piece data = { "x/data.pkl", pickle, sizeof pickle - 1 };
    cn_dict *d = LOAD(data, storage, { "x/byteorder", "little", 6 });
    check(is_plain(d, "a", CN_F32, CN_DIMS(4)), "little: %s", cn_error(cn));
    cn_dict_free(d);
    check(!LOAD(data, storage, { "x/byteorder", "big", 3 }) && said(CN_UNSUPPORTED, "not little-endian"), "big");
    check(!LOAD(data, storage, storage) && said(CN_BAD_FILE, "occurs twice"), "an entry twice");
    check(!LOAD(data, storage, { "y/data.pkl", pickle, sizeof pickle - 1 }) && said(CN_BAD_FILE, "data.pkl, got 2"),
          "two pickles");
    check(!LOAD(data, { "y/data/0", numbers, sizeof numbers }) && said(CN_BAD_FILE, "data/0 is missing"), "a folder");
    check(!LOAD(data, storage, { "x/constants.pkl", "", 0 }) && said(CN_UNSUPPORTED, "torch.jit.save"), "a program");
    check(is_refused(&data, 20, -1, "two different sizes"), "two sizes");
    check(is_refused(&data, 43, 1, "outside of the file"), "another place");
    check(is_refused(&data, 46, 1, "outside of the file"), "another name");
    d = load_pickle(pickle, sizeof pickle - 1);
    check(is_plain(d, "a", CN_F32, CN_DIMS(4)), "%s", cn_error(cn));
    cn_dict_free(d);
}

/* A pickle that goes on in the next entry. */
static void entries_that_overlap(void)
{
    static const char pickle[] = IN_DICT(WHOLE);
    size_t bytes, from_end = 22 + 46 + strlen(storage.name) + 46 + strlen("x/data.pkl");
    unsigned char *zip = zip_of((const zip_piece[]){ { "x/data.pkl", pickle, sizeof pickle - 1 }, storage }, 2, &bytes);
    zip[bytes - from_end + 20]++;
    zip[bytes - from_end + 24]++;
    check(!cn_load_memory(cn, zip, bytes) && said(CN_BAD_FILE, "entries overlap"), "entries that overlap");
    free(zip);
}

static void the_structure(void)
{
    cn_dict *d = cn_load_with(cn, REFERENCE "checkpoint.pt", &(cn_load_desc){ .structure = true });
    const char *text = d ? cn_dict_text(d, "cairn.structure") : NULL;
    static const char *const parts[] = {
        "{\"dict\":[[\"model\",{\"dict\":[[\"0.weight\",{\"tensor\":\"model.0.weight\"}],",
        "[[0,{\"dict\":[[\"momentum_buffer\",{\"tensor\":\"optimizer.state.0.momentum_buffer\"}]]}],[1,",
        "[\"resumed\",true],[\"nothing\",null],[7,{\"list\":[1,{\"tuple\":[{\"float\":\"2.5\"},\"x\"]},{\"list\":[]},"
        "{\"dict\":[]}]}],[\"weights\",{\"list\":[{\"tensor\":\"weights.0\"},{\"tensor\":\"weights.1\"}]}]]}",
    };
    for (size_t i = 0; i < COUNT(parts) && check(text != NULL, "%s", cn_error(cn)); i++)
        check(strstr(text, parts[i]), "the structure has %s", parts[i]);
    cn_dict_free(d);
    d = load("checkpoint.pt");
    check(!cn_dict_text(d, "cairn.structure"), "nobody asked for the structure");
    cn_dict_free(d);
    size_t bytes;
    unsigned char *file = file_read(REFERENCE "tensor.pt", &bytes);
    d = cn_load_with(cn, NULL, &(cn_load_desc){ .data = file, .bytes = bytes, .structure = true });
    if (check(d != NULL, "from memory: %s", cn_error(cn))) has_text(d, "cairn.structure", "{\"tensor\":\"value\"}");
    cn_dict_free(d);
    free(file);
}

int main(void)
{
    if (!enter_scratch()) return finish();
    cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_scope s = cn_scope_begin(cn);
    every_dtype();
    views_of_storages();
    a_checkpoint();
    the_structure();
    other_forms();
    files_that_are_refused();
    hand_made();
    a_bomb();
    a_compressed_bomb();
    long_lists();
    archives_that_are_refused();
    entries_that_overlap();
    cn_scope_end(cn, s);
    check(!cn_failed(cn), "%s", cn_error(cn));
    cn_close(cn);
    return finish();
}
