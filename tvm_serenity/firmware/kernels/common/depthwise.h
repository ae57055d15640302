#pragma once
#include "instance.h"
#include "dot.h"
#include "requantise.h"
typedef struct {
    int32_t width, channels, out_width;
    int32_t kernel_height, kernel_width;
    int32_t stride_x, dilation_x, left;
    int32_t pairs; /* pairs of taps whose products are summed in 16 bits */
    requantisation to;
} depthwise_FORMAT;

/* The maximum number of taps; four channels of the pixels under a window are summed at a time. */
enum { MOST_TAPS_FORMAT = 49 };

INLINED void sum_taps_FORMAT(const input_t *const *taps, int32_t count, int32_t channel,
    const int8_t *w, int32_t stride, int32_t *sums)
{
    int32_t s0 = sums[0];
    int32_t s1 = sums[1];
    int32_t s2 = sums[2];
    int32_t s3 = sums[3];
    const input_t *const *const end = taps + count;
    do {
        const input_t *const at = *taps++ + channel;
#if defined(__ARM_FEATURE_DSP)
        const uint32_t x = load_4(at);
        const uint32_t x02 = even_SIGN(x);
        const uint32_t x13 = odd_SIGN(x);
        const uint32_t w02 = even_tap_WEIGHT(w);
        const uint32_t w13 = odd_tap_WEIGHT(w);
        s0 = add_low_product(x02, w02, s0);
        s1 = add_low_product(x13, w13, s1);
        s2 = add_high_product(x02, w02, s2);
        s3 = add_high_product(x13, w13, s3);
#else
        s0 += at[0] * tap_WEIGHT(w, 0);
        s1 += at[1] * tap_WEIGHT(w, 1);
        s2 += at[2] * tap_WEIGHT(w, 2);
        s3 += at[3] * tap_WEIGHT(w, 3);
#endif
        w += stride;
    } while (taps != end);
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* Point ``taps`` at the pixels under the window at ``x0``; return whether all are inside. */
NOT_INLINED bool taps_under_FORMAT(const depthwise_FORMAT *d, const input_t *const *rows,
    const input_t *outside, int32_t x0, const input_t **taps)
{
    bool all = true;
    for (int32_t ky = 0; ky < d->kernel_height; ++ky) {
        for (int32_t kx = 0; kx < d->kernel_width; ++kx) {
            const int32_t x = x0 + kx * d->dilation_x;
            const bool inside = rows[ky] != NULL && x >= 0 && x < d->width;
            *taps++ = inside ? rows[ky] + x * d->channels : outside;
            all = all && inside;
        }
    }
    return all;
}
