/* cpu.h: the CPU as a device, and what its parts share. */
#ifndef CN_CPU_CPU_H
#define CN_CPU_CPU_H

#include <stdatomic.h>

#include "cpu/workers.h"
#include "plan/plan.h"

#define CN__TILE      512 /* elements a group computes at a time */
#define CN__REG_BYTES (CN__TILE * 8)

struct cn__kernels;

typedef struct cn__cpu {
    cn__device device;
    cn__workers *workers;
    struct cn__kernels *kernels; /* of the instruction set in use */
    size_t kernels_bytes;
} cn__cpu;

struct cn__cpu_run {
    cn__workers *workers;
    const struct cn__group *tail; /* of the kernel under way: run on what it has finished */
    const cn__run *plan_run;
    char *tail_scratch;
    atomic_int faulty;
    int64_t fault_index, fault_size;
};

/* What runs for elements of type t: from the table of kernels, or what a user's operator brings along. NULL: nothing. */
static inline const void *cn__cpu_entry(const struct cn__kernels *kernels, const cn_op *op)
{
    return op->kernels_at ? (const char *)kernels + op->kernels_at : NULL;
}
static inline cn_loop_fn cn__cpu_loop(const struct cn__kernels *kernels, const cn_op *op, cn_dtype t)
{
    const cn_loop_fn *own = cn__cpu_entry(kernels, op);
    return (own ? own : op->loops)[t];
}
static inline const cn_reducer *cn__cpu_reducer(const struct cn__kernels *kernels, const cn_op *op, cn_dtype t)
{
    const cn_reducer *const *own = cn__cpu_entry(kernels, op);
    return (own ? own : op->reducers)[t];
}

/* ---- groups: a short program run tile by tile ---- */

typedef enum cn__place_kind { CN__IN_MEMORY, CN__IN_REGISTER } cn__place_kind;

/* Where a value is while a tile is computed. */
typedef struct cn__slot {
    cn__place_kind kind;
    int index;   /* register, or operand whose memory it is */
    size_t size; /* bytes an element */
} cn__slot;

typedef enum cn__entry_kind { CN__DO_GATHER, CN__DO_LOOP, CN__DO_STORE } cn__entry_kind;
typedef struct cn__entry {
    cn__entry_kind kind;
    cn_loop_fn loop;
    int n_in, n_out, node;
    cn__slot in[CN_MAX_IN], out[CN_MAX_OUT];
    const void *attrs;
    int operand; /* gather: which */
} cn__entry;

/* An operand as walked: contiguous, a number, or strides over merged axes. */
typedef struct cn__walk {
    const cn__operand *operand;
    bool contiguous;
    int ndim;
    int64_t shape[CN_MAX_DIMS], stride[CN_MAX_DIMS];
    size_t size;
    char *data; /* set for each run */
} cn__walk;

typedef struct cn__group cn__group;
struct cn__group {
    const cn__step *step;
    int64_t numel;
    int n_walks; /* loads, then stores */
    cn__walk *walks;
    int n_numbers;
    struct cn__number_load {
        int operand, reg;
    } * numbers;
    int n_entries;
    cn__entry *entries;
    int n_regs;
    cn__slot reduced; /* the value a reduction folds */
    const cn_reducer *reducer;
    int64_t tiles;    /* of all groups of its kernel up to and with this one */
};

/* group.c */
bool cn__group_prepare(const cn__cpu *cpu, cn__plan *plan, const cn__step *step, cn__group *g);
void cn__group_bind(cn__group *g, const cn__run *run, void *const *base);
void cn__group_fill_numbers(const cn__group *g, const cn__run *run, char *regs, int64_t n); /* for tiles of at most n */
void cn__group_tile(const cn__group *g, const cn__run *run, char *regs, int64_t start, int64_t n);
const void *cn__slot_at(const cn__group *g, const cn__slot *s, const char *regs, int64_t start);
void cn__group_range(const cn__group *g, const cn__run *run, char *regs, int64_t begin, int64_t end);
/* n groups that are one kernel: their tiles are counted through and shared among threads. */
void cn__groups_count(cn__group *g, int n);
void cn__groups_run(const cn__group *g, int n, const cn__run *run, cn__workers *w, char *scratch);
size_t cn__groups_scratch(const cn__group *g, int n, int threads);

/* reduce.c */
size_t cn__reduce_scratch(const cn__group *g, int threads);
void cn__reduce_run(const cn__group *g, const cn__run *run, cn__workers *w, char *scratch);

void *cn__operand_data(const cn__operand *o, const cn__run *run, void *const *base);

#endif
