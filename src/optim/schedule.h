/* optim/schedule.h: the parts of a schedule: the formula for a group's next lr, and the state it needs. */
#ifndef CN_OPTIM_SCHEDULE_H
#define CN_OPTIM_SCHEDULE_H

#include "cairn/schedule.h"
#include "optim/optim.h"

/* The formula of a kind of schedule. */
typedef struct cn__pace {
    const char *name;
    double (*lr)(const cn_schedule *s, int group);    /* the lr of step now.at; the group still has the lr before it */
    double (*start)(const cn_schedule *s, int group); /* the lr of step 0, from the initial lr; NULL: lr does it */
    double (*momentum)(const cn_schedule *s, int group); /* NULL: the momentum does not change */
    bool (*advance)(cn_schedule *s); /* called before lr at every step; may be NULL; false: an error */
    bool (*step)(cn_schedule *s);    /* in place of all these, for schedules made of others */
} cn__pace;

typedef struct cn__pace_state {
    int64_t at;          /* PyTorch's last_epoch */
    int64_t cur, length; /* restarts: PyTorch's T_cur, T_i */
    double best;         /* plateau: the best metric so far */
    int64_t bad;         /* plateau: steps since then */
    int64_t cooling;     /* plateau: steps of the cooldown that are left */
} cn__pace_state;

struct cn_schedule {
    cn__object object;
    cn_optim *opt;
    const cn__pace *pace;
    cn__pace_state now, before; /* before: undoes a step that fails */
    bool first;                 /* the present step is the first, which the maker takes */
    int n_groups;
    double *base;        /* (3, n_groups): initial lrs; then the lrs and momenta before the present step */
    cn_schedule **parts; /* the schedules a chain or sequence is made of; adopted */
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
cn_schedule *
cn__schedule_begin(cn_schedule *s); /* takes the first step, which sets the lr; NULL: an error, s is freed */
bool cn__schedule_milestones(cn_schedule *s, const int64_t *milestones, int n); /* copies them */
/* One step. A step that fails is not undone here. first: this is the maker's step. */
bool cn__pace_step(cn_schedule *s, bool first);
extern const cn__pace cn__plateau;

static inline double cn__lr_now(const cn_schedule *s, int group) { return cn__optim_group(s->opt, group)->h.lr; }

extern const cn__object_type cn__schedule_type;

#endif
