#pragma once
#include "instance.h"
#include "dot.h"
/* Copies of INPUT inputs into columns; the functions return the end of what they write. */
INLINED input_t *copy_INPUT(input_t *to, const input_t *from, int32_t count)
{
#if defined(__ARM_FEATURE_MVE)
    for (; count >= 16; count -= 16) {
        vstrbq_u8((uint8_t *)to, vldrbq_u8((const uint8_t *)from));
        to += 16;
        from += 16;
    }
    if (count > 0) {
        const mve_pred16_t lanes = vctp8q((uint32_t)count);
        vstrbq_p_u8((uint8_t *)to, vldrbq_z_u8((const uint8_t *)from, lanes), lanes);
    }
    return to + count;
#endif
    for (; count >= 4; count -= 4) {
        (void)memcpy(to, from, 4);
        to += 4;
        from += 4;
    }
    for (; count > 0; --count) {
        *to++ = *from++;
    }
    return to;
}

INLINED input_t *fill_INPUT(input_t *to, int32_t value, int32_t count)
{
#if defined(__ARM_FEATURE_MVE)
    for (; count > 0; count -= 16) {
        vstrbq_p_u8((uint8_t *)to, vdupq_n_u8((uint8_t)value), vctp8q((uint32_t)count));
        to += min_i32(count, 16);
    }
    return to;
#endif
    for (; count > 0; --count) {
        *to++ = (input_t)value;
    }
    return to;
}

/* Fill a complete column, which is aligned to a word. */
INLINED void fill_column_INPUT(input_t *to, int32_t value, int32_t count)
{
#if defined(__ARM_FEATURE_MVE)
    (void)fill_INPUT(to, value, count);
#else
    const uint32_t four = (uint8_t)value * 0x01010101u;
    for (int32_t i = 0; i < count; i += 4) {
        (void)memcpy(__builtin_assume_aligned(to + i, 4), &four, 4);
    }
#endif
}

/* Copy inputs of a row into a column, in words; the last word may overlap the one before. */
INLINED input_t *columned_INPUT(input_t *to, const input_t *from, int32_t count)
{
#if defined(__ARM_FEATURE_MVE) || !defined(__ARM_FEATURE_UNALIGNED)
    return copy_INPUT(to, from, count);
#endif
    if (count < 4) {
        return copy_INPUT(to, from, count);
    }
    for (int32_t i = 0; i < count - 4; i += 4) {
        (void)memcpy(to + i, from + i, 4);
    }
    (void)memcpy(to + count - 4, from + count - 4, 4);
    return to + count;
}
