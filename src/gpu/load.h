/* load.h: finds and opens a WebGPU library at run time. */
#ifndef CN_GPU_LOAD_H
#define CN_GPU_LOAD_H

#include <stdbool.h>

#include "gpu/webgpu.h"

/* w->QueueSubmit(...) calls wgpuQueueSubmit(...). */
typedef struct cn__wgpu {
#define CN__WGPU(needed, result, name, arguments) result(*name) arguments;
#include "gpu/functions.def"
#undef CN__WGPU
    void *library;
} cn__wgpu;

/* Looks at CAIRN_WEBGPU_LIB, then beside the program or libcairn, then among the system's libraries. False: no library
   is usable; `message` says what is missing and how to get it. */
bool cn__wgpu_load(cn__wgpu *w, char *message, size_t size);
void cn__wgpu_unload(cn__wgpu *w);

#endif
