/* gpu/kernel.h: kernels that are still texts in C files. */
#ifndef CN_GPU_KERNEL_H
#define CN_GPU_KERNEL_H

#include "cairn/kernel.h"

typedef cn_gpu_call cn__gpu_call;
typedef struct cn__gpu_launch {
    const char *name;
    const char *code;
    int64_t groups;
    int size;
    int group_bytes;
    int first;
} cn__gpu_launch;
bool cn__gpu_run_groups(cn_gpu_call *c, const cn__gpu_launch *l);
bool cn__gpu_each(cn_gpu_call *c, int64_t n, const char *code);
char *cn__gpu_text(cn_gpu_call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline const char *cn__gpu_piece(const char *text) { return text ? text : ""; }
static inline void cn__gpu_param(cn_gpu_call *c, uint32_t v) { cn_gpu_param(c, v); }
static inline void cn__gpu_param_f32(cn_gpu_call *c, float v) { cn_gpu_param_f32(c, v); }
static inline void cn__gpu_params_clear(cn_gpu_call *c) { cn_gpu_params_clear(c); }
static inline void cn__gpu_scratch(cn_gpu_call *c, int64_t n) { cn_gpu_scratch(c, n); }
static inline bool cn__gpu_in_place(const cn_gpu_call *c) { return cn_gpu_in_place(c); }

#endif
