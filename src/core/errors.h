/* core/errors.h: the error and the log of a context. The first error stays until the program clears it. */
#ifndef CN_CORE_ERRORS_H
#define CN_CORE_ERRORS_H

#include "cairn/base.h"

/* Who called and may not: a context's `intruded`. */
enum { CN__SECOND_THREAD = 1, CN__WORKER, CN__SHUT_OUT };
const char *cn__intruder(char who); /* the message */

/* Keeps the first error; returns false. */
__attribute__((format(printf, 3, 4))) bool cn__fail(cn_ctx *ctx, cn_code code, const char *format, ...);
#ifdef __clang_analyzer__ /* analysis sees one file at a time and must be told that this returns false; its definition
                             is therefore (cn__fail)(..) */
#define cn__fail(...) (cn__fail(__VA_ARGS__), false)
#endif
/* A copy of cn_op.fault with the numbers of a fault in place of {index} and {size}. */
const char *cn__fault_text(const char *fault, int64_t index, int64_t size, char *text, size_t room);
bool cn__no_memory(cn_ctx *ctx, const char *who); /* "who: out of memory"; who may be NULL */
__attribute__((format(printf, 2, 3))) void cn__log(cn_ctx *ctx, const char *format, ...);

#endif
