#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
#include "../common/depthwise.h"
/* MVE: 8 or 16 channels of a depthwise convolution at a time, INPUT inputs, weights of 8 bits.

   Products, and the sums of two products in the first ``pairs``, have 16 bits; pairs are used only
   if inputs are signed and no weight is -128. The 32-bit sums are vectors of the even and of the
   odd channels. */
#if defined(__ARM_FEATURE_MVE) && WEIGHT_BITS == 8
typedef struct {
    const int8_t *weights;
    const int32_t *bias, *multipliers;
    const int8_t *shifts;
} numbers_FORMAT;

/* Requantise and store eight channels, from sums of the even and the odd channels. */
INLINED void store_eight_FORMAT(const requantisation *to, int32x4_t even, int32x4_t odd,
    const int32_t *multipliers, const int8_t *shifts, uint8_t *out)
{
    int32x4x2_t m;
    int16x8_t s;
    if (to->step != 0) {
        m = vld2q_s32(multipliers);
        s = vldrbq_s16(shifts);
    } else {
        m.val[0] = vdupq_n_s32(*multipliers);
        m.val[1] = m.val[0];
        s = vdupq_n_s16(*shifts);
    }
    even = requantised_four(to, even, m.val[0], vmovlbq_s16(s));
    odd = requantised_four(to, odd, m.val[1], vmovltq_s16(s));
    vstrbq_s16((int8_t *)out, vmovntq_s32(vreinterpretq_s16_s32(even), odd));
}

/* Products of eight channels of a pixel, and of two pixels. */
INLINED int16x8_t product_FORMAT(const input_t *x, const int8_t *w)
{
    return vmulq_s16(eight_SIGN(x), vldrbq_s16(w));
}
INLINED int16x8_t products_FORMAT(const input_t *x, const input_t *y, const int8_t *w, const int8_t *v)
{
    return vaddq_s16(product_FORMAT(x, w), product_FORMAT(y, v));
}

/* Eight or sixteen channels from ``c`` on. */
INLINED void sum_eights_FORMAT(const depthwise_FORMAT *d, const numbers_FORMAT *with,
    const input_t *const *taps, int32_t moved, int32_t c, bool both, uint8_t *out)
{
    const requantisation to = d->to;
    const int32_t n = d->channels;
    const int8_t *w = with->weights + c;
    const int32x4x2_t low = vld2q_s32(with->bias + c);
    const int32x4x2_t high = vld2q_s32(with->bias + c + (both ? 8 : 0));
    int32x4_t even = low.val[0];
    int32x4_t odd = low.val[1];
    int32x4_t next_even = high.val[0];
    int32x4_t next_odd = high.val[1];
    const int32_t channel = moved + c;
    for (int32_t pair = d->pairs; pair > 0; --pair) {
        const input_t *const x = taps[0] + channel;
        const input_t *const y = taps[1] + channel;
        const int8_t *const v = w + n;
        taps += 2;
        int16x8_t two = products_FORMAT(x, y, w, v);
        even = vaddq_s32(even, vmovlbq_s16(two));
        odd = vaddq_s32(odd, vmovltq_s16(two));
        if (both) {
            two = products_FORMAT(x + 8, y + 8, w + 8, v + 8);
            next_even = vaddq_s32(next_even, vmovlbq_s16(two));
            next_odd = vaddq_s32(next_odd, vmovltq_s16(two));
        }
        w = v + n;
    }
    for (int32_t i = d->kernel_height * d->kernel_width - 2 * d->pairs; i > 0; --i) {
        const input_t *const x = *taps++ + channel;
        int16x8_t one = product_FORMAT(x, w);
        even = vaddq_s32(even, vmovlbq_s16(one));
        odd = vaddq_s32(odd, vmovltq_s16(one));
        if (both) {
            one = product_FORMAT(x + 8, w + 8);
            next_even = vaddq_s32(next_even, vmovlbq_s16(one));
            next_odd = vaddq_s32(next_odd, vmovltq_s16(one));
        }
        w += n;
    }
    const int32_t *const m = with->multipliers + c * to.step;
    const int8_t *const s = with->shifts + c * to.step;
    store_eight_FORMAT(&to, even, odd, m, s, out + c);
    if (both) {
        store_eight_FORMAT(&to, next_even, next_odd, m + 8 * to.step, s + 8 * to.step, out + c + 8);
    }
}

/* All channels of a pixel, at least eight; the last group of eight may overlap the one before. */
NOT_INLINED void eights_FORMAT(const depthwise_FORMAT *d, const numbers_FORMAT *with,
    const input_t *const *taps, int32_t moved, uint8_t *out)
{
    const int32_t n = d->channels;
    int32_t c = 0;
    for (; c + 16 <= n; c += 16) {
        sum_eights_FORMAT(d, with, taps, moved, c, true, out);
    }
    for (; c < n; c += 8) {
        c = min_i32(c, n - 8);
        sum_eights_FORMAT(d, with, taps, moved, c, false, out);
    }
}
#endif
