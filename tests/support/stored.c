#include "support/stored.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

stored stored_open(const char *source_dir, const char *file)
{
    stored s = { NULL };
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/reference/%s", source_dir, file);
    FILE *f = fopen(path, "rb");
    if (!f) return s;
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    rewind(f);
    s.text = calloc((size_t)n + 1, 1);
    if (s.text && fread(s.text, 1, (size_t)n, f) != (size_t)n) s.text[0] = 0;
    fclose(f);
    return s;
}

int stored_find(const stored *s, const char *name, const char *kind, int step, double *out, int most)
{
    char head[128];
    int length = snprintf(head, sizeof head, "%s %s %d ", name, kind, step), n = 0;
    for (const char *at = s->text; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL) {
        if (strncmp(at, head, (size_t)length) != 0) continue;
        char *next;
        for (at += length; n < most && *at && *at != '\n'; at = next) {
            out[n++] = strtod(at, &next);
            if (next == at) return 0;
            while (*next == ' ') next++;
        }
        return n;
    }
    return 0;
}

void stored_close(stored *s)
{
    free(s->text);
    s->text = NULL;
}
