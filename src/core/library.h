/* core/library.h: functions of shared libraries that are looked up when they are needed, so that a program which is
   linked with libcairn.a needs no library but libc, libm and threads. The library's own header has the prototypes:

       #define FUNCTIONS(ROW) ROW(inflate) ROW(inflateEnd)
       typedef struct zlib { FUNCTIONS(CN__FUNCTION) } zlib;
       static const char *const names[] = { FUNCTIONS(CN__FUNCTION_NAME) };

       zlib z;
       if (cn__library_find(CN__LIBRARY("z", "1"), names, sizeof names / sizeof *names, &z)) z.inflate(...); */
#ifndef CN_CORE_LIBRARY_H
#define CN_CORE_LIBRARY_H

#include <stdbool.h>

#if defined(__APPLE__)
#define CN__LIBRARY(name, version) "lib" name "." version ".dylib"
#else
#define CN__LIBRARY(name, version) "lib" name ".so." version
#endif

#define CN__FUNCTION(name)      __typeof__(name) *name;
#define CN__FUNCTION_NAME(name) #name,

/* Fills in a struct of n pointers, in the order of the names. False: there is no such library on this system, or a
   function is missing in it. Any thread may call it; the library stays loaded, so further calls are cheap. */
bool cn__library_find(const char *file, const char *const *names, int n, void *pointers);

#endif
