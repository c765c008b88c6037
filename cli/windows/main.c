/* The entry of the cairn command on Windows: its words are UTF-8 when main sees them, the first is the path of the
   program's file, and what is written to the terminal is UTF-8 too. */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

int main(int argc, char **argv);

/* NULL: no memory. */
static char *narrow(const wchar_t *word)
{
    const int n = WideCharToMultiByte(CP_UTF8, 0, word, -1, NULL, 0, NULL, NULL);
    char *out = malloc((size_t)n + 1);
    if (!out) return NULL;
    out[0] = 0;
    WideCharToMultiByte(CP_UTF8, 0, word, -1, out, n, NULL, NULL);
    return out;
}

/* Words that name a file, or something in a folder that exists, get slashes. */
static void turn_slashes(wchar_t *word)
{
    wchar_t folder[PATH_MAX], *last = wcsrchr(word, L'\\');
    if (!last || wcslen(word) >= PATH_MAX) return;
    wcscpy(folder, word);
    folder[last - word] = 0;
    if (GetFileAttributesW(word) == INVALID_FILE_ATTRIBUTES && GetFileAttributesW(folder) == INVALID_FILE_ATTRIBUTES)
        return;
    for (wchar_t *c = word; *c; c++)
        if (*c == L'\\') *c = L'/';
}

int wmain(int argc, wchar_t **words)
{
    wchar_t file[PATH_MAX];
    char **argv = calloc((size_t)argc + 1, sizeof *argv);
    if (!argv) return 1;
    for (int i = 0; i < argc; i++) {
        turn_slashes(words[i]);
        argv[i] = narrow(i == 0 && GetModuleFileNameW(NULL, file, PATH_MAX) ? file : words[i]);
        if (!argv[i]) return 1;
    }
    SetConsoleOutputCP(CP_UTF8);
    _setmode(0, _O_BINARY);
    _setmode(1, _O_BINARY);
    _setmode(2, _O_BINARY);
    return main(argc, argv);
}
