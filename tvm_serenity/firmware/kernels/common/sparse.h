#pragma once
#include "instance.h"
/* Weights of dense layers and 1x1 convolutions without their zeros.

   The code of an output is the number of pairs of weights (two bytes), then for each pair two gaps
   of 0 to 15 inputs in one byte (the first in its lower half) and both weights. Of 8-bit weights
   one is before the gaps and one behind them; two 4-bit weights are one byte behind the gaps (the
   first in its lower half). A gap is counted from the input of the weight before it, the first one
   from the first input. */
#define PAIR_BYTES_WEIGHT (1 + WEIGHT_BITS / 4)
#define GAPS_AT_WEIGHT (WEIGHT_BITS == 8 ? 1 : 0)
INLINED int32_t first_packed_WEIGHT(const uint8_t *codes)
{
    return WEIGHT_BITS == 8 ? (int8_t)codes[0] : (int32_t)((codes[1] & 15u) ^ 8u) - 8;
}
INLINED int32_t second_packed_WEIGHT(const uint8_t *codes)
{
    return WEIGHT_BITS == 8 ? (int8_t)codes[2] : (int8_t)codes[1] >> 4;
}
INLINED const uint8_t *end_of_codes_WEIGHT(const uint8_t *codes)
{
    return codes + 2 + PAIR_BYTES_WEIGHT * (codes[0] | codes[1] << 8);
}
