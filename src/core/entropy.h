/* core/entropy.h: random bytes of the system, which nobody can guess. */
#ifndef CN_CORE_ENTROPY_H
#define CN_CORE_ENTROPY_H

#include <stdbool.h>
#include <stddef.h>

bool cn__entropy(void *to, size_t bytes); /* false: the system has none */

#endif
