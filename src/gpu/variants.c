/* Chooses among the forms of a kernel, and reads the doctor's verdict about them. */
#include "gpu/variants.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/call.h"
#include "core/errors.h"
#include "gpu/backend.h"

static const cn_gpu_variant table[] = {
    { "matmul", "CAIRN_GPU_MATMUL", { "plain", "tiled", "direct", "block" }, "plain", "matmul linear" },
    { "attention", "CAIRN_GPU_ATTENTION", { "block", "composed" }, "composed", "attention cached_attention" },
};
enum { VARIANTS = sizeof table / sizeof *table };
_Static_assert(sizeof table / sizeof *table <= CN__GPU_VARIANTS, "a device has room for every variant");

const cn_gpu_variant *cn_gpu_variants(int *n)
{
    if (n) *n = VARIANTS;
    return table;
}

static int choice_of(const cn_gpu_variant *v, const char *name, size_t n)
{
    for (int i = 0; i < CN_GPU_CHOICES && v->choices[i]; i++)
        if (strlen(v->choices[i]) == n && !memcmp(v->choices[i], name, n)) return i;
    return -1;
}

int cn__gpu_variant(const cn_ctx *ctx, const char *name, int preferred)
{
    for (int i = 0; i < VARIANTS; i++) {
        const cn_gpu_variant *v = &table[i];
        if (strcmp(v->name, name) != 0) continue;
        const char *asked = getenv(v->variable);
        int choice = asked ? choice_of(v, asked, strlen(asked)) : -1;
        if (choice >= 0) return choice;
        bool gpu = ctx->device && cn__gpu_is_device(ctx->device);
        unsigned bad = gpu ? ((const cn__gpu_device *)ctx->device)->quarantined[i] : 0;
        return preferred >= 0 && bad >> preferred & 1 ? choice_of(v, v->safe, strlen(v->safe)) : preferred;
    }
    return preferred;
}

/* ---- the doctor's verdict: doctor-HASH.txt; the hash is of adapter, driver and Cairn's version ---- */

static uint64_t hash_text(uint64_t h, const char *text)
{
    for (; *text; text++) h = (h ^ (unsigned char)*text) * 1099511628211u;
    return (h ^ '\n') * 1099511628211u;
}

/* The folder of the user's caches; *below is the path from there to our files. NULL: the environment names no folder. A
   relative XDG_CACHE_HOME counts as unset, as the XDG base directory specification says. */
static const char *cache_folder(const char **below)
{
#ifdef _WIN32
    const char *local = getenv("LOCALAPPDATA");
    *below = "\\cairn\\";
    return local && local[0] ? local : NULL;
#else
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const bool named = cache && cache[0] == '/';
    *below = named ? "/cairn/" : "/.cache/cairn/";
    return named ? cache : home && home[0] ? home : NULL;
#endif
}

/* The doctor writes this file; every device that opens reads it. */
static bool verdict_path(const cn_gpu_info *info, char *out, size_t size)
{
    const char *below, *cache = cache_folder(&below);
    if (!cache) return false;
    uint64_t h = hash_text(14695981039346656037u, cn_version());
    const char *texts[] = { info->name, info->vendor, info->driver, info->backend, info->implementation };
    for (int i = 0; i < 5; i++) h = hash_text(h, texts[i]);
    int n = snprintf(out, size, "%s%sdoctor-%016llx.txt", cache, below, (unsigned long long)h);
    return n > 0 && (size_t)n < size;
}

bool cn_gpu_verdict_path(cn_ctx *ctx, char *out, size_t size)
{
    if (size && out) out[0] = 0;
    CN__CALL call = cn__enter(ctx, __func__);
    if (call.ctx && size && !out)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "gpu_verdict_path: the memory for the path must not be NULL");
    if (!call.ctx || !ctx->device || !cn__gpu_is_device(ctx->device)) return false;
    return verdict_path(&((const cn__gpu_device *)ctx->device)->gpu->info, out, size);
}

/* "quarantine matmul tiled" */
static void read_line(cn__gpu_device *d, const char *line)
{
    for (int i = 0; i < VARIANTS; i++) {
        char prefix[64];
        int n = snprintf(prefix, sizeof prefix, "quarantine %s ", table[i].name);
        if (strncmp(line, prefix, (size_t)n) != 0) continue;
        int choice = choice_of(&table[i], line + n, strcspn(line + n, " \r\n"));
        if (choice < 0 || !strcmp(table[i].choices[choice], table[i].safe))
            continue; /* nothing could replace the safe choice */
        d->quarantined[i] |= 1u << choice;
        cn__log(d->device.ctx, "gpu: the %s kernel \"%s\" is not used: cairn doctor found it wrong on this card",
                table[i].name, table[i].choices[choice]);
    }
}

void cn__gpu_variants_open(cn__gpu_device *d)
{
    char path[1024], line[512];
    FILE *f = verdict_path(&d->gpu->info, path, sizeof path) ? fopen(path, "r") : NULL;
    if (!f) return;
    while (fgets(line, sizeof line, f)) read_line(d, line);
    fclose(f);
}
