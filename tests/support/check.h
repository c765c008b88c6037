/* check.h: counting what holds and what does not.

       check(x == 3, "x is %d", x);      prints a line only when it fails
       return finish();                  "12 passed, 0 failed" as the last line; the exit code */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <stdbool.h>

__attribute__((format(printf, 2, 3))) bool check(bool ok, const char *words, ...); /* returns ok */
void check_group(const char *name); /* failures that follow belong to it; only the first few of a group are printed */
void skip(void);                    /* something that cannot be checked here */
int finish(void);

/* Debug builds never reuse a released handle's memory: new handles are allocated as long as a program runs. */
#ifdef CAIRN_DEBUG
enum { REUSES_HANDLES = 0 };
#else
enum { REUSES_HANDLES = 1 };
#endif

bool test_is_quick(void); /* CAIRN_TEST_QUICK=1: thin out, as under a sanitizer */
bool test_is_long(void);  /* CAIRN_TEST_LONG=1: take your time */

#endif
