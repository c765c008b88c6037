/* stored.h: stored references: lines of a name, a kind, a step and numbers, as tests/reference/make_*.py write them.

       stored s = stored_open(CAIRN_SOURCE_DIR, "optim.txt");
       int n = stored_find(&s, "adam", "f64", 10, numbers, MOST);       how many; 0: there is no such line
       stored_close(&s); */
#ifndef TESTS_STORED_H
#define TESTS_STORED_H

#include <stdbool.h>

typedef struct stored {
    char *text; /* NULL: there is no such file */
} stored;
stored stored_open(const char *source_dir, const char *file);
int stored_find(const stored *s, const char *name, const char *kind, int step, double *out, int most);
void stored_close(stored *s);

#endif
