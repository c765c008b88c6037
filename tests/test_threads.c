/* Two threads and one context. At the same time: no crash, and an error in the end. One after the other, with a lock
   between them: no error. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "cairn/cairn.h"
#include "support/check.h"

#if defined(__SANITIZE_THREAD__)
#define RACES_ARE_SEEN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RACES_ARE_SEEN 1
#endif
#endif

typedef struct shared {
    cn_ctx *cn;
    cn_module *m;
    cn_optim *opt;
    cn_dict *dict;
    cn_tensor *x;
    atomic_int ready;
    int rounds;
    bool clears; /* errors, now and then: after one, less is done */
    pthread_mutex_t lock;
    double sum;
} shared;

/* Operators, scopes, reads, modules, objects: whatever a program does. Any of it may fail. */
static void work(shared *s, int i)
{
    cn_scope scope = cn_scope_begin(s->cn);
    cn_tensor *y = cn_forward(s->m, s->x);
    cn_tensor *loss = cn_mean(cn_square(cn_sub_s(y, 1)), CN_ALL, false);
    cn_item(loss);
    if (i % 3 == 0) cn_backward(loss);
    if (i % 5 == 0) cn_step(s->opt);
    if (i % 4 == 0) cn_module_save(s->m, s->dict, "");
    if (i % 7 == 0) cn_module_free(cn_nn_linear(s->cn, 3, 3, NULL));
    if (i % 2) cn_release(cn_keep(cn_add_s(s->x, 1)));
    float all[8];
    cn_read(cn_sum(s->x, CN_DIMS(0), false), all, sizeof all);
    cn_scope_end(s->cn, scope);
}

static void *hammer(void *user)
{
    shared *s = user;
    atomic_fetch_add(&s->ready, 1);
    while (atomic_load(&s->ready) < 2) continue;
    for (int i = 0; i < s->rounds; i++) {
        work(s, i);
        if (s->clears && i % 16 == 0) cn_error_clear(s->cn);
        if (!s->clears && cn_failed(s->cn)) break;
    }
    return NULL;
}

static shared make(void)
{
    shared s = { .cn = cn_open(&(cn_desc){ .device = "cpu", .threads = 1 }),
                 .rounds = test_is_quick() ? 300 : 1500,
                 .clears = true };
    s.m = cn_nn_sequential(s.cn, cn_nn_linear(s.cn, 8, 8, NULL), cn_nn_relu(s.cn));
    s.opt = cn_sgd(s.cn, cn_parameters(s.m), NULL);
    s.dict = cn_dict_new(s.cn);
    s.x = cn_keep(cn_randn(s.cn, CN_F32, CN_DIMS(4, 8)));
    pthread_mutex_init(&s.lock, NULL);
    return s;
}

static void at_the_same_time(void)
{
    check_group("at the same time");
    for (int run = 0; run < (test_is_quick() ? 2 : 6); run++) {
        shared s = make();
        pthread_t other;
        if (!check(pthread_create(&other, NULL, hammer, &s) == 0, "no thread")) return;
        hammer(&s);
        pthread_join(other, NULL);
        cn_error_clear(s.cn);
        s.clears = false;
        s.rounds = 20000; /* of a second or more: a single core changes threads meanwhile */
        int tries = 0;
        for (; tries < 20 && !cn_failed(s.cn); tries++) {
            atomic_store(&s.ready, 0);
            if (pthread_create(&other, NULL, hammer, &s)) break;
            hammer(&s);
            pthread_join(other, NULL);
        }
        check(cn_failed(s.cn), "two threads at once are an error, after %d tries", tries);
        cn_error_clear(s.cn);
        check(cn_item(cn_sum(cn_ones(s.cn, CN_F32, CN_DIMS(3)), CN_ALL, false)) == 3, "one alone computes: %s",
              cn_error(s.cn));
        cn_close(s.cn);
        pthread_mutex_destroy(&s.lock);
    }
}

static void *in_turn(void *user)
{
    shared *s = user;
    for (int i = 0; i < s->rounds / 10; i++) {
        pthread_mutex_lock(&s->lock);
        work(s, i);
        s->sum += 1;
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

static void one_after_the_other(void)
{
    check_group("in turn");
    shared s = make();
    pthread_t other[3];
    int n = 0;
    while (n < 3 && pthread_create(&other[n], NULL, in_turn, &s) == 0) n++;
    in_turn(&s);
    for (int i = 0; i < n; i++) pthread_join(other[i], NULL);
    check(!cn_failed(s.cn) && s.sum == (n + 1) * (s.rounds / 10), "a context passed on: %s", cn_error(s.cn));
    cn_close(s.cn);
    pthread_mutex_destroy(&s.lock);
}

int main(void)
{
    one_after_the_other();
#ifdef RACES_ARE_SEEN
    skip(); /* the misuse itself is a race */
    (void)at_the_same_time;
#else
    at_the_same_time();
#endif
    return finish();
}
