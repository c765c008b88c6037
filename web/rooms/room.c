/* What the rooms share: contexts, training steps, files. */
#include "room.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table of functions ---- */

typedef void (*any)(void);
static const any functions[] = {
#define ROOM(name) (any) room_##name,
#include "rooms.def"
#undef ROOM
};

const any *room_functions(void);
const any *room_functions(void) { return functions; }

const char *room_names(void);
const char *room_names(void)
{
    return
#define ROOM(name) #name " "
#include "rooms.def"
#undef ROOM
        ;
}

/* ---- a room ---- */

room *room_open(const char *device, int threads, double seed)
{
    room *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->cn = cn_open(&(cn_desc){ .device = device, .threads = threads, .seed = (uint64_t)seed });
    if (!r->cn) return free(r), NULL;
    return r;
}

void room_close(room *r)
{
    cn_close(r->cn);
    free(r->tokens);
    free(r);
}

/* A message of the room's own comes first: it says what the user can do. */
const char *room_error(room *r)
{
    snprintf(r->word, sizeof r->word, "%s", r->message[0] ? r->message : cn_error(r->cn));
    r->message[0] = 0;
    cn_error_clear(r->cn);
    return r->word;
}

bool room_fail(room *r, const char *message)
{
    snprintf(r->message, sizeof r->message, "%s", message);
    return false;
}

const char *room_device(room *r)
{
    cn_gpu_info gpu;
    const int number = cn_gpu_current(r->cn);
    if (number < 0 || !cn_gpu_describe(r->cn, number, &gpu)) return "cpu";
    snprintf(r->word, sizeof r->word, "%s", gpu.name);
    return r->word;
}

double room_number(room *r, int which)
{
    const cn_counters c = cn_count(r->cn);
    const cn_gpu_counters g = cn_gpu_counted(r->cn);
    switch (which) {
    case 0: return (double)r->step;
    case 1: return r->net ? (double)cn_module_count(r->net) : 0;
    case 2: return (double)(c.live_bytes + c.arena_bytes);
    case 3: return (double)g.buffer_bytes;
    case 4: return (double)g.submissions;
    case 5: return (double)g.dispatches;
    case 6: return (double)r->n_tokens;
    case 7: return r->tokenizer ? (double)cn_token_count(r->tokenizer) : 0;
    case 8: return r->net && cn_gpt_config(r->net) ? (double)cn_gpt_config(r->net)->context : 0;
    case 9: return (double)g.recoveries;
    default: return 0;
    }
}

/* ---- training ---- */

bool room_begin(room *r, double weight_decay)
{
    cn_adamw_desc desc = { .lr = r->rate, .beta2 = 0.99, .weight_decay = weight_decay > 0 ? weight_decay : CN_ZERO };
    r->opt = r->net ? cn_adamw(r->cn, cn_parameters(r->net), &desc) : NULL;
    return r->opt;
}

bool room_set_rate(room *r, double rate)
{
    r->rate = rate;
    return true;
}

static double rate_of(const room *r)
{
    const double warm = r->step < r->warm ? (double)(r->step + 1) / (double)r->warm : 1;
    if (!r->settle) return warm * r->rate;
    const double at = r->step < r->settle ? (double)r->step / (double)r->settle : 1;
    return warm * r->rate * (0.55 + 0.45 * cos(3.14159265358979 * at));
}

/* At the end of an epoch cn_loader_next returns false; the next call begins a new epoch. */
bool room_next_batch(room *r, cn_loader *l, cn_batch *b)
{
    return cn_loader_next(l, b) || (!cn_failed(r->cn) && cn_loader_next(l, b));
}

double room_step(room *r, int n)
{
    double last = NAN;
    for (int i = 0; i < n && !cn_failed(r->cn); i++) {
        cn_scope s = cn_scope_begin(r->cn);
        cn_tensor *loss = r->loss(r);
        cn_backward(loss);
        cn_clip_grad_norm(cn_optim_params(r->opt), 1, NULL);
        cn_optim_set_lr(r->opt, 0, rate_of(r));
        if (cn_step(r->opt)) r->step++;
        if (i == n - 1) last = cn_item(loss);
        cn_scope_end(r->cn, s);
    }
    return cn_failed(r->cn) ? NAN : last;
}

/* ---- files ---- */

bool room_save(room *r, const char *path, int state)
{
    cn_dict *extra = cn_dict_new(r->cn);
    const cn_training run = { .model = r->net, .optim = state ? r->opt : NULL, .step = r->step };
    const bool ok = extra && r->describe(r, extra) && cn_checkpoint_save(&run, extra, path);
    cn_dict_free(extra);
    return ok;
}

static bool has_state(const cn_dict *file)
{
    for (int64_t i = 0; i < cn_dict_count(file); i++)
        if (!strncmp(cn_dict_name(file, i), "optim/", 6)) return true;
    return false;
}

bool room_resume(room *r, const cn_dict *file)
{
    cn_training run = { .model = r->net, .optim = has_state(file) ? r->opt : NULL };
    bool ok = cn_checkpoint_from(&run, file);
    if (!ok && run.optim) { /* of another optimizer: the net alone */
        cn_error_clear(r->cn);
        run.optim = NULL;
        ok = cn_checkpoint_from(&run, file);
    }
    r->step = run.step;
    return ok;
}
