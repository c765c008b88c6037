/* A room of the page: a model that is trained step by step, on public headers alone. room.c has what the three rooms
   share; write.c, see.c and bend.c have a room each.

   A function returns NULL, false or NaN after an error; room_error has the message, and clears it. */
#ifndef CAIRN_WEB_ROOM_H
#define CAIRN_WEB_ROOM_H

#include <cairn/cairn.h>

typedef struct room room;
struct room {
    cn_ctx *cn;
    cn_module *net;
    cn_optim *opt;
    cn_loader *train, *held_out;           /* held_out may be NULL */
    cn_tensor *(*loss)(room *r);           /* of the next batch */
    bool (*describe)(room *r, cn_dict *d); /* what a file has besides tensors */
    double rate;
    int64_t step, warm; /* the rate grows over so many steps */
    int64_t settle;     /* and falls to a tenth until this step; 0: it stays */
    char message[256];  /* of room_fail; "": none */
    char word[1024];    /* a text that was returned last */

    /* write */
    cn_tokenizer *tokenizer;
    cn_sampler *sampler;
    cn_decoder decoder;
    int32_t *tokens;
    int64_t n_tokens;

    /* see: images of side x side bytes; those of the test follow the first n_train */
    const uint8_t *images, *labels;
    int64_t side, n_train;

    /* bend */
    cn_tensor *points, *classes;
};

/* For the files of the rooms. */
bool room_begin(room *r, double weight_decay);  /* makes the optimizer of the new net */
bool room_resume(room *r, const cn_dict *file); /* loads the net, and the optimizer if the file has its state */
bool room_next_batch(room *r, cn_loader *l, cn_batch *b);
bool room_fail(room *r, const char *message); /* returns false */

/* For the page. Paths are those of the module's own file system. */
room *room_open(const char *device, int threads, double seed);
void room_close(room *r);
const char *room_error(room *r);        /* "": none */
const char *room_device(room *r);       /* "cpu", or the name of the GPU */
double room_number(room *r, int which); /* see room.c */
bool room_set_rate(room *r, double rate);
double room_step(room *r, int n);                     /* trains n steps; the loss of the last one */
bool room_save(room *r, const char *path, int state); /* state: with the optimizer, to go on later */

bool room_write_new(room *r, const char *text, int bytes, int vocab, int layers, int heads, int width, int context,
                    int batch); /* vocab 0: tokens are letters */
bool room_write_load(room *r, const char *path, const char *tokenizer, const char *text, int bytes, int batch);
double room_write_held_out(room *r); /* the loss on the last tenth of the text; NaN: it is too short */
bool room_write_begin(room *r, const char *prompt, int bytes, double temperature, double seed);
const char *room_write_next(room *r); /* the next piece of text, may be "" */
int room_write_expect(room *r, const char *prompt, int bytes, float *probabilities, int room_for);
const char *room_write_token(room *r, int id);

bool room_see_new(room *r, const uint8_t *images, const uint8_t *labels, int train, int test, int side, int batch);
bool room_see_load(room *r, const char *path); /* after room_see_new */
double room_see_accuracy(room *r);
bool room_see_read(room *r, const uint8_t *image, float *probabilities, float *seen); /* (10) and (8,side,side) */
bool room_see_filters(room *r, float *weights);                                       /* (8,3,3) */

bool room_bend_new(room *r, const float *points, const uint8_t *classes, int n, const int *widths, int layers,
                   int activation);
bool room_bend_load(room *r, const char *path);                    /* after room_bend_new */
bool room_bend_field(room *r, float *out, int side, double reach); /* class 1 on a grid from -reach to reach */

#endif
