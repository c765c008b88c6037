/* cairn/cairn.h: all of Cairn. Each header is its own manual page. */
#ifndef CAIRN_H
#define CAIRN_H

#include "base.h"
#include "tensor.h"
#include "ops.h"
#include "grad.h"
#include "optim.h"
#include "plan.h"
#include "op.h"
#include "dict.h"
#include "nn.h"
#include "gpt.h"
#include "dlpack.h"

#endif
