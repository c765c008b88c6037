/* The CPU kernel of discrete Fourier transforms: Stockham's algorithm for radices 2, 3, 4, 5 and small primes, and
   Bluestein's for lengths with a large prime factor. Real and imaginary parts lie apart, and several signals lie side by
   side, so that the inner loops are vectors. */
#include "ops/fft/fft_cpu.h"

#include <math.h>
#include <string.h>

#include "core/util.h"
#include "ops/kernels.h"

#define PI 3.14159265358979323846

#define TEMPLATE "ops/fft/fft_body.h"
#define TYPES    CN__FLOAT_TYPES
#include "cpu/each_type.h"

const cn__fft_kernels CN__FOR_ISA(cn__fft_kernels) = { .run = CN__F32_F64(run) };
