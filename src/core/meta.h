/* core/meta.h: metas that results share. A graph has many results and few shapes. */
#ifndef CN_CORE_META_H
#define CN_CORE_META_H

#include "core/context.h"

const cn_meta *cn__meta_share(cn_ctx *ctx, const cn_meta *meta); /* counted; NULL: no memory, and no error is set */
void cn__meta_release(cn_ctx *ctx, const cn_meta *meta);         /* NULL is ignored */

#endif
