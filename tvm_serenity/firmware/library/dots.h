/* Sums of products of runs of four $X inputs each and weights of $B bytes a block. */
INLINED const int8_t *dot_2x2_$N(
    const $X_t *x0, const $X_t *x1, const int8_t *w, int32_t blocks, int32_t *sums)
{
    int32_t s00 = sums[0];
    int32_t s01 = sums[1];
    int32_t s10 = sums[2];
    int32_t s11 = sums[3];
#if defined(__ARM_FEATURE_DSP)
    const int8_t *const end = w + $B * blocks;
    while (w != end) {
        const uint32_t a = first_$W(w);
        const uint32_t b = second_$W(w);
        const uint32_t a0 = even_s8(a);
        const uint32_t a1 = odd_s8(a);
        const uint32_t b0 = even_s8(b);
        const uint32_t b1 = odd_s8(b);
        w += $B;
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
            const int32_t a = first_of_$W(w, i);
            const int32_t b = second_of_$W(w, i);
            s00 += x0[i] * a;
            s01 += x0[i] * b;
            s10 += x1[i] * a;
            s11 += x1[i] * b;
        }
        w += $B;
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

INLINED void dot_1x2_$N(
    const $X_t *x0, const int8_t *w, int32_t blocks, int32_t *sums)
{
    int32_t s0 = sums[0];
    int32_t s1 = sums[1];
#if defined(__ARM_FEATURE_DSP)
    const int8_t *const end = w + $B * blocks;
    do {
        const uint32_t a = first_$W(w);
        const uint32_t b = second_$W(w);
        w += $B;
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
            s0 += x0[i] * first_of_$W(w, i);
            s1 += x0[i] * second_of_$W(w, i);
        }
        w += $B;
        x0 += 4;
    }
#endif
    sums[0] = s0;
    sums[1] = s1;
}

/* One pixel of four channels: ``w`` are the weights of two of them, ``v`` of the other two. */
INLINED void dot_1x4_$N(
    const $X_t *x, const int8_t *w, const int8_t *v, int32_t blocks, int32_t *sums)
{
    int32_t s0 = sums[0];
    int32_t s1 = sums[1];
    int32_t s2 = sums[2];
    int32_t s3 = sums[3];
#if defined(__ARM_FEATURE_DSP)
    const int8_t *const end = w + $B * blocks;
    do {
        uint32_t odd = load_4(x);
        x += 4;
        const uint32_t even = even_$S(odd);
        odd = odd_$S(odd);
        uint32_t a = first_$W(w);
        s0 = add_products(even, even_s8(a), s0);
        s0 = add_products(odd, odd_s8(a), s0);
        a = second_$W(w);
        w += $B;
        s1 = add_products(even, even_s8(a), s1);
        s1 = add_products(odd, odd_s8(a), s1);
        __asm volatile("" ::: "memory"); /* loads stay behind: registers are few */
        a = first_$W(v);
        s2 = add_products(even, even_s8(a), s2);
        s2 = add_products(odd, odd_s8(a), s2);
        a = second_$W(v);
        v += $B;
        s3 = add_products(even, even_s8(a), s3);
        s3 = add_products(odd, odd_s8(a), s3);
    } while (w != end);
#else
    for (; blocks > 0; --blocks) {
        for (int32_t i = 0; i < 4; ++i) {
            const int32_t in = x[i];
            s0 += in * first_of_$W(w, i);
            s1 += in * second_of_$W(w, i);
            s2 += in * first_of_$W(v, i);
            s3 += in * second_of_$W(v, i);
        }
        w += $B;
        v += $B;
        x += 4;
    }
#endif
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}
