/* GPU programs: compiles WGSL, binds buffers, dispatches workgroups. */
#include <stdio.h>

#include "core/object.h"
#include "gpu/gpu.h"

static WGPUStringView text(const char *t) { return (WGPUStringView){ t, t ? strlen(t) : WGPU_STRLEN }; }

static WGPUShaderModule compile(cn__gpu *g, const cn__gpu_program_desc *desc, const char *who)
{
    WGPUShaderSourceWGSL source = { .chain.sType = WGPUSType_ShaderSourceWGSL, .code = text(desc->source) };
    WGPUShaderModuleDescriptor d = { .nextInChain = &source.chain, .label = text(desc->name) };
    WGPUShaderModule module = g->w->DeviceCreateShaderModule(g->device, &d);
    if (cn__gpu_ok(g, who)) return module;
    if (module) g->w->ShaderModuleRelease(module);
    return NULL;
}

static bool link_program(cn__gpu *g, cn__gpu_program *p, const cn__gpu_program_desc *desc, const char *who)
{
    WGPUShaderModule module = compile(g, desc, who);
    if (!module) return false;
    WGPUComputePipelineDescriptor d = {
        .label = text(desc->name),
        .compute = { .module = module, .entryPoint = text(desc->entry ? desc->entry : "main") },
    };
    p->pipeline = g->w->DeviceCreateComputePipeline(g->device, &d);
    g->w->ShaderModuleRelease(module);
    if (!cn__gpu_ok(g, who) || !p->pipeline) return false;
    if (p->bindings) p->layout = g->w->ComputePipelineGetBindGroupLayout(p->pipeline, 0);
    return cn__gpu_ok(g, who);
}

cn__gpu_program *cn__gpu_program_new(cn__gpu *g, const cn__gpu_program_desc *desc)
{
    char who[80];
    snprintf(who, sizeof who, "gpu: shader %.60s", desc->name ? desc->name : "");
    if (!cn__gpu_ok(g, who)) return NULL;
    if (desc->group_bytes > g->limits.maxComputeWorkgroupStorageSize || desc->bindings > CN__GPU_BINDINGS ||
        desc->bindings > (int)g->limits.maxStorageBuffersPerShaderStage) {
        cn__fail(g->ctx, CN_UNSUPPORTED,
                 "%s: %zu bytes of workgroup memory and %d bindings needed, \"%s\" allows %u and %u", who,
                 desc->group_bytes, desc->bindings, g->info.name, g->limits.maxComputeWorkgroupStorageSize,
                 g->limits.maxStorageBuffersPerShaderStage);
        return NULL;
    }
    cn__gpu_program *p = cn__alloc(g->ctx, sizeof *p);
    if (!p) return NULL;
    p->bindings = desc->bindings;
    snprintf(p->name, sizeof p->name, "%s", desc->name ? desc->name : "");
    if (link_program(g, p, desc, who)) return p;
    cn__gpu_program_free(g, p);
    return NULL;
}

void cn__gpu_program_forget(cn__gpu *g, cn__gpu_program *p)
{
    if (p->layout) g->w->BindGroupLayoutRelease(p->layout);
    if (p->pipeline) g->w->ComputePipelineRelease(p->pipeline);
    p->layout = NULL;
    p->pipeline = NULL;
}

static bool compile_again(cn__gpu *g, cn__gpu_program *p, const char *who)
{
    if (!p->source)
        return cn__fail(g->ctx, CN_BAD_ARGUMENT, "%s: the program was made for a device that was lost; make it again",
                        who);
    cn__gpu_program_desc desc = { .name = p->name, .source = p->source, .bindings = p->bindings };
    if (link_program(g, p, &desc, who)) return true;
    cn__gpu_program_forget(g, p);
    return false;
}

void cn__gpu_program_free(cn__gpu *g, cn__gpu_program *p)
{
    if (!p) return;
    cn__gpu_program_forget(g, p);
    cn__free(g->ctx, p, sizeof *p);
}

static bool fill_entry(cn__gpu *g, const char *who, const cn__gpu_binding *b, WGPUBindGroupEntry *e)
{
    size_t end = (b->buffer->bytes + 3) & ~(size_t)3;
    size_t bytes = b->bytes ? (b->bytes + 3) & ~(size_t)3 : b->offset < end ? end - b->offset : 0;
    if (b->offset % g->limits.minStorageBufferOffsetAlignment || b->offset > end || bytes > end - b->offset ||
        bytes == 0 || bytes > g->limits.maxStorageBufferBindingSize)
        return cn__fail(
            g->ctx, CN_BAD_ARGUMENT,
            "%s: binding %u: %zu bytes at offset %zu of a buffer of %zu (allowed: 1 to %llu bytes inside the "
            "buffer, at multiples of %u)",
            who, e->binding, bytes, b->offset, b->buffer->bytes,
            (unsigned long long)g->limits.maxStorageBufferBindingSize, g->limits.minStorageBufferOffsetAlignment);
    e->buffer = b->buffer->handle;
    e->offset = b->offset;
    e->size = bytes;
    return true;
}

WGPUBindGroup cn__gpu_bind(cn__gpu *g, cn__gpu_program *p, int n, const cn__gpu_binding *bindings)
{
    char who[64];
    snprintf(who, sizeof who, "gpu: %s", p->name);
    if (!cn__gpu_ok(g, who) || (!p->pipeline && !compile_again(g, p, who))) return NULL;
    if (n != p->bindings) {
        cn__fail(g->ctx, CN_BAD_ARGUMENT, "%s: %d bindings given, %d declared", who, n, p->bindings);
        return NULL;
    }
    WGPUBindGroupEntry entries[CN__GPU_BINDINGS] = { 0 };
    for (int i = 0; i < n; i++) {
        entries[i].binding = (uint32_t)i;
        if (!fill_entry(g, who, &bindings[i], &entries[i])) return NULL;
    }
    WGPUBindGroupDescriptor d = {
        .label = text(NULL), .layout = p->layout, .entryCount = (size_t)n, .entries = entries
    };
    WGPUBindGroup group = g->w->DeviceCreateBindGroup(g->device, &d);
    if (cn__gpu_ok(g, who)) return group;
    if (group) g->w->BindGroupRelease(group);
    return NULL;
}

bool cn__gpu_launch_bound(cn__gpu *g, const cn__gpu_program *p, WGPUBindGroup bound, int64_t groups)
{
    if (groups <= 0) return true;
    char who[64];
    snprintf(who, sizeof who, "gpu: %s", p->name);
    int64_t most = g->limits.maxComputeWorkgroupsPerDimension;
    int64_t y = (groups + most - 1) / most, x = (groups + y - 1) / y;
    if (y > most)
        return cn__fail(g->ctx, CN_UNSUPPORTED, "%s: %lld workgroups requested, \"%s\" allows at most %lld", who,
                        (long long)groups, g->info.name, (long long)(most * most));
    WGPUComputePassEncoder pass = cn__gpu_pass(g, who);
    if (!pass) return false;
    g->w->ComputePassEncoderSetPipeline(pass, p->pipeline);
    if (bound) g->w->ComputePassEncoderSetBindGroup(pass, 0, bound, 0, NULL);
    g->w->ComputePassEncoderDispatchWorkgroups(pass, (uint32_t)x, (uint32_t)y, 1);
    g->stats.dispatches++;
    return cn__gpu_ok(g, who);
}

bool cn__gpu_dispatch(cn__gpu *g, cn__gpu_program *p, int n, const cn__gpu_binding *bindings, int64_t groups)
{
    WGPUBindGroup bound = n || p->bindings ? cn__gpu_bind(g, p, n, bindings) : NULL;
    if (p->bindings && !bound) return false;
    bool ok = cn__gpu_launch_bound(g, p, bound, groups);
    if (bound) g->w->BindGroupRelease(bound);
    return ok;
}
