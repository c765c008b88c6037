/* The functions of WebGPU in a browser, in the place of src/gpu/load.c: web/webgpu.js has them. */
#include "gpu/load.h"

#include <string.h>

/* A function that is not needed stays NULL: it belongs to one native implementation, or measures time. */
#define PRESENT_true(name) .name = wgpu##name,
#define PRESENT_false(name)

#define CN__WGPU(needed, result, name, arguments) result wgpu##name arguments;
#include "gpu/functions.def"
#undef CN__WGPU

static const cn__wgpu functions = {
#define CN__WGPU(needed, result, name, arguments) PRESENT_##needed(name)
#include "gpu/functions.def"
#undef CN__WGPU
};

bool cn__wgpu_load(cn__wgpu *w, char *message, size_t size)
{
    (void)message, (void)size; /* a browser without WebGPU says so when it is asked for an adapter */
    *w = functions;
    return true;
}

void cn__wgpu_unload(cn__wgpu *w) { *w = (cn__wgpu){ 0 }; }
