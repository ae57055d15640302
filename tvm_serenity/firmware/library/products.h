/* Sums of products of runs of four inputs each, for $X inputs; copies into columns.
   Copying and filling return where they end. */
INLINED $X_t *copy_$X($X_t *to, const $X_t *from, int32_t count)
{
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

INLINED $X_t *fill_$X($X_t *to, int32_t value, int32_t count)
{
    for (; count > 0; --count) {
        *to++ = ($X_t)value;
    }
    return to;
}

INLINED const int8_t *dot_2x2_$X(
    const $X_t *x0, const $X_t *x1, const int8_t *w, int32_t blocks, int32_t *sums)
{
    int32_t s00 = sums[0];
    int32_t s01 = sums[1];
    int32_t s10 = sums[2];
    int32_t s11 = sums[3];
#if defined(__ARM_FEATURE_MVE) && $V
    for (; blocks >= 4; blocks -= 4) {
        const int32x4x2_t both = vld2q_s32((const int32_t *)(const void *)w);
        const int8x16_t a = vreinterpretq_s8_s32(both.val[0]);
        const int8x16_t b = vreinterpretq_s8_s32(both.val[1]);
        const int8x16_t first = vldrbq_s8((const int8_t *)x0);
        const int8x16_t second = vldrbq_s8((const int8_t *)x1);
        s00 = vmladavaq_s8(s00, first, a);
        s01 = vmladavaq_s8(s01, first, b);
        s10 = vmladavaq_s8(s10, second, a);
        s11 = vmladavaq_s8(s11, second, b);
        w += 32;
        x0 += 16;
        x1 += 16;
    }
#endif
#if defined(__ARM_FEATURE_DSP)
    const int8_t *const end = w + 8 * blocks;
    while (w != end) {
        const uint32_t a = load_4(w);
        const uint32_t b = load_4(w + 4);
        const uint32_t a0 = even_s8(a);
        const uint32_t a1 = odd_s8(a);
        const uint32_t b0 = even_s8(b);
        const uint32_t b1 = odd_s8(b);
        w += 8;
        uint32_t x = load_4(x0);
        x0 += 4;
        uint32_t even = even_$S(x);
        x = odd_$S(x);
        s00 = add_products(even, a0, s00);
        s01 = add_products(even, b0, s01);
        s00 = add_products(x, a1, s00);
        s01 = add_products(x, b1, s01);
        x = load_4(x1);
        x1 += 4;
        even = even_$S(x);
        x = odd_$S(x);
        s10 = add_products(even, a0, s10);
        s11 = add_products(even, b0, s11);
        s10 = add_products(x, a1, s10);
        s11 = add_products(x, b1, s11);
    }
#else
    for (; blocks > 0; --blocks) {
        for (int32_t i = 0; i < 4; ++i) {
            const int32_t a = w[i];
            const int32_t b = w[i + 4];
            s00 += x0[i] * a;
            s01 += x0[i] * b;
            s10 += x1[i] * a;
            s11 += x1[i] * b;
        }
        w += 8;
        x0 += 4;
        x1 += 4;
    }
#endif
    sums[0] = s00;
    sums[1] = s01;
    sums[2] = s10;
    sums[3] = s11;
    return w;
}

INLINED void dot_1x2_$X(
    const $X_t *x0, const int8_t *w, int32_t blocks, int32_t *sums)
{
    int32_t s0 = sums[0];
    int32_t s1 = sums[1];
#if defined(__ARM_FEATURE_DSP)
    const int8_t *const end = w + 8 * blocks;
    do {
        const uint32_t a = load_4(w);
        const uint32_t b = load_4(w + 4);
        w += 8;
        const uint32_t x = load_4(x0);
        x0 += 4;
        const uint32_t even = even_$S(x);
        const uint32_t odd = odd_$S(x);
        s0 = add_products(even, even_s8(a), s0);
        s1 = add_products(even, even_s8(b), s1);
        s0 = add_products(odd, odd_s8(a), s0);
        s1 = add_products(odd, odd_s8(b), s1);
    } while (w != end);
#else
    for (; blocks > 0; --blocks) {
        for (int32_t i = 0; i < 4; ++i) {
            s0 += x0[i] * w[i];
            s1 += x0[i] * w[i + 4];
        }
        w += 8;
        x0 += 4;
    }
#endif
    sums[0] = s0;
    sums[1] = s1;
}
