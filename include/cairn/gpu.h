/* cairn/gpu.h: lists graphics cards, and counts what the GPU of a context has done.

       cn_ctx *cn = cn_open(&(cn_desc){ .device = "gpu" });      all its tensors are on the GPU

       for (int i = 0; i < cn_gpu_count(cn); i++) {
           cn_gpu_info gpu;
           if (cn_gpu_describe(cn, i, &gpu)) printf("gpu:%d  %s (%s, %s)\n", i, gpu.name, gpu.kind, gpu.backend);
       }
       if (!cn_gpu_available(cn)) printf("no gpu: %s\n", cn_gpu_why_not(cn));

   Which      Cairn uses graphics cards through WebGPU: a library (Dawn or wgpu-native), which the first call of one of
              these functions loads from CAIRN_WEBGPU_LIB, from the folder of the program, or from the system. The list
              is sorted: discrete cards, integrated ones, others, drivers that compute on the CPU. "gpu" means number 0,
              or the first card whose name contains CAIRN_GPU (case does not matter); "gpu:1" means number 1.
   Waiting    The first call waits for the driver, some 10 to 100 ms. cn_gpu_look does not wait: call it repeatedly.
   Ownership  The list belongs to the context and is made once.
   Errors     No card is not an error: the count is 0, and cn_gpu_why_not has the reason and the remedy.
              A number or name that no card has is an error. */
#ifndef CAIRN_GPU_H
#define CAIRN_GPU_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_gpu_info {
    char name[96];              /* "NVIDIA GeForce RTX 4070" */
    char vendor[48];
    char driver[128];           /* name and version of the driver; may be "" */
    const char *backend;        /* "vulkan", "metal", "d3d12", "webgpu" */
    const char *kind;           /* "discrete", "integrated", "other", "software" */
    const char *implementation; /* of WebGPU: "Dawn", "wgpu-native" */
    uint32_t vendor_id, device_id;
    bool f16, subgroups, timestamps;
    uint64_t buffer_bytes;      /* size of the largest buffer */
    uint64_t binding_bytes;     /* the largest part of a buffer that a kernel can bind */
    uint32_t bindings;          /* storage buffers that a kernel can bind */
    uint32_t binding_step;      /* bytes: a binding begins at a multiple of it */
    uint32_t group_size;        /* most invocations of a workgroup */
    uint32_t group_bytes;       /* memory that a workgroup shares */
    uint32_t groups;            /* most workgroups along an axis */
} cn_gpu_info;

CN_API bool cn_gpu_look(cn_ctx *ctx); /* does not wait; true once the search has ended */
CN_API int cn_gpu_count(cn_ctx *ctx);
CN_API bool cn_gpu_describe(cn_ctx *ctx, int i, cn_gpu_info *info);
CN_API bool cn_gpu_available(cn_ctx *ctx);
CN_API const char *cn_gpu_why_not(cn_ctx *ctx);                /* "" if there is a card */
CN_API int cn_gpu_find(cn_ctx *ctx, const char *device);       /* number of "gpu" or "gpu:1"; -1: an error */
CN_API int cn_gpu_current(const cn_ctx *ctx);                  /* number of the context's GPU; -1: it has none */
/* What "auto" means: the number of the first hardware GPU (with CAIRN_GPU in its name, if that is set), or -1: the
   CPU. Drivers that compute on the CPU (kind "software") are no hardware. why (may be NULL) receives the reason, one
   line. */
CN_API int cn_gpu_auto(cn_ctx *ctx, char *why, size_t size);

/* What the GPU of a context has done so far. */
typedef struct cn_gpu_counters {
    int64_t dispatches, submissions;
    int64_t uploaded_bytes, downloaded_bytes; /* tensors */
    int64_t parameter_bytes;                  /* arguments of kernels: sizes, offsets, learning rates */
    int64_t readbacks;                        /* how often the program waited for the GPU */
    int64_t fallbacks;                        /* steps without a GPU kernel, which ran on the CPU */
    int64_t pipelines, bind_groups;           /* created */
    int64_t buffers, buffer_bytes;            /* at present */
    int64_t recoveries;                       /* how often a lost device was opened again */
    int64_t mirrored_bytes;                   /* copied to the CPU in advance, for a recovery */
} cn_gpu_counters;
CN_API cn_gpu_counters cn_gpu_counted(const cn_ctx *ctx); /* zeros if the context has no GPU */

/* Kernels that have several forms. `cairn doctor` tests each form. If a form is wrong on an adapter and driver, the
   doctor writes a line "quarantine NAME CHOICE" to their file in the user's cache. The form is not used there then. */
#define CN_GPU_CHOICES 6
typedef struct cn_gpu_variant {
    const char *name;                    /* "matmul" */
    const char *variable;                /* environment variable that names the choice to use */
    const char *choices[CN_GPU_CHOICES]; /* NULL after the last */
    const char *safe;                    /* the choice that replaces a wrong one */
    const char *operators;               /* operators with these kernels, separated by spaces */
} cn_gpu_variant;
CN_API const cn_gpu_variant *cn_gpu_variants(int *n);
/* That file, for the context's GPU. False: it has no GPU, or there is no cache. */
CN_API bool cn_gpu_verdict_path(cn_ctx *ctx, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
