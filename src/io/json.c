/* Reads JSON into a tree (a recursive-descent parser), and writes JSON. */
#include "io/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define FEW         8    /* larger objects have a hash table */
#define NUMBER_ROOM 1100 /* more digits than any double needs */

typedef struct reader {
    cn_ctx *ctx;
    cn__bump *memory;
    const char *name;
    const unsigned char *text, *at, *end;
    cn__vec open; /* of cn__json: stack of the members of containers that are still open */
    int depth;
} reader;

static bool value(reader *r, cn__json *j);

/* ---- errors ---- */

static bool fail_at(reader *r, const unsigned char *place, const char *message)
{
    size_t line = 1, column = 1;
    for (const unsigned char *p = r->text; p < place; p++) {
        if (*p == '\n') line++, column = 1;
        else column += (*p & 0xc0) != 0x80; /* characters, not bytes */
    }
    return cn__fail(r->ctx, CN_BAD_FILE, "%s: JSON, line %zu, column %zu: %s", r->name, line, column, message);
}

static bool fail(reader *r, const char *message)
{
    return fail_at(r, r->at, r->at == r->end ? "the text ends here" : message);
}

static void *alloc(reader *r, size_t bytes)
{
    void *p = cn__bump_new(&r->ctx->memory, r->memory, bytes);
    if (!p) cn__no_memory(r->ctx, r->name);
    return p;
}

/* ---- characters ---- */

/* The length of the character at p; 0 if it is not UTF-8. */
static size_t utf8_length(const unsigned char *p, size_t room)
{
    if (p[0] < 0x80) return 1;
    size_t n = p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : 0;
    if (n == 0 || n > room) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool surrogate = p[0] == 0xed && p[1] >= 0xa0;
    bool beyond = p[0] == 0xf4 && p[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : n;
}

size_t cn__utf8_valid(const char *text, size_t bytes)
{
    size_t at = 0;
    while (at < bytes) {
        size_t n = utf8_length((const unsigned char *)text + at, bytes - at);
        if (n == 0) break;
        at += n;
    }
    return at;
}

int cn__utf8_encode(uint32_t code, char out[4])
{
    int length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = length - 1; i > 0; i--, code >>= 6) out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(length == 1 ? code : (0xF00u >> length & 0xFF) | code);
    return length;
}

static bool four_digits(reader *r, uint32_t *out)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        if (r->at == r->end) return fail(r, "");
        unsigned c = *r->at, low = c | 0x20;
        if (c >= '0' && c <= '9') v = v << 4 | (c - '0');
        else if (low >= 'a' && low <= 'f') v = v << 4 | (low - 'a' + 10);
        else return fail(r, "\\u must be followed by four hexadecimal digits");
    }
    *out = v;
    return true;
}

/* After "\u". A character above U+FFFF is two escapes: a high and a low surrogate. */
static bool unicode_escape(reader *r, char **to)
{
    const unsigned char *start = r->at - 2;
    uint32_t c = 0, low = 0;
    if (!four_digits(r, &c)) return false;
    if (c >= 0xdc00 && c < 0xe000) return fail_at(r, start, "a low surrogate without a high one before it");
    if (c >= 0xd800 && c < 0xdc00) {
        if (r->end - r->at < 2 || r->at[0] != '\\' || r->at[1] != 'u')
            return fail_at(r, start, "a high surrogate without a low one after it");
        r->at += 2;
        if (!four_digits(r, &low)) return false;
        if (low < 0xdc00 || low >= 0xe000) return fail_at(r, start, "a high surrogate without a low one after it");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    char bytes[4];
    int n = cn__utf8_encode(c, bytes);
    memcpy(*to, bytes, (size_t)n);
    *to += n;
    return true;
}

static bool escape(reader *r, char **to)
{
    static const char from[] = "\"\\/bfnrt", is[] = "\"\\/\b\f\n\r\t";
    if (++r->at == r->end) return fail(r, "");
    unsigned char c = *r->at;
    const char *found = c ? strchr(from, c) : NULL;
    if (c != 'u' && !found) return fail(r, "unknown escape; allowed are \" \\ / b f n r t u");
    r->at++;
    if (c == 'u') return unicode_escape(r, to);
    *(*to)++ = is[found - from];
    return true;
}

/* At the opening quote. The text in memory is never longer than its written form. */
static bool string(reader *r, const char **text, uint32_t *bytes)
{
    const unsigned char *close = ++r->at;
    while (close < r->end && *close != '"') close += *close == '\\' && r->end - close > 1 ? 2 : 1;
    size_t room = (size_t)(close - r->at);
    if (room >= UINT32_MAX) return fail(r, "the text has 4 GiB or more");
    char *start = alloc(r, room + 1), *to = start;
    if (!to) return false;
    while (r->at < r->end && *r->at != '"') {
        if (*r->at == '\\') {
            if (!escape(r, &to)) return false;
            continue;
        }
        if (*r->at < 0x20) return fail(r, "a control character in a text must be escaped");
        size_t n = utf8_length(r->at, (size_t)(r->end - r->at));
        if (n == 0) return fail(r, "the text is not UTF-8");
        while (n--) *to++ = (char)*r->at++;
    }
    if (r->at == r->end) return fail(r, "");
    r->at++;
    *text = start;
    *bytes = (uint32_t)(to - start);
    return true;
}

/* ---- numbers ---- */

static bool digit_here(const reader *r) { return r->at < r->end && *r->at >= '0' && *r->at <= '9'; }

/* Copies one or more digits. */
static bool digits(reader *r, char *out, size_t *n)
{
    if (!digit_here(r)) return fail(r, "a digit is missing");
    while (digit_here(r)) {
        if (*n == NUMBER_ROOM) return fail(r, "the number has more than 1100 digits");
        out[(*n)++] = (char)*r->at++;
    }
    return true;
}

static bool exponent(reader *r, int *out)
{
    bool minus = ++r->at < r->end && *r->at == '-';
    if (r->at < r->end && (*r->at == '-' || *r->at == '+')) r->at++;
    if (!digit_here(r)) return fail(r, "a digit is missing");
    int e = 0;
    for (; digit_here(r); r->at++) e = e < 1000000 ? e * 10 + (*r->at - '0') : e;
    *out = minus ? -e : e;
    return true;
}

static bool whole_number(const char *digits, size_t n, bool minus, int64_t *out)
{
    uint64_t v = 0, most = minus ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        uint64_t d = (uint64_t)(digits[i] - '0');
        if (v > (most - d) / 10) return false;
        v = v * 10 + d;
    }
    *out = minus ? (int64_t)-v : (int64_t)v;
    return true;
}

/* Passes all digits to strtod without the point, with an exponent: the result is the same in every locale. */
static bool number(reader *r, cn__json *j)
{
    const unsigned char *start = r->at;
    char d[NUMBER_ROOM + 16];
    size_t n = 0, before;
    int e = 0;
    bool minus = *r->at == '-', plain = true;
    r->at += minus;
    if (!digits(r, d, &n)) return false;
    if (n > 1 && d[0] == '0') return fail_at(r, start, "a number must not begin with 0");
    before = n;
    if (r->at < r->end && *r->at == '.') {
        r->at++;
        plain = false;
        if (!digits(r, d, &n)) return false;
    }
    if (r->at < r->end && (*r->at | 0x20) == 'e') {
        plain = false;
        if (!exponent(r, &e)) return false;
    }
    j->type = CN__JSON_NUMBER;
    j->is_whole = plain && whole_number(d, n, minus, &j->whole);
    snprintf(d + n, sizeof d - n, "e%d", e - (int)(n - before));
    j->number = strtod(d, NULL);
    if (minus) j->number = -j->number;
    return isinf(j->number) ? fail_at(r, start, "the number is too large for a double") : true;
}

/* ---- objects and arrays ---- */

static bool key_is(const cn__json *member, const char *key, size_t n)
{
    return member->key_bytes == n && memcmp(member->key, key, n) == 0;
}

static size_t slots_for(uint32_t n)
{
    size_t slots = 16;
    while (slots < 2 * (size_t)n) slots *= 2;
    return slots;
}

/* The slot of the key, or the free slot where it belongs. */
static uint32_t *slot_of(cn__json_index *x, size_t mask, const cn__json *v, const char *key, size_t n)
{
    for (size_t i = cn__hash(&x->key, key, n);; i++) {
        uint32_t *s = &x->slots[i & mask];
        if (*s == 0 || key_is(&v[*s - 1], key, n)) return s;
    }
}

/* Refuses keys that occur twice, and makes the hash table of a large object. */
static bool index_keys(reader *r, cn__json *object, const cn__json *v)
{
    const size_t mask = slots_for(object->n) - 1;
    cn__json_index *x = object->n > FEW ? alloc(r, sizeof *x + (mask + 1) * sizeof *x->slots) : NULL;
    if (object->n > FEW && !x) return false;
    if (x) x->key = r->ctx->hash_key;
    for (uint32_t i = 0; i < object->n; i++) {
        uint32_t *s = x ? slot_of(x, mask, v, v[i].key, v[i].key_bytes) : NULL;
        bool twice = x && *s;
        for (uint32_t k = 0; k < i && !x; k++) twice |= key_is(&v[k], v[i].key, v[i].key_bytes);
        if (twice) return fail_at(r, r->text + v[i].at, "the key occurs twice in its object");
        if (x) *s = i + 1;
    }
    object->index = x;
    return true;
}

static void skip_space(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t')) r->at++;
}

static bool expect(reader *r, unsigned char c, const char *message)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c) return fail(r, message);
    r->at++;
    return true;
}

static bool member(reader *r, cn__json *j, bool keyed)
{
    skip_space(r);
    j->at = (size_t)(r->at - r->text);
    if (keyed) {
        if (r->at == r->end || *r->at != '"') return fail(r, "a key in quotes is missing");
        if (!string(r, &j->key, &j->key_bytes) || !expect(r, ':', "a colon is missing")) return false;
        skip_space(r);
    }
    return value(r, j);
}

/* Moves the members above mark from the stack to the tree. */
static bool close_container(reader *r, cn__json *j, size_t mark)
{
    size_t n = r->open.n - mark;
    if (n >= UINT32_MAX / 4) return fail(r, "the object or array has too many members");
    j->n = (uint32_t)n;
    cn__json *v = n ? alloc(r, n * sizeof *v) : NULL;
    if (n && !v) return false;
    if (n) memcpy(v, (cn__json *)r->open.v + mark, n * sizeof *v);
    j->v = v;
    r->open.n = mark;
    return j->type == CN__JSON_ARRAY || index_keys(r, j, v);
}

static bool container(reader *r, cn__json *j, unsigned char close)
{
    size_t mark = r->open.n;
    bool keyed = close == '}';
    j->type = keyed ? CN__JSON_OBJECT : CN__JSON_ARRAY;
    if (r->depth == CN__JSON_DEPTH) return fail(r, "objects and arrays must not nest deeper than 128 levels");
    r->depth++;
    r->at++;
    skip_space(r);
    bool more = r->at == r->end || *r->at != close;
    if (!more) r->at++;
    while (more) {
        cn__json m = { 0 };
        if (!member(r, &m, keyed)) return false;
        if (!cn__push(&r->ctx->memory, &r->open, &m, sizeof m)) return cn__no_memory(r->ctx, r->name);
        skip_space(r);
        if (r->at == r->end || (*r->at != ',' && *r->at != close))
            return fail(r, keyed ? "a comma or } is missing" : "a comma or ] is missing");
        more = *r->at++ == ',';
    }
    r->depth--;
    return close_container(r, j, mark);
}

static bool keyword(reader *r, const char *w)
{
    size_t n = strlen(w);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, w, n)) return fail(r, "a value is missing");
    r->at += n;
    return true;
}

static bool value(reader *r, cn__json *j)
{
    if (r->at == r->end) return fail(r, "");
    switch (*r->at) {
    case '{': return container(r, j, '}');
    case '[': return container(r, j, ']');
    case '"': j->type = CN__JSON_TEXT; return string(r, &j->text, &j->n);
    case 't':
        j->type = CN__JSON_BOOL;
        j->is_true = true;
        return keyword(r, "true");
    case 'f': j->type = CN__JSON_BOOL; return keyword(r, "false");
    case 'n': j->type = CN__JSON_NULL; return keyword(r, "null");
    default: return *r->at == '-' || digit_here(r) ? number(r, j) : fail(r, "a value is missing");
    }
}

const cn__json *cn__json_read(cn_ctx *ctx, cn__bump *memory, const char *text, size_t bytes, const char *name)
{
    const unsigned char *t = (const unsigned char *)text;
    reader r = { .ctx = ctx, .memory = memory, .name = name, .text = t, .at = t, .end = t + bytes };
    cn__json *root = alloc(&r, sizeof *root);
    skip_space(&r);
    bool ok = root && value(&r, root);
    skip_space(&r);
    if (ok && r.at < r.end) ok = fail(&r, "unexpected text after the value");
    cn__vec_free(&ctx->memory, &r.open, sizeof(cn__json));
    return ok ? root : NULL;
}

const cn__json *cn__json_get_n(const cn__json *object, const char *key, size_t key_bytes)
{
    if (!object || object->type != CN__JSON_OBJECT || !key) return NULL;
    if (object->index) {
        uint32_t s = *slot_of((cn__json_index *)object->index, slots_for(object->n) - 1, object->v, key, key_bytes);
        return s ? &object->v[s - 1] : NULL;
    }
    for (uint32_t i = 0; i < object->n; i++)
        if (key_is(&object->v[i], key, key_bytes)) return &object->v[i];
    return NULL;
}

const cn__json *cn__json_get(const cn__json *object, const char *key)
{
    return key ? cn__json_get_n(object, key, strlen(key)) : NULL;
}

const char *cn__json_text(const cn__json *j)
{
    return j && j->type == CN__JSON_TEXT && strlen(j->text) == j->n ? j->text : NULL;
}

/* ---- writing ---- */

static bool out_fail(cn__out *o, cn_code code, const char *message)
{
    o->failed = true;
    return cn__fail(o->ctx, code, "JSON: %s", message);
}

bool cn__out_append(cn__out *o, const char *bytes, size_t n)
{
    if (o->failed) return false;
    if (!cn__vec_reserve(&o->ctx->memory, &o->text, o->text.n + n, 1))
        return out_fail(o, CN_NO_MEMORY, "out of memory");
    if (n) memcpy((char *)o->text.v + o->text.n, bytes, n);
    o->text.n += n;
    return true;
}

bool cn__out_plain(cn__out *o, const char *text) { return cn__out_append(o, text, strlen(text)); }

static bool append_escaped(cn__out *o, unsigned char c)
{
    static const char is[] = "\"\\\b\f\n\r\t", as[] = "\"\\bfnrt";
    const char *found = c ? strchr(is, c) : NULL;
    char escape[8];
    if (found) snprintf(escape, sizeof escape, "\\%c", as[found - is]);
    else snprintf(escape, sizeof escape, "\\u%04x", c);
    return cn__out_plain(o, escape);
}

bool cn__out_text(cn__out *o, const char *text, size_t bytes)
{
    if (cn__utf8_valid(text, bytes) != bytes)
        return out_fail(o, CN_BAD_ARGUMENT, "cannot write a text that is not UTF-8");
    cn__out_append(o, "\"", 1);
    size_t done = 0;
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\') continue;
        cn__out_append(o, text + done, i - done);
        append_escaped(o, c);
        done = i + 1;
    }
    cn__out_append(o, text + done, bytes - done);
    return cn__out_append(o, "\"", 1);
}

bool cn__out_whole(cn__out *o, int64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, value);
    return cn__out_plain(o, digits);
}

/* The fewest digits that read back as the same number. The decimal separator is a point in every locale. */
bool cn__out_number(cn__out *o, double value)
{
    if (!isfinite(value)) return out_fail(o, CN_BAD_ARGUMENT, "cannot write NaN or infinity");
    char digits[40];
    for (int n = 15; n <= 17; n++) {
        snprintf(digits, sizeof digits, "%.*g", n, value);
        if (strtod(digits, NULL) == value) break;
    }
    size_t whole = strspn(digits, "-0123456789");
    if (digits[whole] && digits[whole] != 'e') digits[whole] = '.';
    return cn__out_plain(o, digits);
}

void cn__out_free(cn__out *o) { cn__vec_free(&o->ctx->memory, &o->text, 1); }
