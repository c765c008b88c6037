/* optim/schedule.h: what a schedule is: a formula for a group's next lr, and what it remembers. */
#ifndef CN_OPTIM_SCHEDULE_H
#define CN_OPTIM_SCHEDULE_H

#include "cairn/schedule.h"
#include "optim/optim.h"

typedef struct cn__pace {
    const char *name;
    double (*lr)(const cn_schedule *s, int group);       /* for now.at; the group's lr is that before */
    double (*start)(const cn_schedule *s, int group);    /* in closed form for now.at = 0; NULL: lr */
    double (*momentum)(const cn_schedule *s, int group); /* NULL: left alone */
    bool (*advance)(cn_schedule *s);                     /* what else a step does before; false: an error stands */
    bool (*step)(cn_schedule *s);                        /* instead of all of these, for those that have parts */
} cn__pace;

typedef struct cn__pace_state {
    int64_t at;          /* PyTorch's last_epoch */
    int64_t cur, length; /* restarts: PyTorch's T_cur, T_i */
    double best;         /* plateau */
    int64_t bad, cooling;
} cn__pace_state;

struct cn_schedule {
    cn__object object;
    cn_optim *opt;
    const cn__pace *pace;
    cn__pace_state now, before; /* before: to undo a step that fails */
    bool first;                 /* this step is the one that making it takes */
    int n_groups;
    double *base; /* a group: its initial lr; then lr and momentum before the step under way */
    cn_schedule **parts;
    int n_parts;
    int64_t *milestones;
    int n_milestones;
    union {
        struct {
            double gamma;
            int64_t size;
        } decay;
        struct {
            double factor, power;
            int64_t total;
        } few;
        cn_schedule_linear_desc linear;
        struct {
            int64_t length, mult;
            double eta_min;
        } cosine;
        cn_schedule_one_cycle_desc one;
        cn_schedule_cyclic_desc cyclic;
        cn_schedule_plateau_desc plateau;
        struct {
            cn_schedule_fn fn;
            void *user;
        } call;
    } u;
};

cn_schedule *cn__schedule_new(cn_optim *opt, const cn__pace *pace);
cn_schedule *cn__schedule_begin(cn_schedule *s); /* takes the first step; NULL: an error stands, and s is freed */
bool cn__schedule_milestones(cn_schedule *s, const int64_t *milestones, int n); /* copies them */
/* One step, without undoing. first: as the one that making it takes. */
bool cn__pace_step(cn_schedule *s, bool first);
extern const cn__pace cn__plateau;

static inline double cn__lr_now(const cn_schedule *s, int group) { return cn__optim_group(s->opt, group)->h.lr; }

#endif
