/* Random bytes on POSIX systems; windows/entropy.c has those of Windows. */
#include "core/entropy.h"

#include <stdio.h>

bool cn__entropy(void *to, size_t bytes)
{
    FILE *f = fopen("/dev/urandom", "rb");
    if (f) setvbuf(f, NULL, _IONBF, 0);
    const bool ok = f && fread(to, bytes, 1, f) == 1;
    if (f) fclose(f);
    return ok;
}
