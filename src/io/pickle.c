/* The machine that reads pickles. Its stack has values; a mark on the stack begins a list of arguments. The memo has
   values that occur again. */
#include "io/pickle.h"

#include <stdio.h>

#include "io/json.h"

typedef struct machine {
    const cn__source *s;
    cn__bump *memory;
    const unsigned char *p, *end; /* the rest of the pickle */
    cn__vec stack, memo;          /* of cn__value * */
    cn__vec marks;                /* of size_t: values on the stack below the mark */
} machine;

/* ---- what may be called ---- */

enum { ORDERED_DICT, REBUILD_TENSOR, REBUILD_PARAMETER, STORAGE };

static const struct {
    const char *module, *name;
    int call;
    cn_dtype dtype; /* STORAGE */
} globals[] = {
    { "collections", "OrderedDict", ORDERED_DICT, 0 },
    { "torch._utils", "_rebuild_tensor_v2", REBUILD_TENSOR, 0 },
    { "torch._utils", "_rebuild_parameter", REBUILD_PARAMETER, 0 },
    { "torch", "BoolStorage", STORAGE, CN_BOOL },
    { "torch", "ByteStorage", STORAGE, CN_U8 },
    { "torch", "CharStorage", STORAGE, CN_I8 },
    { "torch", "ShortStorage", STORAGE, CN_I16 },
    { "torch", "IntStorage", STORAGE, CN_I32 },
    { "torch", "LongStorage", STORAGE, CN_I64 },
    { "torch", "HalfStorage", STORAGE, CN_F16 },
    { "torch", "BFloat16Storage", STORAGE, CN_BF16 },
    { "torch", "FloatStorage", STORAGE, CN_F32 },
    { "torch", "DoubleStorage", STORAGE, CN_F64 },
};
enum { GLOBALS = sizeof globals / sizeof *globals };

static bool fail(const machine *m, const char *message)
{
    return cn__source_fail(m->s, CN_BAD_FILE, "data.pkl: %s", message);
}

static bool no_memory(const machine *m) { return cn__source_fail(m->s, CN_NO_MEMORY, "out of memory"); }

/* ---- the stack ---- */

static cn__value *value_new(machine *m, cn__value_type type)
{
    cn__value *v = cn__bump_new(&m->s->ctx->memory, m->memory, sizeof *v);
    if (v) v->type = (uint8_t)type;
    else no_memory(m);
    return v;
}

static bool push(machine *m, const cn__value *v)
{
    return v && (cn__push(&m->s->ctx->memory, &m->stack, &v, sizeof v) || no_memory(m));
}

/* Values on the stack since the last mark. */
static size_t height(const machine *m)
{
    return m->stack.n - (m->marks.n ? ((const size_t *)m->marks.v)[m->marks.n - 1] : 0);
}

static cn__value **top(const machine *m, size_t n) { return (cn__value **)m->stack.v + m->stack.n - n; }

/* Takes n values from the stack. They stay readable until the next push. NULL: there are fewer. */
static cn__value **pop(machine *m, size_t n)
{
    if (height(m) < n) {
        fail(m, "an instruction lacks operands");
        return NULL;
    }
    m->stack.n -= n;
    return top(m, 0);
}

/* Takes the values since the last mark, and the mark. */
static cn__value **pop_marked(machine *m, size_t *n)
{
    if (!m->marks.n) {
        fail(m, "a mark is missing");
        return NULL;
    }
    *n = height(m);
    m->marks.n--;
    m->stack.n -= *n;
    return top(m, 0);
}

static bool append(machine *m, cn__value *to, const cn__value *key, const cn__value *value)
{
    cn__member *e = cn__bump_new(&m->s->ctx->memory, m->memory, sizeof *e);
    if (!e) return no_memory(m);
    *e = (cn__member){ .key = key, .value = value };
    if (to->last) to->last->next = e;
    else to->first = e;
    to->last = e;
    to->n++;
    return true;
}

static bool push_tuple(machine *m, cn__value **v, size_t n)
{
    cn__value *t = v ? value_new(m, CN__VALUE_TUPLE) : NULL;
    for (size_t i = 0; t && i < n; i++)
        if (!append(m, t, NULL, v[i])) return false;
    return push(m, t);
}

static bool push_whole(machine *m, cn__value_type type, int64_t x)
{
    cn__value *v = value_new(m, type);
    if (v) v->whole = x;
    return push(m, v);
}

/* ---- bytes of the pickle ---- */

static const unsigned char *take(machine *m, uint64_t bytes)
{
    if (bytes > (uint64_t)(m->end - m->p)) {
        fail(m, "it is cut off");
        return NULL;
    }
    m->p += bytes;
    return m->p - bytes;
}

/* An unsigned number of some bytes. */
static bool number(machine *m, int bytes, uint64_t *x)
{
    const unsigned char *p = take(m, (uint64_t)bytes);
    if (p) *x = cn__little(p, bytes);
    return p != NULL;
}

static int64_t signed_of(uint64_t x, int bytes)
{
    const int unused = 64 - 8 * bytes;
    return unused < 64 ? (int64_t)(x << unused) >> unused : 0;
}

static bool push_integer(machine *m, int bytes, bool is_signed)
{
    uint64_t x;
    return number(m, bytes, &x) && push_whole(m, CN__VALUE_WHOLE, is_signed ? signed_of(x, bytes) : (int64_t)x);
}

static bool push_long(machine *m)
{
    uint64_t bytes;
    if (!number(m, 1, &bytes)) return false;
    return bytes <= 8 ? push_integer(m, (int)bytes, true) : fail(m, "a whole number has more than 64 bits");
}

static bool push_real(machine *m)
{
    const unsigned char *p = take(m, 8);
    cn__value *v = p ? value_new(m, CN__VALUE_REAL) : NULL;
    if (!v) return false;
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) bits = bits << 8 | p[i];
    memcpy(&v->real, &bits, sizeof bits);
    return push(m, v);
}

static bool push_text(machine *m, int length_bytes)
{
    uint64_t bytes;
    const unsigned char *p = number(m, length_bytes, &bytes) ? take(m, bytes) : NULL;
    if (!p) return false;
    if (cn__utf8_valid((const char *)p, (size_t)bytes) != bytes) return fail(m, "a text is not UTF-8");
    cn__value *v = value_new(m, CN__VALUE_TEXT);
    if (!v) return false;
    v->text = (const char *)p;
    v->n = (size_t)bytes;
    return push(m, v);
}

/* ---- the memo: values are numbered in the order in which they are put there ---- */

static bool memoize(machine *m)
{
    if (!height(m)) return fail(m, "an instruction lacks operands");
    cn__value *v = *top(m, 1);
    return cn__push(&m->s->ctx->memory, &m->memo, &v, sizeof v) || no_memory(m);
}

static bool put(machine *m, int bytes)
{
    uint64_t i;
    if (!number(m, bytes, &i)) return false;
    return i == m->memo.n ? memoize(m) : fail(m, "values of the memo are not numbered in their order");
}

static bool get(machine *m, int bytes)
{
    uint64_t i;
    if (!number(m, bytes, &i)) return false;
    return i < m->memo.n ? push(m, ((cn__value **)m->memo.v)[i]) : fail(m, "a value is not in the memo");
}

/* ---- members of lists and dicts ---- */

static bool append_list(machine *m, cn__value **v, size_t n)
{
    if (!v) return false;
    if (!height(m) || (*top(m, 1))->type != CN__VALUE_LIST)
        return fail(m, "values are appended to something else than a list");
    for (size_t i = 0; i < n; i++)
        if (!append(m, *top(m, 1), NULL, v[i])) return false;
    return true;
}

static bool set_items(machine *m, cn__value **v, size_t n)
{
    if (!v) return false;
    if (!height(m) || (*top(m, 1))->type != CN__VALUE_DICT || n % 2)
        return fail(m, "keys and values are set in something else than a dict");
    for (size_t i = 0; i < n; i += 2) {
        if (v[i]->type != CN__VALUE_TEXT && v[i]->type != CN__VALUE_WHOLE)
            return fail(m, "a key of a dict is neither a text nor a whole number");
        if (!append(m, *top(m, 1), v[i], v[i + 1])) return false;
    }
    return true;
}

/* ---- calls ---- */

static bool is_text(const char *text, size_t bytes, const char *is)
{
    return strlen(is) == bytes && !memcmp(text, is, bytes);
}

static bool push_global(machine *m, const char *module, size_t module_bytes, const char *name, size_t name_bytes)
{
    int i = 0;
    while (i < GLOBALS &&
           !(is_text(module, module_bytes, globals[i].module) && is_text(name, name_bytes, globals[i].name)))
        i++;
    if (i == GLOBALS)
        return cn__source_fail(
            m->s, CN_UNSUPPORTED,
            "it needs %.*s.%.*s of Python; only tensors, dicts, lists, numbers and texts are loaded, "
            "and no program is run: save model.state_dict()",
            (int)(module_bytes < 80 ? module_bytes : 80), module, (int)(name_bytes < 80 ? name_bytes : 80), name);
    cn__value *v = value_new(m, CN__VALUE_GLOBAL);
    if (v) v->which = (uint8_t)i;
    return push(m, v);
}

/* GLOBAL: two lines. */
static bool global(machine *m)
{
    const char *line[2];
    size_t bytes[2];
    for (int i = 0; i < 2; i++) {
        const unsigned char *end = memchr(m->p, '\n', (size_t)(m->end - m->p));
        if (!end) return fail(m, "it is cut off");
        line[i] = (const char *)m->p;
        bytes[i] = (size_t)(end - m->p);
        if (cn__utf8_valid(line[i], bytes[i]) != bytes[i]) return fail(m, "a text is not UTF-8");
        m->p = end + 1;
    }
    return push_global(m, line[0], bytes[0], line[1], bytes[1]);
}

static bool stack_global(machine *m)
{
    cn__value **v = pop(m, 2);
    if (!v) return false;
    if (v[0]->type != CN__VALUE_TEXT || v[1]->type != CN__VALUE_TEXT)
        return fail(m, "the name of a global is not a text");
    return push_global(m, v[0]->text, v[0]->n, v[1]->text, v[1]->n);
}

/* Member i of a tuple. NULL: there is none of this type. */
static const cn__value *member(const cn__value *tuple, size_t i, cn__value_type type)
{
    const cn__member *e = tuple->first;
    for (; e && i; i--) e = e->next;
    return e && e->value->type == type ? e->value : NULL;
}

/* ('storage', type, key, location, number of elements) */
static bool storage(machine *m)
{
    cn__value **v = pop(m, 1);
    if (!v) return false;
    if (v[0]->type != CN__VALUE_TUPLE || v[0]->n != 5) return fail(m, "a storage is not a tuple of 5");
    const cn__value *word = member(v[0], 0, CN__VALUE_TEXT), *type = member(v[0], 1, CN__VALUE_GLOBAL),
                    *key = member(v[0], 2, CN__VALUE_TEXT), *numel = member(v[0], 4, CN__VALUE_WHOLE);
    if (!word || !is_text(word->text, word->n, "storage") || !type || globals[type->which].call != STORAGE || !key ||
        !member(v[0], 3, CN__VALUE_TEXT) || !numel || numel->whole < 0)
        return fail(m, "a storage must have a type, a key, a location and a number of elements");
    cn__saved_storage *s = cn__bump_new(&m->s->ctx->memory, m->memory, sizeof *s);
    if (!s) return no_memory(m);
    *s = (cn__saved_storage){ globals[type->which].dtype, key->text, key->n, numel->whole };
    cn__value *out = value_new(m, CN__VALUE_STORAGE);
    if (out) out->storage = s;
    return push(m, out);
}

static bool read_sizes(const cn__value *tuple, int64_t out[CN_MAX_DIMS])
{
    size_t i = 0;
    for (const cn__member *e = tuple->first; e; e = e->next, i++) {
        if (e->value->type != CN__VALUE_WHOLE || e->value->whole < 0) return false;
        out[i] = e->value->whole;
    }
    return true;
}

/* Whether all elements lie inside the storage. */
static bool lies_inside(const cn_layout *l, const cn__saved_storage *s)
{
    cn_dims shape = { .n = l->ndim };
    memcpy(shape.v, l->shape, sizeof shape.v);
    size_t bytes;
    int64_t last = l->offset, reach;
    if (!cn__element_bytes((cn__element){ .size = (uint8_t)cn_dtype_size(s->dtype) }, shape, &bytes)) return false;
    if (!bytes) return l->offset <= s->numel;
    for (int i = 0; i < l->ndim; i++)
        if (__builtin_mul_overflow(l->shape[i] - 1, l->stride[i], &reach) || __builtin_add_overflow(last, reach, &last))
            return false;
    return last < s->numel;
}

/* No hooks, no metadata: None or an empty dict. */
static bool is_nothing(const cn__value *v) { return v->type == CN__VALUE_NONE || (v->type == CN__VALUE_DICT && !v->n); }

/* (storage, offset, size, stride, requires_grad, backward_hooks), and perhaps metadata */
static bool rebuild_tensor(machine *m, const cn__value *args)
{
    if (args->n != 6 && args->n != 7) return fail(m, "_rebuild_tensor_v2 must have 6 or 7 arguments");
    const cn__value *s = member(args, 0, CN__VALUE_STORAGE), *offset = member(args, 1, CN__VALUE_WHOLE),
                    *size = member(args, 2, CN__VALUE_TUPLE), *stride = member(args, 3, CN__VALUE_TUPLE);
    bool plain = member(args, 4, CN__VALUE_BOOL) != NULL;
    for (const cn__member *e = args->first->next->next->next->next->next; e; e = e->next) plain &= is_nothing(e->value);
    if (!s || !offset || offset->whole < 0 || !size || !stride || size->n != stride->n)
        return fail(m, "a tensor must have a storage, an offset, sizes and as many strides");
    if (!plain) return fail(m, "a tensor with hooks, or one that is conjugated or negated, cannot be loaded");
    if (size->n > CN_MAX_DIMS)
        return cn__source_fail(m->s, CN_UNSUPPORTED, "data.pkl: a tensor has %zu axes; at most %d are possible",
                               size->n, CN_MAX_DIMS);
    cn__saved_tensor *t = cn__bump_new(&m->s->ctx->memory, m->memory, sizeof *t);
    if (!t) return no_memory(m);
    t->storage = s->storage;
    t->layout = (cn_layout){ .ndim = (int)size->n, .offset = offset->whole };
    if (!read_sizes(size, t->layout.shape) || !read_sizes(stride, t->layout.stride))
        return fail(m, "a size or a stride of a tensor is not a whole number from 0 on");
    if (!lies_inside(&t->layout, t->storage)) return fail(m, "a tensor reaches beyond its storage");
    cn__value *out = value_new(m, CN__VALUE_TENSOR);
    if (out) out->tensor = t;
    return push(m, out);
}

static bool reduce(machine *m)
{
    cn__value **v = pop(m, 2);
    if (!v) return false;
    const cn__value *callee = v[0], *args = v[1];
    if (callee->type != CN__VALUE_GLOBAL || args->type != CN__VALUE_TUPLE)
        return fail(m, "something is called that cannot be called");
    switch (globals[callee->which].call) {
    case REBUILD_TENSOR: return rebuild_tensor(m, args);
    case REBUILD_PARAMETER: {
        const cn__value *t = args->n == 3 ? member(args, 0, CN__VALUE_TENSOR) : NULL;
        if (!t || !member(args, 1, CN__VALUE_BOOL) || !is_nothing(args->last->value))
            return fail(m, "_rebuild_parameter must have a tensor, whether it needs a gradient, and no hooks");
        return push(m, t);
    }
    case ORDERED_DICT: {
        cn__value *d = args->n ? NULL : value_new(m, CN__VALUE_DICT);
        if (args->n) return fail(m, "OrderedDict must have no arguments");
        if (d) d->ordered = true;
        return push(m, d);
    }
    default: return fail(m, "a type of storage is called");
    }
}

/* BUILD: attributes of an OrderedDict; a state_dict has _metadata. They are dropped. */
static bool build(machine *m)
{
    cn__value **v = pop(m, 1);
    if (!v) return false;
    bool fine = height(m) && (*top(m, 1))->ordered && v[0]->type == CN__VALUE_DICT;
    return fine || fail(m, "attributes are set of something else than an OrderedDict");
}

/* ---- the machine ---- */

static bool frame(machine *m)
{
    uint64_t bytes;
    if (!number(m, 8, &bytes)) return false;
    return bytes <= (uint64_t)(m->end - m->p) || fail(m, "it is cut off");
}

static bool step(machine *m, unsigned char instruction)
{
    size_t n = 0;
    cn__value **v;
    switch (instruction) {
    case '(': return cn__push(&m->s->ctx->memory, &m->marks, &m->stack.n, sizeof m->stack.n) || no_memory(m);
    case 'N': return push(m, value_new(m, CN__VALUE_NONE));
    case 0x88: return push_whole(m, CN__VALUE_BOOL, 1);
    case 0x89: return push_whole(m, CN__VALUE_BOOL, 0);
    case 'K': return push_integer(m, 1, false);
    case 'M': return push_integer(m, 2, false);
    case 'J': return push_integer(m, 4, true);
    case 0x8a: return push_long(m);
    case 'G': return push_real(m);
    case 'U': /* a text of Python 2 */
    case 0x8c: return push_text(m, 1);
    case 'X': return push_text(m, 4);
    case 0x8d: return push_text(m, 8);
    case ']': return push(m, value_new(m, CN__VALUE_LIST));
    case '}': return push(m, value_new(m, CN__VALUE_DICT));
    case ')': return push(m, value_new(m, CN__VALUE_TUPLE));
    case 't': return v = pop_marked(m, &n), push_tuple(m, v, n);
    case 0x85: return push_tuple(m, pop(m, 1), 1);
    case 0x86: return push_tuple(m, pop(m, 2), 2);
    case 0x87: return push_tuple(m, pop(m, 3), 3);
    case 'a': return append_list(m, pop(m, 1), 1);
    case 'e': return v = pop_marked(m, &n), append_list(m, v, n);
    case 's': return set_items(m, pop(m, 2), 2);
    case 'u': return v = pop_marked(m, &n), set_items(m, v, n);
    case 'q': return put(m, 1);
    case 'r': return put(m, 4);
    case 0x94: return memoize(m);
    case 'h': return get(m, 1);
    case 'j': return get(m, 4);
    case 'c': return global(m);
    case 0x93: return stack_global(m);
    case 'R': return reduce(m);
    case 'b': return build(m);
    case 'Q': return storage(m);
    case 0x95: return frame(m);
    default:
        return cn__source_fail(
            m->s, CN_UNSUPPORTED,
            "data.pkl: instruction 0x%02x at byte %zu is none that torch.save writes for tensors, dicts, "
            "lists, numbers and texts",
            instruction, (size_t)(m->p - 1 - m->s->data));
    }
}

static bool run(machine *m)
{
    enum { PROTOCOL = 0x80, STOP = '.' };
    const unsigned char *p = take(m, 2);
    if (!p) return false;
    if (p[0] != PROTOCOL || p[1] < 2 || p[1] > 5) return fail(m, "it is not a pickle of protocol 2 to 5");
    while ((p = take(m, 1)) && *p != STOP)
        if (!step(m, *p)) return false;
    if (!p) return false;
    if (m->p != m->end) return fail(m, "bytes follow its end");
    return (m->stack.n == 1 && !m->marks.n) || fail(m, "it does not leave one value");
}

const cn__value *cn__pickle_read(const cn__source *s, cn__bump *memory)
{
    machine m = { .s = s, .memory = memory, .p = s->data, .end = s->data + s->bytes };
    const bool room = cn__vec_reserve(&s->ctx->memory, &m.stack, 16, sizeof(cn__value *)) || no_memory(&m);
    const cn__value *root = room && run(&m) ? *top(&m, 1) : NULL;
    cn__vec_free(&s->ctx->memory, &m.stack, sizeof(cn__value *));
    cn__vec_free(&s->ctx->memory, &m.memo, sizeof(cn__value *));
    cn__vec_free(&s->ctx->memory, &m.marks, sizeof(size_t));
    return root;
}
