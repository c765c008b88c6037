/* Schedules as objects: making and freeing, steps and their undoing, chains and sequences, saving and loading. */
#include "optim/schedule.h"

#include <math.h>
#include <stdio.h>

/* ---- making and freeing ---- */

static void destroy(void *self)
{
    cn_schedule *s = self;
    cn_ctx *ctx = s->object.ctx;
    for (int i = 0; i < s->n_parts; i++) cn__object_free(s->parts[i]);
    cn__free(ctx, s->parts, (size_t)s->n_parts * sizeof(cn_schedule *));
    cn__free(ctx, s->milestones, (size_t)s->n_milestones * sizeof(int64_t));
    cn__free(ctx, s->base, 3 * (size_t)s->n_groups * sizeof(double));
    cn__object_unuse(s->opt);
}

const cn__object_type cn__schedule_type = { "schedule", destroy };

/* A function of the program, which sets an lr, cannot step or make schedules of the same optimizer. */
static bool is_busy(const cn_optim *opt, const char *who)
{
    if (opt->scheduling)
        cn__fail(opt->object.ctx, CN_BAD_ARGUMENT, "%s: a schedule of this optimizer is in the midst of a step", who);
    return opt->scheduling;
}

cn_schedule *cn__schedule_new(cn_optim *opt, const cn__pace *pace)
{
    CN__CALL call = cn__enter_object(opt, &cn__optim_type, pace->name, true);
    if (!call.ctx || cn_failed(call.ctx) || is_busy(opt, pace->name)) return NULL;
    cn_ctx *ctx = opt->object.ctx;
    cn_schedule *s = cn__object_new(ctx, sizeof *s, &cn__schedule_type);
    if (!s) return NULL;
    s->opt = cn__object_use(opt);
    s->pace = pace;
    s->n_groups = cn_optim_groups(opt);
    s->base = cn__alloc(ctx, 3 * (size_t)s->n_groups * sizeof(double));
    if (!s->base) {
        s->n_groups = 0;
        cn__object_free(s);
        return NULL;
    }
    for (int g = 0; g < s->n_groups; g++) {
        const cn__param_group *group = cn__optim_group(opt, g);
        s->base[g] = isnan(group->initial_lr) ? group->h.lr : group->initial_lr;
    }
    return s;
}

bool cn__schedule_milestones(cn_schedule *s, const int64_t *milestones, int n)
{
    cn_ctx *ctx = s->object.ctx;
    for (int i = 0; i < n; i++)
        if (!milestones || milestones[i] < (i ? milestones[i - 1] : 0))
            return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: milestones must be ≥ 0 and rise, but number %d does not",
                            s->pace->name, i);
    if (n < 1) return true;
    s->milestones = cn__alloc(ctx, (size_t)n * sizeof(int64_t));
    if (!s->milestones) return false;
    memcpy(s->milestones, milestones, (size_t)n * sizeof(int64_t));
    s->n_milestones = n;
    return true;
}

void cn_schedule_free(cn_schedule *s) { cn__free_by_program(s, &cn__schedule_type, __func__); }

int64_t cn_schedule_steps(const cn_schedule *s) { return cn__is(s, &cn__schedule_type) ? s->now.at : 0; }

/* ---- stepping ---- */

static bool apply(cn_schedule *s, double (*lr)(const cn_schedule *s, int group))
{
    for (int g = 0; g < s->n_groups; g++) {
        if (!cn_optim_set_lr(s->opt, g, lr(s, g))) return false;
        if (s->pace->momentum && !cn_optim_set_momentum(s->opt, g, s->pace->momentum(s, g))) return false;
    }
    return true;
}

bool cn__pace_step(cn_schedule *s, bool first)
{
    if (s->pace->step) return s->pace->step(s);
    s->now.at++;
    s->first = first;
    bool ok = (!s->pace->advance || s->pace->advance(s)) && apply(s, s->pace->lr);
    s->first = false;
    return ok;
}

/* As cn__pace_step, which may call a function of the program. */
static bool take_step(cn_schedule *s, bool first)
{
    s->opt->scheduling = true;
    const bool ok = cn__pace_step(s, first);
    s->opt->scheduling = false;
    return ok;
}

static void save_present(cn_schedule *s)
{
    s->before = s->now;
    for (int g = 0; g < s->n_groups; g++) {
        s->base[s->n_groups + g] = cn__optim_group(s->opt, g)->h.lr;
        s->base[2 * s->n_groups + g] = cn__optim_group(s->opt, g)->h.momentum;
    }
    for (int i = 0; i < s->n_parts; i++) save_present(s->parts[i]);
}

static void undo(cn_schedule *s)
{
    s->now = s->before;
    for (int g = 0; g < s->n_groups; g++) {
        cn__optim_group(s->opt, g)->h.lr = s->base[s->n_groups + g];
        cn__optim_group(s->opt, g)->h.momentum = s->base[2 * s->n_groups + g];
    }
    for (int i = 0; i < s->n_parts; i++) undo(s->parts[i]);
}

/* A group's first schedule sets the group's initial lr. */
cn_schedule *cn__schedule_begin(cn_schedule *s)
{
    CN__CALL call = cn__enter_object(s, &cn__schedule_type, s ? s->pace->name : NULL, true);
    if (!call.ctx) return NULL;
    for (int g = 0; g < s->n_groups; g++) {
        cn__param_group *group = cn__optim_group(s->opt, g);
        if (isnan(group->initial_lr)) group->initial_lr = group->h.lr;
        s->base[g] = group->initial_lr;
    }
    s->now.at = -1;
    save_present(s);
    CN__USE used = cn__object_use(s);
    if (take_step(s, true)) return s;
    undo(s);
    cn__object_free(s);
    return NULL;
}

static bool ready(const cn_schedule *s)
{
    if (cn_failed(s->object.ctx) || !cn__is(s->opt, &cn__optim_type) || is_busy(s->opt, s->pace->name)) return false;
    if (s->n_groups == cn_optim_groups(s->opt)) return true;
    return cn__fail(s->object.ctx, CN_BAD_ARGUMENT,
                    "%s: a group was added after the schedule was made: it is for %d groups, the optimizer has %d",
                    s->pace->name, s->n_groups, cn_optim_groups(s->opt));
}

bool cn_schedule_step(cn_schedule *s)
{
    CN__CALL call = cn__call_object(s, &cn__schedule_type);
    if (!call.ctx || !ready(s)) return false;
    if (s->pace == &cn__plateau)
        return cn__fail(s->object.ctx, CN_BAD_ARGUMENT,
                        "plateau: steps of this schedule need a metric: call cn_schedule_step_metric");
    save_present(s);
    CN__USE used = cn__object_use(s);
    bool ok = take_step(s, false);
    if (!ok) undo(s);
    return ok;
}

bool cn_schedule_step_metric(cn_schedule *s, double value)
{
    CN__CALL call = cn__call_object(s, &cn__schedule_type);
    if (!call.ctx || !ready(s)) return false;
    if (s->pace != &cn__plateau)
        return cn__fail(s->object.ctx, CN_BAD_ARGUMENT,
                        "%s: steps of this schedule have no metric: call cn_schedule_step", s->pace->name);
    save_present(s);
    const cn_schedule_plateau_desc *d = &s->u.plateau;
    cn__pace_state *n = &s->now;
    double t = d->threshold;
    bool better = d->max ? value > (d->absolute ? n->best + t : n->best * (1 + t))
                         : value < (d->absolute ? n->best - t : n->best * (1 - t));
    if (better) n->best = value;
    n->at++;
    n->bad = better ? 0 : n->bad + 1;
    if (n->cooling > 0) {
        n->cooling--;
        n->bad = 0;
    }
    if (n->bad <= d->patience) return true;
    n->bad = 0;
    n->cooling = d->cooldown;
    bool ok = apply(s, s->pace->lr);
    if (!ok) undo(s);
    return ok;
}

/* ---- parts ---- */

static bool part_fits(const cn_schedule *s, cn_schedule *const *parts, int i, bool sequence)
{
    cn_ctx *ctx = s->object.ctx;
    const char *who = s->pace->name;
    const cn_schedule *p = parts[i];
    if (!p) return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: part %d must not be NULL", who, i);
    if (!cn__object_of(ctx, p, &cn__schedule_type, who)) return false;
    if (p->opt != s->opt) return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: part %d must be of the same optimizer", who, i);
    if (p->pace == &cn__plateau)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: part %d must not be a plateau, which needs a metric", who, i);
    if (sequence && p->n_parts) return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: part %d must not have parts itself", who, i);
    bool adopted = p->object.adopted;
    for (int k = 0; k < i; k++) adopted |= parts[k] == p;
    return !adopted || cn__fail(ctx, CN_BAD_ARGUMENT, "%s: part %d must not be a part already", who, i);
}

static bool adopt_parts(cn_schedule *s, cn_schedule *const *parts, int n, bool sequence)
{
    cn_ctx *ctx = s->object.ctx;
    if (n < 1 || !parts)
        return cn__fail(ctx, CN_BAD_ARGUMENT, "%s: there must be at least 1 part, got %d", s->pace->name, n);
    for (int i = 0; i < n; i++)
        if (!part_fits(s, parts, i, sequence)) return false;
    s->parts = cn__alloc(ctx, (size_t)n * sizeof *parts);
    if (!s->parts) return false;
    memcpy(s->parts, parts, (size_t)n * sizeof *parts);
    s->n_parts = n;
    for (int i = 0; i < n; i++) cn__object_adopt(parts[i]);
    return true;
}

static bool step_chain(cn_schedule *s)
{
    s->now.at++;
    for (int i = 0; i < s->n_parts; i++)
        if (!cn__pace_step(s->parts[i], false)) return false;
    return true;
}

static const cn__pace chained = { .name = "chained", .step = step_chain };

cn_schedule *cn_schedule_chained(cn_optim *opt, cn_schedule *const *parts, int n)
{
    CN__CALL call = cn__enter_object(opt, &cn__optim_type, chained.name, true);
    cn_schedule *s = call.ctx ? cn__schedule_new(opt, &chained) : NULL;
    if (!s || adopt_parts(s, parts, n, false)) return s;
    cn__object_free(s);
    return NULL;
}

/* How many milestones are at or before step `at`. */
static int reached(const cn_schedule *s, int64_t at)
{
    int n = 0;
    while (n < s->n_milestones && s->milestones[n] <= at) n++;
    return n;
}

static bool step_sequence(cn_schedule *s)
{
    int i = reached(s, ++s->now.at);
    cn_schedule *p = s->parts[i];
    if (i == 0 || s->milestones[i - 1] != s->now.at) return cn__pace_step(p, false);
    p->now.at = 0;
    return apply(p, p->pace->start ? p->pace->start : p->pace->lr);
}

static const cn__pace sequential = { .name = "sequential", .step = step_sequence };

/* The makers of the parts changed the lr. This sets the initial lr again, and the first part begins again. */
static bool begin_sequence(cn_schedule *s)
{
    for (int g = 0; g < s->n_groups; g++)
        if (!cn_optim_set_lr(s->opt, g, cn__optim_group(s->opt, g)->initial_lr)) return false;
    for (int i = 0; i < s->n_parts; i++) s->parts[i]->now.at--;
    return take_step(s->parts[reached(s, 0)], true);
}

cn_schedule *cn_schedule_sequential(cn_optim *opt, cn_schedule *const *parts, int n, const int64_t *milestones)
{
    CN__CALL call = cn__enter_object(opt, &cn__optim_type, sequential.name, true);
    cn_schedule *s = call.ctx ? cn__schedule_new(opt, &sequential) : NULL;
    if (!s) return NULL;
    if (cn__schedule_milestones(s, milestones, n > 1 ? n - 1 : 0) && adopt_parts(s, parts, n, true) &&
        begin_sequence(s))
        return s;
    cn__object_free(s);
    return NULL;
}

/* ---- state ---- */

enum { NAME = 256 };

static const char *name_of(char out[NAME], const char *prefix, const char *what)
{
    int n = snprintf(out, NAME, "%s%s", prefix, what);
    return n >= 0 && n < NAME ? out : NULL;
}

static const char *base_name(char out[NAME], const char *prefix, int group)
{
    int n = snprintf(out, NAME, "%sbase_lrs/%d", prefix, group);
    return n >= 0 && n < NAME ? out : NULL;
}

static const char *part_prefix(char out[NAME], const char *prefix, int part)
{
    int n = snprintf(out, NAME, "%sschedulers/%d/", prefix, part);
    return n >= 0 && n < NAME ? out : NULL;
}

static bool save(cn_schedule *s, cn_dict *d, const char *prefix)
{
    char name[NAME];
    const cn__pace_state *n = &s->now;
    bool ok = prefix && cn_dict_set_text(d, name_of(name, prefix, "scheduler"), s->pace->name) &&
              cn_dict_set_whole(d, name_of(name, prefix, "last_epoch"), n->at) &&
              cn_dict_set_whole(d, name_of(name, prefix, "T_cur"), n->cur) &&
              cn_dict_set_whole(d, name_of(name, prefix, "T_i"), n->length) &&
              cn_dict_set_number(d, name_of(name, prefix, "best"), n->best) &&
              cn_dict_set_whole(d, name_of(name, prefix, "num_bad_epochs"), n->bad) &&
              cn_dict_set_whole(d, name_of(name, prefix, "cooldown_counter"), n->cooling);
    for (int g = 0; g < s->n_groups && ok; g++) ok = cn_dict_set_number(d, base_name(name, prefix, g), s->base[g]);
    for (int i = 0; i < s->n_parts && ok; i++) ok = save(s->parts[i], d, part_prefix(name, prefix, i));
    return ok;
}

static cn__call enter_with(const cn_schedule *s, const cn_dict *dict, const char *who)
{
    if (!s && dict) cn__object_of(cn_dict_context(dict), s, &cn__schedule_type, who);
    cn__call call = cn__enter_object(s, &cn__schedule_type, who, true);
    if (!call.ctx || (cn__object_of(call.ctx, dict, &cn__dict_type, who) && !cn_failed(call.ctx))) return call;
    cn__leave(&call);
    return (cn__call){ NULL, false };
}

bool cn_schedule_save(cn_schedule *s, cn_dict *dict, const char *prefix)
{
    CN__CALL call = enter_with(s, dict, __func__);
    if (!call.ctx) return false;
    return save(s, dict, prefix ? prefix : "") ||
           cn__fail(s->object.ctx, CN_BAD_ARGUMENT,
                    "schedule_save: a name with its prefix must be shorter than %d bytes", NAME);
}

static bool same_kind(cn_schedule *s, const cn_dict *d, const char *prefix)
{
    char name[NAME];
    const char *kind = prefix ? cn_dict_text(d, name_of(name, prefix, "scheduler")) : NULL;
    if (!kind || strcmp(kind, s->pace->name) != 0)
        return cn__fail(s->object.ctx, CN_BAD_ARGUMENT, "schedule_load: \"%sscheduler\" must be \"%s\", got %s%s%s",
                        prefix ? prefix : "", s->pace->name, kind ? "\"" : "", kind ? kind : "nothing",
                        kind ? "\"" : "");
    return true;
}

/* Reads and checks the whole state; with `store` the schedule takes it over. A call with `store` after one without
   cannot fail. */
static bool load(cn_schedule *s, const cn_dict *d, const char *prefix, bool store)
{
    if (!same_kind(s, d, prefix)) return false;
    char name[NAME];
    cn__pace_state n = s->now;
    bool ok = cn_dict_whole(d, name_of(name, prefix, "last_epoch"), &n.at) &&
              cn_dict_whole(d, name_of(name, prefix, "T_cur"), &n.cur) &&
              cn_dict_whole(d, name_of(name, prefix, "T_i"), &n.length) &&
              cn_dict_number(d, name_of(name, prefix, "best"), &n.best) &&
              cn_dict_whole(d, name_of(name, prefix, "num_bad_epochs"), &n.bad) &&
              cn_dict_whole(d, name_of(name, prefix, "cooldown_counter"), &n.cooling);
    if (!ok) return cn__fail(s->object.ctx, CN_BAD_ARGUMENT, "schedule_load: the dict has no %s", name);
    if (n.at < -1 || n.cur < 0 || n.length < 0)
        return cn__fail(s->object.ctx, CN_BAD_ARGUMENT,
                        "schedule_load: %s: last_epoch must be ≥ -1, T_cur and T_i ≥ 0, got %lld, %lld and %lld",
                        s->pace->name, (long long)n.at, (long long)n.cur, (long long)n.length);
    for (int g = 0; g < s->n_groups; g++) {
        double base = s->base[g];
        if (!cn_dict_number(d, base_name(name, prefix, g), &base))
            return cn__fail(s->object.ctx, CN_BAD_ARGUMENT, "schedule_load: the dict has no %s", name);
        if (store) s->base[g] = base;
    }
    if (store) s->now = n;
    for (int i = 0; i < s->n_parts; i++)
        if (!load(s->parts[i], d, part_prefix(name, prefix, i), store)) return false;
    return true;
}

bool cn_schedule_load(cn_schedule *s, const cn_dict *dict, const char *prefix)
{
    CN__CALL call = enter_with(s, dict, __func__);
    if (!call.ctx) return false;
    prefix = prefix ? prefix : "";
    return load(s, dict, prefix, false) && load(s, dict, prefix, true);
}
