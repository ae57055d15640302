#pragma once
#include "../common/instance.h"
#include "../common/dot.h"
#include "../common/products.h"
#include "../common/requantise.h"
/* DSP extension: products of two int8 matrices, four columns of a row at a time.

   The buffer holds a row of the first matrix minus its zero point, in 16 bits. The zero point of
   the second matrix is subtracted from the sums: times the sum of the row. */

/* Fill the buffer; return the sum of the row. ``blocks``: elements of each whole block of four are
   in the order first, third, second, fourth, as bytes of a word are widened. */
INLINED int32_t widened_row(const products *p, const int8_t *a, int16_t *wide, bool blocks)
{
    int32_t sum = 0;
    int32_t k = 0;
#if defined(__ARM_FEATURE_DSP)
    if (p->a_step == 1) {
        const uint32_t zeros = (uint32_t)(uint16_t)p->a_zero * 0x10001u;
        for (; k + 4 <= p->inner; k += 4) {
            const uint32_t word = load_4(a + k);
            uint32_t even = even_s8(word);
            uint32_t odd = odd_s8(word);
            __asm("ssub16 %0, %0, %1" : "+r"(even) : "r"(zeros));
            __asm("ssub16 %0, %0, %1" : "+r"(odd) : "r"(zeros));
            sum = add_products(even, 0x10001u, sum);
            sum = add_products(odd, 0x10001u, sum);
            if (!blocks) {
                uint32_t low;
                __asm("pkhbt %0, %1, %2, lsl #16" : "=r"(low) : "r"(even), "r"(odd));
                __asm("pkhtb %0, %1, %2, asr #16" : "=r"(odd) : "r"(odd), "r"(even));
                even = low;
            }
            (void)memcpy(wide + k, &even, 4);
            (void)memcpy(wide + k + 2, &odd, 4);
        }
    }
#endif
    for (; k < p->inner; ++k) {
        const int32_t value = a[k * p->a_step] - p->a_zero;
        const bool whole = blocks && k < (p->inner & ~3);
        wide[whole ? (k & ~3) + (k & 1) * 2 + (k >> 1 & 1) : k] = (int16_t)value;
        sum += value;
    }
    return sum;
}

NOT_INLINED int8_t rounded_once(const products *p, int32_t sum)
{
    return (int8_t)requantised(&p->to, sum, p->multiplier, p->shift);
}

INLINED void store_product(const products *p, int32_t sum, int8_t *out)
{
    if (p->to.rounding == ROUND_TWICE_SMALL) {
        *out = (int8_t)stored(
            sum, p->multiplier, ~p->shift, 2 * p->to.zero_point + 1, &p->to, FULL_s8);
    } else {
        *out = rounded_once(p, sum);
    }
}

INLINED int32_t column_dot(const int16_t *wide, const int8_t *b, int32_t inner, int32_t sum)
{
    const int32_t whole = inner & ~3;
    int32_t k = 0;
#if defined(__ARM_FEATURE_DSP)
    for (; k < whole; k += 4) {
        const uint32_t word = load_4(b + k);
        sum = add_products(load_4(wide + k), even_s8(word), sum);
        sum = add_products(load_4(wide + k + 2), odd_s8(word), sum);
    }
#else
    for (; k < whole; ++k) {
        sum += wide[(k & ~3) + (k & 1) * 2 + (k >> 1 & 1)] * b[k];
    }
#endif
    for (; k < inner; ++k) {
        sum += wide[k] * b[k];
    }
    return sum;
}

/* The columns of the second matrix are contiguous. */
NOT_INLINED void row_by_columns(
    const products *p, const int8_t *a, const int8_t *b, int8_t *out, void *buffer)
{
    int16_t *const wide = (int16_t *)buffer;
    const int32_t begun = -p->b_zero * widened_row(p, a, wide, true);
    int32_t left = p->columns;
#if defined(__ARM_FEATURE_DSP)
    const int32_t whole = p->inner & ~3;
    for (; left >= 4; left -= 4) {
        const int8_t *b0 = b;
        const int8_t *b1 = b0 + p->b_step;
        const int8_t *b2 = b1 + p->b_step;
        const int8_t *b3 = b2 + p->b_step;
        b = b3 + p->b_step;
        int32_t s0 = begun;
        int32_t s1 = begun;
        int32_t s2 = begun;
        int32_t s3 = begun;
        const int16_t *x = wide;
        for (const int16_t *const end = wide + whole; x != end; x += 4) {
            const uint32_t even = load_4(x);
            const uint32_t odd = load_4(x + 2);
            uint32_t word = load_4(b0);
            s0 = add_products(even, even_s8(word), s0);
            s0 = add_products(odd, odd_s8(word), s0);
            word = load_4(b1);
            s1 = add_products(even, even_s8(word), s1);
            s1 = add_products(odd, odd_s8(word), s1);
            word = load_4(b2);
            s2 = add_products(even, even_s8(word), s2);
            s2 = add_products(odd, odd_s8(word), s2);
            word = load_4(b3);
            s3 = add_products(even, even_s8(word), s3);
            s3 = add_products(odd, odd_s8(word), s3);
            b0 += 4;
            b1 += 4;
            b2 += 4;
            b3 += 4;
        }
        for (int32_t k = p->inner - whole; k > 0; --k) {
            const int32_t value = *x++;
            s0 += value * *b0++;
            s1 += value * *b1++;
            s2 += value * *b2++;
            s3 += value * *b3++;
        }
        store_product(p, s0, out);
        store_product(p, s1, out + 1);
        store_product(p, s2, out + 2);
        store_product(p, s3, out + 3);
        out += 4;
    }
#endif
    for (; left > 0; --left) {
        store_product(p, column_dot(wide, b, p->inner, begun), out++);
        b += p->b_step;
    }
}

/* The rows of the second matrix are contiguous: those of two elements are read together. */
NOT_INLINED void row_by_rows(
    const products *p, const int8_t *a, const int8_t *b, int8_t *out, void *buffer)
{
    int16_t *const wide = (int16_t *)buffer;
    const int32_t begun = -p->b_zero * widened_row(p, a, wide, false);
    const int32_t step = p->b_step;
    int32_t left = p->columns;
#if defined(__ARM_FEATURE_DSP)
    for (; left >= 4; left -= 4) {
        const int8_t *at = b;
        b += 4;
        int32_t s0 = begun;
        int32_t s1 = begun;
        int32_t s2 = begun;
        int32_t s3 = begun;
        const int16_t *x = wide;
        for (const int16_t *const end = wide + (p->inner & ~1); x != end; x += 2) {
            const uint32_t first = load_4(at);
            at += step;
            const uint32_t second = load_4(at);
            at += step;
            const uint32_t value = load_4(x);
            const uint32_t even = even_s8(first);
            const uint32_t odd = odd_s8(first);
            const uint32_t next_even = even_s8(second);
            const uint32_t next_odd = odd_s8(second);
            uint32_t both;
            __asm("pkhbt %0, %1, %2, lsl #16" : "=r"(both) : "r"(even), "r"(next_even));
            s0 = add_products(value, both, s0);
            __asm("pkhbt %0, %1, %2, lsl #16" : "=r"(both) : "r"(odd), "r"(next_odd));
            s1 = add_products(value, both, s1);
            __asm("pkhtb %0, %1, %2, asr #16" : "=r"(both) : "r"(next_even), "r"(even));
            s2 = add_products(value, both, s2);
            __asm("pkhtb %0, %1, %2, asr #16" : "=r"(both) : "r"(next_odd), "r"(odd));
            s3 = add_products(value, both, s3);
        }
        if ((p->inner & 1) != 0) {
            s0 += *x * at[0];
            s1 += *x * at[1];
            s2 += *x * at[2];
            s3 += *x * at[3];
        }
        store_product(p, s0, out);
        store_product(p, s1, out + 1);
        store_product(p, s2, out + 2);
        store_product(p, s3, out + 3);
        out += 4;
    }
#endif
    for (; left > 0; --left) {
        int32_t sum = begun;
        for (int32_t k = 0; k < p->inner; ++k) {
            sum += wide[k] * b[k * step];
        }
        ++b;
        store_product(p, sum, out++);
    }
}
