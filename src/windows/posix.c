/* POSIX's functions on top of Windows': see posix.h. */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <errno.h>
#include <math.h>
#include <psapi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "windows/posix.h"

/* ---- names: UTF-8 outside, UTF-16 inside ---- */

typedef struct name {
    wchar_t w[PATH_MAX];
} name;

static bool widen(const char *path, name *out)
{
    if (!strcmp(path, "/dev/null")) path = "NUL";
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, out->w, PATH_MAX)) return true;
    errno = GetLastError() == ERROR_INSUFFICIENT_BUFFER ? ENAMETOOLONG : EILSEQ;
    return false;
}

static bool narrow(const wchar_t *from, char *out, size_t size)
{
    if (WideCharToMultiByte(CP_UTF8, 0, from, -1, out, (int)size, NULL, NULL)) return true;
    errno = ENAMETOOLONG;
    return false;
}

/* Sets errno by the last error; returns -1. */
static int failed(void)
{
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_BAD_NETPATH:
    case ERROR_INVALID_NAME:
    case ERROR_INVALID_DRIVE: errno = ENOENT; break;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS: errno = EEXIST; break;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY: errno = ENOMEM; break;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL: errno = ENOSPC; break;
    case ERROR_DIRECTORY: errno = ENOTDIR; break;
    case ERROR_DIR_NOT_EMPTY: errno = ENOTEMPTY; break;
    case ERROR_SHARING_VIOLATION:
    case ERROR_ACCESS_DENIED:
    case ERROR_USER_MAPPED_FILE: errno = EACCES; break;
    default: errno = EIO;
    }
    return -1;
}

/* ---- files ---- */

static bool is_folder(const wchar_t *path)
{
    const DWORD a = GetFileAttributesW(path);
    return a != INVALID_FILE_ATTRIBUTES && a & FILE_ATTRIBUTE_DIRECTORY;
}

int cn__win_open(const char *path, int flags, ...)
{
    name n;
    if (!widen(path, &n)) return -1;
    if (flags & O_DIRECTORY) return errno = EACCES, -1; /* a folder cannot be synced here */
    const int file = _wopen(n.w, flags | _O_BINARY, _S_IREAD | _S_IWRITE);
    if (file < 0 && errno == EACCES && is_folder(n.w)) errno = EISDIR;
    return file;
}

FILE *cn__win_fopen(const char *path, const char *mode)
{
    name n;
    wchar_t how[8] = { 0 };
    if (!widen(path, &n)) return NULL;
    for (int i = 0; mode[i] && i < 5; i++) how[i] = (wchar_t)mode[i];
    if (!strchr(mode, 'b')) how[wcslen(how)] = L'b';
    FILE *f = _wfopen(n.w, how);
    if (!f && errno == EACCES && is_folder(n.w)) errno = EISDIR;
    return f;
}

/* 100 ns since 1601 */
static struct timespec time_of(FILETIME t)
{
    const uint64_t units = (uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime, second = 10000000;
    return (struct timespec){ (time_t)(units / second) - 11644473600, (long)(units % second) * 100 };
}

static int describe(HANDLE file, struct cn__win_stat *st)
{
    *st = (struct cn__win_stat){ .st_mode = _S_IFREG | _S_IREAD | _S_IWRITE };
    BY_HANDLE_FILE_INFORMATION i;
    if (GetFileType(file) != FILE_TYPE_DISK) {
        st->st_mode = GetFileType(file) == FILE_TYPE_PIPE ? _S_IFIFO : _S_IFCHR;
        return 0;
    }
    if (!GetFileInformationByHandle(file, &i)) return failed();
    if (i.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) st->st_mode = _S_IFDIR | _S_IREAD | _S_IWRITE | _S_IEXEC;
    st->st_size = (int64_t)((uint64_t)i.nFileSizeHigh << 32 | i.nFileSizeLow);
    st->st_dev = i.dwVolumeSerialNumber;
    st->st_ino = (uint64_t)i.nFileIndexHigh << 32 | i.nFileIndexLow;
    st->st_mtim = time_of(i.ftLastWriteTime);
    return 0;
}

int cn__win_stat(const char *path, struct cn__win_stat *st)
{
    name n;
    if (!widen(path, &n)) return -1;
    const DWORD share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    HANDLE file = CreateFileW(n.w, 0, share, NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (file == INVALID_HANDLE_VALUE) return failed();
    const int code = describe(file, st);
    CloseHandle(file);
    return code;
}

int cn__win_fstat(int file, struct cn__win_stat *st) { return describe((HANDLE)_get_osfhandle(file), st); }

int cn__win_mkdir(const char *path, unsigned mode)
{
    name n;
    (void)mode;
    return widen(path, &n) && CreateDirectoryW(n.w, NULL) ? 0 : failed();
}

/* A file that is mapped cannot be replaced, but it can be renamed: it goes aside, and is deleted if that is possible. */
static bool replace_mapped(const wchar_t *from, const wchar_t *to)
{
    name aside;
    const DWORD why = GetLastError();
    if (is_folder(to) ||
        (why != ERROR_ACCESS_DENIED && why != ERROR_USER_MAPPED_FILE && why != ERROR_SHARING_VIOLATION))
        return false;
    _snwprintf(aside.w, PATH_MAX, L"%ls.old-%lu-%lu", to, GetCurrentProcessId(), GetTickCount());
    if (!MoveFileExW(to, aside.w, 0)) return false;
    if (!MoveFileExW(from, to, MOVEFILE_WRITE_THROUGH)) {
        const DWORD error = GetLastError();
        MoveFileExW(aside.w, to, 0);
        SetLastError(error);
        return false;
    }
    DeleteFileW(aside.w);
    return true;
}

int cn__win_rename(const char *from, const char *to)
{
    name a, b;
    if (!widen(from, &a) || !widen(to, &b)) return -1;
    if (MoveFileExW(a.w, b.w, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH)) return 0;
    return replace_mapped(a.w, b.w) ? 0 : failed();
}

int cn__win_unlink(const char *path)
{
    name n;
    return widen(path, &n) && DeleteFileW(n.w) ? 0 : failed();
}

int cn__win_rmdir(const char *path)
{
    name n;
    return widen(path, &n) && RemoveDirectoryW(n.w) ? 0 : failed();
}

int cn__win_remove(const char *path)
{
    name n;
    if (!widen(path, &n)) return -1;
    return (is_folder(n.w) ? RemoveDirectoryW(n.w) : DeleteFileW(n.w)) ? 0 : failed();
}

int cn__win_access(const char *path, int mode)
{
    name n;
    return widen(path, &n) ? _waccess(n.w, mode & 6) : -1; /* there is no right to execute */
}

int cn__win_truncate(const char *path, int64_t bytes)
{
    const int file = cn__win_open(path, _O_WRONLY);
    if (file < 0) return -1;
    const int problem = _chsize_s(file, bytes);
    _close(file);
    if (problem) errno = problem;
    return problem ? -1 : 0;
}

char *cn__win_realpath(const char *path, char *out)
{
    name n, full;
    if (!widen(path, &n) || GetFileAttributesW(n.w) == INVALID_FILE_ATTRIBUTES) return failed(), NULL;
    if (!GetFullPathNameW(n.w, PATH_MAX, full.w, NULL)) return failed(), NULL;
    for (wchar_t *c = full.w; *c; c++)
        if (*c == L'\\') *c = L'/'; /* who asks looks for folders by POSIX's separator */
    return narrow(full.w, out, PATH_MAX) ? out : NULL;
}

char *cn__win_mkdtemp(char *pattern)
{
    char *end = pattern + strlen(pattern) - 6; /* XXXXXX */
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(end, 7, "%06x", (unsigned)(GetCurrentProcessId() * 4096u + GetTickCount() + i) & 0xffffffu);
        if (cn__win_mkdir(pattern, 0700) == 0) return pattern;
    }
    return NULL;
}

int cn__win_lock(int file, int operation)
{
    (void)operation; /* closing the file ends it */
    OVERLAPPED all = { 0 };
    return LockFileEx((HANDLE)_get_osfhandle(file), LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0x7fffffff, &all) ? 0 : failed();
}

/* ---- folders ---- */

struct cn__win_dir {
    HANDLE find;
    WIN32_FIND_DATAW next;
    bool ready; /* next has not been returned */
    struct cn__win_dirent entry;
};

cn__win_dir *cn__win_opendir(const char *path)
{
    name n;
    if (!widen(path, &n)) return NULL;
    const size_t length = wcslen(n.w);
    if (length + 3 > PATH_MAX) return errno = ENAMETOOLONG, NULL;
    if (GetFileAttributesW(n.w) != INVALID_FILE_ATTRIBUTES && !is_folder(n.w)) return errno = ENOTDIR, NULL;
    wcscpy(n.w + length, L"/*");
    cn__win_dir *d = calloc(1, sizeof *d);
    if (!d) return NULL;
    d->find = FindFirstFileW(n.w, &d->next);
    d->ready = d->find != INVALID_HANDLE_VALUE;
    if (d->ready) return d;
    failed();
    free(d);
    return NULL;
}

struct cn__win_dirent *cn__win_readdir(cn__win_dir *d)
{
    do {
        if (!d->ready && !FindNextFileW(d->find, &d->next)) return NULL;
        d->ready = false;
    } while (!narrow(d->next.cFileName, d->entry.d_name, sizeof d->entry.d_name));
    return &d->entry;
}

int cn__win_closedir(cn__win_dir *d)
{
    FindClose(d->find);
    free(d);
    return 0;
}

typedef int (*comparison)(const void *, const void *);

int cn__win_scandir(const char *path, struct cn__win_dirent ***list, int (*wanted)(const struct cn__win_dirent *),
                    int (*order)(const struct cn__win_dirent **, const struct cn__win_dirent **))
{
    cn__win_dir *d = cn__win_opendir(path);
    int n = 0;
    bool ok = d;
    *list = NULL;
    for (struct cn__win_dirent *e; ok && (e = cn__win_readdir(d));) {
        if (wanted && !wanted(e)) continue;
        struct cn__win_dirent **more = realloc(*list, (size_t)(n + 1) * sizeof **list), *copy = malloc(sizeof *copy);
        if (more) *list = more;
        ok = more && copy;
        if (ok) *copy = *e, more[n++] = copy;
        else free(copy);
    }
    if (d) cn__win_closedir(d);
    if (ok && n) qsort(*list, (size_t)n, sizeof **list, (comparison)(void (*)(void))order);
    if (ok) return n;
    while (n > 0) free((*list)[--n]);
    free(*list);
    return -1;
}

/* Whether c is in the set that begins after [; *end: after its ]. */
static bool in_set(const char *p, char c, const char **end)
{
    const bool others = *p == '!';
    bool found = false;
    for (p += others; *p && *p != ']'; p++) {
        const char high = p[1] == '-' && p[2] && p[2] != ']' ? p[2] : *p;
        found = found || (*p <= c && c <= high);
        if (high != *p) p += 2;
    }
    *end = *p ? p + 1 : p;
    return found != others;
}

int cn__win_fnmatch(const char *p, const char *s, int flags)
{
    for (; *p; s++) {
        if (*p == '*') {
            for (;; s++) {
                if (!cn__win_fnmatch(p + 1, s, flags)) return 0;
                if (!*s) return 1;
            }
        }
        if (!*s) return 1;
        if (*p == '[') {
            if (!in_set(p + 1, *s, &p)) return 1;
        } else if (*p++ != '?' && p[-1] != *s) {
            return 1;
        }
    }
    return *s != 0;
}

/* ---- memory ---- */

void *cn__win_mmap(void *at, size_t bytes, int protection, int flags, int file, int64_t offset)
{
    (void)at, (void)flags;
    const bool writes = protection & PROT_WRITE; /* to a copy of the page */
    HANDLE mapping =
        CreateFileMappingW((HANDLE)_get_osfhandle(file), NULL, writes ? PAGE_WRITECOPY : PAGE_READONLY, 0, 0, NULL);
    if (!mapping) return failed(), MAP_FAILED;
    void *p =
        MapViewOfFile(mapping, writes ? FILE_MAP_COPY : FILE_MAP_READ, (DWORD)(offset >> 32), (DWORD)offset, bytes);
    if (!p) failed();
    CloseHandle(mapping); /* the view keeps it */
    return p ? p : MAP_FAILED;
}

int cn__win_munmap(void *at, size_t bytes)
{
    (void)bytes;
    return UnmapViewOfFile(at) ? 0 : failed();
}

void *cn__win_aligned_alloc(size_t alignment, size_t bytes)
{
    (void)alignment;
    return malloc(bytes);
}

/* ---- numbers ---- */

/* mingw's own rounds twice. The product is exact in f64; the sum is rounded to odd there, so that it may be rounded once
   more. */
float fmaf(float x, float y, float z)
{
    const double p = (double)x * y, sum = p + z, zz = sum - p, lost = (p - (sum - zz)) + (z - zz);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (lost == lost && lost != 0 && !(bits & 1)) bits += (lost > 0) == (sum > 0) ? 1 : (uint64_t)-1;
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return (float)odd;
}

/* ---- libraries ---- */

void *cn__win_dlopen(const char *path, int flags)
{
    name n;
    (void)flags;
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path, *so = strstr(file, ".so");
    const int folder = (int)(file - path);
    char other[PATH_MAX];
    for (int lib = 0; so && !strncmp(file, "lib", 3) && lib < 2; lib++) {
        const char *begin = lib ? file : file + 3;
        snprintf(other, sizeof other, "%.*s%.*s.dll", folder, path, (int)(so - begin), begin);
        void *found = widen(other, &n) ? (void *)LoadLibraryW(n.w) : NULL;
        if (found) return found;
    }
    return widen(path, &n) ? (void *)LoadLibraryW(n.w) : NULL;
}

/* The path has slashes, as callers expect. */
int cn__win_dladdr(const void *at, Dl_info *info)
{
    static _Thread_local char path[PATH_MAX];
    name n;
    HMODULE module;
    const DWORD how = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    if (!GetModuleHandleExW(how, (LPCWSTR)at, &module) || !GetModuleFileNameW(module, n.w, PATH_MAX)) return 0;
    if (!narrow(n.w, path, sizeof path)) return 0;
    for (char *c = path; *c; c++)
        if (*c == '\\') *c = '/';
    info->dli_fname = path;
    return 1;
}

void *cn__win_dlsym(void *library, const char *name)
{
    FARPROC function = GetProcAddress(library, name);
    void *p;
    memcpy(&p, &function, sizeof p);
    return p;
}

int cn__win_dlclose(void *library) { return library ? 0 : -1; }

const char *cn__win_dlerror(void) { return "the file is missing, or not a library for this system"; }

/* ---- the machine ---- */

long cn__win_sysconf(int what)
{
    SYSTEM_INFO s;
    MEMORYSTATUSEX m = { .dwLength = sizeof m };
    GetSystemInfo(&s);
    GlobalMemoryStatusEx(&m);
    return (long)(what == _SC_NPROCESSORS_ONLN ? s.dwNumberOfProcessors
                  : what == _SC_PAGESIZE       ? s.dwPageSize
                                               : m.ullTotalPhys / s.dwPageSize);
}

int cn__win_timespec_get(struct timespec *t, int base) { return clock_gettime(CLOCK_REALTIME, t) ? 0 : base; }

int cn__win_gethostname(char *to, size_t size)
{
    DWORD n = (DWORD)size;
    return GetComputerNameA(to, &n) ? 0 : failed();
}

int cn__win_setenv(const char *variable, const char *value, int overwrite)
{
    return overwrite || !getenv(variable) ? _putenv_s(variable, value) : 0;
}

int cn__win_ioctl(int file, int request, struct winsize *size)
{
    (void)request;
    CONSOLE_SCREEN_BUFFER_INFO i;
    if (!GetConsoleScreenBufferInfo((HANDLE)_get_osfhandle(file), &i)) return failed();
    *size = (struct winsize){ (unsigned short)(i.srWindow.Bottom - i.srWindow.Top + 1),
                              (unsigned short)(i.srWindow.Right - i.srWindow.Left + 1) };
    return 0;
}

int cn__win_sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    if (old) *old = (struct sigaction){ 0 };
    return signal(number, action->sa_handler) == SIG_ERR ? -1 : 0;
}

int cn__win_getrusage(int who, struct rusage *usage)
{
    (void)who;
    PROCESS_MEMORY_COUNTERS c = { .cb = sizeof c };
    if (!K32GetProcessMemoryInfo(GetCurrentProcess(), &c, sizeof c)) return failed();
    usage->ru_maxrss = (long)(c.PeakWorkingSetSize / 1024);
    return 0;
}
