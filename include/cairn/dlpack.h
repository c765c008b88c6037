/* cairn/dlpack.h: exchange of tensors with other libraries (DLPack 0.8's managed tensor), on the CPU without a copy.

       DLManagedTensor *m = cn_to_dlpack(x);       evaluates x
       cn_tensor *y = cn_from_dlpack(cn, m);

   Structs    They have DLPack's layout. To use DLPack's own definitions, include dlpack/dlpack.h before this header.
   Ownership  Whoever has m calls m->deleter(m) when done. cn_from_dlpack takes m over: the deleter is called when no
              tensor needs the memory any more. An exported tensor outlives its context: cn_close leaves its memory to
              the deleter, which then still calls the context's allocator.
   Errors     NULL, and an error in the context. */
#ifndef CAIRN_DLPACK_H
#define CAIRN_DLPACK_H

#include "tensor.h"

#ifndef DLPACK_VERSION
typedef struct DLDevice {
    int32_t device_type; /* 1: CPU */
    int32_t device_id;
} DLDevice;
typedef struct DLDataType {
    uint8_t code; /* 0 int, 1 uint, 2 float, 4 bfloat, 6 bool */
    uint8_t bits;
    uint16_t lanes;
} DLDataType;
typedef struct DLTensor {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: row-major */
    uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;
#endif

#ifdef __cplusplus
extern "C" {
#endif

CN_API DLManagedTensor *cn_to_dlpack(cn_tensor *t);
CN_API cn_tensor *cn_from_dlpack(cn_ctx *ctx, DLManagedTensor *managed);

#ifdef __cplusplus
}
#endif
#endif
