/* dialect.h: where implementations of WebGPU differ from the standard and from each other. No other file in this folder
   depends on which implementation is loaded. */
#ifndef CN_GPU_DIALECT_H
#define CN_GPU_DIALECT_H

#include "cairn/base.h"
#include "gpu/load.h"

typedef enum cn__dialect {
    CN__DAWN,     /* follows the standard */
    CN__OLD_DAWN, /* of spring 2025: has other values for features */
    CN__WGPU_NATIVE,
} cn__dialect;

/* Finds out which implementation is loaded, and turns its log off. False: it is too old, and `message` says so. */
bool cn__dialect_find(const cn__wgpu *w, cn__dialect *dialect, char *message, size_t size);
const char *cn__dialect_name(cn__dialect dialect);

WGPUInstance cn__dialect_instance(const cn__wgpu *w, cn__dialect dialect);

/* The system's graphics interface. Requests always name it: otherwise Dawn may return an adapter that computes nothing,
   and wgpu-native one of OpenGL. */
WGPUBackendType cn__dialect_backend(void);

typedef enum cn__feature {
    CN__F16,
    CN__TIMESTAMPS,
    CN__SUBGROUPS,
    CN__LOCKING, /* several threads may use devices at once; implementations without this feature always allow it */
} cn__feature;
#define CN__FEATURES 4

/* The value to request, or 0: the adapter lacks the feature. */
WGPUFeatureName cn__dialect_feature(const cn__wgpu *w, cn__dialect dialect, WGPUAdapter adapter, cn__feature feature);
/* The line that a shader needs before it uses a feature, or "". */
const char *cn__dialect_enable(cn__dialect dialect, cn__feature feature);

void cn__dialect_limits(WGPULimits *l); /* initial values, which mean "no requirement" */

/* How many adapters can be requested by number; 0: the implementation cannot number them. */
size_t cn__dialect_count_adapters(const cn__wgpu *w, WGPUInstance instance);
WGPUAdapter cn__dialect_adapter(const cn__wgpu *w, WGPUInstance instance, size_t number); /* NULL: there is none */

/* Copies a text of the library, without the heading of errors and without space at the ends. */
void cn__dialect_text(char *to, size_t size, WGPUStringView text);
/* The code of an error: CN_NO_MEMORY, CN_DEVICE_LOST or CN_BAD_ARGUMENT. */
cn_code cn__dialect_code(WGPUErrorType type, const char *message);

#endif
