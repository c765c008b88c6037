/* Dicts: tensors and texts under names, in the order in which they were inserted. */
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "cairn/dict.h"
#include "core/errors.h"
#include "core/handle.h"
#include "core/object.h"

typedef struct entry {
    char *name;
    cn_tensor *tensor; /* kept; NULL: the entry is a text */
    char *text;
} entry;

/* Entries in order of insertion, and a table from names to entries. */
typedef struct table {
    cn__vec entries;
    cn__names names;
} table;

struct cn_dict {
    cn__object object;
    table tensors, texts;
};

static entry *entry_at(const table *t, size_t i) { return (entry *)t->entries.v + i; }

static entry *find(const table *t, const char *name)
{
    int64_t i = name ? cn__names_find(&t->names, &t->entries, sizeof(entry), name, strlen(name)) : -1;
    return i < 0 ? NULL : entry_at(t, (size_t)i);
}

static entry *find_or_add(cn_ctx *ctx, table *t, const char *name)
{
    entry *e = find(t, name);
    if (e) return e;
    if (!cn__vec_reserve(&ctx->memory, &t->entries, t->entries.n + 1, sizeof(entry)) ||
        !cn__names_reserve(&ctx->memory, &t->names, &t->entries, sizeof(entry))) {
        cn__no_memory(ctx, "dict");
        return NULL;
    }
    char *copy = cn__copy_text(ctx, name);
    if (!copy) return NULL;
    e = entry_at(t, t->entries.n++);
    *e = (entry){ .name = copy };
    cn__names_add(&t->names, &t->entries, sizeof(entry));
    return e;
}

static void free_table(cn_ctx *ctx, table *t)
{
    for (size_t i = 0; i < t->entries.n; i++) {
        entry *e = entry_at(t, i);
        cn__free_text(ctx, e->name);
        cn__free_text(ctx, e->text);
        cn__release(e->tensor);
    }
    cn__vec_free(&ctx->memory, &t->entries, sizeof(entry));
    cn__names_free(&ctx->memory, &t->names);
}

static void destroy(void *self)
{
    cn_dict *d = self;
    free_table(d->object.ctx, &d->tensors);
    free_table(d->object.ctx, &d->texts);
}

const cn__object_type cn__dict_type = { "dict", destroy };

cn_dict *cn_dict_new(cn_ctx *ctx)
{
    CN__CALL call = cn__enter(ctx, __func__);
    cn_dict *d = call.ctx ? cn__object_new(ctx, sizeof *d, &cn__dict_type) : NULL;
    if (d) d->tensors.names.key = d->texts.names.key = &ctx->hash_key;
    return d;
}
void cn_dict_free(cn_dict *d) { cn__free_by_program(d, &cn__dict_type, __func__); }
cn_ctx *cn_dict_context(const cn_dict *d) { return cn__is(d, &cn__dict_type) ? d->object.ctx : NULL; }

static bool has_name(const cn_dict *d, const char *name)
{
    cn_ctx *ctx = d->object.ctx;
    return name || cn__fail(ctx, CN_BAD_ARGUMENT, "%s: the name must not be NULL", cn__called(ctx, "dict"));
}

bool cn_dict_set(cn_dict *d, const char *name, cn_tensor *t)
{
    CN__CALL call = cn__call_object(d, &cn__dict_type);
    if (!call.ctx || !has_name(d, name) || !cn__of_context(d->object.ctx, t, "dict_set", "the tensor")) return false;
    entry *e = find_or_add(d->object.ctx, &d->tensors, name);
    if (!e) return false;
    cn__keep(t);
    cn__release(e->tensor);
    e->tensor = t;
    return true;
}

cn_tensor *cn_dict_get(const cn_dict *d, const char *name)
{
    CN__CALL call = cn__call_object(d, &cn__dict_type);
    entry *e = call.ctx && has_name(d, name) ? find(&d->tensors, name) : NULL;
    return e ? e->tensor : NULL;
}

static entry *nth(const table *t, int64_t i)
{
    return i >= 0 && (size_t)i < t->entries.n ? entry_at(t, (size_t)i) : NULL;
}

int64_t cn_dict_count(const cn_dict *d) { return cn__is(d, &cn__dict_type) ? (int64_t)d->tensors.entries.n : 0; }

const char *cn_dict_name(const cn_dict *d, int64_t i)
{
    entry *e = cn__is(d, &cn__dict_type) ? nth(&d->tensors, i) : NULL;
    return e ? e->name : NULL;
}

cn_tensor *cn_dict_at(const cn_dict *d, int64_t i)
{
    entry *e = cn__is(d, &cn__dict_type) ? nth(&d->tensors, i) : NULL;
    return e ? e->tensor : NULL;
}

bool cn_dict_set_text(cn_dict *d, const char *name, const char *text)
{
    CN__CALL call = cn__call_object(d, &cn__dict_type);
    if (!call.ctx || !has_name(d, name)) return false;
    if (!text) return cn__fail(d->object.ctx, CN_BAD_ARGUMENT, "dict_set_text: the text must not be NULL");
    char *copy = cn__copy_text(d->object.ctx, text);
    entry *e = copy ? find_or_add(d->object.ctx, &d->texts, name) : NULL;
    if (!e) {
        cn__free_text(d->object.ctx, copy);
        return false;
    }
    cn__free_text(d->object.ctx, e->text);
    e->text = copy;
    return true;
}

const char *cn_dict_text(const cn_dict *d, const char *name)
{
    CN__CALL call = cn__call_object(d, &cn__dict_type);
    entry *e = call.ctx && has_name(d, name) ? find(&d->texts, name) : NULL;
    return e ? e->text : NULL;
}

int64_t cn_dict_texts(const cn_dict *d) { return cn__is(d, &cn__dict_type) ? (int64_t)d->texts.entries.n : 0; }

const char *cn_dict_text_name(const cn_dict *d, int64_t i)
{
    entry *e = cn__is(d, &cn__dict_type) ? nth(&d->texts, i) : NULL;
    return e ? e->name : NULL;
}

bool cn_dict_set_number(cn_dict *d, const char *name, double value)
{
    CN__CALL call = cn__call_object(d, &cn__dict_type);
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    text[strcspn(text, ",")] = text[strcspn(text, ",")] ? '.' : 0; /* some locales write a comma */
    return call.ctx && cn_dict_set_text(d, name, text);
}

static bool has_memory(const cn_dict *d, const void *value)
{
    return value || cn__fail(d->object.ctx, CN_BAD_ARGUMENT, "dict: value must not be NULL");
}

bool cn_dict_number(const cn_dict *d, const char *name, double *value)
{
    CN__CALL call = cn__call_object(d, &cn__dict_type);
    const char *text = call.ctx && has_memory(d, value) ? cn_dict_text(d, name) : NULL;
    char local[64], *end;
    if (!text || !*text || strlen(text) >= sizeof local) return false;
    strcpy(local, text);
    char *point = strchr(local, '.');
    if (point) *point = *localeconv()->decimal_point;
    double v = strtod(local, &end);
    if (*end) return false;
    *value = v;
    return true;
}

bool cn_dict_set_whole(cn_dict *d, const char *name, int64_t value)
{
    CN__CALL call = cn__call_object(d, &cn__dict_type);
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    return call.ctx && cn_dict_set_text(d, name, text);
}

bool cn_dict_whole(const cn_dict *d, const char *name, int64_t *value)
{
    CN__CALL call = cn__call_object(d, &cn__dict_type);
    const char *text = call.ctx && has_memory(d, value) ? cn_dict_text(d, name) : NULL;
    if (!text || !*text) return false;
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (*end || errno) return false;
    *value = v;
    return true;
}
