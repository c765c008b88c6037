/* Reads files of torch.save (.pt, .pth, .bin): a zip file with a pickle, data.pkl, that describes the objects, and an
   entry data/KEY for the numbers of each storage. Nested dicts and lists become names joined by dots. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/handle.h"
#include "core/host.h"
#include "core/layout.h"
#include "io/json.h"
#include "io/pickle.h"
#include "io/zip.h"

enum { DEEPEST = 128 }; /* nested dicts and lists */

/* An entry data/KEY. */
typedef struct storage {
    cn__zip_entry entry;
    const char *key; /* not ended by 0 */
    size_t key_bytes;
    cn_dtype dtype; /* these three after its first use: */
    cn__content *content;
    const unsigned char *data;
} storage;

typedef struct loading {
    const cn__source *s;
    cn_dict *dict;
    cn__zip zip;
    cn__zip_entry pickle;
    size_t prefix;     /* bytes of the name of data.pkl before "data.pkl": all names begin with them */
    storage *storages; /* sorted by key */
    size_t n;
    cn__out name;          /* of the value that is visited */
    cn__out structure;     /* of the values so far, as JSON */
    uint64_t left;         /* of the memory that names, texts and tensors may take */
    uint64_t left_repeats; /* of the bytes that tensors may have beyond those of their storages, by strides of 0 */
} loading;

static bool is_pickle(const cn__zip_entry *e)
{
    const size_t n = strlen("data.pkl");
    return e->name_bytes >= n && !memcmp(e->name + e->name_bytes - n, "data.pkl", n) &&
           (e->name_bytes == n || e->name[e->name_bytes - n - 1] == '/');
}

bool cn__pt_is(const cn__source *s, bool *is)
{
    cn__zip z;
    cn__zip_entry e;
    *is = false;
    if (!cn__zip_open(&z, s)) return false;
    for (uint64_t i = 0; i < z.entries && !*is; i++) {
        if (!cn__zip_next(&z, &e)) return false;
        *is = is_pickle(&e);
    }
    return true;
}

/* ---- the directory ---- */

static bool is_named(const loading *l, const cn__zip_entry *e, const char *name)
{
    const size_t n = strlen(name);
    return e->name_bytes == l->prefix + n && !memcmp(e->name, l->pickle.name, l->prefix) &&
           !memcmp(e->name + l->prefix, name, n);
}

/* The key of an entry data/KEY. */
static bool is_storage(const loading *l, const cn__zip_entry *e, storage *out)
{
    const size_t before = l->prefix + strlen("data/");
    if (e->name_bytes <= before || memcmp(e->name, l->pickle.name, l->prefix) ||
        memcmp(e->name + l->prefix, "data/", before - l->prefix))
        return false;
    *out = (storage){ .entry = *e, .key = e->name + before, .key_bytes = e->name_bytes - before };
    return true;
}

static bool find_pickle(loading *l, const cn__zip_entry *entries, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_pickle(&entries[i])) continue;
        l->pickle = entries[i];
        found++;
    }
    l->prefix = l->pickle.name_bytes - strlen("data.pkl");
    return found == 1 || cn__source_fail(l->s, CN_BAD_FILE, "there must be one data.pkl, got %zu", found);
}

static bool check_byteorder(loading *l, const cn__zip_entry *e)
{
    cn__source order;
    bool ok = cn__zip_unpack(&l->zip, e, "byteorder", &order);
    if (ok && (order.bytes != 6 || memcmp(order.data, "little", 6) != 0))
        ok = cn__source_fail(
            l->s, CN_UNSUPPORTED,
            "its numbers are not little-endian: load it with PyTorch where it was saved, and save it with "
            "safetensors");
    cn__content_release(order.content);
    return ok;
}

static int by_place(const void *a, const void *b)
{
    const cn__zip_entry *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Bytes belong to one entry. */
static bool check_places(const loading *l, cn__zip_entry *entries, size_t n)
{
    if (n) qsort(entries, n, sizeof *entries, by_place);
    for (uint64_t i = 0, end = 0, start; i < n; i++) {
        if (!cn__zip_start(&l->zip, &entries[i], &start)) return false;
        if (entries[i].at < end) return cn__source_fail(l->s, CN_BAD_FILE, "zip: entries overlap");
        end = start + entries[i].packed;
    }
    return true;
}

static int compare_keys(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    const int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
    return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

static int by_key(const void *a, const void *b)
{
    const storage *x = a, *y = b;
    return compare_keys(x->key, x->key_bytes, y->key, y->key_bytes);
}

static bool read_directory(loading *l, cn__bump *memory)
{
    cn__zip *z = &l->zip;
    const uint64_t most = (z->end - z->directory) / CN__ZIP_CENTRAL_BYTES; /* the file may claim any number */
    if (z->entries > most) return cn__source_fail(l->s, CN_BAD_FILE, "zip: the directory is damaged");
    const size_t n = (size_t)z->entries;
    cn__zip_entry *entries = cn__bump_new(&l->s->ctx->memory, memory, (n + 1) * sizeof *entries);
    l->storages = cn__bump_new(&l->s->ctx->memory, memory, (n + 1) * sizeof *l->storages);
    if (!entries || !l->storages) return cn__source_fail(l->s, CN_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < n; i++)
        if (!cn__zip_next(z, &entries[i])) return false;
    if (!cn__zip_end(z) || !check_places(l, entries, n) || !find_pickle(l, entries, n)) return false;
    for (size_t i = 0; i < n; i++) {
        if (is_storage(l, &entries[i], &l->storages[l->n])) l->n++;
        if (is_named(l, &entries[i], "byteorder") && !check_byteorder(l, &entries[i])) return false;
        if (is_named(l, &entries[i], "constants.pkl"))
            return cn__source_fail(l->s, CN_UNSUPPORTED,
                                   "this is a program of torch.jit.save; save model.state_dict() with torch.save");
    }
    if (l->n) qsort(l->storages, l->n, sizeof *l->storages, by_key);
    for (size_t i = 1; i < l->n; i++)
        if (by_key(&l->storages[i - 1], &l->storages[i]) == 0)
            return cn__source_fail(l->s, CN_BAD_FILE, "zip: a name occurs twice");
    return true;
}

/* ---- tensors ---- */

static storage *find_storage(const loading *l, const cn__saved_storage *wanted)
{
    size_t low = 0, high = l->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        storage *s = &l->storages[middle];
        const int order = compare_keys(s->key, s->key_bytes, wanted->key, wanted->key_bytes);
        if (order == 0) return s;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return NULL;
}

/* The numbers where tensors can borrow them: in the file if they are aligned there, else in a copy. */
static bool open_content(loading *l, storage *s, const cn__source *bytes)
{
    const bool aligned = (uintptr_t)bytes->data % cn_dtype_size(s->dtype) == 0;
    s->data = bytes->data;
    s->content = bytes->content;
    if (bytes->content && aligned && s->dtype != CN_BOOL) {
        s->content->refs++;
        return true;
    }
    s->content = cn__content_new(l->s->ctx, bytes->bytes);
    if (!s->content) return false;
    s->data = s->content->data;
    if (bytes->bytes) memcpy(s->content->data, bytes->data, bytes->bytes);
    for (size_t i = 0; i < bytes->bytes && s->dtype == CN_BOOL; i++) s->content->data[i] = bytes->data[i] != 0;
    return true;
}

static bool open_storage(loading *l, storage *s, const cn__saved_storage *saved, const char *name)
{
    const size_t size = cn_dtype_size(saved->dtype);
    cn__source bytes;
    if (s->data && s->dtype == saved->dtype && (uint64_t)saved->numel == s->entry.unpacked / size) return true;
    if (s->data || s->entry.unpacked % size || s->entry.unpacked / size != (uint64_t)saved->numel)
        return cn__source_fail(
            l->s, CN_BAD_FILE,
            "tensor \"%.100s\": its storage must have %" PRId64 " elements of %s, got %" PRIu64 " bytes%s", name,
            saved->numel, cn_dtype_name(saved->dtype), s->entry.unpacked, s->data ? " of another dtype" : "");
    s->dtype = saved->dtype;
    const bool ok = cn__zip_unpack(&l->zip, &s->entry, name, &bytes) && open_content(l, s, &bytes);
    cn__content_release(bytes.content);
    return ok;
}

/* Strides of 0 let a small file describe a large tensor: there is a limit. */
static bool check_repeats(loading *l, const cn__saved_tensor *t, const char *name)
{
    const int64_t numel = cn__numel(&t->layout), size = (int64_t)cn_dtype_size(t->storage->dtype);
    if (numel <= t->storage->numel) return true;
    const uint64_t more = (uint64_t)(numel - t->storage->numel) * (uint64_t)size;
    if (more > l->left_repeats)
        return cn__source_fail(
            l->s, CN_UNSUPPORTED,
            "tensor \"%.100s\" repeats the elements of its storage too often: save a contiguous copy", name);
    l->left_repeats -= more;
    return true;
}

static cn_tensor *tensor_of(loading *l, const cn__saved_tensor *t, const char *name)
{
    cn_ctx *ctx = l->s->ctx;
    const cn_dtype dtype = t->storage->dtype;
    storage *s = find_storage(l, t->storage);
    if (!s) {
        cn__source_fail(l->s, CN_BAD_FILE, "tensor \"%.100s\": its storage data/%.*s is missing", name,
                        (int)(t->storage->key_bytes < 40 ? t->storage->key_bytes : 40), t->storage->key);
        return NULL;
    }
    if (!open_storage(l, s, t->storage, name) || !check_repeats(l, t, name)) return NULL;
    cn_layout layout = t->layout;
    if (!cn__numel(&layout)) {
        cn_dims shape = { .n = layout.ndim };
        memcpy(shape.v, layout.shape, sizeof shape.v);
        return cn_from(ctx, dtype, shape, "");
    }
    layout.offset = 0;
    void *data = (void *)(s->data + (size_t)t->layout.offset * cn_dtype_size(dtype));
    if (!cn__host_device(ctx)) return cn__borrow_layout(ctx, dtype, &layout, data, NULL, NULL);
    cn_tensor *out = cn__borrow_layout(ctx, dtype, &layout, data, cn__content_release, s->content);
    if (!out) return NULL;
    cn__result_of(out)->storage->inside = true;
    s->content->refs++;
    return out;
}

/* ---- values under their names ---- */

/* Counts what a value takes. A pickle may use a value often, and so describe more than memory can hold. */
static bool spend(loading *l, uint64_t bytes)
{
    if (bytes > l->left) return cn__source_fail(l->s, CN_BAD_FILE, "data.pkl: it uses its values too often");
    l->left -= bytes;
    return true;
}

static bool place_tensor(loading *l, const cn__saved_tensor *saved, const char *name)
{
    enum { TENSOR_BYTES = 512 }; /* about what a tensor takes, without its elements */
    if (!spend(l, TENSOR_BYTES)) return false;
    cn_scope scope = cn_scope_begin(l->s->ctx);
    cn_tensor *t = tensor_of(l, saved, name);
    const bool ok = t && cn_dict_set(l->dict, name, t);
    cn_scope_end(l->s->ctx, scope);
    return ok;
}

static bool place_text(loading *l, const cn__value *v, const char *name)
{
    if (memchr(v->text, 0, v->n))
        return cn__source_fail(l->s, CN_BAD_FILE, "data.pkl: text \"%.100s\" has a 0 inside", name);
    if (!spend(l, v->n)) return false;
    char *copy = cn__alloc(l->s->ctx, v->n + 1);
    if (!copy) return false;
    if (v->n) memcpy(copy, v->text, v->n);
    copy[v->n] = 0;
    const bool ok = cn_dict_set_text(l->dict, name, copy);
    cn__free(l->s->ctx, copy, v->n + 1);
    return ok;
}

static bool place_leaf(loading *l, const cn__value *v)
{
    if (!cn__out_append(&l->name, "", 1)) return false;
    l->name.text.n--;
    const char *name = l->name.text.v;
    if (v->type == CN__VALUE_NONE) return true;
    if (strlen(name) < l->name.text.n) return cn__source_fail(l->s, CN_BAD_FILE, "data.pkl: a name has a 0 inside");
    if (cn_dict_get(l->dict, name) || cn_dict_text(l->dict, name))
        return cn__source_fail(l->s, CN_BAD_FILE, "data.pkl: two values have the name \"%.100s\"", name);
    switch (v->type) {
    case CN__VALUE_BOOL:
    case CN__VALUE_WHOLE: return cn_dict_set_whole(l->dict, name, v->whole);
    case CN__VALUE_REAL: return cn_dict_set_number(l->dict, name, v->real);
    case CN__VALUE_TEXT: return place_text(l, v, name);
    case CN__VALUE_TENSOR: return place_tensor(l, v->tensor, name);
    default:
        return cn__source_fail(l->s, CN_UNSUPPORTED,
                               "data.pkl: \"%.100s\" is neither a tensor nor a dict, list, number or text", name);
    }
}

/* ---- the structure ---- */

static bool show_real(loading *l, double v)
{
    char text[64];
    snprintf(text, sizeof text, "{\"float\":\"%.17g\"}", v);
    return cn__out_plain(&l->structure, text);
}

static bool show_leaf(loading *l, const cn__value *v)
{
    cn__out *o = &l->structure;
    if (!l->s->structure) return true;
    switch (v->type) {
    case CN__VALUE_BOOL: return cn__out_plain(o, v->whole ? "true" : "false");
    case CN__VALUE_WHOLE: return cn__out_whole(o, v->whole);
    case CN__VALUE_REAL: return show_real(l, v->real);
    case CN__VALUE_TEXT: return cn__out_text(o, v->text, v->n);
    case CN__VALUE_TENSOR:
        return cn__out_plain(o, "{\"tensor\":") && cn__out_text(o, l->name.text.v, l->name.text.n) &&
               cn__out_plain(o, "}");
    default: return cn__out_plain(o, "null");
    }
}

static bool show_key(loading *l, const cn__value *key)
{
    cn__out *o = &l->structure;
    if (!l->s->structure || !key) return true;
    return cn__out_plain(o, "[") &&
           (key->type == CN__VALUE_TEXT ? cn__out_text(o, key->text, key->n) : cn__out_whole(o, key->whole)) &&
           cn__out_plain(o, ",");
}

static bool show(loading *l, const char *text) { return !l->s->structure || cn__out_plain(&l->structure, text); }

static bool append_key(loading *l, const cn__value *key, size_t index, bool nested)
{
    char digits[24];
    if (nested && !cn__out_append(&l->name, ".", 1)) return false;
    if (key && key->type == CN__VALUE_TEXT) return cn__out_append(&l->name, key->text, key->n);
    const int n = snprintf(digits, sizeof digits, "%" PRId64, key ? key->whole : (int64_t)index);
    return cn__out_append(&l->name, digits, (size_t)n);
}

static bool has_members(const cn__value *v)
{
    return v->type == CN__VALUE_DICT || v->type == CN__VALUE_LIST || v->type == CN__VALUE_TUPLE;
}

static bool place(loading *l, const cn__value *v, int depth)
{
    enum { VALUE_BYTES = 48 };
    const size_t before = l->name.text.n;
    if (!spend(l, VALUE_BYTES + before)) return false;
    if (!has_members(v)) return place_leaf(l, v) && show_leaf(l, v);
    if (depth == DEEPEST)
        return cn__source_fail(l->s, CN_BAD_FILE, "data.pkl: dicts and lists are nested deeper than %d", DEEPEST);
    size_t i = 0;
    if (!show(l, v->type == CN__VALUE_DICT   ? "{\"dict\":["
                 : v->type == CN__VALUE_LIST ? "{\"list\":["
                                             : "{\"tuple\":["))
        return false;
    for (const cn__member *e = v->first; e; e = e->next) {
        if (i && !show(l, ",")) return false;
        if (!show_key(l, e->key) || !append_key(l, e->key, i++, depth > 0) || !place(l, e->value, depth + 1))
            return false;
        if (e->key && !show(l, "]")) return false;
        l->name.text.n = before;
    }
    return show(l, "]}");
}

/* A value takes about 70 bytes, and one byte in the pickle. torch.save compresses nothing, so a pickle that is far
   larger than its file was made to fill the memory. */
static bool check_pickle(const loading *l)
{
    const uint64_t most = (uint64_t)l->s->bytes * 4 + (1 << 20), bytes = l->pickle.unpacked;
    return bytes <= most ||
           cn__source_fail(l->s, CN_BAD_FILE,
                           "data.pkl: at most %" PRIu64 " bytes are read from this file, got %" PRIu64, most, bytes);
}

/* Numbers in lists have names, so they take more than in the pickle: one byte there can be a bool with a name of 80. */
static bool place_all(loading *l, const cn__source *pickle, const cn__value *root)
{
    l->left = (uint64_t)pickle->bytes * 128 + (1 << 20);
    l->left_repeats = (uint64_t)l->s->bytes * 64 + (16 << 20);
    return (has_members(root) || cn__out_plain(&l->name, "value")) && place(l, root, 0) &&
           (!l->s->structure || (cn__out_append(&l->structure, "", 1) &&
                                 cn_dict_set_text(l->dict, "cairn.structure", l->structure.text.v)));
}

bool cn__pt_load(const cn__source *s, cn_dict *d)
{
    loading l = { .s = s, .dict = d, .name = { .ctx = s->ctx }, .structure = { .ctx = s->ctx } };
    cn__bump memory = { 0 };
    cn__source pickle = { 0 };
    const cn__value *root = NULL;
    bool ok = cn__zip_open(&l.zip, s);
    l.zip.unchecked = true;
    ok = ok && read_directory(&l, &memory) && check_pickle(&l) &&
         cn__zip_unpack(&l.zip, &l.pickle, "data.pkl", &pickle) && (root = cn__pickle_read(&pickle, &memory)) &&
         place_all(&l, &pickle, root);
    for (size_t i = 0; i < l.n; i++) cn__content_release(l.storages[i].content);
    cn__content_release(pickle.content);
    cn__out_free(&l.name);
    cn__out_free(&l.structure);
    cn__bump_free(&s->ctx->memory, &memory);
    return ok;
}
