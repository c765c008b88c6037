/* shader_forms.h: whether every shader file was compiled in every form that it declares: each kernel, each part, each
   value of each hole. */
#ifndef TESTS_SHADER_FORMS_H
#define TESTS_SHADER_FORMS_H

#include "cairn/cairn.h"

/* From now on a context remembers the forms that its programs were made of. */
void record_forms(cn_ctx *gpu);
/* Runs shapes and variants that the cases of operators do not have: on a GPU, and on one that is opened as a card. */
void visit_more_forms(cn_ctx *gpu, cn_ctx *card);
/* A check for each form: some context has compiled it. */
void check_forms(cn_ctx *const *contexts, int n);

#endif
