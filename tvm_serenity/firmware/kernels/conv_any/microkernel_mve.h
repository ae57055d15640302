#pragma once
#include "../common/instance.h"
#include "../common/convolution.h"
#include "microkernel.h"
/* MVE: four channels of one or two pixels at a time, INPUT inputs; weights: WEIGHT_BITS bytes per
   block. */
#if defined(__ARM_FEATURE_MVE) && INPUT_SIGNED && WEIGHT_BITS == 4
/* Blocks of a run: ``whole`` vectors and, if ``rest`` is not 0, the ``lanes`` of one more. Inputs
   after them count as 0. Weights after them are read too, so the last weights are followed by
   padding. */
typedef struct {
    int32_t whole, rest;
    mve_pred16_t lanes;
} vectors_FORMAT;

INLINED vectors_FORMAT vectors_of_FORMAT(int32_t blocks)
{
    const int32_t rest = blocks % 4;
    return (vectors_FORMAT){blocks / 4, rest, vctp8q((uint32_t)(4 * rest))};
}

/* Two channels of two pixels; return the end of the weights. */
INLINED const int8_t *vectors_2x2_FORMAT(const input_t *x0, const input_t *x1, const int8_t *w,
    vectors_FORMAT of, int32_t *sums)
{
    int8x16_t a;
    int8x16_t b;
    int32_t s0 = sums[0];
    int32_t s1 = sums[1];
    int32_t s2 = sums[2];
    int32_t s3 = sums[3];
    for (int32_t i = of.whole; i > 0; --i) {
        sixteen_WEIGHT(w, &a, &b);
        const int8x16_t first = vldrbq_s8(x0);
        const int8x16_t second = vldrbq_s8(x1);
        s0 = vmladavaq_s8(s0, first, a);
        s1 = vmladavaq_s8(s1, first, b);
        s2 = vmladavaq_s8(s2, second, a);
        s3 = vmladavaq_s8(s3, second, b);
        w += 4 * WEIGHT_BITS;
        x0 += 16;
        x1 += 16;
    }
    if (of.rest != 0) {
        const int8x16_t first = vldrbq_z_s8(x0, of.lanes);
        const int8x16_t second = vldrbq_z_s8(x1, of.lanes);
        sixteen_WEIGHT(w, &a, &b);
        s0 = vmladavaq_s8(s0, first, a);
        s1 = vmladavaq_s8(s1, first, b);
        s2 = vmladavaq_s8(s2, second, a);
        s3 = vmladavaq_s8(s3, second, b);
        w += WEIGHT_BITS * of.rest;
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
    return w;
}

/* Four channels of a pixel: weights of two in ``w`` and of two in ``v``. */
INLINED void vectors_1x4_FORMAT(const input_t *x, const int8_t *w, const int8_t *v,
    vectors_FORMAT of, int32_t *sums)
{
    int8x16_t a;
    int8x16_t b;
    int32_t s0 = sums[0];
    int32_t s1 = sums[1];
    int32_t s2 = sums[2];
    int32_t s3 = sums[3];
    for (int32_t i = of.whole; i > 0; --i) {
        const int8x16_t in = vldrbq_s8(x);
        sixteen_WEIGHT(w, &a, &b);
        s0 = vmladavaq_s8(s0, in, a);
        s1 = vmladavaq_s8(s1, in, b);
        sixteen_WEIGHT(v, &a, &b);
        s2 = vmladavaq_s8(s2, in, a);
        s3 = vmladavaq_s8(s3, in, b);
        w += 4 * WEIGHT_BITS;
        v += 4 * WEIGHT_BITS;
        x += 16;
    }
    if (of.rest != 0) {
        const int8x16_t in = vldrbq_z_s8(x, of.lanes);
        sixteen_WEIGHT(w, &a, &b);
        s0 = vmladavaq_s8(s0, in, a);
        s1 = vmladavaq_s8(s1, in, b);
        sixteen_WEIGHT(v, &a, &b);
        s2 = vmladavaq_s8(s2, in, a);
        s3 = vmladavaq_s8(s3, in, b);
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* Requantise and store up to four channels of one or two pixels, from ``o`` on. Biases,
   multipliers and shifts are padded to four. */
INLINED void store_4_outputs_FORMAT(const convolution_INPUT *c, const with_INPUT *with, int32_t o,
    int32x4_t first, int32x4_t second, bool two, uint8_t *out)
{
    const int32_t n = c->out_channels;
    const int32x4_t bias = vldrwq_s32(with->bias + o);
    int32x4_t m;
    int32x4_t shifts;
    if (c->to.step != 0) {
        m = vldrwq_s32(with->multipliers + o);
        shifts = vldrbq_s32(with->shifts + o);
    } else {
        m = vdupq_n_s32(*with->multipliers);
        shifts = vdupq_n_s32(*with->shifts);
    }
    first = vaddq_s32(summed_four_WEIGHT(first), bias);
    second = vaddq_s32(summed_four_WEIGHT(second), bias);
    first = requantised_four(&c->to, first, m, shifts);
    if (two) {
        second = requantised_four(&c->to, second, m, shifts);
    }
    out += o;
    if (o + 4 <= n) {
        vstrbq_s32((int8_t *)out, first);
        if (two) {
            vstrbq_s32((int8_t *)out + n, second);
        }
    } else {
        const mve_pred16_t lanes = vctp32q((uint32_t)(n - o));
        vstrbq_p_s32((int8_t *)out, first, lanes);
        if (two) {
            vstrbq_p_s32((int8_t *)out + n, second, lanes);
        }
    }
}

/* All channels of one pixel or of ``two``; ``alone``: the window is one run, else two or more. */
INLINED void tile_4_outputs_of_FORMAT(const convolution_INPUT *c, const with_INPUT *with, const run_INPUT *end,
    bool two, bool alone, uint8_t *out)
{
    const with_INPUT numbers = *with;
    const int32_t n = c->out_channels;
    const int32_t pair = WEIGHT_BITS * (c->depth / 4);
    const run_INPUT only = *numbers.runs;
    const vectors_FORMAT all = vectors_of_FORMAT(c->depth / 4);
    const int8_t *w = numbers.weights;
    for (int32_t o = 0; o < n; o += 4) {
        const int8_t *v = o + 2 < n ? w + pair : w; /* what is not there is not stored */
        int32_t s[4] = {0, 0, 0, 0};
        int32_t t[4] = {0, 0, 0, 0};
        if (alone && two) {
            (void)vectors_2x2_FORMAT(only.first, only.second, w, all, s);
            (void)vectors_2x2_FORMAT(only.first, only.second, v, all, t);
        } else if (alone) {
            vectors_1x4_FORMAT(only.first, w, v, all, s);
        } else {
            const int8_t *u = w;
            for (const run_INPUT *run = numbers.runs; run != end; ++run) {
                const vectors_FORMAT of = vectors_of_FORMAT(run->blocks);
                u = vectors_2x2_FORMAT(run->first, run->second, u, of, s);
                v = vectors_2x2_FORMAT(run->first, run->second, v, of, t);
            }
        }
        w += 2 * pair;
        const int32x4_t first = {s[0], s[1], two ? t[0] : s[2], two ? t[1] : s[3]};
        const int32x4_t second = {s[2], s[3], t[2], t[3]};
        store_4_outputs_FORMAT(c, &numbers, o, first, second, two, out);
    }
}

/* The same for _SMALL roundings. */
NOT_INLINED void tile_4_outputs_FORMAT(const convolution_INPUT *c, const with_INPUT *with, const run_INPUT *end,
    bool two, uint8_t *out)
{
    if (!two) {
        tile_4_outputs_of_FORMAT(c, with, end, false, true, out);
    } else if (end == with->runs + 1) {
        tile_4_outputs_of_FORMAT(c, with, end, true, true, out);
    } else {
        tile_4_outputs_of_FORMAT(c, with, end, true, false, out);
    }
}
#endif
