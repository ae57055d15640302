#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
#include "../common/requantise.h"
/* Softmax of rows of INPUT, in LiteRT's fixed point, by a table of exponentials in Q0.31.

   ``entries``: of the table; its last one stands for all larger distances from the maximum. The sum
   of a row is in Q12.19, and a row has at most 4095 elements, so that it fits. */
typedef struct {
    int32_t rows, columns, entries;
} softmax_INPUT;

#if INPUT_SIGNED
#define COMPARED_INPUT "ssub8"
#else
#define COMPARED_INPUT "usub8"
#endif

INLINED int32_t most_of_INPUT(const input_t *x, int32_t columns)
{
    int32_t most = INPUT_MIN;
    int32_t left = columns;
#if defined(__ARM_FEATURE_MVE)
    for (; left > 0; left -= 16) {
        const mve_pred16_t lanes = vctp8q((uint32_t)left);
#if INPUT_SIGNED
        most = vmaxvq_p_s8((int8_t)most, vldrbq_z_s8(x, lanes), lanes);
#else
        most = vmaxvq_p_u8((uint8_t)most, vldrbq_z_u8(x, lanes), lanes);
#endif
        x += 16;
    }
#else
#if defined(__ARM_FEATURE_DSP)
    if (left >= 4) {
        uint32_t four = load_4(x);
        for (; left >= 4; left -= 4) {
            const uint32_t word = load_4(x);
            uint32_t rest;
            __asm(COMPARED_INPUT " %1, %0, %2\n sel %0, %0, %2"
                  : "+r"(four), "=&r"(rest)
                  : "r"(word));
            x += 4;
        }
        for (int32_t i = 0; i < 4; ++i) {
            most = max_i32(most, (input_t)(four >> 8 * i));
        }
    }
#endif
    for (; left > 0; --left) {
        most = max_i32(most, *x++);
    }
#endif
    return most;
}

#if defined(__ARM_FEATURE_MVE)
INLINED uint32x4_t exponentials_INPUT(
    const input_t *x, const uint32_t *exponentials, int32_t most, int32_t last, mve_pred16_t lanes)
{
#if INPUT_SIGNED
    const int32x4_t values = vldrbq_z_s32(x, lanes);
#else
    const int32x4_t values = vreinterpretq_s32_u32(vldrbq_z_u32(x, lanes));
#endif
    const int32x4_t below = vminq_s32(vsubq_s32(vdupq_n_s32(most), values), vdupq_n_s32(last));
    return vldrwq_gather_shifted_offset_z_u32(exponentials, vreinterpretq_u32_s32(below), lanes);
}
#endif

/* Return the sum of the exponentials of a row. */
INLINED uint32_t total_of_INPUT(
    const input_t *x, int32_t columns, const uint32_t *exponentials, int32_t most, int32_t last)
{
    uint32_t total = 0;
#if defined(__ARM_FEATURE_MVE)
    for (int32_t left = columns; left > 0; left -= 4) {
        const mve_pred16_t lanes = vctp32q((uint32_t)left);
        const uint32x4_t powers = exponentials_INPUT(x, exponentials, most, last, lanes);
        total = vaddvaq_u32(total, vrshrq_n_u32(powers, 12));
        x += 4;
    }
#else
    for (const input_t *const end = x + columns; x != end; ++x) {
        total += (exponentials[min_i32(most - *x, last)] + 2048u) >> 12;
    }
#endif
    return total;
}

/* Return 1 / (total / 2**(31 - zeros)) in Q0.31: three steps of Newton's method. */
INLINED int32_t inverse_of_INPUT(uint32_t total, int32_t zeros)
{
    const int32_t half = (int32_t)(total << zeros >> 1);
    int32_t guess = 1515870810 + high_product(half, -1010580540);
    for (int32_t i = 0; i < 2; ++i) {
        const int32_t rest = (1 << 29) - high_product(half, guess);
        guess += (int32_t)((uint32_t)high_product(guess, rest) << 2);
    }
    const int32_t rest = (1 << 29) - high_product(half, guess);
    const int64_t last =
        (int64_t)guess + (int32_t)((uint32_t)high_product(guess, rest) << 2);
    return (int32_t)min_i64(2 * last, INT32_MAX);
}

NOT_INLINED void softmax_rows_INPUT(
    const softmax_INPUT *s, const input_t *x, const int32_t *table, input_t *out)
{
    const uint32_t *const exponentials = (const uint32_t *)table;
    const int32_t columns = s->columns;
    const int32_t last = s->entries - 1;
    for (int32_t row = s->rows; row > 0; --row) {
        const int32_t most = most_of_INPUT(x, columns);
        const uint32_t total = total_of_INPUT(x, columns, exponentials, most, last);
        const int32_t zeros = __builtin_clz(total);
        uint32_t inverse = 2u * (uint32_t)inverse_of_INPUT(total, zeros);
        int32_t right = 35 - zeros;
        if (right > 31) { /* every share is below half a step */
            inverse = 0;
            right = 31;
        }
#if defined(__ARM_FEATURE_MVE)
        for (int32_t i = 0; i < columns; i += 4) {
            const mve_pred16_t lanes = vctp32q((uint32_t)(columns - i));
            uint32x4_t share = exponentials_INPUT(x + i, exponentials, most, last, lanes);
            share = vrmulhq_u32(share, vdupq_n_u32(inverse));
            share = vminq_u32(vrshlq_u32(share, vdupq_n_s32(-right)), vdupq_n_u32(255));
            vstrbq_p_s32((int8_t *)out + i,
                vaddq_n_s32(vreinterpretq_s32_u32(share), INPUT_MIN), lanes);
        }
        x += columns;
        out += columns;
#else
        const uint32_t half = 1u << (right - 1);
        for (const input_t *const end = x + columns; x != end; ++x) {
            const uint64_t power = exponentials[min_i32(most - *x, last)];
            const uint32_t share = (uint32_t)((inverse * power + (1u << 31)) >> 32);
            *out++ = (input_t)((int32_t)min_u32((share + half) >> right, 255u) + (INPUT_MIN));
        }
#endif
    }
}
