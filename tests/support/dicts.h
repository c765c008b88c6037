/* dicts.h: dicts to save, compared after loading; whole files. */
#ifndef TESTS_DICTS_H
#define TESTS_DICTS_H

#include "cairn/io.h"

/* Every element type in shapes of none to eight dimensions, empty ones too; a view, a pending value, a number; texts. */
cn_dict *dict_of_everything(cn_ctx *cn, bool with_bf16);

/* By names, types, shapes, bytes and texts; by order if that is asked. Words about the first difference, or NULL. */
const char *dicts_differ(const cn_dict *a, const cn_dict *b, bool same_order);

/* Reads every number of every tensor and prints the dict: what a sanitizer should see. */
double dict_touch(const cn_dict *d);

unsigned char *file_read(const char *path, size_t *bytes); /* NULL: cannot; free() it */
bool file_write(const char *path, const void *data, size_t bytes);

#endif
