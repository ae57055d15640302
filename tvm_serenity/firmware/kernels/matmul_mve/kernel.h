#pragma once
#include "../common/instance.h"
#include "../common/products.h"
#include "../common/requantise.h"
/* MVE: products of two int8 matrices, one row of the first at a time. */

/* Return a row with contiguous elements: the row itself, or its copy in the buffer. */
INLINED const int8_t *contiguous_row(const products *p, const int8_t *a, void *buffer)
{
    if (p->a_step == 1) {
        return a;
    }
    int8_t *const copy = (int8_t *)buffer;
    for (int32_t k = 0; k < p->inner; ++k) {
        copy[k] = a[k * p->a_step];
    }
    return copy;
}

/* Return the sum of a row. */
INLINED int32_t sum_of_row(const int8_t *a, int32_t inner)
{
    int32_t sum = 0;
#if defined(__ARM_FEATURE_MVE)
    for (int32_t k = inner; k > 0; k -= 16) {
        const mve_pred16_t lanes = vctp8q((uint32_t)k);
        sum = vaddvaq_s8(sum, vldrbq_z_s8(a, lanes));
        a += 16;
    }
#else
    for (int32_t k = 0; k < inner; ++k) {
        sum += a[k];
    }
#endif
    return sum;
}

#if defined(__ARM_FEATURE_MVE)
INLINED void store_products(const products *p, int32x4_t sums, int8_t *out, mve_pred16_t lanes)
{
    const int32x4_t shifts = vdupq_n_s32(p->shift);
    vstrbq_p_s32(
        out, requantised_four(&p->to, sums, vdupq_n_s32(p->multiplier), shifts), lanes);
}
#endif

/* The columns of the second matrix are contiguous: two at a time, 16 elements at a time. Products
   are of stored values; the zero points times the sums of the row and of the column are
   subtracted. */
NOT_INLINED void row_by_columns(
    const products *p, const int8_t *a, const int8_t *b, int8_t *out, void *buffer)
{
    a = contiguous_row(p, a, buffer);
    const int32_t inner = p->inner;
    const int32_t begun = p->b_zero * (inner * p->a_zero - sum_of_row(a, inner));
#if defined(__ARM_FEATURE_MVE)
    for (int32_t left = p->columns; left > 0; left -= 4) {
        int32_t sums[4] = {0, 0, 0, 0};
        for (int32_t pair = 0; pair < 4 && pair < left; pair += 2) {
            const int8_t *b0 = b;
            const int8_t *b1 = pair + 1 < left ? b + p->b_step : b;
            const int8_t *x = a;
            b = b1 + p->b_step;
            int32_t s0 = begun;
            int32_t s1 = begun;
            int32_t t0 = 0;
            int32_t t1 = 0;
            int32_t k = inner;
            for (; k >= 16; k -= 16) {
                const int8x16_t values = vldrbq_s8(x);
                const int8x16_t one = vldrbq_s8(b0);
                s0 = vmladavaq_s8(s0, values, one);
                t0 = vaddvaq_s8(t0, one);
                const int8x16_t two = vldrbq_s8(b1);
                s1 = vmladavaq_s8(s1, values, two);
                t1 = vaddvaq_s8(t1, two);
                x += 16;
                b0 += 16;
                b1 += 16;
            }
            if (k > 0) {
                const mve_pred16_t lanes = vctp8q((uint32_t)k);
                const int8x16_t values = vldrbq_z_s8(x, lanes);
                const int8x16_t one = vldrbq_z_s8(b0, lanes);
                const int8x16_t two = vldrbq_z_s8(b1, lanes);
                s0 = vmladavaq_s8(s0, values, one);
                t0 = vaddvaq_s8(t0, one);
                s1 = vmladavaq_s8(s1, values, two);
                t1 = vaddvaq_s8(t1, two);
            }
            sums[pair] = s0 - p->a_zero * t0;
            sums[pair + 1] = s1 - p->a_zero * t1;
        }
        const mve_pred16_t lanes = vctp32q((uint32_t)left);
        store_products(p, vldrwq_z_s32(sums, lanes), out, lanes);
        out += 4;
    }
#else
    for (int32_t c = 0; c < p->columns; ++c) {
        int32_t sum = begun;
        for (int32_t k = 0; k < inner; ++k) {
            sum += (a[k] - p->a_zero) * b[k];
        }
        out[c] = (int8_t)requantised(&p->to, sum, p->multiplier, p->shift);
        b += p->b_step;
    }
#endif
}

/* The rows of the second matrix are contiguous: 16 columns at a time, one element at a time. */
NOT_INLINED void row_by_rows(
    const products *p, const int8_t *a, const int8_t *b, int8_t *out, void *buffer)
{
    a = contiguous_row(p, a, buffer);
    const int32_t inner = p->inner;
    const int32_t begun = p->b_zero * (inner * p->a_zero - sum_of_row(a, inner));
    const int32_t zero = p->a_zero;
#if defined(__ARM_FEATURE_MVE)
    int32_t left = p->columns;
    for (; left >= 16; left -= 16) {
        const int8_t *at = b;
        const int8_t *x = a;
        int32x4_t s0 = vdupq_n_s32(begun);
        int32x4_t s1 = s0;
        int32x4_t s2 = s0;
        int32x4_t s3 = s0;
        for (int32_t k = inner; k > 0; --k) {
            const int32_t value = *x++ - zero;
            s0 = vmlaq_n_s32(s0, vldrbq_s32(at), value);
            s1 = vmlaq_n_s32(s1, vldrbq_s32(at + 4), value);
            s2 = vmlaq_n_s32(s2, vldrbq_s32(at + 8), value);
            s3 = vmlaq_n_s32(s3, vldrbq_s32(at + 12), value);
            at += p->b_step;
        }
        const mve_pred16_t all = vctp32q(4);
        store_products(p, s0, out, all);
        store_products(p, s1, out + 4, all);
        store_products(p, s2, out + 8, all);
        store_products(p, s3, out + 12, all);
        b += 16;
        out += 16;
    }
    for (; left > 0; left -= 4) {
        const int8_t *at = b;
        const int8_t *x = a;
        const mve_pred16_t lanes = vctp32q((uint32_t)left);
        int32x4_t sums = vdupq_n_s32(begun);
        for (int32_t k = inner; k > 0; --k) {
            sums = vmlaq_n_s32(sums, vldrbq_z_s32(at, lanes), *x++ - zero);
            at += p->b_step;
        }
        store_products(p, sums, out, lanes);
        b += 4;
        out += 4;
    }
#else
    for (int32_t c = 0; c < p->columns; ++c) {
        int32_t sum = begun;
        for (int32_t k = 0; k < inner; ++k) {
            sum += (a[k] - zero) * b[k * p->b_step];
        }
        ++b;
        out[c] = (int8_t)requantised(&p->to, sum, p->multiplier, p->shift);
    }
#endif
}
