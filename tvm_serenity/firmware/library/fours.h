/* MVE: four channels of one or two pixels at a time, $X inputs, weights of $B bytes a block. */
#if defined(__ARM_FEATURE_MVE) && $V
/* Two channels of two pixels: what ``dot_2x2`` sums, with the last blocks as part of a vector. */
INLINED const int8_t *vectors_2x2_$N(
    const $X_t *x0, const $X_t *x1, const int8_t *w, int32_t blocks, int32_t *sums)
{
    int8x16_t a;
    int8x16_t b;
    for (; blocks >= 4; blocks -= 4) {
        sixteen_$W(w, &a, &b);
        const int8x16_t first = vldrbq_s8(x0);
        const int8x16_t second = vldrbq_s8(x1);
        sums[0] = vmladavaq_s8(sums[0], first, a);
        sums[1] = vmladavaq_s8(sums[1], first, b);
        sums[2] = vmladavaq_s8(sums[2], second, a);
        sums[3] = vmladavaq_s8(sums[3], second, b);
        w += 4 * $B;
        x0 += 16;
        x1 += 16;
    }
    if (blocks > 0) {
        const mve_pred16_t lanes = vctp8q((uint32_t)(4 * blocks));
        last_$W(w, 4 * blocks, &a, &b);
        const int8x16_t first = vldrbq_z_s8(x0, lanes);
        const int8x16_t second = vldrbq_z_s8(x1, lanes);
        sums[0] = vmladavaq_s8(sums[0], first, a);
        sums[1] = vmladavaq_s8(sums[1], first, b);
        sums[2] = vmladavaq_s8(sums[2], second, a);
        sums[3] = vmladavaq_s8(sums[3], second, b);
        w += $B * blocks;
    }
    return w;
}

/* Four channels of a pixel, two from ``w`` and two from ``v``. */
INLINED void vectors_1x4_$N(
    const $X_t *x, const int8_t *w, const int8_t *v, int32_t blocks, int32_t *sums)
{
    int8x16_t a;
    int8x16_t b;
    for (; blocks >= 4; blocks -= 4) {
        const int8x16_t in = vldrbq_s8(x);
        sixteen_$W(w, &a, &b);
        sums[0] = vmladavaq_s8(sums[0], in, a);
        sums[1] = vmladavaq_s8(sums[1], in, b);
        sixteen_$W(v, &a, &b);
        sums[2] = vmladavaq_s8(sums[2], in, a);
        sums[3] = vmladavaq_s8(sums[3], in, b);
        w += 4 * $B;
        v += 4 * $B;
        x += 16;
    }
    if (blocks > 0) {
        const int8x16_t in = vldrbq_z_s8(x, vctp8q((uint32_t)(4 * blocks)));
        last_$W(w, 4 * blocks, &a, &b);
        sums[0] = vmladavaq_s8(sums[0], in, a);
        sums[1] = vmladavaq_s8(sums[1], in, b);
        last_$W(v, 4 * blocks, &a, &b);
        sums[2] = vmladavaq_s8(sums[2], in, a);
        sums[3] = vmladavaq_s8(sums[3], in, b);
    }
}

/* All channels of one or two pixels, for roundings that are _SMALL. */
NOT_INLINED void fours_$N(const convolution_$X *c, const with_$X *with, const run_$X *end,
    int32_t count, uint8_t *out)
{
    const requantisation to = c->to;
    const int32_t n = c->out_channels;
    const int32_t pair = $B * (c->depth / 4);
    const int8_t *w = with->weights;
    for (int32_t o = 0; o < n; o += 4) {
        const int8_t *v = o + 2 < n ? w + pair : w; /* what is not there is not stored */
        int32_t s[4] = {0, 0, 0, 0};
        int32_t t[4] = {0, 0, 0, 0};
        const run_$X *run = with->runs;
        if (count == 1) {
            const int8_t *u = w;
            do {
                vectors_1x4_$N(run->first, u, v, run->blocks, s);
                u += $B * run->blocks;
                v += $B * run->blocks;
            } while (++run != end);
        } else {
            const int8_t *u = w;
            do {
                u = vectors_2x2_$N(run->first, run->second, u, run->blocks, s);
            } while (++run != end);
            run = with->runs;
            do {
                v = vectors_2x2_$N(run->first, run->second, v, run->blocks, t);
            } while (++run != end);
        }
        w += 2 * pair;
        const mve_pred16_t lanes = vctp32q((uint32_t)(n - o));
        const int32x4_t bias = vldrwq_z_s32(with->bias + o, lanes);
        int32x4_t m;
        int32x4_t shifts;
        if (to.step != 0) {
            m = vldrwq_z_s32(with->multipliers + o, lanes);
            shifts = vldrbq_z_s32(with->shifts + o, lanes);
        } else {
            m = vdupq_n_s32(*with->multipliers);
            shifts = vdupq_n_s32(*with->shifts);
        }
        int32x4_t four = {s[0], s[1], count == 1 ? s[2] : t[0], count == 1 ? s[3] : t[1]};
        four = requantised_four(&to, vaddq_s32(summed_four_$W(four), bias), m, shifts);
        vstrbq_p_s32((int8_t *)out + o, four, lanes);
        if (count != 1) {
            four = (int32x4_t){s[2], s[3], t[2], t[3]};
            four = requantised_four(&to, vaddq_s32(summed_four_$W(four), bias), m, shifts);
            vstrbq_p_s32((int8_t *)out + n + o, four, lanes);
        }
    }
}
#endif
