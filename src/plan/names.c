/* Pass "names": gives every step the name that plans and profiles show, such as matmul+add+relu, and counts kernels. */
#include <stdio.h>

#include "plan/build.h"

static void add_name(char *name, size_t size, const char *part)
{
    size_t n = strlen(name);
    if (n + strlen(part) + 5 > size) {
        if (n < 2 || strcmp(name + n - 2, "..")) snprintf(name + n, size - n, "+..");
        return;
    }
    snprintf(name + n, size - n, n ? "+%s" : "%s", part);
}

static void name_step(cn__step *s)
{
    for (int i = 0; i < s->n_instrs; i++)
        if (strcmp(s->instrs[i].op->name, "copy") || s->n_instrs == 1)
            add_name(s->name, sizeof s->name, s->instrs[i].op->name);
    if (s->op) add_name(s->name, sizeof s->name, s->op->name);
    if (!s->name[0]) add_name(s->name, sizeof s->name, "copy");
}

static void name_joined(cn__step *s)
{
    char times[16];
    int n = snprintf(times, sizeof times, " x %d", s->merged);
    size_t room = sizeof s->name - (size_t)n, length = strlen(s->name);
    if (length >= room) length = room - 1;
    memcpy(s->name + length, times, (size_t)n + 1);
}

bool cn__name_steps(builder *b)
{
    cn__plan *p = b->plan;
    for (int i = 0; i < p->n_steps; i++) name_step(&p->steps[i]);
    for (int i = 0; i < p->n_steps; i++) {
        cn__step *s = &p->steps[i];
        if (s->epilogue) add_name(s[-1].name, sizeof s[-1].name, s->name);
        if (s->merged > 1) name_joined(s);
        p->kernels += !s->epilogue && !s->joined;
    }
    return true;
}
