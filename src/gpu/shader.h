/* gpu/shader.h: reads shader files, whose form cairn/kernel.h describes: fills holes, finds parts, collects uses. */
#ifndef CN_GPU_SHADER_H
#define CN_GPU_SHADER_H

#include "cairn/kernel.h"
#include "core/alloc.h"

/* A growing text. If memory runs out, `failed` is set and the text stays as it is. */
typedef struct cn__gpu_source {
    cn__memory *memory;
    cn__vec text;
    bool failed;
} cn__gpu_source;
void cn__gpu_print(cn__gpu_source *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cn__gpu_append(cn__gpu_source *s, const char *text, size_t n);

/* Functions that a program declares, besides those of operands and parts. */
typedef enum cn__gpu_need {
    CN__NEED_STORE_RESULT = 1 << 0,
    CN__NEED_PAR = 1 << 1,
    CN__NEED_PARI = 1 << 2,
    CN__NEED_PARF = 1 << 3,
    CN__NEED_ARG = 1 << 4,
    CN__NEED_ARGU = 1 << 5,
    CN__NEED_ARGH = 1 << 6,
    CN__NEED_TMP = 1 << 7,
    CN__NEED_SET_TMP = 1 << 8,
    CN__NEED_FAULT = 1 << 9,
    CN__NEED_SUBGROUPS = 1 << 10,
} cn__gpu_need;

enum { CN__LIBRARY_WORDS = 4, CN__SHADER_PARTS = 64 * CN__LIBRARY_WORDS };

typedef struct cn__gpu_needs {
    unsigned flags;                      /* cn__gpu_need */
    uint32_t in, raw, out, set_raw;      /* bit k: inK and so on */
    uint32_t maybe_out;                  /* bit k: outK? */
    char otherwise[CN_MAX_IN][16];       /* the V of inK=V, or "" */
    uint64_t library[CN__LIBRARY_WORDS]; /* bit i: part i of the library */
    int group_bytes;
} cn__gpu_needs;

/* A kernel or part: its lines in the text of a file. */
typedef struct cn__shader_part {
    const char *name, *begin, *end;
    size_t name_n;
    bool kernel;
} cn__shader_part;

typedef struct cn__shader_parts {
    cn__shader_part v[CN__SHADER_PARTS];
    int n;
} cn__shader_parts;

/* Finds the parts of a text without holes. False: there are too many; an error is set. */
bool cn__shader_parts_of(cn_ctx *ctx, const char *text, cn__shader_parts *parts);
int cn__shader_find(const cn__shader_parts *parts, const char *name, size_t n); /* -1: there is none */
/* Appends the lines of a part, without declarations. */
void cn__shader_append(cn__gpu_source *s, const cn__shader_part *p);

/* Which kernels, parts and values of holes programs were made of, as hashes of lines like "ops/x.wgsl kernel NAME",
   "ops/x.wgsl part NAME" and "ops/x.wgsl hole NAME = VALUE". Recorded for tests, which set `files` to cn__shaders. The
   library itself does not name that table, because a program would then contain every shader. */
typedef struct cn__shader_forms {
    const struct cn__shader_file *files; /* NULL: nothing is recorded */
    cn__vec seen;                        /* of uint64_t */
} cn__shader_forms;
bool cn__shader_form_seen(const cn__shader_forms *f, const char *line);
/* Calls `form` for each line that the declarations of a file make possible. */
void cn__shader_each_form(const char *path, const char *text, void (*form)(void *user, const char *line), void *user);

typedef struct cn__shader_context {
    cn_ctx *ctx;
    cn__shader_parts *library;
    cn__shader_forms *forms;
} cn__shader_context;

/* Appends one part of a file, with holes filled. */
bool cn__shader_part_text(const cn__shader_context *c, cn__gpu_source *s, const char *text, const char *part,
                          const cn_gpu_hole *holes);
/* Appends the kernel of a launch and the parts that the kernel uses. Sets *needs to what else they use. */
bool cn__shader_kernel(const cn__shader_context *c, cn__gpu_source *s, const cn_gpu_launch *l, cn__gpu_needs *needs);
/* Appends the wanted parts of the library and those that they use. */
bool cn__shader_library(const cn__shader_context *c, cn__gpu_source *s, const uint64_t *wanted);

#endif
