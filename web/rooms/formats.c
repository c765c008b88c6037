/* A page's files are safetensors. These functions stand in the place of src/io's for other formats, which the linker
   then leaves out. */
#include "io/files.h"
#include "io/npy.h"

static bool refuse(const cn__source *s) { return cn__source_fail(s, CN_UNSUPPORTED, "not a safetensors file"); }

bool cn__pt_is(const cn__source *s, bool *is)
{
    *is = false;
    return refuse(s);
}

bool cn__pt_load(const cn__source *s, cn_dict *d) { return (void)d, refuse(s); }
bool cn__npz_load(const cn__source *s, cn_dict *d) { return (void)d, refuse(s); }
bool cn__npy_load(const cn__source *s, cn_dict *d, const char *name) { return (void)d, (void)name, refuse(s); }

/* No type has a name, so nothing is saved. */
const char *cn__npy_descr(cn_dtype t) { return (void)t, NULL; }
bool cn__npz_save(const cn_dict *d, cn__sink *to) { return (void)d, (void)to, false; }
bool cn__npy_save(const cn_dict *d, cn__sink *to) { return (void)d, (void)to, false; }
