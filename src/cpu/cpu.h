/* cpu/cpu.h: the CPU as a device, and what the files of cpu/ share: a run of a plan, and groups, which are short
   programs that run tile by tile. */
#ifndef CN_CPU_CPU_H
#define CN_CPU_CPU_H

#include <stdatomic.h>

#include "cpu/gather_cpu.h"
#include "cpu/workers.h"
#include "plan/plan.h"

#define CN__TILE      512            /* elements a group computes at a time */
#define CN__REG_BYTES (CN__TILE * 8) /* a register holds one tile of any element type */

struct cn__kernels;

typedef struct cn__cpu {
    cn__device device;
    cn__workers *workers;
    struct cn__kernels *kernels; /* the table for the instruction set in use */
    size_t kernels_bytes;
    const cn__gather_kernels *gather; /* in this table */
} cn__cpu;

/* What a kernel may reach while it runs. */
struct cn__cpu_run {
    cn__workers *workers;
    const cn__plan *plan;
    const cn__step *step;             /* that runs */
    const struct cn__group *epilogue; /* the epilogue of the kernel that runs; NULL: none */
    const cn__run *plan_run;
    char *epilogue_scratch;
    atomic_int faulty; /* 1: a kernel found an index out of range */
    int64_t fault_index, fault_size;
};

/* The loop or reducer of an operator for elements of type t, or NULL. It comes from the table of kernels, or from the
   record of an operator that a user added. */
static inline const void *cn__cpu_entry(const struct cn__kernels *kernels, const cn_op *op)
{
#if defined(__wasm__) /* a record points to its row: ops/loops.h */
    kernels = NULL;
#endif
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

/* ---- groups ---- */

enum { CN__IN_MEMORY, CN__IN_REGISTER };

/* A register, in a table before all registers. */
typedef struct cn__held {
    char *at;           /* its tile: in the register's own memory, or where a load lies contiguous */
    char *own;          /* the register's own memory */
    const char *filled; /* the element that a whole tile repeats, or NULL */
} cn__held;

/* Where a value is while a tile is computed. */
typedef struct cn__slot {
    uint8_t kind; /* CN__IN_MEMORY or CN__IN_REGISTER */
    uint8_t size; /* bytes of an element; 0: not decided yet */
    int index;    /* of the register, or of the walk in whose memory the value lies */
} cn__slot;

/* One instruction of a prepared group. GATHER copies a strided load to a register, STORE copies a value to memory, MOVE
   copies a load to memory. */
typedef enum cn__entry_kind { CN__DO_GATHER, CN__DO_LOOP, CN__DO_STORE, CN__DO_MOVE } cn__entry_kind;
typedef struct cn__entry {
    cn_loop_fn loop;
    const void *attrs;
    uint8_t kind; /* cn__entry_kind */
    uint8_t n_in, n_out;
    int node;
    int operand; /* GATHER, MOVE: which load */
    cn__slot in[CN_MAX_IN], out[CN_MAX_OUT];
} cn__entry;

/* A load or store with its axes merged as far as possible, so that few loops walk over it. */
typedef struct cn__walk {
    const cn__operand *operand;
    char *data; /* set before each run */
    bool contiguous;
    uint8_t size; /* bytes of an element */
    uint8_t ndim;
    int64_t *shape, *stride; /* of a load that is not contiguous */
    int64_t *box_stride;     /* of a group of boxes: by axis of the boxes' space */
} cn__walk;

/* A group whose loads are fastest along another axis than its results runs box by box. A box has some elements on the
   loads' axis and some on the last one, so that every line of the cache is used whole. */
typedef struct cn__boxes {
    int ndim; /* 0: the group runs tile by tile */
    int axis; /* the loads' axis */
    int64_t shape[CN_MAX_DIMS];
    int64_t size[CN_MAX_DIMS]; /* of a box; 1 on all other axes */
    int order[CN_MAX_DIMS];    /* the axes, in the order in which boxes follow each other, the fastest first */
} cn__boxes;

/* A group that writes its result in the order of a copy of it, which is faster along another axis. */
typedef struct cn__turned_axis {
    int64_t size, stride; /* the stride is in the copy */
} cn__turned_axis;
typedef struct cn__turned {
    int ndim, rows;                    /* rows: the axis along which the copy is contiguous */
    int stage;                         /* the first of the registers that hold some rows of the result */
    cn__turned_axis axes[CN_MAX_DIMS]; /* the fastest of the result first */
} cn__turned;

typedef struct cn__group cn__group;
struct cn__group {
    const cn__step *step;
    const cn__gather_kernels *gather;
    cn__boxes boxes;
    cn__turned *turned; /* or NULL */
    int64_t numel;
    int n_walks; /* of loads, then of stores */
    cn__walk *walks;
    int n_numbers;
    struct cn__number_load {
        int operand, reg;
    } * numbers; /* plain numbers: their registers are filled once for all tiles */
    int n_entries;
    cn__entry *entries;
    int n_regs;
    cn__slot reduced; /* the value a reduction folds */
    const cn_reducer *reducer;
    int64_t tiles; /* or boxes or turned blocks, of this group and of those merged before it */
};

/* group.c; regs points to cn__group_regs(g) bytes, which are this thread's */
bool cn__group_prepare(const cn__cpu *cpu, cn__plan *plan, const cn__step *step, cn__group *g);
void cn__group_bind(cn__group *g, const cn__run *run, void *const *base);
size_t cn__group_regs(const cn__group *g);
void cn__group_begin(const cn__group *g, const cn__run *run, char *regs,
                     int64_t n); /* before tiles of up to n elements */
void cn__group_tile(const cn__group *g, const cn__run *run, char *regs, int64_t start, int64_t n);
void cn__group_stage(const cn__group *g, char *regs, char *to); /* the next tiles' reduced value is computed there */
const void *cn__slot_at(const cn__group *g, const cn__slot *s, const char *regs, int64_t start);
void cn__group_range(const cn__group *g, const cn__run *run, char *regs, int64_t begin, int64_t end);
/* n merged groups: their tiles are numbered through and shared among threads. */
void cn__groups_count(cn__group *g, int n);
void cn__groups_run(const cn__group *g, int n, const cn__run *run, cn__workers *w, char *scratch);
size_t cn__groups_scratch(const cn__group *g, int n, int threads);
bool cn__overlaps(const cn__plan *p, const cn__operand *store, const cn__operand *load);

/* boxes.c */
bool cn__boxes_find(cn__memory *m, cn__plan *plan, cn__group *g); /* false: no memory */
int64_t cn__boxes_count(const cn__boxes *b);
void cn__group_boxes(const cn__group *g, const cn__run *run, char *regs, int64_t begin, int64_t end);
void cn__run_loop(const cn__group *g, const cn__run *run, const cn__entry *e, char *regs, int64_t start, int64_t n);

/* turned.c: if the step only copies the group's result in another order, the group writes the copy: g->turned is set,
   and the step has nothing to do. False: no memory. */
bool cn__turned_find(cn__memory *m, cn__plan *plan, cn__group *g, const cn__step *copy);
int64_t cn__turned_count(const cn__turned *t);
void cn__group_turned(const cn__group *g, const cn__run *run, char *regs, int64_t begin, int64_t end);

static inline int64_t cn__box_elements(const cn__boxes *b) { return b->size[b->axis] * b->size[b->ndim - 1]; }
static inline char *cn__register_at(const char *regs, int index) { return ((const cn__held *)regs)[index].at; }
static inline cn__box_fn cn__box_of(const cn__group *g, size_t size)
{
    return g->gather->box[size == 8 ? 3 : size == 4 ? 2 : size - 1];
}

/* reduce.c */
size_t cn__reduce_scratch(const cn__group *g, int threads);
void cn__reduce_run(const cn__group *g, const cn__run *run, cn__workers *w, char *scratch);

void *cn__operand_data(const cn__operand *o, const cn__run *run, void *const *base);

#endif
