/* Opens a graphics card, collects the errors that its driver reports, and records and submits commands. */
#include <stdio.h>
#include <unistd.h>

#include "core/object.h"
#include "gpu/gpu.h"

/* ---- faults: what the driver reports ---- */

static void record_fault(cn__gpu_fault *f, cn_code code, const char *message)
{
    pthread_mutex_lock(&f->lock);
    if (!f->set) {
        f->code = code;
        snprintf(f->message, sizeof f->message, "%s", message);
        f->set = true;
    }
    pthread_mutex_unlock(&f->lock);
}

static void record_loss(cn__gpu_fault *f, const char *message)
{
    pthread_mutex_lock(&f->lock);
    if (!f->lost) {
        snprintf(f->loss, sizeof f->loss, "%.*s", (int)sizeof f->loss - 1, message);
        f->lost = true;
    }
    pthread_mutex_unlock(&f->lock);
}

static void on_error(const WGPUDevice *device, WGPUErrorType type, WGPUStringView message, void *user1, void *user2)
{
    (void)device;
    cn__gpu_fault *f = user1;
    if ((uintptr_t)user2 != f->device) return;
    char text[sizeof f->message];
    cn__dialect_text(text, sizeof text, message);
    cn_code code = cn__dialect_code(type, text);
    if (code == CN_DEVICE_LOST) record_loss(f, text);
    else record_fault(f, code, text);
}

static void on_lost(const WGPUDevice *device, WGPUDeviceLostReason reason, WGPUStringView message, void *user1,
                    void *user2)
{
    (void)device, (void)reason;
    cn__gpu_fault *f = user1;
    if ((uintptr_t)user2 != f->device) return;
    char text[sizeof f->loss];
    cn__dialect_text(text, sizeof text, message);
    record_loss(f, text);
}

bool cn__gpu_is_lost(const cn__gpu *g) { return g->fault.lost; }

/* A destroyed device reports nothing by itself: creating an object shows the loss. */
bool cn__gpu_is_alive(cn__gpu *g)
{
    if (g->fault.lost || !g->device) return false;
    WGPUCommandEncoder e = g->w->DeviceCreateCommandEncoder(g->device, NULL);
    if (e) g->w->CommandEncoderRelease(e);
    return !g->fault.lost;
}

bool cn__gpu_clear_fault(cn__gpu *g)
{
    pthread_mutex_lock(&g->fault.lock);
    bool was = g->fault.set;
    g->fault.set = false;
    pthread_mutex_unlock(&g->fault.lock);
    return was;
}

bool cn__gpu_ok(cn__gpu *g, const char *who)
{
    if (!g->fault.set && !g->fault.lost) return true;
    pthread_mutex_lock(&g->fault.lock);
    if (g->fault.lost)
        cn__fail(g->ctx, CN_DEVICE_LOST, "%s: the GPU \"%s\" was lost: %s", who, g->info.name, g->fault.loss);
    else cn__fail(g->ctx, g->fault.code, "%s: %s", who, g->fault.message);
    g->fault.set = false;
    pthread_mutex_unlock(&g->fault.lock);
    return false;
}

void cn__gpu_process(cn__gpu *g) { g->w->InstanceProcessEvents(g->system->instance); }

/* ---- opening: requests an adapter, then its device ---- */

static size_t default_limit(const cn_gpu_info *info)
{
    if (strcmp(info->kind, "discrete") == 0) return SIZE_MAX;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page / 2 : SIZE_MAX;
}

static void begin_opening(cn__gpu *g)
{
    g->opening = true;
    g->asked = false;
    cn__gpu_request_adapter(g->system, &g->system->cards[g->card].way, &g->request);
}

cn__gpu *cn__gpu_open_begin(cn_ctx *ctx, int card, const cn__gpu_desc *desc)
{
    cn__gpu_system *s = cn__gpu_system_of(ctx);
    cn_gpu_info info;
    if (!s || !cn_gpu_describe(ctx, card, &info)) return NULL;
    cn__gpu *g = cn__alloc(ctx, sizeof *g);
    if (!g) return NULL;
    g->ctx = ctx;
    g->system = s;
    g->w = &s->w;
    g->info = info;
    g->card = card;
    g->memory_limit = desc && desc->memory_limit ? desc->memory_limit : default_limit(&info);
    pthread_mutex_init(&g->fault.lock, NULL);
    s->refs++;
    begin_opening(g);
    return g;
}

static void on_device(WGPURequestDeviceStatus status, WGPUDevice device, WGPUStringView message, void *user1,
                      void *user2)
{
    (void)user2;
    cn__gpu *g = user1;
    g->device = status == WGPURequestDeviceStatus_Success ? device : NULL;
    if (!g->device) cn__dialect_text(g->message, sizeof g->message, message);
    g->opening = false;
}

/* Requests all limits and features of the adapter: the default limits are a fraction of them. */
static void request_device(cn__gpu *g, WGPUAdapter adapter)
{
    WGPUFeatureName features[CN__FEATURES];
    size_t n = 0;
    for (int i = 0; i < CN__FEATURES; i++) {
        features[n] = cn__dialect_feature(g->w, g->system->dialect, adapter, (cn__feature)i);
        if (features[n]) n++;
    }
    cn__dialect_limits(&g->limits);
    g->w->AdapterGetLimits(adapter, &g->limits);
    void *number = (void *)(uintptr_t)g->fault.device;
    WGPUDeviceDescriptor d = {
        .label = { "cairn", WGPU_STRLEN },
        .requiredFeatureCount = n,
        .requiredFeatures = features,
        .requiredLimits = &g->limits,
        .defaultQueue.label = { NULL, WGPU_STRLEN },
        .deviceLostCallbackInfo = { .mode = WGPUCallbackMode_AllowSpontaneous,
                                    .callback = on_lost,
                                    .userdata1 = &g->fault,
                                    .userdata2 = number },
        .uncapturedErrorCallbackInfo = { .callback = on_error, .userdata1 = &g->fault, .userdata2 = number },
    };
    WGPURequestDeviceCallbackInfo info = { .mode = WGPUCallbackMode_AllowProcessEvents,
                                           .callback = on_device,
                                           .userdata1 = g };
    g->w->AdapterRequestDevice(adapter, &d, info);
}

static void fail_opening(cn__gpu *g, const char *message)
{
    snprintf(g->message, sizeof g->message, "%s", message);
    g->opening = false;
}

bool cn__gpu_open_done(cn__gpu *g)
{
    if (!g->opening) return true;
    cn__gpu_process(g);
    if (g->request.pending) return false;
    if (g->asked) return !g->opening;
    g->asked = true;
    cn_gpu_info found;
    WGPUAdapter adapter = g->request.adapter;
    if (!adapter) fail_opening(g, g->request.message);
    else if (!cn__gpu_read_card(g->system, adapter, &found) || !cn__gpu_same_card(&found, &g->info))
        fail_opening(g, "another card is in its place now");
    else request_device(g, adapter);
    return !g->opening;
}

bool cn__gpu_open_end(cn__gpu *g)
{
    for (int round = 0; !cn__gpu_open_done(g);) cn__gpu_pause(&round);
    if (g->queue) return true;
    if (g->request.adapter) g->w->AdapterRelease(g->request.adapter);
    g->request.adapter = NULL;
    if (!g->device)
        return cn__fail(g->ctx, CN_BAD_DEVICE, "gpu: \"%s\" cannot be opened: %s", g->info.name, g->message);
    g->queue = g->w->DeviceGetQueue(g->device);
    cn__dialect_limits(&g->limits);
    if (!g->queue || g->w->DeviceGetLimits(g->device, &g->limits) != WGPUStatus_Success)
        return cn__fail(g->ctx, CN_BAD_DEVICE, "gpu: \"%s\" was opened but has no queue or no limits", g->info.name);
    return cn__gpu_ok(g, "gpu: open");
}

cn__gpu *cn__gpu_open(cn_ctx *ctx, int card, const cn__gpu_desc *desc)
{
    cn__gpu *g = cn__gpu_open_begin(ctx, card, desc);
    if (!g || cn__gpu_open_end(g)) return g;
    cn__gpu_close(g);
    return NULL;
}

/* ---- Commands */

static void end_pass(cn__gpu *g)
{
    if (!g->pass) return;
    g->w->ComputePassEncoderEnd(g->pass);
    g->w->ComputePassEncoderRelease(g->pass);
    g->pass = NULL;
}

WGPUCommandEncoder cn__gpu_encoder(cn__gpu *g, const char *who)
{
    if (!cn__gpu_ok(g, who)) return NULL;
    end_pass(g);
    if (!g->encoder) g->encoder = g->w->DeviceCreateCommandEncoder(g->device, NULL);
    return cn__gpu_ok(g, who) ? g->encoder : NULL;
}

WGPUComputePassEncoder cn__gpu_pass(cn__gpu *g, const char *who)
{
    if (g->pass && !g->timer.on) return cn__gpu_ok(g, who) ? g->pass : NULL;
    WGPUCommandEncoder e = cn__gpu_encoder(g, who);
    if (e) g->pass = cn__gpu_timed_pass(g, e);
    return cn__gpu_ok(g, who) ? g->pass : NULL;
}

static void release_encoder(cn__gpu *g)
{
    end_pass(g);
    if (g->encoder) g->w->CommandEncoderRelease(g->encoder);
    g->encoder = NULL;
}

void cn__gpu_drop(cn__gpu *g)
{
    if (g->encoder) g->dropped++;
    release_encoder(g);
    g->chunks[g->chunk].used = 0;
    cn__gpu_reads_submitted(g, false);
}

/* A command buffer with an error must not be submitted: wgpu-native ends the process, and Dawn drops the commands and
   reads zeros afterwards. Finishing the command buffer reports every error in it. */
static bool finish_and_submit(cn__gpu *g)
{
    end_pass(g);
    WGPUCommandBuffer commands = g->w->CommandEncoderFinish(g->encoder, NULL);
    release_encoder(g);
    bool ok = cn__gpu_ok(g, "gpu: submit");
    if (!ok) g->dropped++;
    if (ok && commands) {
        g->w->QueueSubmit(g->queue, 1, &commands);
        g->stats.submissions++;
    }
    if (commands) g->w->CommandBufferRelease(commands);
    return ok && cn__gpu_ok(g, "gpu: submit");
}

bool cn__gpu_submit(cn__gpu *g)
{
    if (!cn__gpu_ok(g, "gpu: submit")) {
        cn__gpu_drop(g);
        return false;
    }
    if (!g->encoder) return true;
    bool uploads = cn__gpu_ring_before_submit(g);
    bool ok = finish_and_submit(g);
    if (uploads) cn__gpu_ring_after_submit(g);
    cn__gpu_reads_submitted(g, ok);
    return ok;
}

/* ---- loss and closing ---- */

void cn__gpu_lose(cn__gpu *g)
{
    if (g->fault.lost || !g->device) return;
    cn__gpu_drop(g);
    record_loss(&g->fault, "it was destroyed"); /* not every implementation reports this at once */
    g->w->DeviceDestroy(g->device);
    cn__gpu_process(g);
}

/* Ends transfers and timing, so that no callback of the device is pending. */
static void release_parts(cn__gpu *g)
{
    cn__gpu_drop(g);
    if (g->fault.lost && g->device) g->w->DeviceDestroy(g->device); /* ends pending work */
    cn__gpu_transfer_close(g);
    cn__gpu_timer_close(g);
}

static void release_device(cn__gpu *g)
{
    if (g->queue) g->w->QueueRelease(g->queue);
    if (g->device) g->w->DeviceRelease(g->device);
    if (g->request.adapter) g->w->AdapterRelease(g->request.adapter);
    g->queue = NULL;
    g->device = NULL;
    g->request.adapter = NULL;
    cn__gpu_process(g);
}

bool cn__gpu_reopen(cn__gpu *g)
{
    release_parts(g);
    cn__gpu_memory_forget(g);
    release_device(g);
    g->fault.device++;
    g->fault.set = g->fault.lost = false;
    g->generation++;
    begin_opening(g);
    if (cn__gpu_open_end(g) && cn__gpu_memory_restore(g)) return true;
    if (g->device) cn__gpu_lose(g);
    record_loss(&g->fault, "it cannot be opened again");
    return false;
}

void cn__gpu_close(cn__gpu *g)
{
    if (!g) return;
    for (int round = 0; !cn__gpu_open_done(g);) cn__gpu_pause(&round);
    release_parts(g);
    cn__gpu_memory_close(g);
    cn__gpu_lose(g);
    release_device(g);
    pthread_mutex_destroy(&g->fault.lock);
    cn__gpu_system_release(g->system);
    cn__free(g->ctx, g, sizeof *g);
}
