/* Lists the graphics cards: asks WebGPU for adapters, describes them, sorts them, and finds one by name. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/object.h"
#include "gpu/gpu.h"

/* ---- the system: an object of the context, made at the first request ---- */

typedef struct holder {
    cn__object object;
    cn__gpu_system *system;
} holder;

static void holder_destroy(void *self)
{
    holder *h = self;
    if (h->system) cn__gpu_system_release(h->system);
}

static const cn__object_type holder_type = { "system of GPUs", holder_destroy };

static void begin_search(cn__gpu_system *s);

static cn__gpu_system *system_new(cn_ctx *ctx)
{
    cn__gpu_system *s = cn__alloc(ctx, sizeof *s);
    if (!s) return NULL;
    s->ctx = ctx;
    s->refs = 1;
    s->listed = true;
    if (!cn__wgpu_load(&s->w, s->why_not, sizeof s->why_not)) return s;
    if (!cn__dialect_find(&s->w, &s->dialect, s->why_not, sizeof s->why_not)) return s;
    s->instance = cn__dialect_instance(&s->w, s->dialect);
    if (s->instance) begin_search(s);
    else
        snprintf(s->why_not, sizeof s->why_not, "%s could not be started: it returns no instance",
                 cn__dialect_name(s->dialect));
    return s;
}

cn__gpu_system *cn__gpu_system_of(cn_ctx *ctx)
{
    for (cn__object *o = ctx->objects; o; o = o->next) {
        if (o->type == &holder_type) return ((holder *)o)->system;
    }
    holder *h = cn__object_new(ctx, sizeof *h, &holder_type);
    if (!h) return NULL;
    h->system = system_new(ctx);
    if (h->system) return h->system;
    cn__object_free(h);
    return NULL;
}

void cn__gpu_system_release(cn__gpu_system *s)
{
    if (--s->refs > 0) return;
    if (s->instance) {
        cn__gpu_search(s, true); /* pending callbacks would write to memory that is freed here */
        s->w.InstanceRelease(s->instance);
    }
    cn__wgpu_unload(&s->w);
    cn__free(s->ctx, s, sizeof *s);
}

/* ---- requests ---- */

/* Sleeps after some rounds, because software drivers compute on the processor that waits. */
void cn__gpu_pause(int *round)
{
    if (++*round < 64) return;
    long us = *round < 256 ? 20 : 200;
    nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
}

static void on_adapter(WGPURequestAdapterStatus status, WGPUAdapter adapter, WGPUStringView message, void *user1,
                       void *user2)
{
    (void)user2;
    cn__gpu_request *r = user1;
    r->adapter = status == WGPURequestAdapterStatus_Success ? adapter : NULL;
    cn__dialect_text(r->message, sizeof r->message, message);
    r->pending = false;
}

void cn__gpu_request_adapter(cn__gpu_system *s, const cn__gpu_way *way, cn__gpu_request *r)
{
    *r = (cn__gpu_request){ 0 };
    if (way->number >= 0) {
        r->adapter = cn__dialect_adapter(&s->w, s->instance, (size_t)way->number);
        if (!r->adapter) snprintf(r->message, sizeof r->message, "it is no longer in the list of the WebGPU library");
        return;
    }
    WGPURequestAdapterOptions options = { .featureLevel = WGPUFeatureLevel_Core,
                                          .powerPreference = way->power,
                                          .forceFallbackAdapter = way->fallback,
                                          .backendType = cn__dialect_backend() };
    WGPURequestAdapterCallbackInfo info = { .mode = WGPUCallbackMode_AllowProcessEvents,
                                            .callback = on_adapter,
                                            .userdata1 = r };
    r->pending = true;
    s->w.InstanceRequestAdapter(s->instance, &options, info);
}

/* ---- descriptions ---- */

static const char *backend_name(WGPUBackendType type)
{
    switch (type) {
    case WGPUBackendType_WebGPU: return "webgpu";
    case WGPUBackendType_D3D11: return "d3d11";
    case WGPUBackendType_D3D12: return "d3d12";
    case WGPUBackendType_Metal: return "metal";
    case WGPUBackendType_Vulkan: return "vulkan";
    case WGPUBackendType_OpenGL: return "opengl";
    case WGPUBackendType_OpenGLES: return "opengles";
    default: return "null";
    }
}

static const char *const kinds[] = { "discrete", "integrated", "other", "software" };

enum { KINDS = sizeof kinds / sizeof *kinds, OTHER = 2, SOFTWARE = 3 };

static int kind_of_type(WGPUAdapterType type)
{
    switch (type) {
    case WGPUAdapterType_DiscreteGPU: return 0;
    case WGPUAdapterType_IntegratedGPU: return 1;
    case WGPUAdapterType_CPU: return SOFTWARE;
    default: return OTHER;
    }
}

/* Drivers that compute on the CPU, by the beginning of their name: not every backend says that they do. */
static bool has_software_name(const char *name)
{
    static const char *const known[] = { "llvmpipe", "softpipe", "SwiftShader", "Microsoft Basic Render" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strncmp(name, known[i], strlen(known[i]))) return true;
    return false;
}

/* CAIRN_GPU_KIND: tests treat a software GPU as a card, or a card as another kind. */
static const char *kind_name(WGPUAdapterType type, const char *name)
{
    const char *set = getenv("CAIRN_GPU_KIND");
    for (int i = 0; set && i < KINDS; i++)
        if (!strcmp(set, kinds[i])) return kinds[i];
    return kinds[has_software_name(name) ? SOFTWARE : kind_of_type(type)];
}

static int kind_rank(const cn_gpu_info *info)
{
    int rank = 0;
    while (kinds[rank] != info->kind) rank++;
    return rank;
}

static bool has_feature(cn__gpu_system *s, WGPUAdapter adapter, cn__feature feature)
{
    return cn__dialect_feature(&s->w, s->dialect, adapter, feature) != 0;
}

bool cn__gpu_read_card(cn__gpu_system *s, WGPUAdapter adapter, cn_gpu_info *info)
{
    WGPUAdapterInfo a = { 0 };
    WGPULimits l;
    cn__dialect_limits(&l);
    if (s->w.AdapterGetLimits(adapter, &l) != WGPUStatus_Success) return false;
    if (s->w.AdapterGetInfo(adapter, &a) != WGPUStatus_Success) return false;
    *info = (cn_gpu_info){
        .backend = backend_name(a.backendType),
        .implementation = cn__dialect_name(s->dialect),
        .vendor_id = a.vendorID,
        .device_id = a.deviceID,
        .f16 = has_feature(s, adapter, CN__F16),
        .subgroups = has_feature(s, adapter, CN__SUBGROUPS),
        .timestamps = has_feature(s, adapter, CN__TIMESTAMPS),
        .buffer_bytes = l.maxBufferSize,
        .binding_bytes = l.maxStorageBufferBindingSize,
        .bindings = l.maxStorageBuffersPerShaderStage,
        .binding_step = l.minStorageBufferOffsetAlignment,
        .group_size = l.maxComputeInvocationsPerWorkgroup,
        .group_bytes = l.maxComputeWorkgroupStorageSize,
        .groups = l.maxComputeWorkgroupsPerDimension,
    };
    cn__dialect_text(info->name, sizeof info->name, a.device);
    info->kind = kind_name(a.adapterType, info->name);
    cn__dialect_text(info->vendor, sizeof info->vendor, a.vendor);
    cn__dialect_text(info->driver, sizeof info->driver, a.description);
    s->w.AdapterInfoFreeMembers(a);
    return true;
}

bool cn__gpu_same_card(const cn_gpu_info *a, const cn_gpu_info *b)
{
    return a->vendor_id == b->vendor_id && a->device_id == b->device_id && strcmp(a->name, b->name) == 0 &&
           strcmp(a->backend, b->backend) == 0;
}

/* Rejects drivers that compute wrong numbers without an error. */
static bool is_usable(const cn_gpu_info *info, char *message, size_t size)
{
    const char *mesa = strstr(info->driver, "Mesa ");
    if (strcmp(info->backend, "null") == 0) {
        snprintf(message, size, "the only adapter computes nothing: no driver for a graphics card is installed");
        return false;
    }
    if (strncmp(info->name, "llvmpipe", 8) == 0 && mesa && atoi(mesa + 5) < 25) {
        snprintf(
            message, size,
            "%s of %s is too old: loops may end after 65,535 rounds. Use Mesa 25 or newer; scripts/gpu.sh fetches it",
            info->name, mesa);
        return false;
    }
    return true;
}

/* ---- the list ---- */

static void begin_search(cn__gpu_system *s)
{
    static const cn__gpu_way preferences[] = { { .number = -1, .power = WGPUPowerPreference_HighPerformance },
                                               { .number = -1, .power = WGPUPowerPreference_LowPower },
                                               { .number = -1, .fallback = true } };
    size_t n = cn__dialect_count_adapters(&s->w, s->instance);
    for (size_t i = 0; i < n && i < CN__GPU_MOST; i++) s->ways[s->n_ways++] = (cn__gpu_way){ .number = (int)i };
    for (int i = 0; i < 3 && n == 0; i++) s->ways[s->n_ways++] = preferences[i];
    for (int i = 0; i < s->n_ways; i++) cn__gpu_request_adapter(s, &s->ways[i], &s->requests[i]);
    s->listed = false;
}

/* Inserts a card behind cards of its kind and before cards of slower kinds. */
static void add_card(cn__gpu_system *s, const cn__gpu_card *card)
{
    int at = s->n_cards++;
    for (; at > 0 && kind_rank(&s->cards[at - 1].info) > kind_rank(&card->info); at--) s->cards[at] = s->cards[at - 1];
    s->cards[at] = *card;
}

/* Several preferences may lead to the same card. Numbers do not, even if two cards are alike. */
static bool is_listed(const cn__gpu_system *s, const cn__gpu_card *card)
{
    for (int i = 0; i < s->n_cards && card->way.number < 0; i++) {
        if (cn__gpu_same_card(&s->cards[i].info, &card->info)) return true;
    }
    return false;
}

static void add_answer(cn__gpu_system *s, int i)
{
    cn__gpu_request *r = &s->requests[i];
    if (!r->adapter) {
        if (!s->why_not[0] && r->message[0])
            snprintf(s->why_not, sizeof s->why_not, "no graphics card found: %s", r->message);
        return;
    }
    cn__gpu_card card = { .way = s->ways[i] };
    if (cn__gpu_read_card(s, r->adapter, &card.info) && is_usable(&card.info, s->why_not, sizeof s->why_not) &&
        !is_listed(s, &card))
        add_card(s, &card);
    s->w.AdapterRelease(r->adapter);
    r->adapter = NULL;
}

bool cn__gpu_search(cn__gpu_system *s, bool wait)
{
    int round = 0, pending = 0;
    while (!s->listed) {
        s->w.InstanceProcessEvents(s->instance);
        pending = 0;
        for (int i = 0; i < s->n_ways; i++) pending += s->requests[i].pending;
        if (pending == 0) break;
        if (!wait) return false;
        cn__gpu_pause(&round);
    }
    if (s->listed) return true;
    for (int i = 0; i < s->n_ways; i++) add_answer(s, i);
    s->listed = true;
    if (s->n_cards) s->why_not[0] = 0;
    else if (!s->why_not[0])
        snprintf(s->why_not, sizeof s->why_not, "no graphics card found: %s finds no driver for %s",
                 cn__dialect_name(s->dialect), backend_name(cn__dialect_backend()));
    return true;
}

/* ---- public functions ---- */

static cn__gpu_system *listed_system(cn_ctx *ctx)
{
    cn__gpu_system *s = ctx ? cn__gpu_system_of(ctx) : NULL;
    if (s) cn__gpu_search(s, true);
    return s;
}

bool cn_gpu_look(cn_ctx *ctx)
{
    CN__CALL call = cn__enter(ctx, __func__);
    cn__gpu_system *s = call.ctx ? cn__gpu_system_of(ctx) : NULL;
    return !s || cn__gpu_search(s, false);
}

int cn_gpu_count(cn_ctx *ctx)
{
    CN__CALL call = cn__enter(ctx, __func__);
    cn__gpu_system *s = listed_system(call.ctx);
    return s ? s->n_cards : 0;
}

bool cn_gpu_available(cn_ctx *ctx) { return cn_gpu_count(ctx) > 0; }

const char *cn_gpu_why_not(cn_ctx *ctx)
{
    CN__CALL call = cn__enter(ctx, __func__);
    cn__gpu_system *s = listed_system(call.ctx);
    return s ? s->why_not : "out of memory";
}

static bool check_number(cn__gpu_system *s, const char *who, int i)
{
    if (i >= 0 && i < s->n_cards) return true;
    if (s->n_cards)
        return cn__fail(s->ctx, CN_BAD_DEVICE, "%s: there is no gpu:%d: there are %d, gpu:0 to gpu:%d", who, i,
                        s->n_cards, s->n_cards - 1);
    return cn__fail(s->ctx, CN_BAD_DEVICE, "%s: there is no GPU: %s", who, s->why_not);
}

bool cn_gpu_describe(cn_ctx *ctx, int i, cn_gpu_info *info)
{
    CN__CALL call = cn__enter(ctx, __func__);
    cn__gpu_system *s = listed_system(call.ctx);
    if (!s || !check_number(s, "gpu_describe", i)) return false;
    if (!info) return cn__fail(ctx, CN_BAD_ARGUMENT, "gpu_describe: info must not be NULL");
    *info = s->cards[i].info;
    return true;
}

/* Whether `part` occurs in `text`; case does not matter. */
static bool has_part(const char *text, const char *part)
{
    for (; *text; text++) {
        size_t n = 0;
        while (part[n] && tolower((unsigned char)text[n]) == tolower((unsigned char)part[n])) n++;
        if (!part[n]) return true;
    }
    return false;
}

static int find_named(cn__gpu_system *s, const char *name)
{
    for (int i = 0; i < s->n_cards; i++) {
        if (has_part(s->cards[i].info.name, name)) return i;
    }
    cn__fail(s->ctx, CN_BAD_DEVICE, "gpu_find: CAIRN_GPU is \"%s\", but no GPU has this in its name; gpu:0 is \"%s\"",
             name, s->cards[0].info.name);
    return -1;
}

int cn_gpu_find(cn_ctx *ctx, const char *device)
{
    CN__CALL call = cn__enter(ctx, __func__);
    if (call.ctx && !device) cn__fail(ctx, CN_BAD_ARGUMENT, "gpu_find: the device must not be NULL");
    cn__gpu_system *s = device ? listed_system(call.ctx) : NULL;
    if (!s) return -1;
    if (strcmp(device, "gpu") == 0) {
        const char *name = getenv("CAIRN_GPU");
        if (!check_number(s, "gpu_find", 0)) return -1;
        return name && name[0] ? find_named(s, name) : 0;
    }
    char *end = NULL;
    long i = strncmp(device, "gpu:", 4) == 0 && isdigit((unsigned char)device[4]) ? strtol(device + 4, &end, 10) : -1;
    if (!end || *end) {
        cn__fail(ctx, CN_BAD_DEVICE,
                 "gpu_find: \"%s\" is not the name of a GPU: use \"gpu\" or \"gpu:0\", \"gpu:1\", ..", device);
        return -1;
    }
    return check_number(s, "gpu_find", i > CN__GPU_MOST ? CN__GPU_MOST : (int)i) ? (int)i : -1;
}

/* Cards are sorted by kind, so the first one that fits is the best. */
int cn_gpu_auto(cn_ctx *ctx, char *why, size_t size)
{
    char line[800];
    const char *name = getenv("CAIRN_GPU");
    CN__CALL call = cn__enter(ctx, __func__);
    cn__gpu_system *s = listed_system(call.ctx);
    int found = -1;
    for (int i = 0; s && i < s->n_cards && found < 0; i++)
        if (kind_rank(&s->cards[i].info) != SOFTWARE && (!name || has_part(s->cards[i].info.name, name))) found = i;
    const cn_gpu_info *card = s && s->n_cards ? &s->cards[found < 0 ? 0 : found].info : NULL;
    if (found >= 0)
        snprintf(line, sizeof line, "auto: gpu:%d, because \"%s\" is hardware (%s, %s)", found, card->name, card->kind,
                 card->backend);
    else if (!card)
        snprintf(line, sizeof line, "auto: cpu, because there is no GPU: %s", s ? s->why_not : "out of memory");
    else if (kind_rank(card) == SOFTWARE)
        snprintf(line, sizeof line, "auto: cpu, because \"%s\" is a driver in software, which computes on the CPU",
                 card->name);
    else snprintf(line, sizeof line, "auto: cpu, because no hardware GPU has \"%s\" (CAIRN_GPU) in its name", name);
    if (why && size) snprintf(why, size, "%s", line);
    return found;
}
