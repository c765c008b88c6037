/* core/errors.h: the error and the log of a context. The first error stays until the program clears it. */
#ifndef CN_CORE_ERRORS_H
#define CN_CORE_ERRORS_H

#include "cairn/base.h"

#define CN__INTRUDED "two threads used this context at the same time; one at a time may use a context"

/* Keeps the first error; returns false. */
__attribute__((format(printf, 3, 4))) bool cn__fail(cn_ctx *ctx, cn_code code, const char *format, ...);
bool cn__no_memory(cn_ctx *ctx, const char *who); /* "who: out of memory"; who may be NULL */
__attribute__((format(printf, 2, 3))) void cn__log(cn_ctx *ctx, const char *format, ...);

#endif
