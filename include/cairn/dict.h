/* cairn/dict.h: tensors and texts under names, in the order of insertion: the content of a file, or a saved state.

       cn_dict *d = cn_dict_new(cn);
       cn_module_save(model, d, "");                     nn.h: every parameter and buffer under its name
       cn_dict_set_text(d, "step", "1200");
       cn_save(d, "model.safetensors");                  io.h

   Ownership  A dict belongs to its context, until cn_dict_free. It keeps its tensors: the results of cn_dict_get and
              cn_dict_at are valid as long as the dict has them.
   Errors     A name that does not exist is not an error: the result is NULL. */
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

CN_API bool cn_dict_set(cn_dict *d, const char *name, cn_tensor *t);   /* replaces a tensor of the same name */
CN_API cn_tensor *cn_dict_get(const cn_dict *d, const char *name);
CN_API int64_t cn_dict_count(const cn_dict *d);
CN_API const char *cn_dict_name(const cn_dict *d, int64_t i);
CN_API cn_tensor *cn_dict_at(const cn_dict *d, int64_t i);

/* Texts: metadata of a file, or numbers of a state. */
CN_API bool cn_dict_set_text(cn_dict *d, const char *name, const char *text);
CN_API const char *cn_dict_text(const cn_dict *d, const char *name);
CN_API int64_t cn_dict_texts(const cn_dict *d);
CN_API const char *cn_dict_text_name(const cn_dict *d, int64_t i);
/* Numbers are stored as texts, exactly. False: there is no such text, or it is not a number; *value does not change. */
CN_API bool cn_dict_set_number(cn_dict *d, const char *name, double value);
CN_API bool cn_dict_number(const cn_dict *d, const char *name, double *value);
CN_API bool cn_dict_set_whole(cn_dict *d, const char *name, int64_t value);
CN_API bool cn_dict_whole(const cn_dict *d, const char *name, int64_t *value);

#ifdef __cplusplus
}
#endif
#endif
