/* cairn ops: the operators there are. */
#include <ctype.h>
#include <string.h>

#include "cli.h"

static const char *kind_name(cn_kind kind)
{
    switch (kind) {
    case CN_MAP: return "map";
    case CN_VIEW: return "view";
    case CN_REDUCE: return "reduce";
    case CN_CONTRACT: return "contract";
    case CN_INDEX: return "index";
    case CN_SCAN: return "scan";
    case CN_SORT: return "sort";
    case CN_RANDOM: return "random";
    case CN_BLOCK: return "block";
    case CN_COMPOSITE: return "composite";
    }
    return "";
}

/* Whether word is in text, however it is spelled. */
static bool contains(const char *text, const char *word)
{
    const size_t n = strlen(word);
    for (; *text; text++) {
        size_t k = 0;
        while (k < n && text[k] && tolower((unsigned char)text[k]) == tolower((unsigned char)word[k])) k++;
        if (k == n) return true;
    }
    return !n;
}

int list_ops(settings *s)
{
    int n, shown = 0;
    const cn_op *const *ops = cn_ops(&n);
    for (int i = 0; i < n; i++) {
        const cn_op *op = ops[i];
        const char *doc = op->doc ? op->doc : "", *kind = kind_name(op->kind), *word = s->argument;
        if (word && !contains(op->name, word) && !contains(kind, word) && !contains(doc, word)) continue;
        printf("%-24s %-10s %s\n", op->name, kind, doc);
        shown++;
    }
    if (!shown) return fail("no operator has '%s' in its name, kind or text", s->argument);
    printf("%d of %d operators\n", shown, n);
    return DONE;
}
