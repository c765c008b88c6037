/* dialect.h: in what the implementations of WebGPU differ from the standard and from each other. Nothing else in this
   folder knows which one is loaded. */
#ifndef CN_GPU_DIALECT_H
#define CN_GPU_DIALECT_H

#include "cairn/base.h"
#include "gpu/load.h"

typedef enum cn__dialect {
    CN__DAWN,     /* as the standard */
    CN__OLD_DAWN, /* of spring 2025: other values for features */
    CN__WGPU_NATIVE,
} cn__dialect;

/* False: the library speaks an older language than ours, and message says so. Makes it silent. */
bool cn__dialect_find(const cn__wgpu *w, cn__dialect *dialect, char *message, size_t size);
const char *cn__dialect_name(cn__dialect dialect);

WGPUInstance cn__dialect_instance(const cn__wgpu *w, cn__dialect dialect);

/* What this system's graphics cards are reached through. Always named: Dawn would hand out an adapter that computes
   nothing, wgpu-native one of OpenGL. */
WGPUBackendType cn__dialect_backend(void);

typedef enum cn__feature {
    CN__F16,
    CN__TIMESTAMPS,
    CN__SUBGROUPS,
    CN__LOCKING, /* several threads may use devices at once; where it is missing it goes without saying */
} cn__feature;
#define CN__FEATURES 4

/* The value to ask for, or 0: the adapter has none. */
WGPUFeatureName cn__dialect_feature(const cn__wgpu *w, cn__dialect dialect, WGPUAdapter adapter, cn__feature feature);
/* The line a shader needs before it may use a feature; "" if none. */
const char *cn__dialect_enable(cn__dialect dialect, cn__feature feature);

void cn__dialect_limits(WGPULimits *l); /* as it must be before limits are written into it: "whatever there is" */

/* How many adapters can be told by number, and the one with a number: NULL if there is none. 0: they cannot. */
size_t cn__dialect_count_adapters(const cn__wgpu *w, WGPUInstance instance);
WGPUAdapter cn__dialect_adapter(const cn__wgpu *w, WGPUInstance instance, size_t number);

/* A text of the library's, without the preface some put before their errors and the space after them. */
void cn__dialect_text(char *to, size_t size, WGPUStringView message);
/* What an error is about: CN_NO_MEMORY, CN_DEVICE_LOST or CN_BAD_ARGUMENT. */
cn_code cn__dialect_code(WGPUErrorType type, const char *message);

#endif
