/* look/chart.h: a line chart. chart.c computes its ranges and positions; svg.c and raster.c draw it. */
#ifndef CN_LOOK_CHART_H
#define CN_LOOK_CHART_H

#include "cairn/look.h"
#include "core/object.h"

enum { CN__MOST_TICKS = 24 };

typedef struct cn__scale {
    double low, high;
    bool log;
    int n;
    double tick[CN__MOST_TICKS];
    char label[CN__MOST_TICKS][40];
} cn__scale;

typedef struct cn__chart {
    const cn_series *series;
    int n;
    cn_curve_desc desc;
    cn__scale x, y;
} cn__chart;

typedef struct cn__spot {
    double x, y;
} cn__spot;

/* Checks the arguments and finds the ranges. Errors begin with `who`. */
bool cn__chart_open(cn_ctx *ctx, const char *who, const cn_series *series, int n, const cn_curve_desc *desc,
                    cn__chart *c);
void cn__chart_ticks(cn__scale *a, int about);                   /* about so many, at round numbers */
bool cn__chart_size(cn_ctx *ctx, const char *who, cn__chart *c); /* sets the default size of a picture, and checks it */
double cn__scale_at(const cn__scale *a, double value);           /* 0: low, 1: high */
unsigned cn__chart_color(const cn__chart *c, int series);

/* Walks the points of a series in order, raw or smoothed. next returns false after the last point. A gap is NaN. */
typedef struct cn__walker {
    const cn__chart *chart;
    const cn_series *series;
    double smooth;
    int64_t i;
    double mean, weight;
} cn__walker;
cn__walker cn__chart_walk(const cn__chart *c, int series, bool smoothed);
bool cn__walker_next(cn__walker *w, cn__spot *p);

/* ---- the canvas: pixels, y downwards ---- */

typedef struct cn__stroke {
    unsigned color;
    double width, opacity, dash; /* dash: length of dashes and gaps; 0: none */
} cn__stroke;

typedef enum cn__anchor { CN__LEFT, CN__MIDDLE, CN__RIGHT } cn__anchor;
typedef struct cn__label {
    const char *text;
    double x, y, size; /* x, y: beginning, middle or end of the baseline */
    unsigned color;
    cn__anchor anchor;
    bool bold, upwards, halo; /* halo: with a white outline, above lines */
} cn__label;

typedef struct cn__canvas cn__canvas;
struct cn__canvas {
    void (*line)(cn__canvas *c, const cn__stroke *s, const cn__spot *p, size_t n); /* one point: a dot */
    void (*text)(cn__canvas *c, const cn__label *l);
    double (*text_width)(const char *text, double size, bool bold);
};

bool cn__chart_draw(cn_ctx *ctx, cn__chart *c, cn__canvas *on);

#endif
