/* gpu.h: the WebGPU device, inside the library.

   load.c      loads a WebGPU library at run time; functions.def lists its functions
   dialect.c   knows where implementations of WebGPU differ
   adapters.c  lists the cards, once for each context
   device.c    opens a card, collects its errors, records and submits commands
   memory.c    makes buffers and keeps freed buffers in a pool
   transfer.c  uploads through a ring of mapped memory; downloads now or later
   program.c   compiles shaders, binds buffers, dispatches
   timer.c     measures dispatches

   Calls take effect in their order: a download sees what was uploaded and dispatched before it. A function that returns
   false or NULL has set an error in the context. After the loss of the device every call fails; none crashes. */
#ifndef CN_GPU_GPU_H
#define CN_GPU_GPU_H

#include <pthread.h>
#include <stdatomic.h>

#include "cairn/gpu.h"
#include "core/context.h"
#include "core/errors.h"
#include "gpu/dialect.h"

/* ---- adapters.c */

enum { CN__GPU_MOST = 16 }; /* the most cards in the list */

/* How to request an adapter: by its number, or by preference. Each device needs an adapter of its own. */
typedef struct cn__gpu_way {
    int number; /* -1: by the preferences below */
    WGPUPowerPreference power;
    bool fallback;
} cn__gpu_way;

typedef struct cn__gpu_request {
    bool pending;
    WGPUAdapter adapter; /* NULL: message says why */
    char message[256];
} cn__gpu_request;

typedef struct cn__gpu_card {
    cn__gpu_way way;
    cn_gpu_info info;
} cn__gpu_card;

/* A loaded library and its instance. The context holds one reference, and so does each open device. */
typedef struct cn__gpu_system {
    cn_ctx *ctx;
    int refs;
    cn__wgpu w;
    cn__dialect dialect;
    WGPUInstance instance;
    bool listed; /* the search has ended */
    int n_cards, n_ways;
    cn__gpu_card cards[CN__GPU_MOST];
    cn__gpu_way ways[CN__GPU_MOST];
    cn__gpu_request requests[CN__GPU_MOST]; /* one for each way */
    char why_not[640];
} cn__gpu_system;

cn__gpu_system *cn__gpu_system_of(cn_ctx *ctx); /* starts the search at the first call; NULL: no memory */
void cn__gpu_system_release(cn__gpu_system *s);
bool cn__gpu_search(cn__gpu_system *s, bool wait); /* true: the list is complete */
void cn__gpu_request_adapter(cn__gpu_system *s, const cn__gpu_way *way, cn__gpu_request *r);
bool cn__gpu_read_card(cn__gpu_system *s, WGPUAdapter adapter, cn_gpu_info *info);
bool cn__gpu_same_card(const cn_gpu_info *a, const cn_gpu_info *b);
void cn__gpu_pause(int *round); /* between two checks of something slow: spins first, sleeps later */

/* ---- device.c */

/* What the driver reported, from any thread, until cn__gpu_ok passes it on. */
typedef struct cn__gpu_fault {
    pthread_mutex_t lock;
    atomic_bool set, lost;
    atomic_uintptr_t device; /* counts devices: late reports about an earlier one are ignored */
    cn_code code;
    char message[400], loss[200];
} cn__gpu_fault;

typedef struct cn__gpu_desc {
    /* Bytes of buffers. 0: no limit on a discrete card, otherwise half of the machine's memory. */
    size_t memory_limit;
} cn__gpu_desc;

typedef struct cn__gpu_stats {
    size_t live_bytes, pooled_bytes, peak_bytes; /* of buffers; the peak of their sum */
    int64_t live, pooled;                        /* buffers */
    int64_t created, reused;
    int64_t submissions, dispatches;
    int64_t uploaded_bytes, downloaded_bytes;
} cn__gpu_stats;

typedef enum cn__gpu_use { CN__GPU_STORAGE, CN__GPU_READBACK, CN__GPU_QUERIES } cn__gpu_use;
enum { CN__GPU_USES = 3, CN__GPU_CLASSES = 128 };

typedef struct cn__gpu_buffer {
    struct cn__gpu_buffer *prev, *next; /* in the list of used buffers; in the pool only next */
    WGPUBuffer handle;
    size_t bytes;    /* as requested */
    size_t capacity; /* as created: a size class */
    cn__gpu_use use;
} cn__gpu_buffer;

enum { CN__GPU_CHUNKS = 4, CN__GPU_CHUNK = 4 << 20 };

typedef struct cn__gpu_chunk {
    WGPUBuffer handle;
    char *memory;   /* while mapped */
    size_t used;    /* bytes that recorded copies read */
    bool pending;   /* being mapped */
    bool is_mapped; /* the mapping succeeded; `memory` may still be NULL */
} cn__gpu_chunk;

typedef struct cn__gpu_read cn__gpu_read;

enum { CN__GPU_TIMED = 1024 }; /* the most dispatches between two readings of their times */

typedef struct cn__gpu_timer {
    bool on, broken;
    WGPUQuerySet set;
    cn__gpu_buffer *times;
    double tick; /* nanoseconds */
    int now;     /* tag of the next dispatches */
    int n;       /* dispatches since the last reading */
    int tag[CN__GPU_TIMED];
} cn__gpu_timer;

typedef struct cn__gpu {
    cn_ctx *ctx;
    cn__gpu_system *system;
    const cn__wgpu *w;
    int card;
    cn_gpu_info info;
    WGPULimits limits;
    cn__gpu_request request; /* while the device is being opened */
    bool opening, asked;
    char message[256]; /* why the device could not be opened */
    WGPUDevice device;
    WGPUQueue queue;
    cn__gpu_fault fault;
    WGPUCommandEncoder encoder;  /* records commands since the last submission, or NULL */
    WGPUComputePassEncoder pass; /* open pass of the encoder, or NULL */
    uint64_t generation;         /* counts devices: objects of an older generation are invalid */
    int64_t dropped;             /* how often recorded commands were dropped because of an error */
    int64_t fail_after;          /* tests: n refuses the n-th buffer from now, -n also all later ones, 0 none */

    size_t memory_limit;
    cn__gpu_buffer *in_use;
    cn__gpu_buffer *pool[CN__GPU_USES][CN__GPU_CLASSES];
    cn__gpu_chunk chunks[CN__GPU_CHUNKS];
    int chunk; /* index of the chunk being filled */
    cn__gpu_read *reads;
    cn__gpu_timer timer;
    cn__gpu_stats stats;
} cn__gpu;

cn__gpu *cn__gpu_open(cn_ctx *ctx, int card, const cn__gpu_desc *desc);
/* Starts to open without waiting. Close the result in any case. NULL: an error is set. */
cn__gpu *cn__gpu_open_begin(cn_ctx *ctx, int card, const cn__gpu_desc *desc);
bool cn__gpu_open_done(cn__gpu *g); /* does not wait; true: opening has ended, well or not */
bool cn__gpu_open_end(cn__gpu *g);  /* waits; false: an error is set */
void cn__gpu_close(cn__gpu *g);     /* waits for running work; frees all buffers */
void cn__gpu_lose(cn__gpu *g);      /* destroys the device, as if the driver had failed */
/* Opens a new device of the same card after a loss. Buffers in use are created again, without contents. Programs, bind
   groups and reads are not. */
bool cn__gpu_reopen(cn__gpu *g);
void cn__gpu_drop(cn__gpu *g);                /* drops recorded commands that were not submitted, with their uploads */
bool cn__gpu_is_lost(const cn__gpu *g);       /* whether the driver has reported a loss */
bool cn__gpu_is_alive(cn__gpu *g);            /* asks the driver, before calls that crash on a lost device */
bool cn__gpu_ok(cn__gpu *g, const char *who); /* false: the driver reported an error, which is now the context's */
bool cn__gpu_clear_fault(cn__gpu *g);         /* true: the driver had reported an error */
WGPUCommandEncoder cn__gpu_encoder(cn__gpu *g, const char *who);  /* for copies */
WGPUComputePassEncoder cn__gpu_pass(cn__gpu *g, const char *who); /* for dispatches */
bool cn__gpu_submit(cn__gpu *g);
void cn__gpu_process(cn__gpu *g); /* runs callbacks that are due */

/* ---- memory.c */

cn__gpu_buffer *cn__gpu_buffer_new(cn__gpu *g, size_t bytes); /* contents: zeros, or old data from the pool */
cn__gpu_buffer *cn__gpu_buffer_for(cn__gpu *g, size_t bytes, cn__gpu_use use);
void cn__gpu_buffer_free(cn__gpu *g, cn__gpu_buffer *b);
void cn__gpu_trim(cn__gpu *g); /* destroys the buffers in the pool */
void cn__gpu_memory_close(cn__gpu *g);
void cn__gpu_memory_forget(cn__gpu *g);  /* after a loss: releases the handles of all buffers */
bool cn__gpu_memory_restore(cn__gpu *g); /* creates the buffers in use again */
/* A buffer outside the pool. mapped: the buffer is created mapped for writing. */
WGPUBuffer cn__gpu_make_buffer(cn__gpu *g, size_t bytes, WGPUBufferUsage usage, bool mapped);
void cn__gpu_destroy_buffer(cn__gpu *g, WGPUBuffer handle);

/* ---- transfer.c */

bool cn__gpu_upload(cn__gpu *g, cn__gpu_buffer *to, size_t offset, const void *from, size_t bytes);
bool cn__gpu_download(cn__gpu *g, cn__gpu_buffer *from, size_t offset, void *to, size_t bytes);
bool cn__gpu_copy(cn__gpu *g, cn__gpu_buffer *to, size_t to_offset, cn__gpu_buffer *from, size_t from_offset,
                  size_t bytes); /* offsets and sizes are multiples of 4; the buffers differ */

/* A download that ends later. It reads what the buffer holds at this call. read_begin submits at once. read_record
   leaves the submission to others; the second read_done, and read_end, submit if it has not happened. */
cn__gpu_read *cn__gpu_read_begin(cn__gpu *g, cn__gpu_buffer *from, size_t offset, size_t bytes);
cn__gpu_read *cn__gpu_read_record(cn__gpu *g, cn__gpu_buffer *from, size_t offset, size_t bytes);
bool cn__gpu_read_done(cn__gpu_read *r);          /* does not wait */
bool cn__gpu_read_end(cn__gpu_read *r, void *to); /* waits and frees r; to NULL: only frees r */
void cn__gpu_read_drop(cn__gpu_read *r);          /* frees r; the value is not needed any more */

/* read_record for several places; their bytes follow each other in the result. Offsets and sizes are multiples of 4. */
typedef struct cn__gpu_part {
    cn__gpu_buffer *from;
    size_t offset, bytes;
} cn__gpu_part;
cn__gpu_read *cn__gpu_read_parts(cn__gpu *g, size_t n, const cn__gpu_part *parts);

bool cn__gpu_ring_before_submit(cn__gpu *g); /* true: the submission reads a chunk */
void cn__gpu_ring_after_submit(cn__gpu *g);
void cn__gpu_reads_submitted(cn__gpu *g, bool ok); /* !ok: the copies were dropped */
void cn__gpu_transfer_close(cn__gpu *g);

/* ---- timer.c */

bool cn__gpu_timer_begin(cn__gpu *g); /* false: the device has no working clock */
void cn__gpu_timer_end(cn__gpu *g);
WGPUComputePassEncoder cn__gpu_timed_pass(cn__gpu *g, WGPUCommandEncoder e); /* for a dispatch with the tag timer.now */
/* Waits for all dispatches since the last call. Times are nanoseconds since the first of these dispatches began. */
bool cn__gpu_timer_look(cn__gpu *g, void (*each)(void *user, int tag, int64_t began, int64_t ended), void *user);
void cn__gpu_timer_close(cn__gpu *g);

/* ---- program.c */

typedef struct cn__gpu_program_desc {
    const char *name;
    const char *source; /* WGSL; all bindings are in group 0 */
    const char *entry;  /* NULL: "main" */
    int bindings;
    size_t group_bytes; /* declared workgroup memory, checked here: not every implementation checks it */
} cn__gpu_program_desc;

typedef struct cn__gpu_program {
    WGPUComputePipeline pipeline;
    WGPUBindGroupLayout layout; /* NULL: no bindings */
    int bindings;
    char name[48];
    const char *source; /* for compiling again after a recovery; NULL: not possible */
} cn__gpu_program;

typedef struct cn__gpu_binding {
    cn__gpu_buffer *buffer;
    size_t offset, bytes; /* bytes 0: up to the end of the buffer */
} cn__gpu_binding;

enum { CN__GPU_BINDINGS = 33 };

cn__gpu_program *cn__gpu_program_new(cn__gpu *g, const cn__gpu_program_desc *desc);
void cn__gpu_program_free(cn__gpu *g, cn__gpu_program *p);   /* call before closing the device */
void cn__gpu_program_forget(cn__gpu *g, cn__gpu_program *p); /* the next bind compiles it again */
WGPUBindGroup cn__gpu_bind(cn__gpu *g, cn__gpu_program *p, int n, const cn__gpu_binding *bindings);
/* Workgroups are folded over two axes where one axis is too short. The number of a workgroup is x + y * (workgroups
   along x); the program checks that it is below `groups`. */
bool cn__gpu_launch_bound(cn__gpu *g, const cn__gpu_program *p, WGPUBindGroup bound, int64_t groups);
bool cn__gpu_dispatch(cn__gpu *g, cn__gpu_program *p, int n, const cn__gpu_binding *bindings, int64_t groups);

#endif
