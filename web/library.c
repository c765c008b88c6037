/* A page has no shared libraries, in the place of src/core/library.c: what needs zlib, libpng, libjpeg or LAPACK says so. */
#include "core/library.h"

bool cn__library_find(const char *file, const char *const *names, int n, void *pointers)
{
    (void)file, (void)names, (void)n, (void)pointers;
    return false;
}
