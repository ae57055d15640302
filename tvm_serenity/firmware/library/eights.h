/* MVE: eight or sixteen channels of a depthwise convolution at a time, $X inputs, weights of 8 bits.

   Products have 16 bits, and so have the sums of two where ``pairs`` says so: inputs are signed and
   no weight is -128. Sums of 32 bits are held of the even channels and of the odd ones. */
#if defined(__ARM_FEATURE_MVE) && $B == 8
typedef struct {
    const int8_t *weights;
    const int32_t *bias, *multipliers;
    const int8_t *shifts;
} numbers_$N;

INLINED void widened_$N(int16x8_t products, int32x4_t *sums)
{
    sums[0] = vaddq_s32(sums[0], vmovlbq_s16(products));
    sums[1] = vaddq_s32(sums[1], vmovltq_s16(products));
}

/* Requantise and store eight channels from ``c`` on. */
INLINED void store_eight_$N(const requantisation *to, const int32x4_t *sums,
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
    const int32x4_t even = requantised_four(to, sums[0], m.val[0], vmovlbq_s16(s));
    const int32x4_t odd = requantised_four(to, sums[1], m.val[1], vmovltq_s16(s));
    vstrbq_s16((int8_t *)out, vmovntq_s32(vreinterpretq_s16_s32(even), odd));
}

/* Sums of 8 * ``eights`` channels over the pixels that ``taps`` point at. */
INLINED void sum_eights_$N(const depthwise_$N *d, const $X_t *const *taps, int32_t channel,
    const int8_t *w, int32x4_t *sums, int32_t eights)
{
    const int32_t n = d->channels;
    int32_t count = d->kernel_height * d->kernel_width;
    if (d->pairs) {
        for (; count > 1; count -= 2) {
            const $X_t *const x = taps[0] + channel;
            const $X_t *const y = taps[1] + channel;
            const int8_t *const v = w + n;
            taps += 2;
            for (int32_t i = 0; i < eights; ++i) {
                int16x8_t two = vmulq_s16(eight_$S(x + 8 * i), vldrbq_s16(w + 8 * i));
                two = vaddq_s16(two, vmulq_s16(eight_$S(y + 8 * i), vldrbq_s16(v + 8 * i)));
                widened_$N(two, sums + 2 * i);
            }
            w = v + n;
        }
    }
    for (; count > 0; --count) {
        const $X_t *const x = *taps++ + channel;
        for (int32_t i = 0; i < eights; ++i) {
            widened_$N(vmulq_s16(eight_$S(x + 8 * i), vldrbq_s16(w + 8 * i)), sums + 2 * i);
        }
        w += n;
    }
}

/* All channels of a pixel, at least eight: the last ones are made twice where eights overlap. */
NOT_INLINED void eights_$N(const depthwise_$N *d, const numbers_$N *with, const $X_t *const *taps,
    int32_t moved, uint8_t *out)
{
    const requantisation to = d->to;
    const int32_t n = d->channels;
    for (int32_t c = 0; c < n;) {
        const bool both = n - c >= 16;
        c = both ? c : min_i32(c, n - 8);
        const int32x4x2_t b = vld2q_s32(with->bias + c);
        int32x4_t sums[4] = {b.val[0], b.val[1]};
        if (both) {
            const int32x4x2_t next = vld2q_s32(with->bias + c + 8);
            sums[2] = next.val[0];
            sums[3] = next.val[1];
            sum_eights_$N(d, taps, moved + c, with->weights + c, sums, 2);
        } else {
            sum_eights_$N(d, taps, moved + c, with->weights + c, sums, 1);
        }
        int32_t at = c * to.step;
        store_eight_$N(&to, sums, with->multipliers + at, with->shifts + at, out + c);
        c += 8;
        if (both) {
            at = c * to.step;
            store_eight_$N(&to, sums + 2, with->multipliers + at, with->shifts + at, out + c);
            c += 8;
        }
    }
}
#endif
