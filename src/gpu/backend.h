/* gpu/backend.h: the GPU behind the device table, and what its parts share.

   heap.c      blocks of memory, cut from slabs: all tensors and the arena lie in one buffer as long as it can grow
   shader.c    shader files: holes filled in, parts found, what a kernel uses (shader.h)
   source.c    the text around a kernel: bindings, operands, numbers; programs, found again by their text
   group.c     elementwise groups and reductions as WGSL
   launch.c    what operators' functions say (cairn/kernel.h) as commands
   plan.c      a plan's steps as commands, prepared once, encoded from a flat list
   fallback.c  steps for which there is no kernel, run by the CPU
   recovery.c      what a lost device is had back from
   late.c      reads that are taken some steps later
   variants.c  which form of a kernel an adapter can be trusted with
   backend.c   the table */
#ifndef CN_GPU_BACKEND_H
#define CN_GPU_BACKEND_H

#include "gpu/gpu.h"
#include "gpu/shader.h"
#include "gpu/variants.h"
#include "plan/plan.h"

/* ---- heap.c */

enum {
    CN__GPU_SLABS = 32,
    CN__GPU_STATUS_WORDS = 16, /* at the start of slab 0: which step found an index out of range, the index, the size */
};

/* What is larger than a slab may be is a wide block: it has several slabs, one after the other, to itself. */
typedef struct cn__gpu_block {
    int slab, n_slabs;
    uint32_t word; /* where it begins */
    size_t bytes;
} cn__gpu_block;

typedef struct cn__gpu_slab {
    cn__gpu_buffer *buffer; /* NULL: given up */
    size_t bytes;
    bool wide;        /* part of a wide block */
    size_t blocks;    /* taken */
    cn__vec free;     /* of spans, by address */
    uint32_t version; /* counts its buffers */
    uint32_t birth;   /* counts the slabs that were in this place, which may grow */
} cn__gpu_slab;

typedef struct cn__gpu_heap {
    cn__gpu *gpu;
    size_t slab_limit, first_bytes;
    int n;        /* slabs, those given up included */
    int ordinary; /* those that blocks are cut from */
    cn__gpu_slab slabs[CN__GPU_SLABS];
} cn__gpu_heap;

bool cn__gpu_heap_open(cn__gpu_heap *h, cn__gpu *g);
void cn__gpu_heap_close(cn__gpu_heap *h);
cn__gpu_block *cn__gpu_block_new(cn__gpu_heap *h, size_t bytes); /* NULL: no memory; no error is left */
void cn__gpu_block_free(cn__gpu_heap *h, cn__gpu_block *b);

typedef struct cn__gpu_range {
    int slab;
    size_t at, bytes;
} cn__gpu_range;
bool cn__gpu_heap_live(cn__gpu_heap *h, cn__vec *ranges); /* between runs: what holds a value; false: no memory */

/* ---- commands: one launch of a kernel */

/* A word of a command's parameters. What may change from run to run is looked up again. */
typedef enum cn__gpu_word_kind {
    CN__GPU_FIXED,     /* value */
    CN__GPU_BASE,      /* where operand `index` begins, in elements from the start of its slab */
    CN__GPU_SCRATCH,   /* where the scratch memory begins */
    CN__GPU_NUMBER,    /* plain number: leaf `index`, as dtype `part` */
    CN__GPU_ARG_REAL,  /* argument `part` of node `index`, as f32 */
    CN__GPU_ARG_WHOLE, /* as i32 */
    CN__GPU_ARG_LOW,   /* its low word */
    CN__GPU_ARG_HIGH,
    CN__GPU_ARG_REST,  /* 1 less the argument, as f32 */
    CN__GPU_ARG_SCALE, /* 1 / (1 less the argument), or 0 if there is none, as f32 */
} cn__gpu_word_kind;

typedef struct cn__gpu_word {
    cn__gpu_word_kind kind;
    int index, part;
    uint32_t value;
} cn__gpu_word;

/* An operand or result as a text names it. */
typedef struct cn__gpu_port {
    const cn__operand *operand; /* NULL where absent and unknown */
    bool result;
    bool absent;     /* has no memory: reading gives the command's `otherwise`, writing does nothing */
    bool value, raw; /* which functions the text uses: inK or outK; rawK or set_rawK */
    int number;      /* K */
    int word;   /* of its base, among the command's words; of the first of groups that are one kernel */
} cn__gpu_port;

/* Which slabs an operand lies in. */
typedef struct cn__gpu_location {
    unsigned char slab, n;
} cn__gpu_location;

typedef struct cn__gpu_command {
    char name[56];
    const char *body;    /* text without what source.c puts around it: has fn kernel */
    cn__gpu_needs needs; /* what the body uses, besides ports */
    cn__vec words;    /* of cn__gpu_word */
    cn__vec ports;    /* of cn__gpu_port */
    cn__vec operands; /* of const cn__operand *: all whose memory is used, ports and those of groups joined to it */
    int par, args, scratch; /* the first word of par(), of arg(), of tmp(); or -1 */
    int numel;              /* the word that has a group's size, as its text calls it */
    bool joined;            /* words of operands are found from J on */
    bool updates, checks;
    int size;
    int64_t groups;
    size_t first; /* in the plan's parameters, in words */
    uint32_t serial;
    /* for the memory it has at present */
    bool bound_once;
    uint32_t slabs; /* bit s: uses slab s */
    struct cn__gpu_location *locations; /* each operand's, and the scratch memory's */
    cn__gpu_program *program;
    WGPUBindGroup bound;
    uint32_t versions[CN__GPU_SLABS];
} cn__gpu_command;

typedef struct cn__gpu_step {
    int first, n;   /* commands; n 0: nothing to do, or the CPU's */
    bool by_cpu;
    bool took_epilogue; /* its kernels compute the group behind it too */
    void *fallback; /* of fallback.c */
} cn__gpu_step;

typedef struct cn__gpu_plan {
    struct cn__gpu_device *device;
    cn__plan *plan;
    cn__vec commands; /* of cn__gpu_command * */
    cn__gpu_step *steps;
    uint32_t *words; /* as the device has them, once sent */
    size_t n_words;
    bool sent, failed;
    bool complete;       /* nothing is missing that runs need */
    uint32_t generation; /* of the device that was sent them */
    int64_t dropped;     /* of it, then: later drops may have been of them */
    int n_slabs; /* of the heap, when it was prepared */
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

bool cn__gpu_assemble(struct cn__gpu_device *d, cn__gpu_command *c); /* finds or makes its program */
void cn__gpu_programs_close(struct cn__gpu_device *d);

/* ---- group.c */

bool cn__gpu_group_possible(const cn__step *step);
/* The program of an elementwise group as `fn element(i: u32)`. */
bool cn__gpu_emit_group(cn__gpu_plan *p, const cn__step *step, int merged);
bool cn__gpu_emit_reduction(cn__gpu_plan *p, const cn__step *step);
/* `fn put` of a kernel with the group behind it; *stores: whether it calls out0 */
const char *cn__gpu_emit_epilogue(cn__gpu_plan *p, cn__gpu_command *c, const cn__step *kernel, const cn__step *epilogue,
                              bool *stores);

/* ---- launch.c */

/* Calls the operator's function for a step. took_epilogue: its kernels compute the epilogue too. */
bool cn__gpu_prepare_kernel(cn__gpu_plan *p, const cn__step *step, const cn__step *epilogue, bool *took_epilogue);

/* ---- plan.c */

cn__gpu_command *cn__gpu_command_new(cn__gpu_plan *p, const char *name); /* NULL: no memory */
int cn__gpu_add_word(cn__gpu_plan *p, cn__gpu_command *c, cn__gpu_word word); /* its number; -1: no memory */
/* Sets the port's word, counted from `first` on. */
int cn__gpu_add_port(cn__gpu_plan *p, cn__gpu_command *c, cn__gpu_port port, int first);
int cn__gpu_add_operand(cn__gpu_plan *p, cn__gpu_command *c, const cn__operand *o); /* its number among operands */
bool cn__gpu_prepare(struct cn__device *d, cn__plan *plan);
void cn__gpu_unprepare(struct cn__device *d, cn__plan *plan);
cn_code cn__gpu_run(struct cn__device *d, cn__plan *plan, cn__run *run);
/* The memory an operand lies in, and at which of its elements it begins, counted from the start of the slab. */
const cn__gpu_block *cn__gpu_block_of(const cn__plan *plan, const cn__run *run, const cn__operand *o, uint32_t *at);

/* ---- fallback.c */

bool cn__gpu_fallback_prepare(cn__gpu_plan *p, int step);
void cn__gpu_fallback_free(cn__gpu_plan *p, int step);
cn_code cn__gpu_fallback_run(cn__gpu_plan *p, int step, cn__run *run);

/* ---- recovery.c */

typedef struct cn__gpu_shape { /* of the heap, at one time */
    uint32_t birth[CN__GPU_SLABS];
    size_t bytes[CN__GPU_SLABS];
} cn__gpu_shape;

typedef struct cn__gpu_recovery {
    int interval;     /* runs from copy to copy; 0: a loss is final */
    bool complete;    /* the copy and the log are complete */
    bool given_up; /* the device is not going to be had back */
    cn__vec log;   /* of uint32_t: records */
    cn__vec ranges; /* of cn__gpu_range, that lie in the copy one after the other */
    void *copy;
    size_t copy_bytes;
    cn__gpu_shape start, end; /* of the log */
    cn__gpu_read *next_copy; /* the next copy, on its way, or NULL */
    cn__vec next_ranges;     /* its ranges */
    size_t next_mark;        /* where it was taken, in the log */
    cn__gpu_shape next_start;
    uint32_t next_late; /* the last of the reads before it */
    cn__gpu_buffer *params;
    int runs, tries;        /* since the last copy; devices opened since something was done */
    bool running, launched; /* a run is under way; it has launches in the log */
    size_t run_mark;
    int64_t dropped;        /* of the device, when last looked at */
} cn__gpu_recovery;

void cn__gpu_log_late(struct cn__gpu_device *d, uint32_t id);
bool cn__gpu_recovery_open(struct cn__gpu_device *d);
void cn__gpu_recovery_close(struct cn__gpu_device *d);
/* To be told before it is done. */
void cn__gpu_log_upload(struct cn__gpu_device *d, int slab, size_t offset, const void *from, size_t bytes);
void cn__gpu_log_words(struct cn__gpu_device *d, const uint32_t *words, size_t n);
void cn__gpu_log_launch(struct cn__gpu_device *d, const cn__gpu_command *c);
void cn__gpu_recovery_cut(struct cn__gpu_device *d, size_t n); /* an upload failed: the log ends where it did before it */
void cn__gpu_recovery_uploaded(struct cn__gpu_device *d);
/* A run: begin, log and launch, submit; done, or failed. The last gives memory back as it was before the run; true: the
   device had been lost and is there again, the run may be repeated. */
bool cn__gpu_recovery_begin(struct cn__gpu_device *d);
bool cn__gpu_recovery_submit(struct cn__gpu_device *d);
void cn__gpu_recovery_done(struct cn__gpu_device *d);
bool cn__gpu_recovery_failed(struct cn__gpu_device *d);
void cn__gpu_recovery_repair(struct cn__gpu_device *d); /* commands may have been dropped: what they did is done again */
bool cn__gpu_recover(struct cn__gpu_device *d);   /* after a failure: true if the device was lost and is there again */

/* ---- late.c */

typedef struct cn__gpu_late cn__gpu_late;
cn__gpu_late *cn__gpu_late_begin(struct cn__gpu_device *d, const cn__gpu_block *b, int64_t at, cn_dtype t, int64_t n);
bool cn__gpu_late_done(cn__gpu_late *l);
bool cn__gpu_late_end(struct cn__gpu_device *d, cn__gpu_late *l, void *to); /* frees it; to NULL: it is not wanted */
void cn__gpu_late_keep(struct cn__gpu_device *d, uint32_t last); /* waits for those up to a number */
void cn__gpu_late_forget(struct cn__gpu_device *d); /* their reads went with the device */
/* The read of that number is made again, if anybody still wants it, of slabs as they were. */
bool cn__gpu_late_repeat(struct cn__gpu_device *d, uint32_t id, cn__gpu_buffer *(*slab)(void *user, int i), void *user);

/* ---- backend.c */

typedef struct cn__gpu_device {
    cn__device device;
    cn__gpu *gpu;
    cn__device *cpu; /* for steps without a kernel */
    cn__gpu_heap heap;
    cn__gpu_entry *programs[CN__GPU_PROGRAM_SLOTS];
    cn__shader_parts library;
    cn__shader_forms forms;
    cn__vec checkers; /* of char[56]: names of steps that look at indices, by serial - 1 */
    cn__gpu_recovery recovery;
    cn__gpu_late *late;
    uint32_t late_ids;
    cn_gpu_counters count;
    bool strict;      /* a step without a kernel is an error */
    unsigned quarantined[CN__GPU_VARIANTS]; /* bit c: choice c is not to be taken */
} cn__gpu_device;

bool cn__gpu_read_block(cn__gpu_device *d, const cn__gpu_block *b, size_t at, void *to, size_t bytes);
bool cn__gpu_write_block(cn__gpu_device *d, const cn__gpu_block *b, size_t at, const void *from, size_t bytes);
/* n elements as the GPU has them: halves two in a word, everything else a word each. */
bool cn__gpu_same_as_cpu(cn_dtype t); /* just as the CPU has them */
bool cn__gpu_to_words(cn_ctx *ctx, cn_dtype t, const void *from, uint32_t *to, int64_t n);
void cn__gpu_from_words(cn_dtype t, const uint32_t *from, void *to, int64_t n);
static inline bool cn__gpu_is_half(cn_dtype t) { return t == CN_F16 || t == CN_BF16; }
static inline uint32_t cn__gpu_per_word(cn_dtype t) { return cn__gpu_is_half(t) ? 2 : 1; }
bool cn__gpu_check_status(cn__gpu_device *d, const uint32_t status[4]);
cn__gpu *cn__gpu_of(cn_ctx *ctx);   /* NULL: it computes on the CPU */
void cn__gpu_break(cn_ctx *ctx);    /* as if its device were lost */
cn__shader_forms *cn__gpu_forms(cn_ctx *ctx); /* NULL: it computes on the CPU */
static inline cn__shader_context cn__gpu_shaders(cn__gpu_device *d)
{
    return (cn__shader_context){ d->device.ctx, &d->library, &d->forms };
}

#endif
