/* Where implementations of WebGPU differ: features, backends, adapters by number, the text of errors. */
#include "gpu/dialect.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

bool cn__dialect_find(const cn__wgpu *w, cn__dialect *dialect, char *message, size_t size)
{
    if (w->InstanceRequestAdapter2) { /* an old Dawn: its InstanceRequestAdapter has other arguments */
        snprintf(
            message, size,
            "the WebGPU library is a Dawn from before spring 2025: too old; scripts/gpu.sh fetches a newer one");
        return false;
    }
    *dialect = w->DevicePoll                                          ? CN__WGPU_NATIVE
               : w->GetInstanceCapabilities && !w->HasInstanceFeature ? CN__OLD_DAWN
                                                                      : CN__DAWN;
    if (w->SetLogLevel) w->SetLogLevel(0);
    return true;
}

const char *cn__dialect_name(cn__dialect dialect) { return dialect == CN__WGPU_NATIVE ? "wgpu-native" : "Dawn"; }

WGPUBackendType cn__dialect_backend(void)
{
#if defined(__EMSCRIPTEN__)
    return WGPUBackendType_WebGPU;
#elif defined(__APPLE__)
    return WGPUBackendType_Metal;
#elif defined(_WIN32)
    return WGPUBackendType_D3D12;
#else
    return WGPUBackendType_Vulkan;
#endif
}

WGPUFeatureName cn__dialect_feature(const cn__wgpu *w, cn__dialect dialect, WGPUAdapter adapter, cn__feature feature)
{
    static const WGPUFeatureName values[][CN__FEATURES] = {
        [CN__DAWN] = { [CN__F16] = 0xB, [CN__TIMESTAMPS] = 9, [CN__SUBGROUPS] = 0x12, [CN__LOCKING] = 0x50004 },
        [CN__OLD_DAWN] = { [CN__F16] = 0xA, [CN__TIMESTAMPS] = 3, [CN__SUBGROUPS] = 0x11, [CN__LOCKING] = 0x50004 },
        [CN__WGPU_NATIVE] = { [CN__F16] = 0xB, [CN__TIMESTAMPS] = 9, [CN__SUBGROUPS] = 0x30021 },
    };
    WGPUFeatureName value = values[dialect][feature];
    return value && (w->AdapterHasFeature(adapter, value) & 0xff) ? value : 0; /* the upper bytes may be anything */
}

const char *cn__dialect_enable(cn__dialect dialect, cn__feature feature)
{
    if (feature == CN__F16) return "enable f16;\n";
    return feature == CN__SUBGROUPS && dialect != CN__WGPU_NATIVE ? "enable subgroups;\n" : "";
}

void cn__dialect_limits(WGPULimits *l)
{
    memset(l, 0xff, sizeof *l); /* all bits set: no requirement */
    l->nextInChain = NULL;
}

/* The bit that wgpu-native has for this backend. */
static WGPUFlags backend_bit(void)
{
    switch (cn__dialect_backend()) {
    case WGPUBackendType_Vulkan: return 1 << 0;
    case WGPUBackendType_Metal: return 1 << 2;
    case WGPUBackendType_D3D12: return 1 << 3;
    default: return 1 << 5;
    }
}

/* By default wgpu-native starts OpenGL as well, which is slow and leaks memory. How to choose a backend differs
   between its versions, so only the version that was tested gets the choice. */
WGPUInstance cn__dialect_instance(const cn__wgpu *w, cn__dialect dialect)
{
    enum { EXTRAS = 0x30004, USUAL_FLAGS = 1 << 24, TRIED = 29 };
    struct {
        WGPUChainedStruct chain;
        WGPUFlags backends, flags;
        uint64_t room[24]; /* all defaults */
    } extras = { .chain.sType = EXTRAS, .backends = backend_bit(), .flags = USUAL_FLAGS };
    struct {
        WGPUChainedStruct *next;
        uint64_t room[8];
    } descriptor = { .next = &extras.chain };
    bool tested = dialect == CN__WGPU_NATIVE && w->GetVersion && w->GetVersion() >> 24 == TRIED;
    return w->CreateInstance(tested ? &descriptor : NULL);
}

size_t cn__dialect_count_adapters(const cn__wgpu *w, WGPUInstance instance)
{
    if (!w->InstanceEnumerateAdapters) return 0;
    WGPUInstanceEnumerateAdapterOptions options = { .backends = backend_bit() };
    return w->InstanceEnumerateAdapters(instance, &options, NULL);
}

WGPUAdapter cn__dialect_adapter(const cn__wgpu *w, WGPUInstance instance, size_t number)
{
    enum { MOST = 64 };
    WGPUAdapter all[MOST];
    WGPUInstanceEnumerateAdapterOptions options = { .backends = backend_bit() };
    size_t n = cn__dialect_count_adapters(w, instance);
    if (number >= n || n > MOST) return NULL;
    n = w->InstanceEnumerateAdapters(instance, &options, all);
    for (size_t i = 0; i < n; i++) {
        if (i != number) w->AdapterRelease(all[i]);
    }
    return number < n ? all[number] : NULL;
}

void cn__dialect_text(char *to, size_t size, WGPUStringView text)
{
    static const char heading[] = "Validation Error\n\nCaused by:\n";
    const char *from = text.data;
    size_t n = !from ? 0 : text.length == WGPU_STRLEN ? strlen(from) : text.length;
    if (n >= sizeof heading - 1 && memcmp(from, heading, sizeof heading - 1) == 0) {
        from += sizeof heading - 1;
        n -= sizeof heading - 1;
    }
    for (; n && isspace((unsigned char)*from); n--) from++;
    while (n && isspace((unsigned char)from[n - 1])) n--;
    if (n >= size) n = size - 1;
    if (n) memcpy(to, from, n);
    to[n] = 0;
}

/* wgpu-native reports lack of memory and a lost device as validation errors. */
cn_code cn__dialect_code(WGPUErrorType type, const char *message)
{
    if (type == WGPUErrorType_OutOfMemory || strstr(message, "Not enough memory") || strstr(message, "Out of memory"))
        return CN_NO_MEMORY;
    if (strstr(message, "device is lost") || strstr(message, "Device is lost")) return CN_DEVICE_LOST;
    return CN_BAD_ARGUMENT;
}
