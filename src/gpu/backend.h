/* gpu/backend.h: what the files of the GPU device share.

   heap.c      allocates blocks of memory from slabs
   shader.c    reads shader files: fills holes, finds parts, collects what a kernel uses (shader.h)
   source.c    prints the text around a kernel, and finds programs by their text
   group.c     prints elementwise groups and reductions as WGSL
   launch.c    turns an operator's launches (cairn/kernel.h) into commands
   prepare.c   turns the steps of a plan into commands, once
   run.c       runs the commands of a plan in one submission
   fallback.c  runs steps without a GPU kernel on the CPU
   recovery.c  recovers from a lost device
   late.c      reads values some steps late
   variants.c  chooses among the forms of a kernel
   backend.c   fills in the device table */
#ifndef CN_GPU_BACKEND_H
#define CN_GPU_BACKEND_H

#include "gpu/gpu.h"
#include "gpu/shader.h"
#include "gpu/variants.h"
#include "plan/plan.h"

/* ---- heap.c */

enum {
    CN__GPU_SLABS = 32,
    CN__GPU_STATUS_WORDS = 16, /* at the start of slab 0: the step that found a bad index, the index, the size */
};

/* A block larger than the largest slab is a wide block: it owns several neighbouring slabs. */
typedef struct cn__gpu_block {
    int slab, n_slabs;
    uint32_t word; /* the first word in the slab */
    size_t bytes;
} cn__gpu_block;

typedef struct cn__gpu_slab {
    cn__gpu_buffer *buffer; /* NULL: there is no slab in this place */
    size_t bytes;
    bool wide;        /* part of a wide block */
    size_t blocks;    /* how many are allocated */
    cn__vec free;     /* spans, sorted by address */
    uint64_t version; /* counts the buffers of this place: growing makes a new one */
    uint64_t birth;   /* counts the slabs of this place */
} cn__gpu_slab;

typedef struct cn__gpu_heap {
    cn__gpu *gpu;
    size_t slab_limit, first_bytes;
    int n;        /* places in use, with empty ones between */
    int ordinary; /* slabs that are no part of a wide block */
    cn__gpu_slab slabs[CN__GPU_SLABS];
} cn__gpu_heap;

bool cn__gpu_heap_open(cn__gpu_heap *h, cn__gpu *g);
void cn__gpu_heap_close(cn__gpu_heap *h);
cn__gpu_block *cn__gpu_block_new(cn__gpu_heap *h, size_t bytes); /* NULL: no memory; no error is set */
void cn__gpu_block_free(cn__gpu_heap *h, cn__gpu_block *b);

typedef struct cn__gpu_range {
    int slab;
    size_t at, bytes;
} cn__gpu_range;
bool cn__gpu_heap_live(cn__gpu_heap *h, cn__vec *ranges); /* memory that holds values, between runs; false: no memory */

/* ---- commands: one command becomes one dispatch */

/* What a word of a command's parameters is. Words that may change are computed for every run. */
typedef enum cn__gpu_word_kind {
    CN__GPU_FIXED,     /* value */
    CN__GPU_BASE,      /* first element of operand `index`, from the start of the slab */
    CN__GPU_SCRATCH,   /* first word of the scratch memory */
    CN__GPU_NUMBER,    /* plain number: leaf `index`, as dtype `part` */
    CN__GPU_ARG_REAL,  /* argument `part` of node `index`, as f32 */
    CN__GPU_ARG_WHOLE, /* the same as i32 */
    CN__GPU_ARG_LOW,   /* low word of the argument */
    CN__GPU_ARG_HIGH,  /* high word */
    CN__GPU_ARG_REST,  /* 1 - argument, as f32 */
    CN__GPU_ARG_SCALE, /* 1 / (1 - argument) as f32, or 0 for arguments from 1 on */
} cn__gpu_word_kind;

typedef struct cn__gpu_word {
    cn__gpu_word_kind kind;
    int index, part;
    uint32_t value;
} cn__gpu_word;

/* An operand or result under the name that a shader has for it. */
typedef struct cn__gpu_port {
    const cn__operand *operand; /* may be NULL if absent */
    bool result;
    bool absent;     /* has no memory: reading returns needs.otherwise, writing does nothing */
    bool value, raw; /* which functions the shader uses: inK or outK; rawK or set_rawK */
    int number;      /* K */
    int word;        /* the CN__GPU_BASE word; in joined groups counted from the words of the group */
} cn__gpu_port;

/* The slabs of an operand: the first, and how many. */
typedef struct cn__gpu_location {
    unsigned char slab, n;
} cn__gpu_location;

/* What is known of a step that may find a fault, after its plan is gone. */
typedef struct cn__gpu_checker {
    char name[56];
    const char *fault; /* cn_op.fault */
} cn__gpu_checker;

typedef struct cn__gpu_command {
    char name[56];
    const char *body;       /* WGSL with fn kernel; source.c prints the text around it */
    cn__gpu_needs needs;    /* what the body uses, besides ports */
    cn__vec words;          /* of cn__gpu_word */
    cn__vec ports;          /* of cn__gpu_port */
    cn__vec operands;       /* of const cn__operand *: of the ports, and of joined groups */
    int par, args, scratch; /* the first word of par(), of arg(), of tmp(); or -1 */
    int numel;              /* the word with the number of elements of a group */
    bool joined;            /* several groups in one kernel: J is the first word of the current group */
    bool updates, checks;
    const char *fault;      /* its operator's message of a fault, or NULL */
    int size;
    int64_t groups;
    size_t first; /* the first word in the plan's parameters */
    uint32_t serial;
    /* for the present memory of its operands */
    bool bound_once;
    uint32_t slabs;                     /* bit s: uses slab s */
    struct cn__gpu_location *locations; /* of each operand, then of the scratch memory */
    cn__gpu_program *program;
    WGPUBindGroup bound;
    uint64_t versions[CN__GPU_SLABS];
} cn__gpu_command;

typedef struct cn__gpu_step {
    int first, n; /* commands; n 0: nothing to do, or a fallback */
    bool by_cpu;
    bool took_epilogue; /* the kernels of this step compute the epilogue as well */
    void *fallback;     /* of fallback.c */
} cn__gpu_step;

typedef struct cn__gpu_plan {
    struct cn__gpu_device *device;
    cn__plan *plan;
    cn__vec commands; /* of cn__gpu_command * */
    cn__gpu_step *steps;
    uint32_t *words; /* parameters of all commands */
    size_t n_words;
    bool sent;           /* the device has these words */
    bool failed;         /* memory ran out while preparing */
    bool complete;       /* preparing succeeded */
    uint64_t generation; /* of the device to which the words were sent */
    int64_t dropped;     /* value of gpu->dropped at that time: a later drop may have dropped the words */
    int n_slabs;         /* of the heap when the plan was prepared */
    cn__gpu_buffer *params;
    int fallbacks;
} cn__gpu_plan;

/* ---- source.c */

typedef struct cn__gpu_entry {
    struct cn__gpu_entry *next;
    cn__gpu_program *program;
    uint64_t hash;
    cn__vec text; /* of char */
} cn__gpu_entry;

enum { CN__GPU_PROGRAM_SLOTS = 512 };

const char *cn__gpu_type(cn_dtype t); /* "f32", "i32" */

bool cn__gpu_assemble(struct cn__gpu_device *d, cn__gpu_command *c); /* finds or makes the program */
void cn__gpu_programs_close(struct cn__gpu_device *d);

/* ---- group.c */

bool cn__gpu_group_possible(const cn__step *step);
/* The program of an elementwise group as `fn element(i: u32)`. */
bool cn__gpu_emit_group(cn__gpu_plan *p, const cn__step *step, int merged);
bool cn__gpu_emit_reduction(cn__gpu_plan *p, const cn__step *step);
/* Prints `fn store_result` for a kernel with an epilogue. *stores: whether the function also stores the kernel's
   result. */
const char *cn__gpu_emit_epilogue(cn__gpu_plan *p, cn__gpu_command *c, const cn__step *kernel, const cn__step *epilogue,
                                  bool *stores);

/* ---- launch.c */

/* Calls the operator's .gpu function. *took_epilogue: its kernels compute the epilogue as well. */
bool cn__gpu_prepare_kernel(cn__gpu_plan *p, const cn__step *step, const cn__step *epilogue, bool *took_epilogue);

/* ---- prepare.c */

static inline cn__gpu_command *cn__gpu_command_at(const cn__gpu_plan *p, size_t i)
{
    return ((cn__gpu_command **)p->commands.v)[i];
}
static inline cn__memory *cn__gpu_plan_memory(const cn__gpu_plan *p) { return &p->plan->device->ctx->memory; }

cn__gpu_command *cn__gpu_command_new(cn__gpu_plan *p, const char *name); /* NULL: no memory */
/* These return the number of what they add. If memory runs out, they set p->failed and return 0. */
int cn__gpu_add_word(cn__gpu_plan *p, cn__gpu_command *c, cn__gpu_word word);
int cn__gpu_add_operand(cn__gpu_plan *p, cn__gpu_command *c, const cn__operand *o);
int cn__gpu_add_port(cn__gpu_plan *p, cn__gpu_command *c, cn__gpu_port port, int first); /* word counts from `first` */
/* Prepares without a recovery. *step is the step that is being prepared. */
bool cn__gpu_prepare_plan(struct cn__device *d, cn__plan *plan, int *step);
bool cn__gpu_prepare(struct cn__device *d, cn__plan *plan);
void cn__gpu_unprepare(struct cn__device *d, cn__plan *plan);
/* Adds the step to the message of the context's error: "matmul: [2,3], [3,4] to [2,4]: MESSAGE". step may be NULL. */
void cn__gpu_name_step(cn_ctx *ctx, const cn__step *step);

/* ---- run.c */

cn_code cn__gpu_run(struct cn__device *d, cn__plan *plan, cn__run *run);
/* The block of an operand. *at is its first element, counted from the start of the slab. */
const cn__gpu_block *cn__gpu_block_of(const cn__plan *plan, const cn__run *run, const cn__operand *o, uint32_t *at);

/* ---- fallback.c */

bool cn__gpu_fallback_prepare(cn__gpu_plan *p, int step);
void cn__gpu_fallback_free(cn__gpu_plan *p, int step);
cn_code cn__gpu_fallback_run(cn__gpu_plan *p, int step, cn__run *run);

/* ---- recovery.c */

typedef struct cn__gpu_shape { /* which slabs the heap has at one time */
    uint64_t birth[CN__GPU_SLABS];
    size_t bytes[CN__GPU_SLABS];
} cn__gpu_shape;

typedef struct cn__gpu_recovery {
    int interval;   /* runs between copies; 0: there is no mirror */
    bool complete;  /* copy and log suffice for a recovery */
    bool given_up;  /* recovery has failed */
    cn__vec log;    /* of uint32_t: records */
    cn__vec ranges; /* of cn__gpu_range: the memory that the copy contains, in order */
    void *copy;
    size_t copy_bytes;
    cn__gpu_shape start, end; /* of the log */
    cn__gpu_read *next_copy;  /* the copy that is being read, or NULL */
    cn__vec next_ranges;
    size_t next_mark; /* length of the log when next_copy was recorded */
    cn__gpu_shape next_start;
    uint64_t next_late; /* the last late read before next_copy */
    cn__gpu_buffer *params;
    int runs;        /* since the last copy */
    int tries;       /* devices opened since the last successful call */
    bool running;    /* inside a run */
    bool launched;   /* the run has logged launches */
    size_t run_mark; /* length of the log when the run began */
    int64_t dropped; /* the last known value of gpu->dropped */
} cn__gpu_recovery;

void cn__gpu_log_late(struct cn__gpu_device *d, uint64_t id);
bool cn__gpu_recovery_open(struct cn__gpu_device *d);
void cn__gpu_recovery_close(struct cn__gpu_device *d);
/* Call these before the upload or launch they log. */
void cn__gpu_log_upload(struct cn__gpu_device *d, int slab, size_t offset, const void *from, size_t bytes);
void cn__gpu_log_words(struct cn__gpu_device *d, const uint32_t *words, size_t n);
void cn__gpu_log_launch(struct cn__gpu_device *d, const cn__gpu_command *c);
void cn__gpu_recovery_cut(struct cn__gpu_device *d, size_t n); /* shortens the log after an upload failed */
void cn__gpu_recovery_uploaded(struct cn__gpu_device *d);
/* A run calls begin, logs its launches, and calls submit; then done or failed. `failed` restores memory as it was
   before the run. It returns true if the device was lost and recovered: the run may be repeated. */
bool cn__gpu_recovery_begin(struct cn__gpu_device *d);
bool cn__gpu_recovery_submit(struct cn__gpu_device *d);
void cn__gpu_recovery_done(struct cn__gpu_device *d);
bool cn__gpu_recovery_failed(struct cn__gpu_device *d);
void cn__gpu_recovery_repair(struct cn__gpu_device *d); /* restores memory if commands were dropped */
bool cn__gpu_recover(struct cn__gpu_device *d);         /* after a failure; true: the device was lost and recovered */

/* ---- late.c */

typedef struct cn__gpu_late cn__gpu_late;
cn__gpu_late *cn__gpu_late_begin(struct cn__gpu_device *d, const cn__gpu_block *b, int64_t at, cn_dtype t, int64_t n);
bool cn__gpu_late_done(cn__gpu_late *l);
bool cn__gpu_late_end(struct cn__gpu_device *d, cn__gpu_late *l,
                      void *to);                                 /* frees l; to NULL: the value is not needed */
void cn__gpu_late_keep(struct cn__gpu_device *d, uint64_t last); /* waits for the reads up to this number */
void cn__gpu_late_forget(struct cn__gpu_device *d);              /* after a loss: their reads no longer exist */
/* Repeats a read in a replay, if its value is still needed. `slab` returns the slabs of that time. */
bool cn__gpu_late_repeat(struct cn__gpu_device *d, uint64_t id, cn__gpu_buffer *(*slab)(void *user, int i), void *user);

/* ---- backend.c */

typedef struct cn__gpu_device {
    cn__device device;
    cn__gpu *gpu;
    cn__device *cpu; /* runs steps without a GPU kernel */
    cn__gpu_heap heap;
    cn__gpu_entry *programs[CN__GPU_PROGRAM_SLOTS];
    cn__shader_parts library;
    cn__shader_forms forms;
    cn__vec checkers; /* of cn__gpu_checker: steps that may find a fault, by serial - 1 */
    cn__gpu_recovery recovery;
    cn__gpu_late *late;
    uint64_t late_ids;
    cn_gpu_counters count;
    bool strict;                            /* a step without a kernel is an error */
    unsigned quarantined[CN__GPU_VARIANTS]; /* bit c: choice c must not be used */
} cn__gpu_device;

bool cn__gpu_read_block(cn__gpu_device *d, const cn__gpu_block *b, size_t at, void *to, size_t bytes);
bool cn__gpu_write_block(cn__gpu_device *d, const cn__gpu_block *b, size_t at, const void *from, size_t bytes);
/* Elements on the GPU: halves lie two in a word, every other element is one word. */
bool cn__gpu_same_as_cpu(cn_dtype t); /* the bytes are those of the CPU */
bool cn__gpu_to_words(cn_ctx *ctx, cn_dtype t, const void *from, uint32_t *to, int64_t n);
void cn__gpu_from_words(cn_dtype t, const uint32_t *from, void *to, int64_t n);
static inline bool cn__gpu_is_half(cn_dtype t) { return t == CN_F16 || t == CN_BF16; }
static inline uint32_t cn__gpu_per_word(cn_dtype t) { return cn__gpu_is_half(t) ? 2 : 1; }
bool cn__gpu_check_status(cn__gpu_device *d, const uint32_t status[4]);
cn__gpu *cn__gpu_of(cn_ctx *ctx);             /* NULL: the context's device is the CPU */
void cn__gpu_break(cn_ctx *ctx);              /* tests: loses the context's GPU */
cn__shader_forms *cn__gpu_forms(cn_ctx *ctx); /* NULL: the context's device is the CPU */
static inline cn__shader_context cn__gpu_shaders(cn__gpu_device *d)
{
    return (cn__shader_context){ d->device.ctx, &d->library, &d->forms };
}

#endif
