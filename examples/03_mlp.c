/* 03: a network without modules. It learns to tell two interleaved half moons apart, with layers of 2-16-16-2 and Adam,
   and prints a picture of what it learned.

   Run it:  build/example_03_mlp [steps] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cairn/cairn.h"

enum { POINTS = 256, LAYERS = 3, PARAMS = 2 * LAYERS };
static const int64_t WIDTH[LAYERS + 1] = { 2, 16, 16, 2 };

typedef struct mlp {
    cn_tensor *p[PARAMS], *m[PARAMS], *v[PARAMS]; /* parameters, and Adam's two running means */
} mlp;

static mlp mlp_new(cn_ctx *cn)
{
    mlp net;
    for (int l = 0; l < LAYERS; l++) {
        net.p[2 * l] =
            cn_param(cn_mul_s(cn_randn(cn, CN_F32, CN_DIMS(WIDTH[l + 1], WIDTH[l])), sqrt(2.0 / (double)WIDTH[l])));
        net.p[2 * l + 1] = cn_param(cn_zeros(cn, CN_F32, CN_DIMS(WIDTH[l + 1])));
    }
    for (int i = 0; i < PARAMS; i++) {
        net.m[i] = cn_keep(cn_zeros_like(net.p[i]));
        net.v[i] = cn_keep(cn_zeros_like(net.p[i]));
    }
    return net;
}

/* (n, 2) points -> (n, 2) scores */
static cn_tensor *forward(const mlp *net, cn_tensor *x)
{
    for (int l = 0; l < LAYERS; l++) {
        x = cn_linear(x, net->p[2 * l], net->p[2 * l + 1]);
        if (l + 1 < LAYERS) x = cn_relu(x);
    }
    return x;
}

static void half_moons(cn_ctx *cn, cn_tensor **x, cn_tensor **y)
{
    float point[POINTS][2];
    int64_t moon[POINTS];
    double noise[POINTS * 2];
    cn_scope s = cn_scope_begin(cn);
    cn_read_f64(cn_randn(cn, CN_F32, CN_DIMS(POINTS, 2)), noise, POINTS * 2);
    cn_scope_end(cn, s);
    for (int i = 0; i < POINTS; i++) {
        double t = 3.14159265 * (i / 2) / (POINTS / 2 - 1);
        moon[i] = i % 2;
        point[i][0] = (float)((i % 2 ? 1 - cos(t) : cos(t)) + 0.1 * noise[2 * i]);
        point[i][1] = (float)((i % 2 ? 0.5 - sin(t) : sin(t)) + 0.1 * noise[2 * i + 1]);
    }
    *x = cn_keep(cn_from(cn, CN_F32, CN_DIMS(POINTS, 2), point));
    *y = cn_keep(cn_from(cn, CN_I64, CN_DIMS(POINTS), moon));
}

/* Prints the plane from (-1.5, -1) to (2.5, 1.5): the network's answer at each place, and the points. */
static void picture(cn_ctx *cn, const mlp *net, cn_tensor *x, cn_tensor *y)
{
    enum { ROWS = 22, COLS = 64 };
    static float grid[ROWS * COLS][2], points[POINTS][2];
    static double side[ROWS * COLS], moon[POINTS];
    static char canvas[ROWS][COLS + 1];
    for (int i = 0; i < ROWS * COLS; i++) {
        grid[i][0] = -1.5f + 4.0f * (float)(i % COLS) / (COLS - 1);
        grid[i][1] = 1.5f - 2.5f * (float)(i / COLS) / (ROWS - 1);
    }
    cn_scope s = cn_scope_begin(cn);
    cn_tensor *scores = forward(net, cn_from(cn, CN_F32, CN_DIMS(ROWS * COLS, 2), grid));
    cn_read_f64(cn_argmax(scores, CN_DIMS(1), false), side, ROWS * COLS);
    cn_read(x, points, sizeof points);
    cn_read_f64(y, moon, POINTS);
    cn_scope_end(cn, s);
    for (int i = 0; i < ROWS * COLS; i++) canvas[i / COLS][i % COLS] = side[i] > 0 ? '.' : ' ';
    for (int i = 0; i < POINTS; i++) {
        int c = (int)((points[i][0] + 1.5f) / 4.0f * (COLS - 1) + 0.5f),
            r = (int)((1.5f - points[i][1]) / 2.5f * (ROWS - 1) + 0.5f);
        if (r >= 0 && r < ROWS && c >= 0 && c < COLS) canvas[r][c] = moon[i] > 0 ? '#' : 'o';
    }
    for (int r = 0; r < ROWS; r++) printf("    %s\n", canvas[r]);
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 600;
    cn_ctx *cn = cn_open(&(cn_desc){ .seed = 1 });
    mlp net = mlp_new(cn);
    cn_tensor *x, *y;
    half_moons(cn, &x, &y);
    double accuracy = 0;
    for (int step = 1; step <= steps; step++) {
        cn_scope s = cn_scope_begin(cn);
        cn_tensor *scores = forward(&net, x), *loss = cn_cross_entropy(scores, y, NULL);
        cn_tensor *right = cn_mean(cn_cast(cn_eq(cn_argmax(scores, CN_DIMS(1), false), y), CN_F32), CN_ALL, false);
        cn_backward(loss);
        cn_adam_step(net.p, net.m, net.v, PARAMS, &(cn_adam_step_desc){ .lr = 0.01, .step = step });
        for (int i = 0; i < PARAMS; i++) cn_zero_grad(net.p[i]);
        cn_eval_all(cn);
        if (step == 1 || step % 100 == 0)
            printf("step %4d  loss %.4f  accuracy %5.1f %%\n", step, cn_item(loss), 100 * cn_item(right));
        accuracy = cn_item(right);
        cn_scope_end(cn, s);
    }
    printf("\nThe plane as the network divides it: o and # are the points; dots are where it answers #.\n\n");
    picture(cn, &net, x, y);
    cn_counters c = cn_count(cn);
    printf("\n%lld plans built, %lld times a plan was found in the cache; %lld kernels for %lld operations.\n",
           (long long)c.plan_misses, (long long)c.plan_hits, (long long)c.kernels, (long long)c.nodes);
    if (cn_failed(cn)) printf("error: %s\n", cn_error(cn));
    bool ok = !cn_failed(cn) && (steps < 300 || accuracy > 0.97);
    cn_close(cn);
    return !ok;
}
