/* What the training of MLPs and CNNs shares: a held-out part, and epochs counted in steps. */
#include "cli.h"

int hold_out(const job *j, cn_dataset *all, const char *path, cn_dataset *parts[2])
{
    const double val = number_of(j->s, "val");
    parts[0] = all, parts[1] = NULL;
    if (!(val > 0)) return DONE;
    if (!cn_dataset_split(all, CN_LIST(double, 1 - val, val), (uint64_t)whole_of(j->s, "seed"), parts))
        return fail_in(j->cn);
    if (cn_dataset_count(parts[0]) && cn_dataset_count(parts[1])) return DONE;
    return fail("%s: %" PRId64 " items are too few for --val %g", path, cn_dataset_count(all), val);
}

static bool measure(job *j, metric *m, int *n)
{
    score s;
    if (!score_all(j->model, j->held_out, j->loss, &s)) return false;
    m[0] = (metric){ "loss", s.loss };
    m[1] = j->loss == class_loss ? (metric){ "accuracy", s.accuracy } : (metric){ "R2", 1 - s.loss };
    *n = 2;
    return true;
}

/* Training skips an incomplete batch, which would weigh as much as a whole one. */
static cn_loader *new_loader(const job *j, cn_dataset *d, bool train)
{
    const int64_t batch = whole_of(j->s, "batch");
    cn_loader_desc desc = { .batch = batch,
                            .shuffle = train,
                            .drop_last = train && cn_dataset_count(d) >= batch,
                            .workers = train ? (int)whole_of(j->s, "workers") : 0,
                            .seed = (uint64_t)whole_of(j->s, "seed") + 1 };
    return cn_loader_new(d, &desc);
}

int lay_out_epochs(job *j, cn_dataset *parts[2])
{
    j->train = new_loader(j, parts[0], true);
    if (parts[1]) {
        j->held_out = new_loader(j, parts[1], false);
        j->measure = measure;
    }
    if (cn_failed(j->cn)) return fail_in(j->cn);
    const int64_t sum = whole_of(j->s, "accumulate"), batches = cn_loader_batches(j->train);
    const int64_t an_epoch = batches > sum ? batches / sum : 1, asked = whole_of(j->s, "eval-every");
    j->steps = whole_of(j->s, "epochs") * an_epoch;
    j->epoch_steps = an_epoch;
    j->eval_every = asked ? asked : an_epoch;
    j->amount = (double)(whole_of(j->s, "batch") * sum);
    return DONE;
}
