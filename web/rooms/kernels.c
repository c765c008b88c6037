/* Empty tables in the place of CPU kernels that no room uses: cmake/web.cmake leaves these files out. */
#include "ops/kernels.h"

const cn__recurrent_kernels cn__recurrent_kernels_rooms = { 0 };
const cn__ctc_kernels cn__ctc_kernels_rooms = { 0 };
const cn__fft_kernels cn__fft_kernels_rooms = { 0 };
