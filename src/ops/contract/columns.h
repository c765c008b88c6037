/* columns.h: convolution by columns. The pixels that each tap of the kernel sees are copied into a matrix of columns,
   (channels·taps, positions), a chunk of positions at a time, and this matrix is multiplied by the weight.

   If every pixel is seen once by one tap (direct), the image itself is this matrix. The work is cut into units that
   write to different memory. Only sizes decide how it is cut. */
#ifndef CN_OPS_CONTRACT_COLUMNS_H
#define CN_OPS_CONTRACT_COLUMNS_H

#include "cpu/gemm.h"
#include "ops/contract/contract.h"

enum { CN__CONV_SHARES = 16 }; /* about how many units the work is cut into */

typedef struct cn__conv {
    const cn_kernel *k;
    const cn__conv_attrs *a;
    cn__conv_sizes s;
    char *x, *weight, *y;
    bool f64, direct;                  /* direct: the image is its own columns */
    const cn__gemm_kernel *gemm;
    int64_t size;                      /* bytes of an element */
    int64_t volume, positions, pixels; /* taps of the kernel, positions of y, pixels of x */
    int64_t row;                       /* elements of a row of a group's weight: c·volume */
    int64_t chunk, chunks;             /* positions of a chunk, number of chunks */
    int64_t block, blocks;             /* channels of x of a block, number of blocks */
    size_t columns, packs;             /* bytes of scratch a thread: for columns, and for products */
    size_t once;                       /* more bytes for a product on all threads */
    bool in_turn;                      /* units run one after the other, each product on all threads */
} cn__conv;

/* The product for `channels` channels and `len` positions, without pointers: cn__gemm_scratch reads none. */
typedef cn__gemm (*cn__conv_product)(const cn__conv *c, int64_t channels, int64_t len);
typedef void (*cn__conv_unit)(const cn__conv *c, int64_t index, int thread);

/* Cuts the channels into about `blocks` blocks, none too small, and the positions into chunks. */
cn__conv cn__conv_cut(const cn_kernel *k, const cn_array *x, const cn_array *weight, const cn_array *y, int64_t blocks,
                      cn__conv_product product);
size_t cn__conv_scratch(const cn__conv *c, int threads);

/* Runs all units, each of about `work` multiplications: units in parallel, or one by one with parallel products. */
void cn__conv_run(const cn__conv *c, int64_t units, double work, cn__conv_unit unit);
void cn__conv_multiply(const cn__conv *c, const cn__gemm *g, int thread);

/* Returns the columns of positions [at, at + len) of some channels: in this thread's scratch, or the image itself. */
char *cn__conv_gather(const cn__conv *c, char *image, int64_t channels, int64_t at, int64_t len, int thread);
/* Returns where columns are to be computed; cn__conv_scatter then adds them to the pixels that they belong to. */
char *cn__conv_columns(const cn__conv *c, char *image, int64_t at, int thread);
void cn__conv_scatter(const cn__conv *c, char *image, int64_t channels, int64_t at, int64_t len, int thread);

/* Convolution whose groups have one output channel (depthwise). Columns would be read only once, so each tap is applied
   to the lines of the image instead. thin_y computes y from position `at` on. thin_x and thin_w add to x and to the
   weight, from a channel on. */
static inline bool cn__conv_thin(const cn__conv *c) { return c->s.o == 1; }
void cn__conv_thin_y(const cn__conv *c, void *y, const void *image, const void *weight, int64_t at, int64_t len);
void cn__conv_thin_x(const cn__conv *c, const void *y, void *image, const void *weight, int64_t channels);
void cn__conv_thin_w(const cn__conv *c, const void *y, const void *image, void *weight, int64_t channels);

/* The stride between rows of a chunk's columns. */
static inline int64_t cn__conv_column_row(const cn__conv *c, int64_t len) { return c->direct ? c->positions : len; }

/* x of image n, from a channel of a group on; y of image n and a group, from a position on. */
static inline char *cn__conv_x(const cn__conv *c, int64_t n, int64_t group, int64_t channel)
{
    return c->x + ((n * c->s.groups + group) * c->s.c + channel) * c->pixels * c->size;
}
static inline char *cn__conv_y(const cn__conv *c, int64_t n, int64_t group, int64_t at)
{
    return c->y + ((n * c->s.groups + group) * c->s.o * c->positions + at) * c->size;
}

#endif
