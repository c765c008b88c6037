/* Looks up functions of shared libraries. */
#include "core/library.h"

#include <dlfcn.h>
#include <string.h>

bool cn__library_find(const char *file, const char *const *names, int n, void *pointers)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) return false;
    bool all = true;
    for (int i = 0; i < n && all; i++) {
        void *function = dlsym(library, names[i]);
        memcpy((char *)pointers + (size_t)i * sizeof function, &function, sizeof function);
        all = function;
    }
    dlclose(library); /* NODELETE: it stays loaded */
    return all;
}
