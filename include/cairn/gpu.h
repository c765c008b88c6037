/* cairn/gpu.h: which graphics cards there are, and what a context's has done.

       cn_ctx *cn = cn_open(&(cn_desc){ .device = "gpu" });      a context that computes on one: all its tensors live there

       for (int i = 0; i < cn_gpu_count(cn); i++) {
           cn_gpu_info gpu;
           if (cn_gpu_describe(cn, i, &gpu)) printf("gpu:%d  %s (%s, %s)\n", i, gpu.name, gpu.kind, gpu.backend);
       }
       if (!cn_gpu_available(cn)) printf("no gpu: %s\n", cn_gpu_why_not(cn));

   Which      Cards are reached through WebGPU: a library (Dawn or wgpu-native) that is loaded when one of these functions
              is first called, from CAIRN_WEBGPU_LIB, beside the program, or among the system's. Number 0 is the fastest
              kind: discrete, then integrated, then others, then drivers that compute on the CPU. "gpu" means number 0, or
              the first whose name contains CAIRN_GPU, in any case of letters; "gpu:1" means number 1.
   Waiting    The first call waits for the driver, some 10 to 100 ms. cn_gpu_look does not wait: call it now and then.
   Ownership  The list belongs to the context, and is made once.
   Errors     That there is no card is none: the count is 0, and cn_gpu_why_not has the reason and the remedy. A number or
              name that no card has is an error. */
#ifndef CAIRN_GPU_H
#define CAIRN_GPU_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_gpu_info {
    char name[96];              /* "NVIDIA GeForce RTX 4070" */
    char vendor[48];
    char driver[128];           /* with its version, as it says itself; may be "" */
    const char *backend;        /* "vulkan", "metal", "d3d12", "webgpu" */
    const char *kind;           /* "discrete", "integrated", "other", "software" */
    const char *implementation; /* of WebGPU: "Dawn", "wgpu-native" */
    uint32_t vendor_id, device_id;
    bool f16, subgroups, timestamps;
    uint64_t buffer_bytes;      /* the largest buffer */
    uint64_t binding_bytes;     /* the most of it that a kernel sees at once */
    uint32_t bindings;          /* storage buffers of a kernel */
    uint32_t binding_step;      /* bytes: where in a buffer a binding may begin */
    uint32_t group_size;        /* invocations of a workgroup */
    uint32_t group_bytes;       /* memory they share */
    uint32_t groups;            /* workgroups along an axis */
} cn_gpu_info;

CN_API bool cn_gpu_look(cn_ctx *ctx); /* without waiting: true once the list is complete, or cannot be had */
CN_API int cn_gpu_count(cn_ctx *ctx);
CN_API bool cn_gpu_describe(cn_ctx *ctx, int i, cn_gpu_info *info);
CN_API bool cn_gpu_available(cn_ctx *ctx);
CN_API const char *cn_gpu_why_not(cn_ctx *ctx);                /* "" if there is one */
CN_API int cn_gpu_find(cn_ctx *ctx, const char *device);       /* number of "gpu", "gpu:1"; -1 with an error */

/* What a context's GPU has done so far. */
typedef struct cn_gpu_counters {
    int64_t dispatches, submissions;
    int64_t uploaded_bytes, downloaded_bytes; /* tensors */
    int64_t parameter_bytes;                  /* numbers of kernels: sizes, places, learning rates */
    int64_t readbacks;                        /* times that somebody waited for the GPU */
    int64_t fallbacks;                        /* steps that ran on the CPU, for lack of a kernel */
    int64_t pipelines, bind_groups;           /* made */
    int64_t buffers, buffer_bytes;            /* held now */
    int64_t recoveries;                       /* times that the device was lost, and had back */
    int64_t mirrored_bytes;                   /* read for that, while others compute */
} cn_gpu_counters;
CN_API cn_gpu_counters cn_gpu_counted(const cn_ctx *ctx); /* zeros if the context has no GPU */

/* Kernels of which there are several forms. `cairn doctor` tries each; what it finds wrong on an adapter and driver stands in
   a file of the user's cache, one for each, as a line "quarantine NAME CHOICE", and is not chosen there any more. */
#define CN_GPU_CHOICES 6
typedef struct cn_gpu_variant {
    const char *name;                    /* "matmul" */
    const char *variable;                /* of the environment: the choice it names is taken, whatever is preferred */
    const char *choices[CN_GPU_CHOICES]; /* NULL after the last */
    const char *safe;                    /* taken instead of one that is wrong */
    const char *operators;               /* that have these kernels, with spaces between them */
} cn_gpu_variant;
CN_API const cn_gpu_variant *cn_gpu_variants(int *n);
CN_API bool cn_gpu_verdict_path(cn_ctx *ctx, char *out, size_t size); /* of the context's GPU; false: it has none, or no cache */

#ifdef __cplusplus
}
#endif
#endif
