/* core/device.h: a device is a table of functions. cpu/ and gpu/ each fill in one table. Other folders do not know
   which device a context has. */
#ifndef CN_CORE_DEVICE_H
#define CN_CORE_DEVICE_H

#include "cairn/op.h"

struct cn__plan;
struct cn__run;

typedef struct cn__device cn__device;
typedef struct cn__device_table {
    const char *kind;                 /* "cpu", "gpu" */
    unsigned char element[CN_DTYPES]; /* bytes of an element in the device's memory */
    bool halves_in_maps_only;         /* only MAP and RANDOM have kernels for f16 and bf16; others compute in f32 */
    void (*close)(cn__device *d);
    void *(*alloc)(cn__device *d, size_t bytes); /* 64-byte aligned; NULL: no memory */
    void (*free)(cn__device *d, void *memory, size_t bytes);
    /* Copies n elements, from element `at` of the device's memory on. On the CPU they have cn_dtype_size bytes. */
    bool (*upload)(cn__device *d, void *to, int64_t at, cn_dtype t, const void *from, int64_t n);
    bool (*download)(cn__device *d, const void *from, int64_t at, cn_dtype t, void *to, int64_t n);
    /* A download that is begun now and finished later; its values are those of now. NULL functions: not possible. */
    void *(*read_begin)(cn__device *d, const void *from, int64_t at, cn_dtype t, int64_t n); /* NULL: an error stands */
    bool (*read_done)(cn__device *d, void *reading);          /* whether it is finished; does not wait */
    bool (*read_end)(cn__device *d, void *reading, void *to); /* waits, copies to `to` if not NULL, frees `reading` */
    void *(*host)(cn__device *d, void *memory);               /* the memory as the CPU sees it, or NULL */
    /* What the context's allocator returned for the memory, and its bytes. NULL: it is part of a small block. NULL
       function: it is not the allocator's. */
    void *(*block)(void *memory, size_t bytes, size_t *all);
    bool (*supports)(cn__device *d, const cn_op *op);      /* has a kernel for the operator */
    bool (*prepare)(cn__device *d, struct cn__plan *plan); /* sets plan->prepared; false: no memory */
    void (*unprepare)(cn__device *d, struct cn__plan *plan);
    /* CN_OK, or an error; then run->fault says in which step. */
    cn_code (*run)(cn__device *d, struct cn__plan *plan, struct cn__run *run);
    int (*threads)(cn__device *d);
    /* Runs one step of another device's plan on copies of its operands. NULL functions: not possible. What prepare_step
       returns lives as long as the plan; NULL: no memory. base holds the memory of each buffer of the plan. */
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
