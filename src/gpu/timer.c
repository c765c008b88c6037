/* Measures dispatches by the GPU's clock while a profiler runs: each dispatch is then a pass of its own, with a
   timestamp at its beginning and end. */
#include "core/object.h"
#include "gpu/gpu.h"

static WGPUStringView no_label(void) { return (WGPUStringView){ NULL, WGPU_STRLEN }; }

static bool has_clock(const cn__gpu *g)
{
    return g->info.timestamps && g->w->DeviceCreateQuerySet && g->w->CommandEncoderResolveQuerySet &&
           g->w->QuerySetRelease;
}

static bool make_queries(cn__gpu *g)
{
    cn__gpu_timer *t = &g->timer;
    if (t->set) return true;
    WGPUQuerySetDescriptor d = { .label = no_label(), .type = WGPUQueryType_Timestamp, .count = 2 * CN__GPU_TIMED };
    t->set = g->w->DeviceCreateQuerySet(g->device, &d);
    t->times = t->set ? cn__gpu_buffer_for(g, 2 * CN__GPU_TIMED * sizeof(uint64_t), CN__GPU_QUERIES) : NULL;
    if (!cn__gpu_clear_fault(g) && t->times)
        return true; /* otherwise the adapter reported a clock that does not work */
    cn__gpu_timer_close(g);
    t->broken = true;
    return false;
}

bool cn__gpu_timer_begin(cn__gpu *g)
{
    cn__gpu_timer *t = &g->timer;
    t->on = has_clock(g) && !t->broken && !cn__gpu_is_lost(g) && make_queries(g);
    t->n = 0;
    /* the standard counts nanoseconds; wgpu-native counts the driver's ticks */
    t->tick = g->w->QueueGetTimestampPeriod ? (double)g->w->QueueGetTimestampPeriod(g->queue) : 1;
    return t->on;
}

void cn__gpu_timer_end(cn__gpu *g) { g->timer.on = false; }

WGPUComputePassEncoder cn__gpu_timed_pass(cn__gpu *g, WGPUCommandEncoder e)
{
    cn__gpu_timer *t = &g->timer;
    if (!t->on || t->n == CN__GPU_TIMED) return g->w->CommandEncoderBeginComputePass(e, NULL);
    uint32_t first = 2 * (uint32_t)t->n;
    WGPUPassTimestampWrites writes = { .querySet = t->set,
                                       .beginningOfPassWriteIndex = first,
                                       .endOfPassWriteIndex = first + 1 };
    WGPUComputePassDescriptor d = { .label = no_label(), .timestampWrites = &writes };
    t->tag[t->n++] = t->now;
    return g->w->CommandEncoderBeginComputePass(e, &d);
}

bool cn__gpu_timer_look(cn__gpu *g, void (*each)(void *user, int tag, int64_t began, int64_t ended), void *user)
{
    cn__gpu_timer *t = &g->timer;
    if (!t->on || !t->n) return true;
    int n = t->n;
    t->n = 0;
    WGPUCommandEncoder e = cn__gpu_encoder(g, "gpu: times");
    if (!e) return false;
    g->w->CommandEncoderResolveQuerySet(e, t->set, 0, 2 * (uint32_t)n, t->times->handle, 0);
    size_t bytes = 2 * (size_t)n * sizeof(uint64_t);
    uint64_t *times = cn__alloc(g->ctx, bytes);
    bool ok = times && cn__gpu_download(g, t->times, 0, times, bytes);
    g->stats.downloaded_bytes -= ok ? (int64_t)bytes : 0; /* times are not data */
    for (int i = 0; i < n && ok; i++) {
        uint64_t began = times[2 * i], ended = times[2 * i + 1];
        if (ended < began) ended = began;
        each(user, t->tag[i], (int64_t)((double)(began - times[0]) * t->tick),
             (int64_t)((double)(ended - times[0]) * t->tick));
    }
    cn__free(g->ctx, times, bytes);
    return ok;
}

void cn__gpu_timer_close(cn__gpu *g)
{
    cn__gpu_timer *t = &g->timer;
    cn__gpu_buffer_free(g, t->times);
    if (t->set) g->w->QuerySetRelease(t->set);
    t->times = NULL;
    t->set = NULL;
    t->on = false;
}
