/* cairn train mlp: trains a network of linear layers on a table of numbers. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct table {
    cn_dataset *all, *parts[2]; /* training, held out */
    survey survey;              /* of the training part */
    int64_t inputs, outputs;
    bool classes;
} table;

static int read_table(job *j, table *t)
{
    char **paths;
    const int n = items_of(j->s, "data", &paths);
    if (n != 1) return usage("one CSV file is needed, got %d: --data FILE.csv", n);
    if (!given(j->s, "target")) return usage("a column to predict is needed: --target COLUMN");
    t->classes = flag_of(j->s, "classes");
    t->all = csv_dataset(j->cn, j->s, paths[0]);
    if (!t->all) return fail_in(j->cn);
    t->inputs = cn_dataset_field(t->all, 0).shape.v[0];
    t->outputs = t->classes ? cn_dataset_classes(t->all) : 1;
    if (hold_out(j, t->all, paths[0], t->parts) != DONE) return FAILED;
    return survey_items(j->cn, t->parts[0], t->classes, true, &t->survey) ? DONE : FAILED;
}

/* The network computes with normalised columns: mean 0, standard deviation 1. */
static bool set_units(job *j, const table *t)
{
    cn_tensor *mean = cn_from(j->cn, CN_F64, CN_DIMS(t->inputs), t->survey.mean);
    cn_tensor *std = cn_from(j->cn, CN_F64, CN_DIMS(t->inputs), t->survey.std);
    bool ok =
        cn_assign(mlp_buffer(j->model, false, "mean"), mean) && cn_assign(mlp_buffer(j->model, false, "std"), std);
    if (!t->classes)
        ok = ok &&
             cn_assign(mlp_buffer(j->model, true, "mean"), cn_full(j->cn, CN_F64, CN_DIMS(1), t->survey.y_mean)) &&
             cn_assign(mlp_buffer(j->model, true, "std"), cn_full(j->cn, CN_F64, CN_DIMS(1), t->survey.y_std));
    return ok && cn_eval_all(j->cn);
}

static bool describe(job *j, cn_dict *d)
{
    const table *t = j->user;
    bool ok = cn_dict_set_whole(d, "inputs", t->inputs) && cn_dict_set_whole(d, "outputs", t->outputs);
    for (int i = 0; ok && t->classes && i < t->outputs; i++) {
        char name[32];
        snprintf(name, sizeof name, "class/%d", i);
        ok = cn_dict_set_text(d, name, cn_dataset_class(t->all, i));
    }
    return ok;
}

static int make_parts(job *j, table *t)
{
    snprintf(j->name, sizeof j->name, "mlp-h%s", text_of(j->s, "hidden"));
    for (char *c = j->name; *c; c++)
        if (*c == ',') *c = '-';
    if (j->resumed) {
        j->model = mlp_in(j->cn, j->resumed, j->s);
        if (!j->model) return FAILED;
    } else j->model = new_mlp(j->cn, j->s, t->inputs, t->outputs);
    if (!j->model || !set_units(j, t)) return fail_in(j->cn);
    j->unit = "rows";
    j->baseline = t->classes ? class_entropy(&t->survey) : 1;
    j->baseline_label = t->classes ? "entropy of the classes" : "always the mean";
    j->loss = t->classes ? class_loss : value_loss;
    j->describe = describe;
    j->next = "eval %s --data OTHER.csv";
    print_line(j, "table: %" PRId64 " rows, %" PRId64 " columns in, %" PRId64 " %s out; %" PRId64 " rows are held out",
               cn_dataset_count(t->all), t->inputs, t->outputs, t->classes ? "classes" : "number",
               t->parts[1] ? cn_dataset_count(t->parts[1]) : 0);
    return lay_out_epochs(j, t->parts);
}

int train_mlp(settings *s)
{
    job j = { 0 };
    table t = { 0 };
    j.user = &t;
    int code = begin_job(&j, s);
    if (code == DONE) code = read_table(&j, &t);
    if (code == DONE) code = make_parts(&j, &t);
    if (code == DONE) code = open_folder(&j);
    if (code == DONE) code = run_job(&j);
    end_job(&j);
    free_survey(&t.survey);
    return code;
}
