/* Sets, reads and clears the error of a context, and writes its log. */
#include "core/errors.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/context.h"

static const char *const names[] = {
#define CN_ERROR(name, text) #name,
#include "cairn/errors.def"
#undef CN_ERROR
};

bool cn__fail(cn_ctx *ctx, cn_code code, const char *format, ...)
{
    if (ctx->code != CN_OK) return false;
    va_list list;
    va_start(list, format);
    vsnprintf(ctx->message, sizeof ctx->message, format, list);
    va_end(list);
    ctx->code = code;
    return false;
}

bool cn__no_memory(cn_ctx *ctx, const char *who)
{
    return cn__fail(ctx, CN_NO_MEMORY, "%s%sout of memory", who ? who : "", who ? ": " : "");
}

void cn__log(cn_ctx *ctx, const char *format, ...)
{
    if (!ctx->logger) return;
    char line[512];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    ctx->logger(ctx->logger_user, line);
}

/* A second thread has called, and the call of the first one, which will report it, has not ended. */
static bool intruded(const cn_ctx *ctx)
{
    return ctx->code == CN_OK && atomic_load_explicit(&ctx->intruded, memory_order_relaxed);
}

bool cn_failed(const cn_ctx *ctx) { return !ctx || ctx->code != CN_OK || intruded(ctx); }
cn_code cn_error_code(const cn_ctx *ctx) { return !ctx ? CN_NO_MEMORY : intruded(ctx) ? CN_BAD_ARGUMENT : ctx->code; }
const char *cn_error(const cn_ctx *ctx) { return !ctx ? "no context" : intruded(ctx) ? CN__INTRUDED : ctx->message; }

void cn_error_clear(cn_ctx *ctx)
{
    if (!ctx) return;
    atomic_store_explicit(&ctx->intruded, false, memory_order_relaxed);
    ctx->code = CN_OK;
    ctx->message[0] = 0;
}

const char *cn_code_name(cn_code code) { return (size_t)code < sizeof names / sizeof *names ? names[code] : "?"; }
