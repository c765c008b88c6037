/* Sets, reads and clears the error of a context, and writes its log. */
#include "core/errors.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/call.h"

static const char *const names[] = {
#define CN_ERROR(name, text) #name,
#include "cairn/errors.def"
#undef CN_ERROR
};

/* The length of the word that a text begins with, if a colon follows: "full: ..". 0: there is none. */
static size_t leading_word(const char *text)
{
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || text[n] == '_') n++;
    return n && text[n] == ':' && text[n + 1] == ' ' ? n : 0;
}

/* A message begins with the name of a function or layer. What the program called takes its place. */
static void name_call(cn_ctx *ctx)
{
    const size_t n = leading_word(ctx->message);
    if (!n || !ctx->called) return;
    char text[sizeof ctx->message];
    memcpy(text, ctx->message + n, sizeof text - n);
    snprintf(ctx->message, sizeof ctx->message, "%s%s", cn__called(ctx, ""), text);
}

bool(cn__fail)(cn_ctx *ctx, cn_code code, const char *format, ...)
{
    if (ctx->code != CN_OK) return false;
    va_list list;
    va_start(list, format);
    vsnprintf(ctx->message, sizeof ctx->message, format, list);
    va_end(list);
    if (leading_word(format) || !strncmp(format, "%s: ", 4)) name_call(ctx);
    ctx->code = code;
    ctx->operands_named = false;
    return false;
}

const char *cn__fault_text(const char *fault, int64_t index, int64_t size, char *text, size_t room)
{
    size_t n = 0;
    while (*fault && n + 1 < room) {
        const bool is_index = !strncmp(fault, "{index}", 7), is_size = !strncmp(fault, "{size}", 6);
        if (!is_index && !is_size) {
            text[n++] = *fault++;
            continue;
        }
        const int digits = snprintf(text + n, room - n, "%lld", (long long)(is_index ? index : size));
        n = n + (size_t)digits < room ? n + (size_t)digits : room - 1;
        fault += is_index ? 7 : 6;
    }
    text[n] = 0;
    return text;
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
    void *was = cn__shut(&ctx->thread);
    ctx->logger(ctx->logger_user, line);
    cn__reopen(&ctx->thread, was);
}

const char *cn__intruder(char who)
{
    static const char *const message[] = {
        [CN__SECOND_THREAD] = "two threads used this context at the same time; one at a time may use a context",
        [CN__WORKER] = "a loader's worker used its context; functions that workers call must not",
        [CN__SHUT_OUT] = "a logger, an allocator or a function that frees memory at the end used its context; "
                         "they must not",
    };
    return message[(unsigned char)who];
}

/* Who called and may not, if the call that will report it has not ended. */
static char intruded(const cn_ctx *ctx)
{
    return ctx->code == CN_OK ? atomic_load_explicit(&ctx->intruded, memory_order_relaxed) : 0;
}

bool cn_failed(const cn_ctx *ctx) { return !ctx || ctx->code != CN_OK || intruded(ctx); }
cn_code cn_error_code(const cn_ctx *ctx) { return !ctx ? CN_NO_MEMORY : intruded(ctx) ? CN_BAD_ARGUMENT : ctx->code; }
const char *cn_error(const cn_ctx *ctx)
{
    const char who = ctx ? intruded(ctx) : 0;
    return !ctx ? "no context" : who ? cn__intruder(who) : ctx->message;
}

void cn_error_clear(cn_ctx *ctx)
{
    if (!ctx) return;
    atomic_store_explicit(&ctx->intruded, 0, memory_order_relaxed);
    ctx->code = CN_OK;
    ctx->message[0] = 0;
}

const char *cn_code_name(cn_code code) { return (size_t)code < sizeof names / sizeof *names ? names[code] : "?"; }
