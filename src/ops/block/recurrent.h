/* recurrent.h: one direction of one layer of an RNN, LSTM or GRU over a whole sequence. */
#ifndef CN_OPS_RECURRENT_H
#define CN_OPS_RECURRENT_H

#include "ops/block/block.h"

typedef enum cn__recurrent_kind { CN__RNN_TANH, CN__RNN_RELU, CN__LSTM, CN__GRU } cn__recurrent_kind;

typedef struct cn__recurrent_attrs {
    int64_t kind, reverse; /* reverse: the layer runs from the last step to the first */
} cn__recurrent_attrs;

/* The number of gates G: blocks of H columns in x, of H rows in w. In PyTorch's order: LSTM i f g o, GRU r z n. */
static inline int64_t cn__recurrent_gates(int64_t kind) { return kind == CN__LSTM ? 4 : kind == CN__GRU ? 3 : 1; }

/* Operands: x (T,B,G·H), w (G·H,H), b (G·H) or NULL, h0 (B,H), c0 (B,H) of an LSTM, lengths (B) or NULL.
   Results: y (T,B,H), c (T,B,H), and the saved values for the backward operator. */
extern const cn_op cn__op_recurrent, cn__op_recurrent_backward;

#endif
