/* cairn/cairn.h: includes all of Cairn. The comment at the top of each header is its manual. */
#ifndef CAIRN_H
#define CAIRN_H

#include "base.h"
#include "tensor.h"
#include "ops.h"
#include "grad.h"
#include "plan.h"
#include "gpu.h"
#include "nn.h"
#include "init.h"
#include "loss.h"
#include "optim.h"
#include "schedule.h"
#include "average.h"
#include "metric.h"
#include "data.h"
#include "image.h"
#include "text.h"
#include "gpt.h"
#include "dict.h"
#include "io.h"
#include "checkpoint.h"
#include "look.h"
#include "profile.h"
#include "op.h"
#include "kernel.h"
#include "signature.h"
#include "dlpack.h"
#include "onnx.h"

#endif
