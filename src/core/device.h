/* core/device.h: what a device is to the rest of the library: a table of functions. cpu/ and gpu/ each fill one in. No
   other folder knows which device a context has. */
#ifndef CN_CORE_DEVICE_H
#define CN_CORE_DEVICE_H

#include "cairn/op.h"

struct cn__plan;
struct cn__run;

typedef struct cn__device cn__device;
typedef struct cn__device_table {
    const char *kind;                /* "cpu", "gpu" */
    unsigned char element[CN_DTYPES]; /* bytes that an element takes there */
    bool halves_in_maps_only;         /* other operators compute in f32 what they get in f16 and bf16 */
    void (*close)(cn__device *d);
    void *(*alloc)(cn__device *d, size_t bytes); /* 64-byte aligned; NULL: no memory */
    void (*free)(cn__device *d, void *memory, size_t bytes);
    /* n elements, from the one numbered `at` on; on our side they are as cn_dtype_size says */
    bool (*upload)(cn__device *d, void *to, int64_t at, cn_dtype t, const void *from, int64_t n);
    bool (*download)(cn__device *d, const void *from, int64_t at, cn_dtype t, void *to, int64_t n);
    /* A download for later: what the elements are now. NULL functions: downloads are at once. */
    void *(*read_begin)(cn__device *d, const void *from, int64_t at, cn_dtype t, int64_t n); /* NULL: an error stands */
    bool (*read_done)(cn__device *d, void *reading);          /* looks, does not wait */
    bool (*read_end)(cn__device *d, void *reading, void *to); /* waits, and frees it; to NULL: it is not wanted */
    void *(*host)(cn__device *d, void *memory);            /* the memory as the CPU sees it, or NULL */
    bool (*supports)(cn__device *d, const cn_op *op);      /* has a kernel for it */
    bool (*prepare)(cn__device *d, struct cn__plan *plan); /* plan->prepared; false: no memory */
    void (*unprepare)(cn__device *d, struct cn__plan *plan);
    cn_code (*run)(cn__device *d, struct cn__plan *plan,
                   struct cn__run *run); /* CN_OK, or why not; run->fault says where */
    int (*threads)(cn__device *d);
    /* One step of another device's plan, on copies of its operands; NULL functions: not possible. What prepare_step
       returns lives with the plan; NULL: no memory. base has the memory of each buffer of the plan. */
    void *(*prepare_step)(cn__device *d, struct cn__plan *plan, int step);
    cn_code (*run_step)(void *prepared, struct cn__run *run, void **base);
} cn__device_table;

struct cn__device {
    const cn__device_table *table;
    cn_ctx *ctx;
    char name[16];
};

static inline size_t cn__device_element(const cn__device *d, cn_dtype t) { return d->table->element[t]; }

#endif
