/* cairn/io.h: dicts to files and back: safetensors, npz, npy.

       cn_dict *d = cn_load(cn, "model.safetensors");           what kind of file it is, its content tells
       cn_tensor *w = cn_dict_get(d, "layers.0.weight");        good while d is; cn_keep it for longer
       cn_dict_set_text(d, "note", "pruned");
       if (!cn_save(d, "pruned.safetensors")) fprintf(stderr, "%s\n", cn_error(cn));

   Files      .safetensors  any number of tensors and texts (its metadata); what PyTorch's safetensors reads and writes.
              .npz          the same as NumPy arrays; texts are arrays of one string. Compressed ones are read where Cairn was
                            built with zlib, none are written.
              .npy          one tensor, called "arr_0" when it is loaded.
   Types      Cairn's own are kept. 16-bit integers become i32; u32 and u64 become i64, and a u64 above the largest i64 is an
              error. NumPy has no bf16. Everything else (complex, 8-bit floats, pickled objects) is CN_UNSUPPORTED.
   Memory     A file is mapped, not read: its tensors are there at once, and pages come when they are looked at. The mapping goes
              with the last tensor that uses it. Nothing done to a tensor ever changes the file; but another program that
              cuts the file off in place takes the numbers away under your feet. Programs that save as cn_save does, do not.
   Saving     One tensor after the other goes to a new file in the same folder, which takes the name only when it is complete
              and on the disk: whatever happens, path holds the old content or the new one. What is interrupted by force
              leaves a file path.tmp-PID behind. A pipe or device is written to directly.
   Checkpoints  A state is a dict: modules, optimizers, schedulers and loaders put themselves in under prefixes ("optim/",
              "loader/"), the random state as below, and model tensors have their plain names: the same file is a
              model file to others.
   Errors     CN_BAD_FILE with the path and what is wrong. cn_save does nothing while an error stands. */
#ifndef CAIRN_IO_H
#define CAIRN_IO_H

#include "dict.h"

#ifdef __cplusplus
extern "C" {
#endif

CN_API cn_dict *cn_load(cn_ctx *ctx, const char *path);
CN_API cn_dict *cn_load_memory(cn_ctx *ctx, const void *data, size_t bytes); /* a whole file; copied */
CN_API bool cn_save(const cn_dict *d, const char *path);                     /* evaluates what is pending */

/* Tensors and texts whose names begin with prefix, without it, in a new dict. */
CN_API cn_dict *cn_dict_prefixed(const cn_dict *d, const char *prefix);

/* Where the context's random numbers are, as texts prefix + "seed" and prefix + "stream". Loading it, what comes next is
   what would have come next. */
CN_API bool cn_random_save(cn_ctx *ctx, cn_dict *d, const char *prefix);
CN_API bool cn_random_load(cn_ctx *ctx, const cn_dict *d, const char *prefix);

/* A table: name, type, shape, bytes; sums; texts. Returns the length of the whole text; writes at most size bytes, always
   ended by 0. */
CN_API size_t cn_dict_print(const cn_dict *d, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
