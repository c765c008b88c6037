/* gpu.h: the WebGPU device, inside the library.

   load.c      the library: functions.def, found at run time
   dialect.c   in what implementations differ
   adapters.c  which cards there are: a list for each context
   device.c    a card, opened; its errors and its loss; commands, recorded and submitted
   memory.c    buffers, given back to a pool
   transfer.c  uploads through a ring of mapped memory, downloads now or later
   program.c   shaders compiled, bound and dispatched
   timer.c     how long launches took

   All calls are in the order of the device: a download sees what was uploaded and dispatched before it. Everything that
   returns false or NULL has left an error in the context. Once a device is lost every call fails; nothing crashes. */
#ifndef CN_GPU_GPU_H
#define CN_GPU_GPU_H

#include <pthread.h>
#include <stdatomic.h>

#include "cairn/gpu.h"
#include "core/context.h"
#include "core/errors.h"
#include "gpu/dialect.h"

/* ---- adapters.c */

enum { CN__GPU_MOST = 16 }; /* cards in the list */

/* How to get an adapter: by its number, or by what it is good for. An adapter serves for one device. */
typedef struct cn__gpu_way {
    int number; /* -1: by the wishes below */
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

/* A library and an instance of it; counted: the context's list holds one, each open device another. */
typedef struct cn__gpu_system {
    cn_ctx *ctx;
    int refs;
    cn__wgpu w;
    cn__dialect dialect;
    WGPUInstance instance;
    bool listed; /* the search is over */
    int n_cards, n_ways;
    cn__gpu_card cards[CN__GPU_MOST];
    cn__gpu_way ways[CN__GPU_MOST];
    cn__gpu_request requests[CN__GPU_MOST]; /* one a way */
    char why_not[640];
} cn__gpu_system;

cn__gpu_system *cn__gpu_system_of(cn_ctx *ctx); /* begins the search if nobody has; NULL: no memory */
void cn__gpu_system_release(cn__gpu_system *s);
bool cn__gpu_search(cn__gpu_system *s, bool wait); /* true: the list is complete */
void cn__gpu_request_adapter(cn__gpu_system *s, const cn__gpu_way *way, cn__gpu_request *r);
bool cn__gpu_read_card(cn__gpu_system *s, WGPUAdapter adapter, cn_gpu_info *info);
bool cn__gpu_same_card(const cn_gpu_info *a, const cn_gpu_info *b);
void cn__gpu_pause(int *round); /* between two looks at something that takes its time */

/* ---- device.c */

/* What the driver reported, from whichever thread, till somebody asks. */
typedef struct cn__gpu_fault {
    pthread_mutex_t lock;
    atomic_bool set, lost;
    atomic_uintptr_t device; /* counts devices: what comes late, of one before, is not about this one */
    cn_code code;
    char message[400], loss[200];
} cn__gpu_fault;

typedef struct cn__gpu_desc {
    size_t
        memory_limit; /* bytes of buffers; 0: half the memory where the card has none of its own, else the driver's */
} cn__gpu_desc;

typedef struct cn__gpu_stats {
    size_t live_bytes, pooled_bytes, peak_bytes; /* of buffers; the peak is of both together */
    int64_t live, pooled;                        /* buffers */
    int64_t created, reused;
    int64_t submissions, dispatches;
    int64_t uploaded_bytes, downloaded_bytes;
} cn__gpu_stats;

typedef enum cn__gpu_use { CN__GPU_STORAGE, CN__GPU_READBACK, CN__GPU_QUERIES } cn__gpu_use;
enum { CN__GPU_USES = 3, CN__GPU_CLASSES = 128 };

typedef struct cn__gpu_buffer {
    struct cn__gpu_buffer *prev, *next; /* among those in use, or those of a class in the pool (next only) */
    WGPUBuffer handle;
    size_t bytes;    /* as asked for */
    size_t capacity; /* as made: a size class */
    cn__gpu_use use;
} cn__gpu_buffer;

enum { CN__GPU_CHUNKS = 4, CN__GPU_CHUNK = 4 << 20 };

typedef struct cn__gpu_chunk {
    WGPUBuffer handle;
    char *memory;   /* while mapped */
    size_t used;    /* copies from here are recorded */
    bool pending;   /* being mapped */
    bool is_mapped; /* the mapping succeeded: memory is to be asked for */
} cn__gpu_chunk;

typedef struct cn__gpu_read cn__gpu_read;

enum { CN__GPU_TIMED = 1024 }; /* launches, between two looks at the clock */

typedef struct cn__gpu_timer {
    bool on, broken;
    WGPUQuerySet set;
    cn__gpu_buffer *times;
    double tick; /* nanoseconds */
    int now;     /* what launches are for, at present */
    int n;       /* launches since the last look */
    int tag[CN__GPU_TIMED];
} cn__gpu_timer;

typedef struct cn__gpu {
    cn_ctx *ctx;
    cn__gpu_system *system;
    const cn__wgpu *w;
    int card;
    cn_gpu_info info;
    WGPULimits limits;
    cn__gpu_request request; /* while it is being opened */
    bool opening, asked;
    char message[256]; /* why it could not be opened */
    WGPUDevice device;
    WGPUQueue queue;
    cn__gpu_fault fault;
    WGPUCommandEncoder encoder; /* commands since the last submission, or NULL */
    WGPUComputePassEncoder pass; /* of it, while dispatches follow each other */
    uint32_t generation;         /* counts devices: what was made for an older one cannot be used */
    int64_t dropped;             /* times that recorded commands were not submitted, for an error in them */
    int64_t fail_after;          /* tests: the n-th buffer from now on is refused; -n: and all after it; 0: none */

    size_t memory_limit;
    cn__gpu_buffer *in_use;
    cn__gpu_buffer *pool[CN__GPU_USES][CN__GPU_CLASSES];
    cn__gpu_chunk chunks[CN__GPU_CHUNKS];
    int chunk; /* the one being filled */
    cn__gpu_read *reads;
    cn__gpu_timer timer;
    cn__gpu_stats stats;
} cn__gpu;

cn__gpu *cn__gpu_open(cn_ctx *ctx, int card, const cn__gpu_desc *desc);
/* The same without waiting: NULL if it cannot even begin. To be closed in any case. */
cn__gpu *cn__gpu_open_begin(cn_ctx *ctx, int card, const cn__gpu_desc *desc);
bool cn__gpu_open_done(cn__gpu *g); /* looks; true: it is open, or is not going to be */
bool cn__gpu_open_end(cn__gpu *g);  /* waits; false: it could not be opened */
void cn__gpu_close(cn__gpu *g);     /* waits for what is under way; frees all its buffers */
void cn__gpu_lose(cn__gpu *g);      /* as if the driver had failed */
/* A new device of the same card in the place of one that was lost. Buffers in use are there again, without their contents;
   programs, bind groups and reads are not. */
bool cn__gpu_reopen(cn__gpu *g);
void cn__gpu_drop(cn__gpu *g); /* what was recorded and not submitted, uploads too, is not going to be */
bool cn__gpu_is_lost(const cn__gpu *g); /* as far as anybody said */
bool cn__gpu_is_alive(cn__gpu *g);      /* asks: before what must not be done on a device that is gone */
bool cn__gpu_ok(cn__gpu *g, const char *who); /* nothing was reported; otherwise reports it to the context */
bool cn__gpu_clear_fault(cn__gpu *g);             /* forgets what was reported; true: something was */
WGPUCommandEncoder cn__gpu_encoder(cn__gpu *g, const char *who); /* for copies */
WGPUComputePassEncoder cn__gpu_pass(cn__gpu *g, const char *who); /* for dispatches */
bool cn__gpu_submit(cn__gpu *g);
void cn__gpu_process(cn__gpu *g); /* lets callbacks come */

/* ---- memory.c */

cn__gpu_buffer *cn__gpu_buffer_new(cn__gpu *g, size_t bytes); /* contents: zeros, or whatever the pool had in it */
cn__gpu_buffer *cn__gpu_buffer_for(cn__gpu *g, size_t bytes, cn__gpu_use use);
void cn__gpu_buffer_free(cn__gpu *g, cn__gpu_buffer *b);
void cn__gpu_trim(cn__gpu *g); /* gives the pool's memory back to the driver */
void cn__gpu_memory_close(cn__gpu *g);
void cn__gpu_memory_forget(cn__gpu *g); /* the device is gone: so is the memory of all buffers */
bool cn__gpu_memory_restore(cn__gpu *g);  /* for those in use */
/* A buffer of the driver's, or NULL with an error; mapped for writing from the start if so asked. */
WGPUBuffer cn__gpu_make_buffer(cn__gpu *g, size_t bytes, WGPUBufferUsage usage, bool mapped);
void cn__gpu_destroy_buffer(cn__gpu *g, WGPUBuffer handle);

/* ---- transfer.c */

bool cn__gpu_upload(cn__gpu *g, cn__gpu_buffer *to, size_t offset, const void *from, size_t bytes);
bool cn__gpu_download(cn__gpu *g, cn__gpu_buffer *from, size_t offset, void *to, size_t bytes);
bool cn__gpu_copy(cn__gpu *g, cn__gpu_buffer *to, size_t to_offset, cn__gpu_buffer *from, size_t from_offset,
                  size_t bytes); /* in steps of 4 bytes; of two buffers */

/* A download for later. What is read is what the buffer holds at read_begin; read_record leaves it to a later submission:
   the next one, or that of a read_end, or of a read_done that looks for the second time. */
cn__gpu_read *cn__gpu_read_begin(cn__gpu *g, cn__gpu_buffer *from, size_t offset, size_t bytes);
cn__gpu_read *cn__gpu_read_record(cn__gpu *g, cn__gpu_buffer *from, size_t offset, size_t bytes);
bool cn__gpu_read_done(cn__gpu_read *r);          /* looks, does not wait */
bool cn__gpu_read_end(cn__gpu_read *r, void *to); /* waits, and frees r; NULL: only that */
void cn__gpu_read_drop(cn__gpu_read *r);          /* frees r: it is not wanted any more */

/* As read_record, of several places, one after the other; in steps of 4 bytes. */
typedef struct cn__gpu_part {
    cn__gpu_buffer *from;
    size_t offset, bytes;
} cn__gpu_part;
cn__gpu_read *cn__gpu_read_parts(cn__gpu *g, size_t n, const cn__gpu_part *parts);

bool cn__gpu_ring_before_submit(cn__gpu *g); /* true: a chunk goes with this submission */
void cn__gpu_ring_after_submit(cn__gpu *g);
void cn__gpu_reads_submitted(cn__gpu *g, bool ok); /* ok: else their copies were not made */
void cn__gpu_transfer_close(cn__gpu *g);

/* ---- timer.c */

bool cn__gpu_timer_begin(cn__gpu *g); /* false: there is no clock, or none that works */
void cn__gpu_timer_end(cn__gpu *g);
WGPUComputePassEncoder cn__gpu_timed_pass(cn__gpu *g, WGPUCommandEncoder e); /* for a launch with the tag timer.now */
/* Waits for all launches since the last look; nanoseconds from the first of them. */
bool cn__gpu_timer_look(cn__gpu *g, void (*each)(void *user, int tag, int64_t began, int64_t ended), void *user);
void cn__gpu_timer_close(cn__gpu *g);

/* ---- program.c */

typedef struct cn__gpu_program_desc {
    const char *name;
    const char *source; /* WGSL; all bindings in group 0 */
    const char *entry;  /* NULL: "main" */
    int bindings;
    size_t group_bytes; /* of workgroup memory it declares: not every implementation looks */
} cn__gpu_program_desc;

typedef struct cn__gpu_program {
    WGPUComputePipeline pipeline;
    WGPUBindGroupLayout layout; /* NULL: no bindings */
    int bindings;
    char name[48];
    const char *source; /* the caller's, if it lives as long: to be compiled again on another device */
} cn__gpu_program;

typedef struct cn__gpu_binding {
    cn__gpu_buffer *buffer;
    size_t offset, bytes; /* bytes 0: to the end of what was asked for */
} cn__gpu_binding;

enum { CN__GPU_BINDINGS = 33 };

cn__gpu_program *cn__gpu_program_new(cn__gpu *g, const cn__gpu_program_desc *desc);
void cn__gpu_program_free(cn__gpu *g, cn__gpu_program *p); /* before its device is closed */
void cn__gpu_program_forget(cn__gpu *g, cn__gpu_program *p); /* is compiled when it is bound next */
WGPUBindGroup cn__gpu_bind(cn__gpu *g, cn__gpu_program *p, int n, const cn__gpu_binding *bindings);
/* Workgroups are folded where an axis has no room for all: a program counts x + y * (number along x), and looks whether
   that is below the number it should have. */
bool cn__gpu_launch_bound(cn__gpu *g, const cn__gpu_program *p, WGPUBindGroup bound, int64_t groups);
bool cn__gpu_dispatch(cn__gpu *g, cn__gpu_program *p, int n, const cn__gpu_binding *bindings, int64_t groups);

#endif
