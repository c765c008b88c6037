/* scratch.h: a test that writes files does so in a temporary folder of its own, wherever it was started.

       int main(void)
       {
           if (!enter_scratch()) return finish();
           ...                                      relative paths are now inside the folder */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <stdbool.h>

bool enter_scratch(void); /* makes the folder the current one and removes it at exit; false: a failed check says why */

#endif
