/* scratch.c: makes a temporary folder, changes into it, and removes it when the program ends. */
#define _XOPEN_SOURCE 700 /* nftw, mkdtemp */
#include "support/scratch.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"

static char folder[1024];
static pid_t owner; /* forked children share the folder and must not remove it */

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info, (void)kind, (void)place;
    remove(path);
    return 0;
}

static void remove_folder(void)
{
    enum { OPEN_FOLDERS = 16 };
    if (getpid() == owner && chdir("/") == 0) nftw(folder, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

bool enter_scratch(void)
{
    const char *base = getenv("TMPDIR");
    int n = snprintf(folder, sizeof folder, "%s/cairn_test_XXXXXX", base && base[0] == '/' ? base : "/tmp");
    bool made = n > 0 && (size_t)n < sizeof folder && mkdtemp(folder) != NULL;
    if (!made) return check(false, "cannot make the scratch folder %s: %s", folder, strerror(errno));
    owner = getpid();
    atexit(remove_folder);
    return chdir(folder) == 0 || check(false, "cannot enter the scratch folder %s: %s", folder, strerror(errno));
}
