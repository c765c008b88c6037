/* Any bytes as a safetensors file. What is loaded is saved and loaded again, and must be the same. */
#include <unistd.h>

#include "load.h"

static void there_and_back(const uint8_t *data, size_t bytes)
{
    cn_ctx *cn = cn_open(&(cn_desc){ .threads = 1 });
    cn_dict *d = cn_load_memory(cn, data, bytes);
    if (d) {
        char path[64];
        const char *folder = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm"; /* in memory where that can be */
        snprintf(path, sizeof path, "%s/fuzz-%ld.safetensors", folder, (long)getpid());
        fuzz_require(cn_save(d, path), cn_error(cn));
        cn_dict *e = cn_load(cn, path);
        unlink(path);
        fuzz_require(e && !dicts_differ(d, e, true), "a dict changed on its way through a file");
    }
    cn_close(cn);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    fuzz_load(data, bytes);
    if (bytes % 8 == 0) there_and_back(data, bytes); /* now and then: it is much slower */
    return 0;
}
