/* onnx/rewrite.h: a model that was read from a file is written as it was read, with the present values of its weights. */
#ifndef CN_ONNX_REWRITE_H
#define CN_ONNX_REWRITE_H

#include "onnx/run.h"

bool cn__onnx_rewrite(onnx_model *m, const char *path, const cn_onnx_options *o); /* false: an error is set */

#endif
