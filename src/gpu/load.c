/* Finds a WebGPU library at run time and looks up its functions. */
#define _GNU_SOURCE /* dladdr */
#include "gpu/load.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__APPLE__)
#define SUFFIX ".dylib"
#else
#define SUFFIX ".so"
#endif

#define HOW_TO_GET_ONE \
    "Dawn (libwebgpu_dawn" SUFFIX ") and wgpu-native (libwgpu_native" SUFFIX ") work; scripts/gpu.sh fetches both"

static const char *const known[] = { "libwebgpu_dawn" SUFFIX, "libwgpu_native" SUFFIX };
enum { KNOWN = sizeof known / sizeof *known };

static const struct {
    const char *name;
    size_t at; /* offset in cn__wgpu */
    bool needed;
} functions[] = {
#define CN__WGPU(needed, result, name, arguments) { "wgpu" #name, offsetof(cn__wgpu, name), needed },
#include "gpu/functions.def"
#undef CN__WGPU
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* The library stays in memory after dlclose, because drivers leave threads and exit handlers behind. */
static void *open_library(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); }

/* The path of a library in the folder of this code. */
static bool beside(char *path, size_t size, const char *name)
{
    Dl_info info;
    if (!dladdr((const void *)known, &info) || !info.dli_fname) return false;
    const char *slash = strrchr(info.dli_fname, '/');
    if (!slash) return false;
    int length = (int)(slash - info.dli_fname) + 1;
    return (size_t)snprintf(path, size, "%.*s%s", length, info.dli_fname, name) < size;
}

static void *find_library(char *message, size_t size)
{
    const char *named = getenv("CAIRN_WEBGPU_LIB");
    if (named && named[0]) {
        void *library = open_library(named);
        if (!library) snprintf(message, size, "CAIRN_WEBGPU_LIB cannot be opened: %s. " HOW_TO_GET_ONE, dlerror());
        return library;
    }
    for (int i = 0; i < KNOWN; i++) {
        char path[4096];
        void *library = beside(path, sizeof path, known[i]) ? open_library(path) : NULL;
        if (library) return library;
    }
    for (int i = 0; i < KNOWN; i++) {
        void *library = open_library(known[i]);
        if (library) return library;
    }
    snprintf(message, size,
             "no WebGPU library found: CAIRN_WEBGPU_LIB is not set, and there is none beside the program or among the "
             "system's libraries. " HOW_TO_GET_ONE);
    return NULL;
}

bool cn__wgpu_load(cn__wgpu *w, char *message, size_t size)
{
    *w = (cn__wgpu){ .library = find_library(message, size) };
    if (!w->library) return false;
    for (int i = 0; i < FUNCTIONS; i++) {
        void *function = dlsym(w->library, functions[i].name);
        if (!function && functions[i].needed) {
            snprintf(message, size,
                     "the WebGPU library has no function %s: it is too old or no WebGPU library. " HOW_TO_GET_ONE,
                     functions[i].name);
            cn__wgpu_unload(w);
            return false;
        }
        memcpy((char *)w + functions[i].at, &function, sizeof function);
    }
    return true;
}

void cn__wgpu_unload(cn__wgpu *w)
{
    if (w->library) dlclose(w->library);
    *w = (cn__wgpu){ 0 };
}
