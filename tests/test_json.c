/* The JSON reader and writer: what is JSON, what is not and where, numbers to the last bit, large objects. */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/json.h"
#include "support/check.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static cn_ctx *cn;
static cn__bump memory;

static const cn__json *read_n(const char *text, size_t n)
{
    cn__bump_free(&cn->memory, &memory);
    cn_error_clear(cn);
    char *copy = malloc(n ? n : 1); /* exactly as long: a sanitizer sees every byte too far */
    memcpy(copy, text, n);
    const cn__json *j = cn__json_read(cn, &memory, copy, n, "test");
    free(copy);
    return j;
}

static const cn__json *parse(const char *text) { return read_n(text, strlen(text)); }

static void what_is_json(void)
{
    static const char *const good[] = {
        "null",
        " true ",
        "false",
        "0",
        "-0",
        "1.5e+3",
        "\"\"",
        "[]",
        "{}",
        "[ 1 , [ ] , {\"a\" : {} } ]\r\n\t",
        "\"\x7f\"",
        "\"\xf4\x8f\xbf\xbf\"",
        "{\"\":0}",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"",
        "\"\xe2\x82\xac\"",
        "[1e-999]",
    };
    for (size_t i = 0; i < COUNT(good); i++) check(parse(good[i]) != NULL, "%s is JSON: %s", good[i], cn_error(cn));
}

static void what_is_not_and_where(void)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        { "", "line 1, column 1: the text ends" },
        { " \n ", "line 2, column 2: the text ends" },
        { "nul", "column 1: a value is missing" },
        { "True", "column 1: a value" },
        { "\xef\xbb\xbf{}", "column 1: a value" },
        { "[1,]", "column 4: a value" },
        { "[1 2]", "column 4: a comma or ]" },
        { "[1", "column 3: the text ends" },
        { "{\"a\":1,}", "column 8: a key" },
        { "{a:1}", "column 2: a key" },
        { "{\"a\" 1}", "column 6: a colon" },
        { "{\"a\":1", "the text ends" },
        { "{\"a\":1]", "column 7: a comma or }" },
        { "1 2", "column 3: unexpected text" },
        { "01", "column 1: a number must not begin with 0" },
        { "-", "the text ends" },
        { "-x", "column 2: a digit" },
        { "+1", "column 1: a value" },
        { ".5", "column 1: a value" },
        { "1.e3", "column 3: a digit" },
        { "1e+", "the text ends" },
        { "1e400", "column 1: the number is too large" },
        { "NaN", "column 1: a value" },
        { "\"abc", "the text ends" },
        { "\"a\tb\"", "column 3: a control character" },
        { "\"é\\x\"", "column 4: unknown escape" },
        { "\"\\u12g4\"", "column 6: \\u must be followed" },
        { "\"\\ud800\"", "column 2: a high surrogate" },
        { "\"\\ud800\\u0041\"", "column 2: a high surrogate" },
        { "\"\\udc00\"", "column 2: a low surrogate" },
        { "\"\xff\"", "column 2: the text is not UTF-8" },
        { "\"\xc0\x80\"", "column 2: the text is not UTF-8" },
        { "\"\xe0\x80\x80\"", "column 2: the text is not UTF-8" },
        { "\"\xed\xa0\x80\"", "column 2: the text is not UTF-8" },
        { "\"\xf4\x90\x80\x80\"", "column 2: the text is not UTF-8" },
        { "\"\xe2\x82", "column 2: the text is not UTF-8" },
        { "{\"a\":1,\n \"b\":2, \"a\":3}", "line 2, column 9: the key occurs twice" },
        { "{\"a\":1,\"\\u0061\":3}", "column 8: the key occurs twice" },
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        check(!parse(bad[i].text) && cn_error_code(cn) == CN_BAD_FILE && strstr(cn_error(cn), bad[i].message),
              "%s: \"%s\" wanted, \"%s\" said", bad[i].text, bad[i].message, cn_error(cn));
    }
    check(!read_n("\0", 1) && !read_n("\"\0\"", 3) && !read_n("\"\\\0\"", 4), "a byte 0 is never JSON");
}

static void depth_is_bounded(void)
{
    char text[2 * CN__JSON_DEPTH + 8];
    for (int n = CN__JSON_DEPTH; n <= CN__JSON_DEPTH + 1; n++) {
        memset(text, '[', (size_t)n);
        memset(text + n, ']', (size_t)n);
        check((read_n(text, 2 * (size_t)n) != NULL) == (n == CN__JSON_DEPTH), "%d levels: %s", n, cn_error(cn));
    }
    char *deep = malloc(1000000);
    memset(deep, '[', 1000000);
    check(!read_n(deep, 1000000) && strstr(cn_error(cn), "deeper than 128"), "a million levels: %s", cn_error(cn));
    free(deep);
}

static void texts(void)
{
    const cn__json *j = parse("\"a\\u0000b\\ud83d\\ude42\\u00e9\\u20ac\"");
    check(j && j->type == CN__JSON_TEXT && j->n == 12 && !memcmp(j->text, "a\0b🙂é€", 13), "escapes become UTF-8");
    check(!cn__json_text(j), "a text with 0 inside is not a C string");
    j = parse("\"abc\"");
    check(cn__json_text(j) && !strcmp(cn__json_text(j), "abc"), "a plain one is");
    check(!cn__json_text(parse("12")) && !cn__json_text(NULL), "nothing else is");
}

static void numbers(void)
{
    static const struct {
        const char *text;
        bool whole;
        int64_t value;
    } table[] = {
        { "0", true, 0 },
        { "-7", true, -7 },
        { "9223372036854775807", true, INT64_MAX },
        { "-9223372036854775808", true, INT64_MIN },
        { "9223372036854775808", false, 0 },
        { "-9223372036854775809", false, 0 },
        { "1.0", false, 0 },
        { "1e2", false, 0 },
        { "123456789012345678901234567890", false, 0 },
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        const cn__json *j = parse(table[i].text);
        check(j && j->type == CN__JSON_NUMBER && j->is_whole == table[i].whole &&
                  (!j->is_whole || j->whole == table[i].value) && j->number == strtod(table[i].text, NULL),
              "%s is read as it is", table[i].text);
    }
    check(signbit(parse("-0")->number), "-0 keeps its sign");
    char many[1200];
    memset(many, '9', sizeof many);
    check(!read_n(many, sizeof many) && read_n(many, 300), "a number of 1,200 digits is refused, of 300 read");
}

/* Random bits as doubles, through the writer and back; commas for points must not matter. */
static void numbers_to_the_last_bit(void)
{
    const char *locale = setlocale(LC_NUMERIC, "de_DE.UTF-8");
    uint64_t state = 1;
    int bad = 0;
    for (int i = 0; i < 20000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t bits = state ^ state >> 29;
        double v, whole = (double)(int64_t)(state >> 40);
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v) || i % 2) v = whole / 1000;
        cn__out o = { .ctx = cn };
        cn__out_number(&o, v);
        const cn__json *j = read_n(o.text.v, o.text.n);
        bad += !j || memcmp(&j->number, &v, sizeof v);
        cn__out_free(&o);
    }
    check(bad == 0, "%d of 20,000 doubles changed on the way (locale %s)", bad, locale ? locale : "C");
    setlocale(LC_NUMERIC, "C");
    cn__out o = { .ctx = cn };
    check(!cn__out_number(&o, NAN) && !cn__out_plain(&o, "x") && o.text.n == 0 && cn_failed(cn),
          "NaN is refused, and it stays refused");
    cn__out_free(&o);
}

static void writing(void)
{
    static const char text[] = "a\"b\\c\n\r\t\b\f\x01\x1f\x7f/é🙂";
    cn_error_clear(cn);
    cn__out o = { .ctx = cn };
    check(cn__out_text(&o, text, sizeof text - 1) && cn__out_plain(&o, " ") && cn__out_whole(&o, INT64_MIN), "%s",
          cn_error(cn));
    static const char wanted[] = "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u001f\x7f/é🙂\" -9223372036854775808";
    check(o.text.n == sizeof wanted - 1 && !memcmp(o.text.v, wanted, o.text.n), "written: %.*s", (int)o.text.n,
          (char *)o.text.v);
    check(!cn__out_text(&o, "\xff", 1) && cn_error_code(cn) == CN_BAD_ARGUMENT, "what is not UTF-8 is refused");
    cn__out_free(&o);
}

static void large_objects(void)
{
    for (int n = 0; n <= 50000; n = n < 40 ? n + 1 : n * 35) {
        cn__out o = { .ctx = cn };
        char key[32];
        cn_error_clear(cn);
        for (int i = 0; i < n; i++) {
            snprintf(key, sizeof key, "key %d", i * 7919);
            cn__out_plain(&o, i ? "," : "{");
            cn__out_text(&o, key, strlen(key));
            cn__out_plain(&o, ":");
            cn__out_whole(&o, i);
        }
        cn__out_plain(&o, n ? "}" : "{}");
        const cn__json *j = read_n(o.text.v, o.text.n);
        int found = 0;
        for (int i = 0; i < n && j; i++) {
            snprintf(key, sizeof key, "key %d", i * 7919);
            const cn__json *m = cn__json_get(j, key);
            found += m == &j->v[i] && m->whole == i && !strcmp(m->key, key);
        }
        check(j && j->n == (uint32_t)n && found == n && !cn__json_get(j, "key") && !cn__json_get(j, "key 3"),
              "%d keys: %d found", n, found);
        cn__out_free(&o);
    }
    check(!cn__json_get(NULL, "a") && !cn__json_get(parse("[1]"), "a") && !cn__json_get(parse("{}"), NULL),
          "nothing in what is no object");
}

int main(void)
{
    cn = cn_open(&(cn_desc){ .threads = 1 });
    what_is_json();
    what_is_not_and_where();
    depth_is_bounded();
    texts();
    numbers();
    numbers_to_the_last_bit();
    writing();
    large_objects();
    cn__bump_free(&cn->memory, &memory);
    cn_close(cn);
    return finish();
}
