/* core/hash.h: a hash of texts from outside. Each context has a key of its own that nobody can guess: a file cannot be
   made so that its names collide. Nothing that a program sees depends on the key. */
#ifndef CN_CORE_HASH_H
#define CN_CORE_HASH_H

#include "core/alloc.h"

typedef struct cn__hash_key {
    uint64_t k[2];
} cn__hash_key;

cn__hash_key cn__hash_key_new(void);                                     /* from the system's randomness */
uint64_t cn__hash(const cn__hash_key *key, const void *bytes, size_t n); /* SipHash-1-3 */

/* A quicker hash of one number. The odd factor is unknown, so nobody can choose numbers that collide. */
static inline uint64_t cn__hash_number(const cn__hash_key *key, uint64_t number)
{
    uint64_t h = (number ^ key->k[0]) * (key->k[1] | 1);
    h = (h ^ h >> 32) * (key->k[0] | 1);
    return h ^ h >> 32;
}

/* A table from names to entries of a vector. An entry begins with its name, a char *. */
typedef struct cn__names {
    const cn__hash_key *key;
    cn__vec slots; /* of uint32_t: number of the entry + 1, or 0; open addressing, at most half full; n a power of 2 */
} cn__names;

/* The number of the entry with this name of n bytes, or -1. */
int64_t cn__names_find(const cn__names *t, const cn__vec *entries, size_t element, const char *name, size_t n);
/* Makes room for one more entry; false: no memory. Then cn__names_add cannot fail. */
bool cn__names_reserve(cn__memory *m, cn__names *t, const cn__vec *entries, size_t element);
void cn__names_add(cn__names *t, const cn__vec *entries, size_t element);       /* the entry that was appended last */
void cn__names_take_last(cn__names *t, const cn__vec *entries, size_t element); /* before it is removed again */
void cn__names_free(cn__memory *m, cn__names *t);

#endif
