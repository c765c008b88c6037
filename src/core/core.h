/* core.h: what a tensor is inside the library.

   handle (cn_tensor)  what a user holds: counted, belongs to a scope, means one result of one node.
   node   (cn__node)   one application of an operator: operands, attributes, results. Denotes its value for ever.
   storage             memory, counted apart: views share it.

   A node is pending (its value is still to be computed), or evaluated: then a result either has a storage or was let
   go. Pending nodes stand in the context's list in an order in which they can be computed. */
#ifndef CN_CORE_CORE_H
#define CN_CORE_CORE_H

#include <string.h>

#include "cairn/cairn.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/memory.h"
#include "core/watch.h"

typedef struct cn__node cn__node;

typedef struct cn__ref {
    cn__node *node;
    int out;
} cn__ref;

typedef struct cn__storage {
    cn__device *device;
    void *data;
    size_t bytes; /* as counted and freed */
    int refs;     /* results that live in it */
    int keeps;    /* kept handles that mean such a result */
    bool lost;    /* its memory was taken over by an assignment */
    bool borrowed;
    bool assignable;           /* holds the value of a handle that is assigned to: all that read it belong together */
    uint32_t comp, comp_epoch; /* to which part of the pending graph, then */
    void (*free_fn)(void *user);
    void *user;
    uint32_t stamp, index; /* its number in the collection under way */
} cn__storage;

typedef struct cn__result {
    cn_meta meta;
    int64_t numel;
    cn__storage *storage;      /* NULL: pending or let go */
    cn__ref base;              /* VIEW: the computed value it looks at; otherwise itself */
    int handles, kept;         /* handles that mean it; kept ones among them */
    int consumers;             /* nodes that take it as operand */
    uint32_t leaf_stamp, leaf; /* its number as a leaf of the collection under way */
} cn__result;

typedef enum cn__state { CN__PENDING, CN__EVALUATED, CN__NUMBER, CN__FAILED } cn__state;

typedef struct cn__hook {
    cn_hook fn;
    void *user;
    struct cn__hook *next;
} cn__hook;

struct cn__node {
    const cn_op *op;
    cn_ctx *ctx;
    cn__device *device;
    cn__node *prev, *next; /* in the list of pending nodes */
    uint64_t seq;          /* order of making */
    int refs;              /* handles, consumers, donations */
    uint8_t state;         /* cn__state */
    bool needs_grad;       /* a gradient can flow to or through it */
    bool grad_leaf;        /* a gradient ends here, in owner */
    bool spent;            /* a backward has walked it */
    bool weak;             /* a plain number: does not decide a dtype */
    bool donates;          /* the memory of donor may be taken: decided by the collection under way */
    uint8_t want;          /* bit i: result i is to be stored: likewise */
    bool assignable;       /* the value of a handle that is assigned to: its memory may be taken over */
    uint16_t variant;      /* recomputation: never shared with the same node of another variant */
    int n_in, n_out;
    uint32_t comp, comp_epoch; /* which connected part of the pending graph */
    uint32_t stamp, index;     /* its number in the collection under way */
    cn__ref *in;               /* NULL once cut: value known, no gradient wanted */
    cn__result *out;
    void *attrs;
    size_t block_bytes; /* of the memory all of this lives in */
    cn_arg args[CN_MAX_ARGS];
    cn__storage *heir; /* made before a run that takes over memory */
    cn__node *donor;   /* assignment: the value assigned over, whose memory may be taken */
    cn_tensor *owner;  /* the handle whose value this is, for assigned values and gradient leaves */
    cn__hook *hooks;
    bool replaced;       /* its handle was assigned to */
    const void *walk_of; /* the walk under way that has it; walks nest */
    cn_tensor **walk;    /* there: gradient gathered for each result, held */
    uint32_t walk_index;
};

struct cn_tensor {
    uint32_t magic;
    int refs; /* scope and keeps */
    int kept;
    cn_ctx *ctx;
    cn__ref ref;
    cn_tensor *grad; /* owned */
    cn_tensor *next_free;
    cn_tensor *prev_all, *next_all; /* of the context */
    char name[32];
};
#define CN__ALIVE 0x43414952u
#define CN__DEAD  0x44454144u

struct cn_ctx {
    cn_code code;
    char words[512];
    cn__memory memory;
    cn__device *device; /* where new tensors are made */
    uint64_t seed, next_stream;
    uint64_t next_seq;
    cn_logger logger;
    void *logger_user;
    bool eager, trace_plans;
    int no_grad; /* depth */
    cn_dtype default_dtype; /* of new parameters */
    uint16_t variant, next_variant;
    int64_t pending_limit;
    int plan_limit;
    bool evaluating;

    cn__vec scope;      /* of cn_tensor * */
    cn_tensor *handles; /* all that are alive */
    cn_tensor *free_handles, *free_handles_last;
    cn__vec doomed; /* nodes whose last reference went: freed without recursion */
    bool burying;

    cn__node *first, *last; /* pending */
    cn__vec comps;          /* of uint32_t: union-find over connected parts of the pending graph */
    uint32_t comp_epoch;
    uint32_t stamp;

    cn__vec spare[5]; /* vectors of the last backward, for the next */
    void *arena;      /* shared by all plans: only one runs at a time */
    size_t arena_bytes;
    struct cn__cache *cache;
    struct cn__object *objects; /* newest first: object.h */
    cn_counters count;
    cn__watch *watch;   /* NULL: nobody looks on */
    uint64_t hash_mask; /* tests plant collisions with it */
};

/* error.c */
bool cn__fail(cn_ctx *ctx, cn_code code, const char *words, ...); /* keeps the first; returns false */
void cn__log(cn_ctx *ctx, const char *words, ...);

/* layout.c */
void cn__row_major(cn_layout *l); /* strides from the shape, offset 0 */
bool cn__layout_contiguous(const cn_layout *l);
int64_t cn__numel(const cn_layout *l);
bool cn__check_shape(cn_ctx *ctx, const char *who, cn_dtype dtype, int ndim,
                     const int64_t *shape); /* sizes >= 0, no overflow */
bool cn__same_shape(const cn_layout *a, const cn_layout *b);
int cn__axis(int64_t axis, int ndim);                                   /* from the end if negative; -1: out of range */
const char *cn__shape_text(const cn_layout *l, char *buf, size_t size); /* "[2,3]" */

/* object.c */
void cn__objects_close(cn_ctx *ctx);

/* storage.c */
cn__storage *cn__storage_new(cn_ctx *ctx, cn__device *d, size_t bytes); /* NULL: error set */
void cn__storage_ref(cn__storage *s);
void cn__storage_unref(cn_ctx *ctx, cn__storage *s);
bool cn__arena_reserve(cn_ctx *ctx, size_t bytes);
void cn__storage_close(cn_ctx *ctx);

/* node.c */
cn__node *cn__node_new(cn_ctx *ctx, const cn_op *op, int n_in, int n_out, size_t attr_size);
cn__node *cn__leaf_new(cn_ctx *ctx, cn_dtype dtype, const cn_layout *l, cn__storage *s); /* takes the reference to s */
void cn__node_unref(cn__node *n);
void cn__node_cut(cn__node *n); /* gives up operands that nobody will ask for again */
void cn__pending_add(cn__node *n);
void cn__pending_remove(cn__node *n);
bool cn__revive(cn__ref r);            /* a let-go value becomes pending again, with all it needs */
bool cn__comp_join(cn__node *n);       /* after its operands are set */
void cn__make_assignable(cn__node *n); /* what reads its memory joins what will take it over */
uint32_t cn__comp_find(cn_ctx *ctx, uint32_t c);
extern const cn_op cn__leaf;

static inline cn__result *cn__res(cn__ref r) { return &r.node->out[r.out]; }
static inline cn__result *cn__result_of(const cn_tensor *t) { return &t->ref.node->out[t->ref.out]; }
static inline bool cn__stored(const cn__result *r) { return r->storage && !r->storage->lost; }

/* handle.c */
cn_tensor *cn__handle_new(cn_ctx *ctx, cn__ref ref); /* in the current scope; takes over one reference to the node */
void cn__handle_rebind(cn_tensor *t, cn__ref ref);   /* adds its own reference to the new node */
bool cn__alive(const cn_tensor *t);                  /* not NULL; in debug builds: not released, else an error */
void cn__handles_close(cn_ctx *ctx);
void cn__hold(cn_tensor *t); /* beyond its scope, without being a wish to store it */
void cn__unhold(cn_tensor *t);

/* tensor.c */
cn_tensor *cn__borrow_layout(cn_ctx *ctx, cn_dtype dtype, const cn_layout *l, void *data, void (*free_fn)(void *user),
                             void *user);
bool cn__assign_all(cn_ctx *ctx, cn_tensor *const *t, cn_tensor **value,
                    int n); /* or none of them; values are replaced by what was made of them */
bool cn__assign_made(cn_tensor *t, cn_tensor *value); /* a pending result made for t, which nobody else has: not copied */

/* host.c: a value as contiguous memory of the CPU: where it lies, or a copy. It holds as long as t has the value, in the
   scope it was opened in. */
typedef struct cn__host {
    const void *data;
    cn_ctx *ctx;
    void *copy; /* NULL: where it lies */
    size_t bytes;
} cn__host;
bool cn__host_open(cn_tensor *t, cn__host *h); /* false: an error stands, and there is nothing to close */
void cn__host_close(cn__host *h);
bool cn__host_device(const cn_ctx *ctx); /* the CPU sees its tensors where they lie */

/* apply.c */
cn_tensor *cn__number(cn_ctx *ctx, double value, cn_dtype dtype, bool weak);
cn_dtype cn__result_dtype(const cn_op *op, cn_tensor *const *in, int n_in); /* promotion among operands */
cn_tensor *cn__filled(cn_tensor *number); /* ops/create: a plain number as a real 0-d value */

/* ops/reduce */
cn_tensor *cn__sum_to(cn_tensor *x, const cn_layout *to); /* undoes a broadcast; x itself if the shapes agree */

/* grad/backward.c */
extern const size_t cn__spare_size[5]; /* of an element of each spare vector */

/* plan/evaluate.c */
typedef enum cn__want { CN__WANT_ASKED, CN__WANT_LIVE } cn__want; /* LIVE: store every value with a handle */
bool cn__evaluate(cn_ctx *ctx, cn__node *root, cn__want want);    /* root NULL: everything pending */
bool cn__cache_open(cn_ctx *ctx);
void cn__cache_close(cn_ctx *ctx);

#endif
