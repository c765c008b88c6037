/* Names from files: tables of them must not become slow because of their content. The names here collide under a hash
   without a key, FNV-1a, which an attacker can compute. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cairn/cairn.h"
#include "core/context.h"
#include "io/json.h"
#include "support/check.h"

/* ---- names that collide ---- */

enum { STAGES = 12, COUNT = 1 << STAGES, BLOCK = 8, NAME = STAGES * BLOCK + 1 };

static uint64_t fnv(uint64_t h, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)text[i]) * 1099511628211u;
    return h;
}

static void block_of(uint32_t number, char out[BLOCK])
{
    uint64_t bits = (number + 1) * 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 32) * 0xd6e8feb86659fd93u;
    for (int i = 0; i < BLOCK; i++) out[i] = "abcdefghijklmnopqrstuvwxyz012345"[bits >> (24 + 5 * i) & 31];
}

/* Two blocks that lead from the state h to one state, as far as a table of 2 * COUNT slots sees it: h ^ h >> 29. They
   are found by the birthday paradox, after a few million. */
static void colliding_blocks(uint64_t h, char a[BLOCK], char b[BLOCK])
{
    enum { BITS = 23, SLOTS = 1 << BITS };
    static uint64_t seen[SLOTS];
    static uint32_t from[SLOTS];
    const uint64_t mask = ((uint64_t)1 << (29 + STAGES + 1)) - 1;
    for (uint32_t n = 0;; n++) {
        if (n % (SLOTS / 2) == 0) memset(seen, 0, sizeof seen); /* at most half full */
        block_of(n, a);
        const uint64_t state = fnv(h, a, BLOCK) & mask;
        uint64_t at = state * 0x9e3779b97f4a7c15u >> (64 - BITS);
        while (seen[at] && seen[at] != state) at = (at + 1) % SLOTS;
        if (seen[at]) {
            block_of(from[at], b);
            if (memcmp(a, b, BLOCK)) return;
            continue; /* the same block again */
        }
        seen[at] = state;
        from[at] = n;
    }
}

/* Each stage has two blocks that lead to the same state: 2^STAGES names, one place in the table. */
static char (*colliding_names(void))[NAME]
{
    char(*names)[NAME] = calloc(COUNT, sizeof *names);
    uint64_t h = 14695981039346656037u;
    for (int s = 0; s < STAGES && names; s++) {
        char blocks[2][BLOCK];
        colliding_blocks(h, blocks[0], blocks[1]);
        for (int i = 0; i < COUNT; i++) memcpy(names[i] + s * BLOCK, blocks[i >> s & 1], BLOCK);
        h = fnv(h, blocks[0], BLOCK);
    }
    return names;
}

static char (*ordinary_names(void))[NAME]
{
    char(*names)[NAME] = calloc(COUNT, sizeof *names);
    for (int i = 0; i < COUNT && names; i++)
        snprintf(names[i], NAME, "transformer.blocks.%d.attention.query.projection.weight.of.the.%011d", i % 97, i);
    return names;
}

static uint64_t old_slot(const char *name)
{
    const uint64_t h = fnv(14695981039346656037u, name, strlen(name));
    return (h ^ h >> 29) & (2 * COUNT - 1);
}

/* ---- tables ---- */

typedef struct entry {
    char *name;
} entry;

/* How many names a search for each name in turn looks at. */
static double looked_at(cn_ctx *cn, char (*names)[NAME])
{
    cn__vec entries = { 0 };
    cn__names table = { .key = &cn->hash_key };
    for (int i = 0; i < COUNT; i++) {
        if (!cn__names_reserve(&cn->memory, &table, &entries, sizeof(entry))) return -1;
        entry e = { names[i] };
        cn__push(&cn->memory, &entries, &e, sizeof e);
        cn__names_add(&table, &entries, sizeof e);
    }
    double steps = 0;
    const size_t mask = table.slots.n - 1;
    for (size_t at = 0; at <= mask; at++) {
        const uint32_t s = ((uint32_t *)table.slots.v)[at];
        if (s) steps += 1 + (double)((at - cn__hash(table.key, names[s - 1], strlen(names[s - 1]))) & mask);
    }
    for (int i = 0; i < COUNT; i += 37)
        check(cn__names_find(&table, &entries, sizeof(entry), names[i], strlen(names[i])) == i, "name %d is found", i);
    check(cn__names_find(&table, &entries, sizeof(entry), "nobody", 6) == -1, "a name that is not there");
    cn__vec_free(&cn->memory, &entries, sizeof(entry));
    cn__names_free(&cn->memory, &table);
    return steps / COUNT;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double time_dict(cn_ctx *cn, char (*names)[NAME])
{
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *x = cn_scalar(cn, CN_F32, 1);
    cn_dict *d = cn_dict_new(cn);
    const double began = now();
    for (int i = 0; i < COUNT; i++) cn_dict_set(d, names[i], x), cn_dict_set_text(d, names[i], "x");
    for (int i = 0; i < COUNT; i++) cn_dict_get(d, names[i]);
    const double seconds = now() - began;
    bool in_order = cn_dict_count(d) == COUNT;
    for (int i = 0; i < COUNT && in_order; i++) in_order = !strcmp(cn_dict_name(d, i), names[i]);
    check(in_order, "a dict has the order of insertion");
    cn_dict_free(d);
    cn_scope_end(cn, s);
    return seconds;
}

static double time_json(cn_ctx *cn, char (*names)[NAME])
{
    cn__out o = { .ctx = cn };
    cn__out_plain(&o, "{");
    for (int i = 0; i < COUNT; i++) {
        if (i) cn__out_plain(&o, ",");
        cn__out_text(&o, names[i], strlen(names[i]));
        cn__out_plain(&o, ":1");
    }
    cn__out_plain(&o, "}");
    cn__bump memory = { 0 };
    const double began = now();
    const cn__json *j = cn__json_read(cn, &memory, o.text.v, o.text.n, "names");
    for (int i = 0; i < COUNT; i++) check(cn__json_get(j, names[i]) != NULL, "member %d", i);
    const double seconds = now() - began;
    cn__bump_free(&cn->memory, &memory);
    cn__out_free(&o);
    return seconds;
}

static double time_modules(cn_ctx *cn, char (*names)[NAME])
{
    static const cn_module_type type = { .name = "Many" };
    cn_module *m = cn_module_new(cn, &type);
    cn_scope s = cn_scope_begin(cn);
    const double began = now();
    for (int i = 0; i < COUNT; i++) {
        char name[NAME];
        size_t n = 0; /* without dots */
        for (const char *c = names[i]; *c; c++) name[n++] = *c == '.' ? '-' : *c;
        name[n] = 0;
        cn_module_buffer(m, name, cn_scalar(cn, CN_F32, 1));
    }
    check(cn_module_named(m).n == COUNT, "all buffers are there");
    const double seconds = now() - began;
    cn_scope_end(cn, s);
    cn_module_free(m);
    return seconds;
}

/* The best of three: another program may take the processor meanwhile. */
static double best_of(double (*run)(cn_ctx *cn, char (*names)[NAME]), cn_ctx *cn, char (*names)[NAME])
{
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        const double seconds = run(cn, names);
        if (seconds < best) best = seconds;
    }
    return best;
}

static void known_hashes(void)
{
    check_group("hash");
    const cn__hash_key key = { { 0x0706050403020100u, 0x0f0e0d0c0b0a0908u } };
    unsigned char bytes[2] = { 0, 1 };
    check(cn__hash(&key, bytes, 0) == 0xabac0158050fc4dcu, "SipHash-1-3 of nothing is %llx",
          (unsigned long long)cn__hash(&key, bytes, 0));
    check(cn__hash(&key, bytes, 1) == 0xc9f49bf37d57ca93u, "SipHash-1-3 of one byte is %llx",
          (unsigned long long)cn__hash(&key, bytes, 1));
    cn__hash_key a = cn__hash_key_new(), b = cn__hash_key_new();
    check(memcmp(&a, &b, sizeof a), "two keys differ");
}

int main(void)
{
    known_hashes();
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1, .threads = 1 });
    char(*bad)[NAME] = colliding_names(), (*good)[NAME] = ordinary_names();
    check_group("colliding names");
    uint64_t slot = old_slot(bad[0]);
    for (int i = 0; i < COUNT; i += 101) check(old_slot(bad[i]) == slot, "name %d collides without a key", i);
    check(strcmp(bad[0], bad[COUNT - 1]) && strlen(bad[0]) == NAME - 1, "names differ");
    const double steps = looked_at(cn, bad);
    check(steps > 0.9 && steps < 3, "%.2f names are looked at for each, expected 1.5", steps);
    static const struct {
        const char *what;
        double (*run)(cn_ctx *cn, char (*names)[NAME]);
    } rows[] = { { "a dict", time_dict }, { "a JSON object", time_json }, { "a module", time_modules } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double usual = best_of(rows[i].run, cn, good), seconds = best_of(rows[i].run, cn, bad);
        check(seconds < 5 * usual + 0.05, "%s of %d colliding names takes %.3f s, of ordinary ones %.3f s",
              rows[i].what, COUNT, seconds, usual);
    }
    check(!cn_failed(cn), "%s", cn_error(cn));
    free(bad);
    free(good);
    cn_close(cn);
    return finish();
}
