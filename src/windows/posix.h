/* windows/posix.h: what Cairn uses of POSIX and Windows lacks, with POSIX's names and meaning.
 *
 * On Windows the build includes this header before every source file (cmake/toolchains/x86_64-windows.cmake); elsewhere
 * nothing of this folder is compiled, and no other file asks which system it is for. Paths are UTF-8, with / or \. Files
 * are binary. C11 atomics and POSIX threads come with the compiler. */
#ifndef CN_WINDOWS_POSIX_H
#define CN_WINDOWS_POSIX_H

#define _POSIX_THREAD_SAFE_FUNCTIONS 200112L /* localtime_r */

#include <direct.h>
#include <dirent.h>
#include <fcntl.h>
#include <io.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* ---- files ---- */

struct cn__win_stat {
    unsigned st_mode;
    int64_t st_size;
    uint64_t st_dev, st_ino;
    struct timespec st_mtim;
};
struct cn__win_dirent {
    char d_name[1024];
};
typedef struct cn__win_dir cn__win_dir;

int cn__win_open(const char *path, int flags, ...);
FILE *cn__win_fopen(const char *path, const char *mode);
int cn__win_stat(const char *path, struct cn__win_stat *st);
int cn__win_fstat(int file, struct cn__win_stat *st);
int cn__win_mkdir(const char *path, unsigned mode);
int cn__win_rename(const char *from, const char *to); /* replaces a file, also one that is mapped */
int cn__win_unlink(const char *path);
int cn__win_remove(const char *path);
int cn__win_rmdir(const char *path);
int cn__win_access(const char *path, int mode);
int cn__win_truncate(const char *path, int64_t bytes);
char *cn__win_realpath(const char *path, char *out);
cn__win_dir *cn__win_opendir(const char *path);
struct cn__win_dirent *cn__win_readdir(cn__win_dir *dir);
int cn__win_closedir(cn__win_dir *dir);
int cn__win_scandir(const char *path, struct cn__win_dirent ***list, int (*wanted)(const struct cn__win_dirent *),
                    int (*order)(const struct cn__win_dirent **, const struct cn__win_dirent **));
int cn__win_fnmatch(const char *pattern, const char *name, int flags); /* * and ?, and sets as [a-z] */
int cn__win_lock(int file, int operation);
char *cn__win_mkdtemp(char *pattern);

#undef stat
#undef fstat
#undef lstat
#undef ftruncate
#define stat                                cn__win_stat
#define fstat                               cn__win_fstat
#define lstat                               cn__win_stat
#define open                                cn__win_open
#define fopen                               cn__win_fopen
#define mkdir                               cn__win_mkdir
#define rename                              cn__win_rename
#define unlink                              cn__win_unlink
#define remove                              cn__win_remove
#define rmdir                               cn__win_rmdir
#define access                              cn__win_access
#define faccessat(folder, path, mode, flag) cn__win_access(path, mode)
#define truncate                            cn__win_truncate
#define ftruncate                           _chsize_s
#define fsync                               _commit
#define fchmod(file, mode)                  ((void)(file), (void)(mode), 0)
#define realpath                            cn__win_realpath
#define dirent                              cn__win_dirent
#define DIR                                 cn__win_dir
#define opendir                             cn__win_opendir
#define readdir                             cn__win_readdir
#define closedir                            cn__win_closedir
#define scandir                             cn__win_scandir
#define fnmatch                             cn__win_fnmatch
#define flock                               cn__win_lock
#define mkdtemp                             cn__win_mkdtemp

#undef PATH_MAX
#define PATH_MAX    4096
#define O_CLOEXEC   _O_NOINHERIT
#define O_DIRECTORY 0x1000000
#define LOCK_EX     2
#define AT_FDCWD    0
#define AT_EACCESS  0

/* ---- memory that a file is mapped to ---- */

enum { PROT_READ = 1, PROT_WRITE = 2, MAP_PRIVATE = 2 };
#define MAP_FAILED ((void *)-1)
void *cn__win_mmap(void *at, size_t bytes, int protection, int flags, int file, int64_t offset);
int cn__win_munmap(void *at, size_t bytes);
#define mmap   cn__win_mmap
#define munmap cn__win_munmap

void *cn__win_aligned_alloc(size_t alignment, size_t bytes); /* for free(); aligned to 16 */
#define aligned_alloc cn__win_aligned_alloc

/* ---- libraries that are loaded at run time ---- */

enum { RTLD_LAZY, RTLD_NOW = 0, RTLD_LOCAL = 0, RTLD_GLOBAL = 0, RTLD_NODELETE = 0 }; /* they always stay loaded */
void *cn__win_dlopen(const char *path, int flags); /* libname.so.1 is name.dll or libname.dll */
void *cn__win_dlsym(void *library, const char *name);
const char *cn__win_dlerror(void);
typedef struct Dl_info {
    const char *dli_fname;
} Dl_info;
int cn__win_dladdr(const void *at, Dl_info *info);
#define dlopen(path, flags) cn__win_dlopen(path, flags)
#define dlsym               cn__win_dlsym
int cn__win_dlclose(void *library);
#define dlclose cn__win_dlclose
#define dlerror cn__win_dlerror
#define dladdr  cn__win_dladdr

/* ---- the machine, the process, the terminal ---- */

enum { _SC_NPROCESSORS_ONLN, _SC_PHYS_PAGES, _SC_PAGESIZE };
long cn__win_sysconf(int name);
int cn__win_timespec_get(struct timespec *t, int base);
int cn__win_gethostname(char *name, size_t size);
int cn__win_setenv(const char *name, const char *value, int overwrite);
#undef TIME_UTC
#define TIME_UTC       1
#define timespec_get   cn__win_timespec_get
#define sysconf        cn__win_sysconf
#define gethostname    cn__win_gethostname
#define setenv         cn__win_setenv
#define unsetenv(name) cn__win_setenv(name, "", 1)

struct winsize {
    unsigned short ws_row, ws_col;
};
#define TIOCGWINSZ 1
int cn__win_ioctl(int file, int request, struct winsize *size);
#define ioctl cn__win_ioctl

/* Ctrl-C calls the handler on a thread of its own; handlers are forgotten before the call, as SA_RESETHAND asks. */
struct sigaction {
    void (*sa_handler)(int);
    int sa_flags, sa_mask;
};
enum { SA_RESETHAND = 1, SA_RESTART = 2 };
int cn__win_sigaction(int number, const struct sigaction *action, struct sigaction *old);
#define sigaction(number, action, old) cn__win_sigaction(number, action, old)
#define sigemptyset(mask)              (*(mask) = 0)

/* There are no processes to fork: -1, as where there is no memory for one. */
#define fork()                     (-1)
#define pipe(ends)                 ((void)(ends), -1)
#define waitpid(child, status, no) (-1)
#define WIFEXITED(status)          1
#define WEXITSTATUS(status)        (status)

enum { RUSAGE_SELF };
struct rusage {
    long ru_maxrss; /* KiB */
};
int cn__win_getrusage(int who, struct rusage *usage);
#define getrusage cn__win_getrusage

#endif
