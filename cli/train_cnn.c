/* cairn train cnn: trains a convolutional network on images with labels. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct pictures {
    cn_dataset *parts[2]; /* training, held out */
    survey survey;
    cn_dims image; /* (channels,height,width) */
} pictures;

static cn_dataset *open_idx(const job *j, const char *images, const char *labels)
{
    cn_dataset *d = cn_dataset_idx(j->cn, images, labels);
    if (!d) return fail_in(j->cn), NULL;
    if (cn_dataset_field(d, 0).shape.n != 3)
        return fail("%s: not images: items must have a height and a width", images), NULL;
    if (cn_dataset_field(d, 1).shape.n != 0)
        return fail("%s: not labels: there must be one number for each image", labels), NULL;
    return d;
}

static int read_pictures(job *j, pictures *p)
{
    const settings *s = j->s;
    if (!given(s, "images") || !given(s, "labels")) return usage("images are needed: --images FILE --labels FILE");
    if (given(s, "test-images") != given(s, "test-labels"))
        return usage("--test-images and --test-labels need each other");
    cn_dataset *all = open_idx(j, text_of(s, "images"), text_of(s, "labels"));
    if (!all) return FAILED;
    p->image = cn_dataset_field(all, 0).shape;
    if (given(s, "test-images")) {
        p->parts[0] = all;
        p->parts[1] = open_idx(j, text_of(s, "test-images"), text_of(s, "test-labels"));
        if (!p->parts[1]) return FAILED;
        if (memcmp(p->image.v, cn_dataset_field(p->parts[1], 0).shape.v, 3 * sizeof(int64_t)))
            return fail("%s: the images must have the same size as those of %s", text_of(s, "test-images"),
                        text_of(s, "images"));
    } else if (hold_out(j, all, text_of(s, "images"), p->parts) != DONE) return FAILED;
    return survey_items(j->cn, p->parts[0], true, false, &p->survey) ? DONE : FAILED;
}

static bool describe(job *j, cn_dict *d)
{
    const pictures *p = j->user;
    return cn_dict_set_whole(d, "channels", p->image.v[0]) && cn_dict_set_whole(d, "height", p->image.v[1]) &&
           cn_dict_set_whole(d, "width", p->image.v[2]) && cn_dict_set_whole(d, "outputs", p->survey.classes);
}

static int make_parts(job *j, pictures *p)
{
    snprintf(j->name, sizeof j->name, "cnn-c%s-h%s", text_of(j->s, "channels"), text_of(j->s, "hidden"));
    for (char *c = j->name; *c; c++)
        if (*c == ',') *c = '-';
    j->model = j->resumed ? cnn_in(j->cn, j->resumed, j->s) : new_cnn(j->cn, j->s, p->image, p->survey.classes);
    if (!j->model) return cn_failed(j->cn) && !j->resumed ? fail_in(j->cn) : FAILED;
    j->unit = "images";
    j->baseline = class_entropy(&p->survey);
    j->baseline_label = "entropy of the classes";
    j->loss = class_loss;
    j->describe = describe;
    j->next = "eval %s --images OTHER-IMAGES --labels OTHER-LABELS";
    print_line(j, "images: %" PRId64 " of %" PRId64 "x%" PRId64 ", %" PRId64 " classes; %" PRId64 " are held out",
               cn_dataset_count(p->parts[0]), p->image.v[1], p->image.v[2], p->survey.classes,
               p->parts[1] ? cn_dataset_count(p->parts[1]) : 0);
    return lay_out_epochs(j, p->parts);
}

int train_cnn(settings *s)
{
    job j = { 0 };
    pictures p = { 0 };
    j.user = &p;
    int code = begin_job(&j, s);
    if (code == DONE) code = read_pictures(&j, &p);
    if (code == DONE) code = make_parts(&j, &p);
    if (code == DONE) code = open_folder(&j);
    if (code == DONE) code = run_job(&j);
    end_job(&j);
    free_survey(&p.survey);
    return code;
}
