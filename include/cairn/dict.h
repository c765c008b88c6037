/* cairn/dict.h: tensors and texts under names, in the order they were put in: what a file holds, and what a state is.

       cn_dict *d = cn_dict_new(cn);
       cn_module_save(model, d, "");                     nn.h: every parameter and buffer under its name
       cn_dict_set_text(d, "step", "1200");
       cn_save(d, "model.safetensors");                  io.h

   Ownership  A dict belongs to its context, or until cn_dict_free. It keeps its tensors; what cn_dict_get and cn_dict_at give
              is good while the dict has it.
   Errors     Looking for a name that is not there is not an error: NULL. */
#ifndef CAIRN_DICT_H
#define CAIRN_DICT_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cn_dict cn_dict;

CN_API cn_dict *cn_dict_new(cn_ctx *ctx);
CN_API void cn_dict_free(cn_dict *d);
CN_API cn_ctx *cn_dict_context(const cn_dict *d);

CN_API bool cn_dict_set(cn_dict *d, const char *name, cn_tensor *t);   /* replaces what had the name */
CN_API cn_tensor *cn_dict_get(const cn_dict *d, const char *name);
CN_API int64_t cn_dict_count(const cn_dict *d);
CN_API const char *cn_dict_name(const cn_dict *d, int64_t i);
CN_API cn_tensor *cn_dict_at(const cn_dict *d, int64_t i);

/* Texts: metadata of a file, numbers of a state. */
CN_API bool cn_dict_set_text(cn_dict *d, const char *name, const char *text);
CN_API const char *cn_dict_text(const cn_dict *d, const char *name);
CN_API int64_t cn_dict_texts(const cn_dict *d);
CN_API const char *cn_dict_text_name(const cn_dict *d, int64_t i);
/* Numbers as texts, exactly: what was set is what is got. False: not there or not a number; *value is as it was. */
CN_API bool cn_dict_set_number(cn_dict *d, const char *name, double value);
CN_API bool cn_dict_number(const cn_dict *d, const char *name, double *value);
CN_API bool cn_dict_set_whole(cn_dict *d, const char *name, int64_t value);
CN_API bool cn_dict_whole(const cn_dict *d, const char *name, int64_t *value);

#ifdef __cplusplus
}
#endif
#endif
