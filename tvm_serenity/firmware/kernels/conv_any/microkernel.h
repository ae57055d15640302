#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
/* Sums of products of runs of INPUT inputs in blocks of four; weights: WEIGHT_BITS bytes per
   block. */
INLINED const int8_t *dot_2x2_FORMAT(
    const input_t *x0, const input_t *x1, const int8_t *w, int32_t blocks, int32_t *sums)
{
    int32_t s00 = sums[0];
    int32_t s01 = sums[1];
    int32_t s10 = sums[2];
    int32_t s11 = sums[3];
#if defined(__ARM_FEATURE_DSP)
    const int8_t *const end = w + WEIGHT_BITS * blocks;
    while (w != end) {
        const uint32_t a = first_WEIGHT(w);
        const uint32_t b = second_WEIGHT(w);
        const uint32_t a0 = even_s8(a);
        const uint32_t a1 = odd_s8(a);
        const uint32_t b0 = even_s8(b);
        const uint32_t b1 = odd_s8(b);
        w += WEIGHT_BITS;
        uint32_t x = load_4(x0);
        x0 += 4;
        uint32_t even = even_SIGN(x);
        x = odd_SIGN(x);
        s00 = add_products(even, a0, s00);
        s01 = add_products(even, b0, s01);
        s00 = add_products(x, a1, s00);
        s01 = add_products(x, b1, s01);
        x = load_4(x1);
        x1 += 4;
        even = even_SIGN(x);
        x = odd_SIGN(x);
        s10 = add_products(even, a0, s10);
        s11 = add_products(even, b0, s11);
        s10 = add_products(x, a1, s10);
        s11 = add_products(x, b1, s11);
    }
#else
    for (; blocks > 0; --blocks) {
        UNROLLED_4
        for (int32_t i = 0; i < 4; ++i) {
            const int32_t a = first_of_WEIGHT(w, i);
            const int32_t b = second_of_WEIGHT(w, i);
            s00 += x0[i] * a;
            s01 += x0[i] * b;
            s10 += x1[i] * a;
            s11 += x1[i] * b;
        }
        w += WEIGHT_BITS;
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

INLINED void dot_1x2_FORMAT(
    const input_t *x0, const int8_t *w, int32_t blocks, int32_t *sums)
{
    int32_t s0 = sums[0];
    int32_t s1 = sums[1];
#if defined(__ARM_FEATURE_DSP)
    const int8_t *const end = w + WEIGHT_BITS * blocks;
    do {
        const uint32_t a = first_WEIGHT(w);
        const uint32_t b = second_WEIGHT(w);
        w += WEIGHT_BITS;
        const uint32_t x = load_4(x0);
        x0 += 4;
        const uint32_t even = even_SIGN(x);
        const uint32_t odd = odd_SIGN(x);
        s0 = add_products(even, even_s8(a), s0);
        s1 = add_products(even, even_s8(b), s1);
        s0 = add_products(odd, odd_s8(a), s0);
        s1 = add_products(odd, odd_s8(b), s1);
    } while (w != end);
#else
    for (; blocks > 0; --blocks) {
        UNROLLED_4
        for (int32_t i = 0; i < 4; ++i) {
            s0 += x0[i] * first_of_WEIGHT(w, i);
            s1 += x0[i] * second_of_WEIGHT(w, i);
        }
        w += WEIGHT_BITS;
        x0 += 4;
    }
#endif
    sums[0] = s0;
    sums[1] = s1;
}

/* Four channels of one pixel: ``w``: the weights of two channels, ``v``: of the other two. */
INLINED void dot_1x4_FORMAT(
    const input_t *x, const int8_t *w, const int8_t *v, int32_t blocks, int32_t *sums)
{
    int32_t s0 = sums[0];
    int32_t s1 = sums[1];
    int32_t s2 = sums[2];
    int32_t s3 = sums[3];
#if defined(__ARM_FEATURE_DSP)
    const int8_t *const end = w + WEIGHT_BITS * blocks;
    do {
        uint32_t odd = load_4(x);
        x += 4;
        const uint32_t even = even_SIGN(odd);
        odd = odd_SIGN(odd);
        uint32_t a = first_WEIGHT(w);
        s0 = add_products(even, even_s8(a), s0);
        s0 = add_products(odd, odd_s8(a), s0);
        a = second_WEIGHT(w);
        w += WEIGHT_BITS;
        s1 = add_products(even, even_s8(a), s1);
        s1 = add_products(odd, odd_s8(a), s1);
        __asm volatile("" ::: "memory"); /* keeps the loads after this point: there are few registers */
        a = first_WEIGHT(v);
        s2 = add_products(even, even_s8(a), s2);
        s2 = add_products(odd, odd_s8(a), s2);
        a = second_WEIGHT(v);
        v += WEIGHT_BITS;
        s3 = add_products(even, even_s8(a), s3);
        s3 = add_products(odd, odd_s8(a), s3);
    } while (w != end);
#else
    for (; blocks > 0; --blocks) {
        UNROLLED_4
        for (int32_t i = 0; i < 4; ++i) {
            const int32_t in = x[i];
            s0 += in * first_of_WEIGHT(w, i);
            s1 += in * second_of_WEIGHT(w, i);
            s2 += in * first_of_WEIGHT(v, i);
            s3 += in * second_of_WEIGHT(v, i);
        }
        w += WEIGHT_BITS;
        v += WEIGHT_BITS;
        x += 4;
    }
#endif
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}
