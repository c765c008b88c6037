/* samples.h: small datasets of every kind, from files that are written here, for tests of what all kinds must do. */
#ifndef TESTS_SAMPLES_H
#define TESTS_SAMPLES_H

#include "cairn/data.h"
#include "cairn/image.h"

typedef struct sample_kind {
    const char *name;
    cn_dataset *(*make)(cn_ctx *cn);
    bool random; /* items depend on their random numbers */
} sample_kind;
extern const sample_kind sample_kinds[];
extern const int sample_kinds_count;

void write_file(const char *path, const void *data, size_t bytes);
void write_text(const char *path, const char *text);
void write_samples(void); /* into the current folder */

/* 23 images of 2 x 3 numbered 0 to 22, all pixels the number; labels number % 10 */
cn_dataset *sample_idx(cn_ctx *cn);

/* Bytes of batches, one after the other, with their shapes. */
typedef struct tape {
    unsigned char *data;
    size_t n, capacity;
} tape;
void tape_add(tape *t, const void *data, size_t bytes);
void tape_batch(tape *t, const cn_batch *b);
int tape_epochs(tape *t, cn_loader *l, cn_ctx *cn, int epochs); /* batches written */
bool tapes_equal(const tape *a, const tape *b);
void tape_free(tape *t);

#endif
