/* Rules of If, Loop and Scan, of sequences and of optionals. */
#include "core/handle.h"
#include "onnx/rules.h"

static onnx_graph *body_of(onnx_call *c, const char *name)
{
    const onnx_attr *a = cn__onnx_attr(c, name);
    if (!a || !a->g) FAIL(CN_BAD_FILE, "it has no graph %s of its own", name);
    return a ? a->g : NULL;
}

/* Whether input i, one number, is true; `usual` if it is absent. False in *ok: an error. */
static bool truth(onnx_call *c, onnx_value *v, bool usual, bool *ok)
{
    if (v->kind != ONNX_TENSOR) return usual;
    cn_tensor *t = v->known ? v->known->host : v->data;
    double number = 0;
    *ok = *ok && (cn_numel(t) == 1 || FAIL(CN_BAD_SHAPE, "a condition must be one number"));
    cn_scope s = cn_scope_begin(t->ctx); /* a loop asks often */
    *ok = *ok && (cn_read_f64(t, &number, 1) || (cn__onnx_checked(c->run->model) && false));
    cn_scope_end(t->ctx, s);
    return number != 0;
}

bool cn__onnx_if(onnx_call *c)
{
    bool ok = true;
    const bool yes = truth(c, c->in[0], false, &ok);
    onnx_graph *g = ok ? body_of(c, yes ? "then_branch" : "else_branch") : NULL;
    return g && cn__onnx_body(c, g, NULL, 0, c->out, c->n_out);
}

/* ---- lists of values ---- */

typedef struct growing {
    int n, room;
    onnx_value *v;
} growing;

static bool append(onnx_call *c, growing *g, onnx_value v)
{
    if (g->n == g->room) {
        const int room = g->room ? g->room * 2 : 8;
        onnx_value *more = room > 0 ? cn__onnx_run_new(c->run, (size_t)room, sizeof *more) : NULL;
        if (!more) return FAIL(CN_NO_MEMORY, "out of memory");
        if (g->n) memcpy(more, g->v, sizeof *more * (size_t)g->n);
        g->v = more;
        g->room = room;
    }
    g->v[g->n++] = v;
    return true;
}

/* Values of one shape, joined along a new axis or one that is there. */
static cn_tensor *joined(onnx_call *c, const onnx_value *v, int n, int64_t axis, bool new_axis)
{
    cn_tensor **t = cn__onnx_run_new(c->run, (size_t)n + 1, sizeof *t);
    for (int i = 0; t && i < n; i++) {
        onnx_value one = v[i];
        if (one.kind != ONNX_TENSOR)
            return FAIL(CN_BAD_ARGUMENT, "tensors are joined, got a sequence or nothing"), NULL;
        if (!(t[i] = cn__onnx_data(c->run->model, &one))) return NULL;
    }
    if (!t || !n) return t ? (FAIL(CN_BAD_ARGUMENT, "there is nothing to join"), NULL) : NULL;
    return new_axis ? cn_stack(t, n, axis) : cn_cat(t, n, axis);
}

static bool known_whole(onnx_call *c, int64_t number, onnx_value *out)
{
    onnx_known *k = cn__onnx_known_new(c->run, cn_from(c->run->model->host, CN_I64, CN_SCALAR, &number));
    *out = (onnx_value){ .kind = ONNX_TENSOR, .known = k };
    return k && (k->host || cn__onnx_checked(c->run->model));
}

static bool known_truth(onnx_call *c, bool yes, onnx_value *out)
{
    onnx_known *k = cn__onnx_known_new(c->run, cn_from(c->run->model->host, CN_BOOL, CN_SCALAR, &yes));
    *out = (onnx_value){ .kind = ONNX_TENSOR, .known = k };
    return k && (k->host || cn__onnx_checked(c->run->model));
}

/* ---- Loop: inputs are the count, the condition, and what is carried; the body also gives what is collected ---- */

/* What a collected result is if the loop never ran: no rows of the shape that the body declares. */
static cn_tensor *no_rows(onnx_call *c, const onnx_typed *type)
{
    cn_dims shape = { .n = 1 };
    cn_dtype t = CN_F32;
    if (type && type->kind == ONNX_IS_TENSOR) cn__onnx_dtype(type->element, &t);
    for (int i = 0; type && type->has_shape && i < type->ndim && shape.n < CN_MAX_DIMS; i++)
        shape.v[shape.n++] = type->dims[i] < 0 ? 0 : type->dims[i];
    return cn_zeros(c->run->model->ctx, t, shape);
}

bool cn__onnx_loop(onnx_call *c)
{
    onnx_graph *g = body_of(c, "body");
    onnx_ints most = { .n = -1 };
    bool ok = g && (c->n_in < 1 || cn__onnx_ints(c, 0, &most));
    if (!ok) return false;
    const int carried = c->n_in > 2 ? c->n_in - 2 : 0, collected = g->n_outputs - 1 - carried;
    if (g->n_inputs != carried + 2 || collected < 0 || most.n == 0 || most.n > 1)
        return FAIL(CN_BAD_ARGUMENT, "its count must be one number, and its body have %d inputs and %d results or more",
                    carried + 2, carried + 1);
    onnx_value *in = cn__onnx_run_new(c->run, (size_t)carried + 2, sizeof *in);
    onnx_value *out = cn__onnx_run_new(c->run, (size_t)g->n_outputs, sizeof *out);
    growing *rows = cn__onnx_run_new(c->run, (size_t)collected + 1, sizeof *rows);
    if (!in || !out || !rows) return false;
    for (int i = 0; i < carried; i++) in[i + 2] = *c->in[i + 2];
    bool more = c->n_in < 2 || truth(c, c->in[1], true, &ok);
    if (ok && !known_truth(c, more, &in[1])) return false;
    for (int64_t step = 0; ok && more && (most.n < 1 || step < most.v[0]); step++) {
        if (!known_whole(c, step, &in[0]) || !cn__onnx_body(c, g, in, carried + 2, out, g->n_outputs)) return false;
        more = truth(c, &out[0], true, &ok);
        in[1] = out[0];
        for (int i = 0; i < carried; i++) in[i + 2] = out[i + 1];
        for (int i = 0; i < collected && ok; i++) ok = append(c, &rows[i], out[carried + 1 + i]);
    }
    for (int i = 0; i < carried && ok; i++) cn__onnx_give_value(c, i, in[i + 2]);
    for (int i = 0; i < collected && ok; i++) {
        const int at = carried + i;
        if (!cn__onnx_wanted(c, at)) continue;
        ok = GIVE_AT(at, rows[i].n ? joined(c, rows[i].v, rows[i].n, 0, true) : no_rows(c, g->outputs[at + 1].type));
    }
    return ok;
}

/* ---- Scan: states, and sequences that are cut along an axis ---- */

typedef struct scanned {
    int states, sequences, outputs; /* outputs: collected */
    int64_t steps;
    onnx_ints in_axes, out_axes, in_back, out_back;
} scanned;

static int64_t at(const onnx_ints *v, int i) { return i < v->n ? v->v[i] : 0; }

/* One batch of a Scan: states and sequences are in `in`; results go to `out`. */
static bool scan(onnx_call *c, onnx_graph *g, scanned *s, onnx_value *in, onnx_value *out)
{
    growing *rows = cn__onnx_run_new(c->run, (size_t)s->outputs + 1, sizeof *rows);
    onnx_value *args = cn__onnx_run_new(c->run, (size_t)g->n_inputs, sizeof *args);
    onnx_value *results = cn__onnx_run_new(c->run, (size_t)g->n_outputs, sizeof *results);
    if (!rows || !args || !results) return false;
    for (int i = 0; i < s->states; i++) args[i] = in[i];
    for (int64_t step = 0; step < s->steps; step++) {
        for (int i = 0; i < s->sequences; i++) {
            cn_tensor *x = cn__onnx_data(c->run->model, &in[s->states + i]);
            const int64_t axis = at(&s->in_axes, i);
            cn_tensor *part = x ? cn_select(x, axis, at(&s->in_back, i) ? s->steps - 1 - step : step) : NULL;
            if (!part) return false;
            args[s->states + i] = (onnx_value){ .kind = ONNX_TENSOR, .data = part };
        }
        if (!cn__onnx_body(c, g, args, g->n_inputs, results, g->n_outputs)) return false;
        for (int i = 0; i < s->states; i++) args[i] = results[i];
        for (int i = 0; i < s->outputs; i++)
            if (!append(c, &rows[i], results[s->states + i])) return false;
    }
    for (int i = 0; i < s->states; i++) out[i] = args[i];
    for (int i = 0; i < s->outputs; i++) {
        for (int a = 0, b = rows[i].n - 1; a < b && at(&s->out_back, i); a++, b--) {
            const onnx_value v = rows[i].v[a];
            rows[i].v[a] = rows[i].v[b];
            rows[i].v[b] = v;
        }
        cn_tensor *y = rows[i].n ? joined(c, rows[i].v, rows[i].n, at(&s->out_axes, i), true)
                                 : no_rows(c, g->outputs[s->states + i].type);
        if (!y) return false;
        out[s->states + i] = (onnx_value){ .kind = ONNX_TENSOR, .data = y };
    }
    return true;
}

/* Version 8: the first input is lengths of sequences, and a first axis of batches stands everywhere. */
static bool scan_batches(onnx_call *c, onnx_graph *g, scanned *s)
{
    const int n_in = c->n_in - 1;
    onnx_ints lengths;
    if (!cn__onnx_ints(c, 0, &lengths)) return false;
    cn_tensor *first = IN(1);
    if (!first || cn_ndim(first) < 1 || s->sequences < 1)
        return FAIL(CN_BAD_SHAPE, "its inputs must have an axis of batches");
    const int64_t batches = cn_size(first, 0);
    growing *all = cn__onnx_run_new(c->run, (size_t)g->n_outputs, sizeof *all);
    onnx_value *in = cn__onnx_run_new(c->run, (size_t)n_in, sizeof *in);
    if (!all || !in || batches < 1) return false;
    for (int64_t b = 0; b < batches; b++) {
        onnx_value *out = cn__onnx_run_new(c->run, (size_t)g->n_outputs, sizeof *out);
        for (int i = 0; i < n_in && out; i++) {
            in[i] = (onnx_value){ .kind = ONNX_TENSOR, .data = cn_select(IN(i + 1), 0, b) };
            if (!in[i].data) return false;
        }
        cn_tensor *line = in[s->states].data;
        if (!out || cn_ndim(line) < 1) return false;
        s->steps = lengths.n > 0 && b < lengths.n && lengths.v[b] <= cn_size(line, 0) ? lengths.v[b] : cn_size(line, 0);
        if (!scan(c, g, s, in, out)) return false;
        for (int i = 0; i < g->n_outputs; i++)
            if (!append(c, &all[i], out[i])) return false;
    }
    for (int i = 0; i < g->n_outputs && i < c->n_out; i++)
        if (!GIVE_AT(i, joined(c, all[i].v, all[i].n, 0, true))) return false;
    return true;
}

bool cn__onnx_scan(onnx_call *c)
{
    onnx_graph *g = body_of(c, "body");
    if (!g) return false;
    const bool old = c->version < 9;
    scanned s = { .sequences = (int)INT("num_scan_inputs", 0) };
    const int n_in = c->n_in - old;
    s.states = n_in - s.sequences;
    s.outputs = g->n_outputs - s.states;
    if (s.sequences < 1 || s.states < 0 || s.outputs < 0 || g->n_inputs != n_in)
        return FAIL(CN_BAD_ARGUMENT, "its body must have %d inputs, and num_scan_inputs be in [1, %d]", n_in, n_in);
    if (!cn__onnx_attr_ints(c, old ? "directions" : "scan_input_directions", &s.in_back)) return false;
    if (old) return scan_batches(c, g, &s);
    if (!cn__onnx_attr_ints(c, "scan_input_axes", &s.in_axes) ||
        !cn__onnx_attr_ints(c, "scan_output_axes", &s.out_axes) ||
        !cn__onnx_attr_ints(c, "scan_output_directions", &s.out_back))
        return false;
    cn_tensor *line = IN(s.states);
    const int axis = line ? cn__onnx_axis(c, at(&s.in_axes, 0), cn_ndim(line)) : -1;
    if (axis < 0) return false;
    s.steps = cn_size(line, axis);
    onnx_value *in = cn__onnx_run_new(c->run, (size_t)n_in, sizeof *in);
    onnx_value *out = cn__onnx_run_new(c->run, (size_t)g->n_outputs, sizeof *out);
    for (int i = 0; in && i < n_in; i++) in[i] = *c->in[i];
    if (!in || !out || !scan(c, g, &s, in, out)) return false;
    for (int i = 0; i < g->n_outputs; i++) cn__onnx_give_value(c, i, out[i]);
    return true;
}

/* ---- sequences ---- */

static bool give_list(onnx_call *c, int i, const onnx_value *v, int n)
{
    onnx_list *list = cn__onnx_run_new(c->run, 1, sizeof *list);
    if (!list || !(list->v = cn__onnx_run_new(c->run, (size_t)n, sizeof *v))) return false;
    list->n = n;
    if (n) memcpy(list->v, v, sizeof *v * (size_t)n);
    return cn__onnx_give_value(c, i, (onnx_value){ .kind = ONNX_SEQUENCE, .list = list });
}

static onnx_list *list_in(onnx_call *c, int i)
{
    if (c->in[i]->kind == ONNX_SEQUENCE) return c->in[i]->list;
    FAIL(CN_BAD_ARGUMENT, "input %d must be a sequence", i);
    return NULL;
}

/* The place that input i names in a list of n; absent: `usual`. -1: an error. */
static int place_in(onnx_call *c, int i, int n, int usual)
{
    onnx_ints v;
    if (!cn__onnx_ints(c, i, &v)) return -1;
    const int64_t p = v.n < 1 ? usual : v.v[0] < 0 ? v.v[0] + n : v.v[0];
    if (p >= 0 && p <= n) return (int)p;
    FAIL(CN_BAD_INDEX, "a position of %lld in a sequence of %d", (long long)(v.n > 0 ? v.v[0] : 0), n);
    return -1;
}

bool cn__onnx_sequence_construct(onnx_call *c)
{
    onnx_value *v = cn__onnx_run_new(c->run, (size_t)c->n_in, sizeof *v);
    for (int i = 0; v && i < c->n_in; i++) v[i] = *c->in[i];
    return v && give_list(c, 0, v, c->n_in);
}

bool cn__onnx_sequence_empty(onnx_call *c) { return give_list(c, 0, NULL, 0); }

bool cn__onnx_sequence_length(onnx_call *c)
{
    const onnx_list *l = list_in(c, 0);
    onnx_value n;
    return l && known_whole(c, l->n, &n) && cn__onnx_give_value(c, 0, n);
}

bool cn__onnx_sequence_at(onnx_call *c)
{
    const onnx_list *l = list_in(c, 0);
    const int i = l ? place_in(c, 1, l->n, 0) : -1;
    if (i < 0) return false;
    return i < l->n ? cn__onnx_give_value(c, 0, l->v[i])
                    : FAIL(CN_BAD_INDEX, "a position of %d in a sequence of %d", i, l->n);
}

bool cn__onnx_sequence_insert(onnx_call *c)
{
    const onnx_list *l = list_in(c, 0);
    const int i = l ? place_in(c, 2, l->n, l->n) : -1;
    onnx_value *v = i >= 0 ? cn__onnx_run_new(c->run, (size_t)l->n + 1, sizeof *v) : NULL;
    if (!v) return false;
    for (int k = 0; k < l->n; k++) v[k + (k >= i)] = l->v[k];
    v[i] = *c->in[1];
    return give_list(c, 0, v, l->n + 1);
}

bool cn__onnx_sequence_erase(onnx_call *c)
{
    const onnx_list *l = list_in(c, 0);
    const int i = l ? place_in(c, 1, l->n, l->n - 1) : -1;
    if (i < 0) return false;
    if (i >= l->n) return FAIL(CN_BAD_INDEX, "a position of %d in a sequence of %d", i, l->n);
    onnx_value *v = cn__onnx_run_new(c->run, (size_t)l->n, sizeof *v);
    for (int k = 0; v && k < l->n; k++)
        if (k != i) v[k - (k > i)] = l->v[k];
    return v && give_list(c, 0, v, l->n - 1);
}

bool cn__onnx_sequence_map(onnx_call *c)
{
    onnx_graph *g = body_of(c, "body");
    const onnx_list *l = g ? list_in(c, 0) : NULL;
    growing *all = l ? cn__onnx_run_new(c->run, (size_t)g->n_outputs, sizeof *all) : NULL;
    onnx_value *in = all ? cn__onnx_run_new(c->run, (size_t)c->n_in, sizeof *in) : NULL;
    onnx_value *out = in ? cn__onnx_run_new(c->run, (size_t)g->n_outputs, sizeof *out) : NULL;
    if (!out) return false;
    for (int k = 0; k < l->n; k++) {
        for (int i = 0; i < c->n_in; i++) {
            in[i] = *c->in[i];
            if (in[i].kind != ONNX_SEQUENCE) continue;
            if (k >= in[i].list->n) return FAIL(CN_BAD_ARGUMENT, "its sequences must have the same length");
            in[i] = in[i].list->v[k];
        }
        if (!cn__onnx_body(c, g, in, c->n_in, out, g->n_outputs)) return false;
        for (int i = 0; i < g->n_outputs; i++)
            if (!append(c, &all[i], out[i])) return false;
    }
    for (int i = 0; i < g->n_outputs && i < c->n_out; i++)
        if (!give_list(c, i, all[i].v, all[i].n)) return false;
    return true;
}

bool cn__onnx_concat_from_sequence(onnx_call *c)
{
    const onnx_list *l = list_in(c, 0);
    return l && GIVE(joined(c, l->v, l->n, INT("axis", 0), INT("new_axis", 0) != 0));
}

bool cn__onnx_split_to_sequence(onnx_call *c)
{
    cn_tensor *x = IN(0);
    const int axis = x ? cn__onnx_axis(c, INT("axis", 0), cn_ndim(x)) : -1;
    onnx_ints given;
    if (axis < 0 || !cn__onnx_ints(c, 1, &given)) return false;
    const int64_t size = cn_size(x, axis);
    const bool one =
        given.n < 0 || (given.n == 1 && cn_ndim(c->in[1]->known ? c->in[1]->known->host : c->in[1]->data) == 0);
    const int64_t each = given.n < 0 ? 1 : given.n ? given.v[0] : 0;
    growing parts = { 0 };
    int64_t from = 0;
    for (int i = 0; one ? from < size : i < given.n; i++) {
        int64_t n = one ? (each < size - from ? each : size - from) : given.v[i];
        if (n < (one ? 1 : 0) || n > size - from)
            return FAIL(CN_BAD_SHAPE, "the parts do not make up the size %lld", (long long)size);
        cn_tensor *part = cn__onnx_work(c->run, 1) ? cn_narrow(x, axis, from, n) : NULL;
        if (given.n < 0 && !INT("keepdims", 1)) part = cn_select(part, axis, 0);
        if (!part || !append(c, &parts, (onnx_value){ .kind = ONNX_TENSOR, .data = part })) return false;
        from += n;
    }
    return give_list(c, 0, parts.v, parts.n);
}

/* ---- optionals ---- */

bool cn__onnx_optional(onnx_call *c)
{
    return cn__onnx_give_value(c, 0, c->n_in ? *c->in[0] : (onnx_value){ .kind = ONNX_NOTHING });
}

bool cn__onnx_optional_has_element(onnx_call *c)
{
    onnx_value yes;
    return known_truth(c, c->n_in > 0 && c->in[0]->kind != ONNX_NOTHING, &yes) && cn__onnx_give_value(c, 0, yes);
}

bool cn__onnx_optional_get_element(onnx_call *c)
{
    if (c->in[0]->kind == ONNX_NOTHING) return FAIL(CN_BAD_ARGUMENT, "the optional is empty");
    return cn__onnx_give_value(c, 0, *c->in[0]);
}
