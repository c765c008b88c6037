/* core/host.h: the value of a tensor as contiguous memory of the CPU: its own memory, or a copy. The memory is valid as
   long as the tensor has this value and the scope in which it was opened has not ended. */
#ifndef CN_CORE_HOST_H
#define CN_CORE_HOST_H

#include "cairn/tensor.h"

typedef struct cn__host {
    const void *data;
    cn_ctx *ctx;
    void *copy; /* NULL: data is the tensor's own memory */
    size_t bytes;
} cn__host;

bool cn__host_open(cn_tensor *t, cn__host *h); /* false: an error is set, and there is nothing to close */
void cn__host_close(cn__host *h);
bool cn__host_device(const cn_ctx *ctx); /* whether the CPU sees the memory of the context's tensors */

#endif
