/* cairn/io.h: saves dicts to files and loads them: safetensors, npz, npy. Loads files of torch.save, too.

       cn_dict *d = cn_load(cn, "model.safetensors");           the content decides the format
       cn_tensor *w = cn_dict_get(d, "layers.0.weight");        valid as long as d; cn_keep extends that
       cn_dict_set_text(d, "note", "pruned");
       if (!cn_save(d, "pruned.safetensors")) fprintf(stderr, "%s\n", cn_error(cn));

   Files      .safetensors  any number of tensors and texts (its metadata), as PyTorch's safetensors
              .npz          the same as NumPy arrays; texts are arrays of one string. Compressed files can be read if
                            the system has zlib; files are written without compression
              .npy          one tensor, whose name is "arr_0" after loading
              .pt .pth .bin what torch.save of PyTorch 1.6 and later wrote; they are loaded, not saved. Dicts, lists and
                            tuples are taken apart: { "model": { "0.weight": w } } has the name "model.0.weight".
                            Numbers and strings become texts, True 1 and False 0; None is left out. A tensor alone has
                            the name "value". No program in the file is run: anything but tensors, dicts, lists, tuples,
                            numbers and strings is CN_UNSUPPORTED, and the message names it
   Prefixes   cn_module_load(m, d, &(cn_module_load_desc){ .prefix = "model." }) loads a part of a file;
              cn_dict_prefixed makes a dict of it.
   Types      Types that Cairn has stay the same. u16 becomes i32. u32 and u64 become i64; a u64 above the largest i64
              is an error. NumPy has no bf16. Other types (complex, 8-bit floats, pickled objects) are CN_UNSUPPORTED.
   Memory     A file is mapped, not read: its tensors exist at once, and the system loads pages when they are used. The
              last tensor that uses the mapping ends it. Writing to a tensor never changes the file. Another program
              must not shorten the file in place while tensors use it; replacing it, as cn_save does, is fine.
   Saving     cn_save writes to a temporary file in the same folder, and renames it when it is complete and on the disk:
              path always has the old content or the new one. A process that is killed leaves a file path.tmp-PID
              behind. Pipes and devices are written to directly.
   States     A checkpoint is a dict. Optimizers, schedules and loaders save their states under prefixes ("optim/",
              "loader/"), the random state as below. The tensors of the model have their plain names, so that other
              programs can read the file as a model.
   Errors     CN_BAD_FILE; the message has the path and what is wrong. cn_save does nothing while the context has an
              error. */
#ifndef CAIRN_IO_H
#define CAIRN_IO_H

#include "dict.h"

#ifdef __cplusplus
extern "C" {
#endif

CN_PURE cn_dict *cn_load(cn_ctx *ctx, const char *path);
CN_PURE cn_dict *cn_load_memory(cn_ctx *ctx, const void *data, size_t bytes); /* the bytes of a file; they are copied */
/* The same, with options. */
typedef struct cn_load_desc {
    const void *data; /* the bytes of a file, which are copied; then the path is only a name for errors */
    size_t bytes;
    size_t offset; /* of a path: the content begins there in its file, and has `bytes` bytes, or with 0 all to the end */
    bool structure;   /* of .pt: the text "cairn.structure" has the dicts and lists of the file as JSON. A tensor is
                         {"tensor": name}, a float {"float": "0.5"}, the others are {"dict": [[key, value], ..]},
                         {"list": [..]}, {"tuple": [..]}, or a text, whole number, true, false, null of JSON */
} cn_load_desc;
CN_PURE cn_dict *cn_load_with(cn_ctx *ctx, const char *path, const cn_load_desc *desc);
CN_API bool cn_save(const cn_dict *d, const char *path);                     /* evaluates pending tensors */

/* A new dict of the tensors and texts whose names begin with prefix, with the prefix removed. */
CN_API cn_dict *cn_dict_prefixed(const cn_dict *d, const char *prefix);

/* The state of the context's random numbers, as texts prefix + "seed" and prefix + "stream". After loading, the same
   random numbers follow as after saving. */
CN_API bool cn_random_save(cn_ctx *ctx, cn_dict *d, const char *prefix);
CN_API bool cn_random_load(cn_ctx *ctx, const cn_dict *d, const char *prefix);

/* Prints a table: name, type, shape and bytes of each tensor, sums, texts. Returns the length of the whole text; writes
   at most size bytes, ended by 0. */
CN_API size_t cn_dict_print(const cn_dict *d, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
