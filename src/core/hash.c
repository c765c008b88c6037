/* SipHash-1-3 (Aumasson, Bernstein), keys, and tables of names. */
#include "core/hash.h"

#include <time.h>

#include "core/entropy.h"

/* ---- keys ---- */

/* Without the system's random bytes, the clock and the addresses of this run must do. */
static cn__hash_key key_of_chance(const void *stack)
{
    struct timespec now = { 0 };
    timespec_get(&now, TIME_UTC);
    const cn__hash_key plain = { { (uint64_t)(uintptr_t)stack, (uint64_t)(uintptr_t)&cn__hash_key_new } };
    const uint64_t text[3] = { (uint64_t)now.tv_sec, (uint64_t)now.tv_nsec, (uint64_t)clock() };
    cn__hash_key key = { { cn__hash(&plain, text, sizeof text), 0 } };
    key.k[1] = cn__hash(&key, text, sizeof text);
    return key;
}

cn__hash_key cn__hash_key_new(void)
{
    cn__hash_key key;
    return cn__entropy(&key, sizeof key) ? key : key_of_chance(&key);
}

/* ---- SipHash-1-3 ---- */

static uint64_t turn(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static void mix(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = turn(v[1], 13) ^ v[0];
    v[3] = turn(v[3], 16) ^ v[2];
    v[0] = turn(v[0], 32) + v[3];
    v[2] += v[1];
    v[3] = turn(v[3], 21) ^ v[0];
    v[1] = turn(v[1], 17) ^ v[2];
    v[2] = turn(v[2], 32);
}

static uint64_t word_at(const unsigned char *p, size_t n)
{
    uint64_t w = 0;
    for (size_t i = 0; i < n; i++) w |= (uint64_t)p[i] << 8 * i;
    return w;
}

static void absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    mix(v);
    v[0] ^= word;
}

uint64_t cn__hash(const cn__hash_key *key, const void *bytes, size_t n)
{
    const unsigned char *p = bytes, *end = p + n / 8 * 8;
    uint64_t v[4] = { key->k[0] ^ 0x736f6d6570736575u, key->k[1] ^ 0x646f72616e646f6du, key->k[0] ^ 0x6c7967656e657261u,
                      key->k[1] ^ 0x7465646279746573u };
    for (; p < end; p += 8) absorb(v, word_at(p, 8));
    absorb(v, word_at(p, n % 8) | (uint64_t)n << 56);
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- tables of names ---- */

static const char *name_at(const cn__vec *entries, size_t element, size_t i)
{
    return *(char *const *)((const char *)entries->v + i * element);
}

/* The slot that holds the name, or the free slot where it belongs. */
static uint32_t *slot_of(const cn__names *t, const cn__vec *entries, size_t element, const char *name, size_t n)
{
    uint32_t *slots = t->slots.v;
    for (size_t i = cn__hash(t->key, name, n);; i++) {
        uint32_t *s = &slots[i & (t->slots.n - 1)];
        if (*s == 0) return s;
        const char *other = name_at(entries, element, *s - 1);
        if (strncmp(other, name, n) == 0 && other[n] == 0) return s;
    }
}

int64_t cn__names_find(const cn__names *t, const cn__vec *entries, size_t element, const char *name, size_t n)
{
    return t->slots.n ? (int64_t)*slot_of(t, entries, element, name, n) - 1 : -1;
}

static uint32_t *slot_of_entry(const cn__names *t, const cn__vec *entries, size_t element, size_t i)
{
    const char *name = name_at(entries, element, i);
    return slot_of(t, entries, element, name, strlen(name));
}

bool cn__names_reserve(cn__memory *m, cn__names *t, const cn__vec *entries, size_t element)
{
    size_t wanted = t->slots.n ? t->slots.n : 16;
    if (entries->n >= UINT32_MAX / 4) return false;
    while (wanted < 2 * (entries->n + 1)) wanted *= 2;
    if (wanted == t->slots.n) return true;
    if (!cn__vec_reserve(m, &t->slots, wanted, sizeof(uint32_t))) return false;
    t->slots.n = wanted;
    memset(t->slots.v, 0, wanted * sizeof(uint32_t));
    for (size_t i = 0; i < entries->n; i++) *slot_of_entry(t, entries, element, i) = (uint32_t)i + 1;
    return true;
}

void cn__names_add(cn__names *t, const cn__vec *entries, size_t element)
{
    *slot_of_entry(t, entries, element, entries->n - 1) = (uint32_t)entries->n;
}

/* Nothing was inserted after it, so no other name is looked for beyond its slot. */
void cn__names_take_last(cn__names *t, const cn__vec *entries, size_t element)
{
    *slot_of_entry(t, entries, element, entries->n - 1) = 0;
}

void cn__names_free(cn__memory *m, cn__names *t) { cn__vec_free(m, &t->slots, sizeof(uint32_t)); }
