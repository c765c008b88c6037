/* Linear algebra, in f64, by the plainest algorithms: elimination, Householder's reflections, Jacobi's rotations. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/linalg/linalg.h"
#include "support/reference.h"

static double *room(int64_t n)
{
    double *v = calloc((size_t)n + 1, sizeof *v);
    if (!v) abort();
    return v;
}

static double *copy_of(const double *v, int64_t n)
{
    double *c = room(n);
    memcpy(c, v, (size_t)n * sizeof *c);
    return c;
}

static int64_t rows_of(const ref_tensor *x) { return x->shape[x->ndim - 2]; }
static int64_t cols_of(const ref_tensor *x) { return x->shape[x->ndim - 1]; }
static int64_t count_of(const ref_tensor *x)
{
    int64_t n = 1;
    for (int d = 0; d < x->ndim - 2; d++) n *= x->shape[d];
    return n;
}

/* c (m, n) = a (m, k) · b (k, n) */
static void multiply(const double *a, const double *b, double *c, int64_t m, int64_t k, int64_t n)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            c[i * n + j] = 0;
            for (int64_t p = 0; p < k; p++) c[i * n + j] += a[i * k + p] * b[p * n + j];
        }
}

static void transpose(const double *a, double *t, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) t[j * m + i] = a[i * n + j];
}

/* ---- elimination ---- */

/* Gauss and Jordan: a becomes I, b (n, k) becomes a⁻¹·b. Returns the determinant. */
static double eliminate(double *a, double *b, int64_t n, int64_t k)
{
    double det = 1;
    for (int64_t c = 0; c < n; c++) {
        int64_t best = c;
        for (int64_t r = c; r < n; r++)
            if (fabs(a[r * n + c]) > fabs(a[best * n + c])) best = r;
        if (best != c) det = -det;
        for (int64_t j = 0; j < n + k; j++) {
            double *x = j < n ? &a[c * n + j] : &b[c * k + j - n], *y = j < n ? &a[best * n + j] : &b[best * k + j - n];
            double t = *x;
            *x = *y;
            *y = t;
        }
        const double pivot = a[c * n + c];
        det *= pivot;
        for (int64_t j = 0; j < n; j++) a[c * n + j] /= pivot;
        for (int64_t j = 0; j < k; j++) b[c * k + j] /= pivot;
        for (int64_t r = 0; r < n; r++) {
            const double x = a[r * n + c];
            if (r == c) continue;
            for (int64_t j = 0; j < n; j++) a[r * n + j] -= x * a[c * n + j];
            for (int64_t j = 0; j < k; j++) b[r * k + j] -= x * b[c * k + j];
        }
    }
    return det;
}

static double det_of(const double *a, int64_t n)
{
    double *copy = copy_of(a, n * n), det = eliminate(copy, copy, n, 0);
    free(copy);
    return det;
}

static void invert(const double *a, double *to, int64_t n)
{
    double *copy = copy_of(a, n * n);
    for (int64_t i = 0; i < n * n; i++) to[i] = i / n == i % n;
    eliminate(copy, to, n, n);
    free(copy);
}

static void solve(const ref_call *c)
{
    const int64_t n = rows_of(&c->in[0]), k = cols_of(&c->in[1]);
    for (int64_t m = 0; m < count_of(&c->in[0]); m++) {
        double *a = copy_of(c->in[0].v + m * n * n, n * n), *x = c->out[0].v + m * n * k;
        memcpy(x, c->in[1].v + m * n * k, (size_t)(n * k) * sizeof *x);
        eliminate(a, x, n, k);
        free(a);
    }
}

static void solve_triangular(const ref_call *c)
{
    const cn__triangular_attrs *t = c->attrs;
    const int64_t n = rows_of(&c->in[0]);
    double *a = copy_of(c->in[0].v, c->in[0].numel);
    for (int64_t i = 0; i < c->in[0].numel; i++) {
        const int64_t row = i / n % n, col = i % n;
        if (t->upper ? col < row : col > row) a[i] = 0;
        if (t->unit && row == col) a[i] = 1;
    }
    ref_tensor in[2] = { c->in[0], c->in[1] };
    in[0].v = a;
    solve(&(ref_call){ 2, 1, in, c->out, NULL, NULL });
    free(a);
}

static void inv(const ref_call *c)
{
    const int64_t n = rows_of(&c->in[0]);
    for (int64_t m = 0; m < count_of(&c->in[0]); m++) invert(c->in[0].v + m * n * n, c->out[0].v + m * n * n, n);
}

static void det(const ref_call *c)
{
    const int64_t n = rows_of(&c->in[0]);
    for (int64_t m = 0; m < count_of(&c->in[0]); m++) c->out[0].v[m] = det_of(c->in[0].v + m * n * n, n);
}

static void slogdet(const ref_call *c)
{
    const int64_t n = rows_of(&c->in[0]);
    for (int64_t m = 0; m < count_of(&c->in[0]); m++) {
        const double d = det_of(c->in[0].v + m * n * n, n);
        c->out[0].v[m] = d > 0 ? 1 : d < 0 ? -1 : 0;
        c->out[1].v[m] = log(fabs(d));
    }
}

/* By their definition: determinants without a row and a column. */
static void cofactor(const ref_call *c)
{
    const int64_t n = rows_of(&c->in[0]);
    double *minor = room(n * n);
    for (int64_t at = 0; at < c->in[0].numel; at++) {
        const int64_t row = at / n % n, col = at % n, base = at - row * n - col;
        int64_t to = 0;
        for (int64_t i = 0; i < n * n; i++)
            if (i / n != row && i % n != col) minor[to++] = c->in[0].v[base + i];
        c->out[0].v[at] = ((row + col) % 2 ? -1 : 1) * det_of(minor, n - 1);
    }
    free(minor);
}

static void cholesky(const ref_call *c)
{
    const bool upper = ((const cn__cholesky_attrs *)c->attrs)->upper;
    const int64_t n = rows_of(&c->in[0]);
    double *l = room(n * n);
    for (int64_t m = 0; m < count_of(&c->in[0]); m++) {
        const double *a = c->in[0].v + m * n * n;
        memset(l, 0, (size_t)(n * n) * sizeof *l);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++) {
                double sum = upper ? a[j * n + i] : a[i * n + j];
                for (int64_t k = 0; k < j; k++) sum -= l[i * n + k] * l[j * n + k];
                l[i * n + j] = i == j ? sqrt(sum) : sum / l[j * n + j];
            }
        if (upper) transpose(l, c->out[0].v + m * n * n, n, n);
        else memcpy(c->out[0].v + m * n * n, l, (size_t)(n * n) * sizeof *l);
    }
    free(l);
}

/* ---- reflections ---- */

/* a (m, n) becomes R, q (m, m) = I becomes Q: reflections of a's columns, applied to a from the left and to q from the
   right. */
static void reflect(double *a, double *q, int64_t m, int64_t n)
{
    double *v = room(m);
    for (int64_t k = 0; k < m && k < n; k++) {
        double below = 0, all = 0, norm = 0;
        for (int64_t i = k; i < m; i++) all += a[i * n + k] * a[i * n + k];
        for (int64_t i = k + 1; i < m; i++) below += fabs(a[i * n + k]);
        if (below == 0) continue;
        const double beta = a[k * n + k] < 0 ? sqrt(all) : -sqrt(all);
        for (int64_t i = 0; i < m; i++) v[i] = i < k ? 0 : a[i * n + k] - (i == k ? beta : 0);
        for (int64_t i = 0; i < m; i++) norm += v[i] * v[i];
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t i = 0; i < m; i++) sum += v[i] * a[i * n + j];
            for (int64_t i = 0; i < m; i++) a[i * n + j] -= 2 * sum / norm * v[i];
        }
        for (int64_t j = 0; j < m; j++) {
            double sum = 0;
            for (int64_t i = 0; i < m; i++) sum += v[i] * q[j * m + i];
            for (int64_t i = 0; i < m; i++) q[j * m + i] -= 2 * sum / norm * v[i];
        }
    }
    free(v);
}

static void qr(const ref_call *c)
{
    const int64_t m = rows_of(&c->in[0]), n = cols_of(&c->in[0]), k = cols_of(&c->out[0]);
    double *q = room(m * m);
    for (int64_t at = 0; at < count_of(&c->in[0]); at++) {
        double *a = copy_of(c->in[0].v + at * m * n, m * n);
        for (int64_t i = 0; i < m * m; i++) q[i] = i / m == i % m;
        reflect(a, q, m, n);
        for (int64_t i = 0; i < m * k; i++) c->out[0].v[at * m * k + i] = q[i / k * m + i % k];
        for (int64_t i = 0; i < k * n; i++) c->out[1].v[at * k * n + i] = i % n < i / n ? 0 : a[i];
        free(a);
    }
    free(q);
}

/* ---- rotations ---- */

/* Makes the columns of a (m, n) orthogonal by rotations, which are also applied to v (n, n). */
static void rotate(double *a, double *v, int64_t m, int64_t n)
{
    for (int sweep = 0; sweep < 60; sweep++)
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                double pp = 0, qq = 0, pq = 0;
                for (int64_t i = 0; i < m; i++) {
                    pp += a[i * n + p] * a[i * n + p];
                    qq += a[i * n + q] * a[i * n + q];
                    pq += a[i * n + p] * a[i * n + q];
                }
                if (fabs(pq) <= 1e-17 * sqrt(pp * qq)) continue;
                const double angle = 0.5 * atan2(2 * pq, qq - pp), cosine = cos(angle), sine = sin(angle);
                for (int64_t i = 0; i < m + n; i++) {
                    double *row = i < m ? a + i * n : v + (i - m) * n, x = row[p], y = row[q];
                    row[p] = cosine * x - sine * y;
                    row[q] = sine * x + cosine * y;
                }
            }
}

/* The factor that makes the largest component, or the first within 1/16 of it, positive. */
static double sign_of(const double *v, int64_t n, int64_t step)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(v[i * step]));
    int64_t i = 0;
    while (i < n && fabs(v[i * step]) < 0.9375 * most) i++;
    return i < n && v[i * step] < 0 ? -1 : 1;
}

/* u (m, n), s (n), v (n, n) of a tall a (m, n), in descending order, without signs. */
static void svd_tall(const double *a, double *u, double *s, double *v, int64_t m, int64_t n)
{
    double *w = copy_of(a, m * n), *turn = room(n * n), *length = room(n);
    for (int64_t i = 0; i < n * n; i++) turn[i] = i / n == i % n;
    rotate(w, turn, m, n);
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < m; i++) length[j] += w[i * n + j] * w[i * n + j];
        length[j] = sqrt(length[j]);
    }
    for (int64_t place = 0; place < n; place++) {
        int64_t j = 0;
        for (int64_t i = 0; i < n; i++)
            if (length[i] > length[j]) j = i;
        s[place] = length[j];
        for (int64_t i = 0; i < m; i++) u[i * n + place] = w[i * n + j] / length[j];
        for (int64_t i = 0; i < n; i++) v[i * n + place] = turn[i * n + j];
        length[j] = -1;
    }
    free(w);
    free(turn);
    free(length);
}

/* u (m, k), s (k), vh (k, n) */
static void svd_of(const double *a, double *u, double *s, double *vh, int64_t m, int64_t n)
{
    const int64_t k = m < n ? m : n;
    double *t = room(m * n), *v = room(k * k);
    if (m >= n) {
        svd_tall(a, u, s, v, m, n);
        transpose(v, vh, k, k);
    } else {
        double *w = room(n * k);
        transpose(a, t, m, n);
        svd_tall(t, w, s, u, n, m);
        transpose(w, vh, n, k);
        free(w);
    }
    for (int64_t j = 0; j < k; j++) {
        const double sign = sign_of(u + j, m, k);
        for (int64_t i = 0; i < m; i++) u[i * k + j] *= sign;
        for (int64_t i = 0; i < n; i++) vh[j * n + i] *= sign;
    }
    free(t);
    free(v);
}

static void thin_svd(const ref_call *c)
{
    const int64_t m = rows_of(&c->in[0]), n = cols_of(&c->in[0]), k = m < n ? m : n;
    for (int64_t i = 0; i < count_of(&c->in[0]); i++)
        svd_of(c->in[0].v + i * m * n, c->out[0].v + i * m * k, c->out[1].v + i * k, c->out[2].v + i * k * n, m, n);
}

/* The singular values of a (m, n); the caller frees them. */
static double *values_of(const double *a, int64_t m, int64_t n)
{
    const int64_t k = m < n ? m : n;
    double *u = room(m * k), *s = room(k), *vh = room(k * n);
    svd_of(a, u, s, vh, m, n);
    free(u);
    free(vh);
    return s;
}

static void svdvals(const ref_call *c)
{
    const int64_t m = rows_of(&c->in[0]), n = cols_of(&c->in[0]), k = m < n ? m : n;
    for (int64_t i = 0; i < count_of(&c->in[0]); i++) {
        double *s = values_of(c->in[0].v + i * m * n, m, n);
        memcpy(c->out[0].v + i * k, s, (size_t)k * sizeof *s);
        free(s);
    }
}

/* Of a symmetric matrix: A plus a multiple of I has eigenvalues that are singular values, and the same vectors. */
static void eigh_of(const double *a, bool upper, double *l, double *v, int64_t n)
{
    double *b = room(n * n), *w = room(n * n), *vh = room(n * n), *s = room(n), shift = 1;
    for (int64_t i = 0; i < n * n; i++) shift += fabs(a[i]);
    for (int64_t i = 0; i < n * n; i++) {
        const int64_t row = i / n, col = i % n;
        b[i] = ((upper ? row <= col : row >= col) ? a[i] : a[col * n + row]) + (row == col ? shift : 0);
    }
    svd_of(b, w, s, vh, n, n);
    for (int64_t j = 0; j < n; j++) {
        l[j] = s[n - 1 - j] - shift;
        for (int64_t i = 0; i < n && v; i++) v[i * n + j] = w[i * n + n - 1 - j];
    }
    free(b);
    free(w);
    free(vh);
    free(s);
}

static void eigh(const ref_call *c)
{
    const bool upper = ((const cn__eigh_attrs *)c->attrs)->uplo == CN_UPLO_U;
    const int64_t n = rows_of(&c->in[0]);
    for (int64_t i = 0; i < count_of(&c->in[0]); i++)
        eigh_of(c->in[0].v + i * n * n, upper, c->out[0].v + i * n, c->n_out > 1 ? c->out[1].v + i * n * n : NULL, n);
}

/* ---- what follows from these ---- */

static double cutoff(const ref_call *c, double largest, int64_t size)
{
    const double epsilon = c->in[0].dtype == CN_F64 ? 0x1p-52 : 0x1p-23;
    if (c->args[0].f == 0 && c->args[1].f == 0) return (double)size * epsilon * largest;
    return fmax(c->args[0].f, c->args[1].f * largest);
}

static void pinv(const ref_call *c)
{
    const int64_t m = rows_of(&c->in[0]), n = cols_of(&c->in[0]), k = m < n ? m : n;
    double *u = room(m * k), *s = room(k), *vh = room(k * n);
    for (int64_t at = 0; at < count_of(&c->in[0]) && k; at++) {
        svd_of(c->in[0].v + at * m * n, u, s, vh, m, n);
        for (int64_t i = 0; i < n * m; i++) {
            double sum = 0;
            for (int64_t j = 0; j < k; j++)
                if (s[j] > cutoff(c, s[0], m > n ? m : n)) sum += vh[j * n + i / m] * u[i % m * k + j] / s[j];
            c->out[0].v[at * n * m + i] = sum;
        }
    }
    free(u);
    free(s);
    free(vh);
}

static void known_pinv(const ref_call *c) { memcpy(c->out->v, c->in[1].v, (size_t)c->out->numel * sizeof(double)); }

static void matrix_rank(const ref_call *c)
{
    const int64_t m = rows_of(&c->in[0]), n = cols_of(&c->in[0]), k = m < n ? m : n;
    for (int64_t i = 0; i < count_of(&c->in[0]); i++) {
        double *s = values_of(c->in[0].v + i * m * n, m, n);
        for (int64_t j = 0; j < k; j++) c->out[0].v[i] += s[j] > cutoff(c, s[0], m > n ? m : n);
        free(s);
    }
}

/* (AᵀA)⁻¹AᵀB, or Aᵀ(AAᵀ)⁻¹B */
static void lstsq(const ref_call *c)
{
    const int64_t m = rows_of(&c->in[0]), n = cols_of(&c->in[0]), k = m < n ? m : n;
    const int64_t count = count_of(&c->in[0]), right = m && count ? c->in[1].numel / m / count : 0;
    double *t = room(n * m), *product = room(k * k), *side = room(k * right);
    for (int64_t i = 0; i < count; i++) {
        const double *a = c->in[0].v + i * m * n, *b = c->in[1].v + i * m * right;
        transpose(a, t, m, n);
        if (m >= n) {
            multiply(t, a, product, n, m, n);
            multiply(t, b, side, n, m, right);
            eliminate(product, side, n, right);
            memcpy(c->out[0].v + i * n * right, side, (size_t)(n * right) * sizeof *side);
        } else {
            multiply(a, t, product, m, n, m);
            memcpy(side, b, (size_t)(m * right) * sizeof *side);
            eliminate(product, side, m, right);
            multiply(t, side, c->out[0].v + i * n * right, n, m, right);
        }
    }
    free(t);
    free(product);
    free(side);
}

/* The series, of A / 2⁸ and with 8 squares. */
static void matrix_exp(const ref_call *c)
{
    const int64_t n = rows_of(&c->in[0]);
    double *x = room(n * n), *term = room(n * n), *sum = room(n * n), *next = room(n * n);
    for (int64_t at = 0; at < count_of(&c->in[0]); at++) {
        for (int64_t i = 0; i < n * n; i++) {
            x[i] = c->in[0].v[at * n * n + i] / 256;
            term[i] = sum[i] = i / n == i % n;
        }
        for (int k = 1; k < 30; k++) {
            multiply(term, x, next, n, n, n);
            for (int64_t i = 0; i < n * n; i++) sum[i] += term[i] = next[i] / k;
        }
        for (int s = 0; s < 8; s++) {
            multiply(sum, sum, next, n, n, n);
            memcpy(sum, next, (size_t)(n * n) * sizeof *sum);
        }
        memcpy(c->out[0].v + at * n * n, sum, (size_t)(n * n) * sizeof *sum);
    }
    free(x);
    free(term);
    free(sum);
    free(next);
}

static void matrix_power(const ref_call *c)
{
    const int64_t n = rows_of(&c->in[0]), power = ((const cn__power_attrs *)c->attrs)->n;
    double *x = room(n * n), *next = room(n * n);
    for (int64_t at = 0; at < count_of(&c->in[0]); at++) {
        double *y = c->out[0].v + at * n * n;
        if (power < 0) invert(c->in[0].v + at * n * n, x, n);
        else memcpy(x, c->in[0].v + at * n * n, (size_t)(n * n) * sizeof *x);
        for (int64_t i = 0; i < n * n; i++) y[i] = i / n == i % n;
        for (int64_t k = 0; k < llabs(power); k++) {
            multiply(y, x, next, n, n, n);
            memcpy(y, next, (size_t)(n * n) * sizeof *y);
        }
    }
    free(x);
    free(next);
}

/* A norm of a (m, n). */
static double norm_of(const double *a, int64_t m, int64_t n, int64_t ord)
{
    const int64_t k = m < n ? m : n;
    const bool by_rows = ord == CN__ORD_INF || ord == CN__ORD_MINUS_INF;
    double *s = values_of(a, m, n), y = 0, most = 0, least = INFINITY;
    for (int64_t i = 0; i < m * n; i++) y += a[i] * a[i];
    y = sqrt(y);
    if (ord == CN__ORD_NUC) y = 0;
    for (int64_t i = 0; i < k && ord == CN__ORD_NUC; i++) y += s[i];
    if (ord == CN__ORD_2) y = s[0];
    if (ord == CN__ORD_MINUS_2) y = s[k - 1];
    for (int64_t i = 0; i < (by_rows ? m : n); i++) {
        double sum = 0;
        for (int64_t j = 0; j < (by_rows ? n : m); j++) sum += fabs(by_rows ? a[i * n + j] : a[j * n + i]);
        most = fmax(most, sum);
        least = fmin(least, sum);
    }
    free(s);
    if (ord == CN__ORD_INF || ord == CN__ORD_1) return most;
    return ord == CN__ORD_MINUS_INF || ord == CN__ORD_MINUS_1 ? least : y;
}

/* Takes each matrix out of any two axes. */
static void matrix_norm(const ref_call *c)
{
    const cn__matrix_norm_attrs *a = c->attrs;
    const ref_tensor *x = &c->in[0];
    const int64_t m = x->shape[a->rows], n = x->shape[a->cols];
    int64_t step[CN_MAX_DIMS], size = 1;
    for (int d = x->ndim - 1; d >= 0; size *= x->shape[d--]) step[d] = size;
    double *matrix = room(m * n);
    for (int64_t to = 0; to < c->out[0].numel; to++) {
        int64_t at = 0, rest = to;
        for (int d = x->ndim - 1; d >= 0; d--) {
            if (d == a->rows || d == a->cols) continue;
            at += rest % x->shape[d] * step[d];
            rest /= x->shape[d];
        }
        for (int64_t i = 0; i < m * n; i++) matrix[i] = x->v[at + i / n * step[a->rows] + i % n * step[a->cols]];
        c->out[0].v[to] = norm_of(matrix, m, n, a->ord);
    }
    free(matrix);
}

static void cond(const ref_call *c)
{
    const int64_t ord = ((const cn__cond_attrs *)c->attrs)->ord, m = rows_of(&c->in[0]), n = cols_of(&c->in[0]);
    double *inverse = room(n * n);
    for (int64_t i = 0; i < count_of(&c->in[0]); i++) {
        const double *a = c->in[0].v + i * m * n, two = norm_of(a, m, n, CN__ORD_2),
                     least = norm_of(a, m, n, CN__ORD_MINUS_2);
        if (ord == CN__ORD_2 || ord == CN__ORD_MINUS_2) {
            c->out[0].v[i] = ord == CN__ORD_2 ? two / least : least / two;
            continue;
        }
        invert(a, inverse, n);
        c->out[0].v[i] = norm_of(a, n, n, ord) * norm_of(inverse, n, n, ord);
    }
    free(inverse);
}

const ref_entry ref_linalg[] = {
    { "linalg_cholesky", cholesky },
    { "linalg_solve_triangular", solve_triangular },
    { "linalg_solve", solve },
    { "linalg_inv", inv },
    { "linalg_det", det },
    { "cofactor", cofactor },
    { "linalg_slogdet", slogdet },
    { "linalg_qr", qr },
    { "linalg_eigh", eigh },
    { "linalg_eigvalsh", eigh },
    { "thin_svd", thin_svd },
    { "linalg_svdvals", svdvals },
    { "linalg_lstsq", lstsq },
    { "linalg_pinv", pinv },
    { "known_pinv", known_pinv },
    { "linalg_matrix_rank", matrix_rank },
    { "linalg_cond", cond },
    { "linalg_matrix_exp", matrix_exp },
    { "linalg_matrix_power", matrix_power },
    { "linalg_matrix_norm", matrix_norm },
    { NULL, NULL },
};
