#pragma once
#include "../common/instance.h"
#include "../common/requantise.h"
#include "../common/epilogue.h"
#include "../common/sparse.h"
/* DSP extension: dense layers and 1x1 convolutions from weights that are not 0, eight windows or
   one window at a time, for ROUND_TWICE_SMALL and ROUND_ONCE_SMALL.

   One SMLAL computes two products: a word holds an input of one window plus 2^23 times that of the
   next, and a sum of 64 bits holds both sums in the same way. The first one is less than 2^22,
   which is verified at build time; bias follows later. ``wide``: four such words for each input of
   eight windows, made once for all outputs.

   One window reads its inputs in place: one SMLAD for the two weights of a pair.

   ``twice``: twice the bias of each output. ``numbers``: the two of ``epilogue.h``, of each output or
   of all, ``step`` bytes apart. */
typedef struct {
    const uint8_t *codes;
    const int32_t *twice;
    int32_t step;
    const int32_t *numbers;
    const int32_t *wide;
    input_t *out;
    const input_t *out_end;
    int32_t to[8]; /* where the results of the windows are, from the last one on */
} eight_FORMAT;

typedef struct {
    const uint8_t *codes;
    const int32_t *numbers;
    const input_t *x;
    input_t *out;
    int32_t step;
    const input_t *out_end;
    const int32_t *twice;
} one_FORMAT;

typedef struct {
    int32_t channels, out_channels, step, low, high;
    void (*eight)(eight_FORMAT *e);
    void (*one)(const one_FORMAT *e);
} sparse_pairs_FORMAT;

#if defined(__ARM_FEATURE_DSP)
#if WEIGHT_BITS == 8
#define PAIR_FORMAT(w, codes) "ldr " w ", [" codes "], #3\n"
#define GAP_FORMAT(to, w) "ubfx " to ", " w ", #8, #4\n"
#define NEXT_GAP_FORMAT(to, w) "ubfx " to ", " w ", #12, #4\n"
#define FIRST_FORMAT(to, w) "sxtb " to ", " w "\n"
#define SECOND_FORMAT(to, w) "sxtb " to ", " w ", ror #16\n"
#define END_FORMAT(end, codes) \
    "ldrh " end ", [" codes "], #2\n add " end ", " end ", " end ", lsl #1\n add " end ", " codes "\n"
#define PRODUCTS_FORMAT \
    "sxtb16 r6, r6\n pkhbt r8, r8, r9, lsl #16\n smlad r5, r8, r6, r5\n"
#else
#define PAIR_FORMAT(w, codes) "ldrh " w ", [" codes "], #2\n"
#define GAP_FORMAT(to, w) "and " to ", " w ", #15\n"
#define NEXT_GAP_FORMAT(to, w) "ubfx " to ", " w ", #4, #4\n"
#define FIRST_FORMAT(to, w) "sbfx " to ", " w ", #8, #4\n"
#define SECOND_FORMAT(to, w) "sbfx " to ", " w ", #12, #4\n"
#define END_FORMAT(end, codes) \
    "ldrh " end ", [" codes "], #2\n add " end ", " codes ", " end ", lsl #1\n"
#define PRODUCTS_FORMAT \
    "sbfx r10, r6, #8, #4\n sbfx r6, r6, #12, #4\n mla r5, r8, r10, r5\n mla r5, r9, r6, r5\n"
#endif
/* Requantise ``s``, which holds twice a sum, by the numbers in ``m``, ``added`` and ``right``. */
#define SPARSE_ROUNDED_INPUT(high, s, m, right, added) \
    high " " s ", " s ", " m ", " added "\n asr " s ", " s ", " right "\n" \
    SATURATE_SIGN " " s ", #8, " s ", asr #1\n"
#define SPARSE_SIGNED_INPUT(s, m, right, added, t) \
    "add " t ", " added ", " s ", asr #31\n" SPARSE_ROUNDED_INPUT("smmlar", s, m, right, t)
#define SPARSE_POSITIVE_INPUT(s, m, right, added, t) \
    SPARSE_ROUNDED_INPUT("smmlar", s, m, right, added)
#define SPARSE_ONCE_INPUT(s, m, right, added, t) SPARSE_ROUNDED_INPUT("smmla", s, m, right, added)
#define FOUR_PRODUCTS \
    "ldrd r8, r9, [r12]\n smlal r0, r1, r8, r11\n smlal r2, r3, r9, r11\n" \
    "ldrd r8, r9, [r12, #8]\n smlal r4, r5, r8, r11\n smlal r6, r7, r9, r11\n"
/* Separate the two sums of a register pair, add the bias and requantise. */
#define TWO_WINDOWS(HOW, a, b) \
    "adds r11, " a ", #0x400000\n adc " b ", " b ", #0\n sbfx " a ", " a ", #0, #23\n" \
    "lsr r11, r11, #23\n orr " b ", r11, " b ", lsl #9\n" \
    "add " a ", r8, " a ", lsl #1\n add " b ", r8, " b ", lsl #1\n" \
    HOW(a, "r9", "r10", "r12", "r11") HOW(b, "r9", "r10", "r12", "r11")
#define EIGHT_WINDOWS_FORMAT(HOW) \
    "push {r4-r11, lr}\n" \
    "sub sp, sp, #12\n" \
    "str r0, [sp]\n" \
    "1:\n" \
    "ldr r11, [sp]\n" \
    "ldr lr, [r11]\n" \
    "ldr r12, [r11, #16]\n" \
    END_FORMAT("r10", "lr") \
    "str r10, [sp, #4]\n" \
    "movs r0, #0\n movs r1, #0\n movs r2, #0\n movs r3, #0\n" \
    "movs r4, #0\n movs r5, #0\n movs r6, #0\n movs r7, #0\n" \
    "cmp lr, r10\n" \
    "beq 3f\n" \
    "2:\n" \
    PAIR_FORMAT("r10", "lr") \
    GAP_FORMAT("r11", "r10") \
    "add r12, r12, r11, lsl #4\n" \
    FIRST_FORMAT("r11", "r10") \
    FOUR_PRODUCTS \
    NEXT_GAP_FORMAT("r11", "r10") \
    "add r12, r12, r11, lsl #4\n" \
    SECOND_FORMAT("r11", "r10") \
    FOUR_PRODUCTS \
    "ldr r11, [sp, #4]\n" \
    "cmp lr, r11\n" \
    "bne 2b\n" \
    "3:\n" \
    "ldr r11, [sp]\n" \
    "str lr, [r11]\n" \
    "add lr, r11, #4\n" \
    "ldm lr, {r8, r9, r12}\n" \
    "add r9, r9, r12\n" \
    "str r9, [r11, #12]\n" \
    "ldrd r9, r10, [r12]\n" \
    "ldr r12, [r8], #4\n" \
    "str r8, [r11, #4]\n" \
    "mov r8, r12\n" \
    "asr r12, r10, #8\n lsl r12, r12, r10\n" \
    TWO_WINDOWS(HOW, "r0", "r1") \
    TWO_WINDOWS(HOW, "r2", "r3") \
    TWO_WINDOWS(HOW, "r4", "r5") \
    TWO_WINDOWS(HOW, "r6", "r7") \
    "ldr r11, [sp]\n" \
    "ldr lr, [r11, #20]\n" \
    "add r11, r11, #28\n" \
    "ldm r11!, {r8, r9, r10, r12}\n" \
    "strb r7, [lr, r8]\n strb r6, [lr, r9]\n strb r5, [lr, r10]\n strb r4, [lr, r12]\n" \
    "ldm r11, {r8, r9, r10, r12}\n" \
    "strb r3, [lr, r8]\n strb r2, [lr, r9]\n strb r1, [lr, r10]\n strb r0, [lr, r12]\n" \
    "add lr, lr, #1\n" \
    "ldr r11, [sp]\n" \
    "str lr, [r11, #20]\n" \
    "ldr r10, [r11, #24]\n" \
    "cmp lr, r10\n" \
    "bne.w 1b\n" \
    "add sp, sp, #12\n" \
    "pop {r4-r11, pc}\n"
#define ONE_WINDOW_FORMAT(HOW) \
    "push {r4-r11, lr}\n" \
    "ldm r0, {r0, r1, r2, r3, r11, r12, lr}\n" \
    "1:\n" \
    END_FORMAT("r4", "r0") \
    "mov r7, r2\n" \
    "movs r5, #0\n" \
    "cmp r0, r4\n" \
    "beq 3f\n" \
    "2:\n" \
    PAIR_FORMAT("r6", "r0") \
    GAP_FORMAT("r8", "r6") \
    NEXT_GAP_FORMAT("r9", "r6") \
    "add r8, r8, r7\n" \
    "add r7, r8, r9\n" \
    LOADED_SIGN " r8, [r8]\n" \
    LOADED_SIGN " r9, [r7]\n" \
    PRODUCTS_FORMAT \
    "cmp r0, r4\n" \
    "bne 2b\n" \
    "3:\n" \
    "ldr r8, [lr], #4\n" \
    "ldrd r9, r10, [r1]\n" \
    "add r1, r1, r11\n" \
    "add r5, r8, r5, lsl #1\n" \
    "asr r6, r10, #8\n lsl r6, r6, r10\n" \
    HOW("r5", "r9", "r10", "r6", "r6") \
    "strb r5, [r3], #1\n" \
    "cmp r3, r12\n" \
    "bne 1b\n" \
    "pop {r4-r11, pc}\n"
#define SPARSE_DSP_FORMAT(how, HOW) \
    __attribute__((naked, noinline, unused)) static void eight_##how##_FORMAT( \
        __attribute__((unused)) eight_FORMAT *e) \
    { \
        __asm volatile(EIGHT_WINDOWS_FORMAT(HOW)); \
    } \
    __attribute__((naked, noinline, unused)) static void one_##how##_FORMAT( \
        __attribute__((unused)) const one_FORMAT *e) \
    { \
        __asm volatile(ONE_WINDOW_FORMAT(HOW)); \
    }
SPARSE_DSP_FORMAT(twice, SPARSE_SIGNED_INPUT)
SPARSE_DSP_FORMAT(positive, SPARSE_POSITIVE_INPUT)
SPARSE_DSP_FORMAT(once, SPARSE_ONCE_INPUT)
#else
INLINED void eight_of_FORMAT(eight_FORMAT *e, bool once)
{
    const uint8_t *codes = e->codes;
    const int32_t *numbers = e->numbers;
    const int32_t *twice = e->twice;
    for (; e->out != e->out_end; ++e->out) {
        const uint8_t *const end = end_of_codes_WEIGHT(codes);
        const int32_t *at = e->wide;
        int64_t sums[4] = {0, 0, 0, 0};
        for (codes += 2; codes != end; codes += PAIR_BYTES_WEIGHT) {
            const uint32_t gaps = codes[GAPS_AT_WEIGHT];
            for (int32_t i = 0; i < 2; ++i) {
                at += 4 * (i == 0 ? gaps & 15u : gaps >> 4);
                for (int32_t k = 0; k < 4; ++k) {
                    sums[k] += (int64_t)at[k] *
                        (i == 0 ? first_packed_WEIGHT(codes) : second_packed_WEIGHT(codes));
                }
            }
        }
        for (int32_t k = 7; k >= 0; --k) {
            const int64_t second = (sums[k / 2] + (1 << 22)) >> 23;
            const int64_t first = sums[k / 2] - second * (1 << 23);
            const int32_t sum = (int32_t)(k % 2 == 0 ? first : second) + *twice / 2;
            e->out[e->to[7 - k]] =
                (input_t)(once ? once_SIGN(sum, numbers) : rounded_SIGN(sum, numbers));
        }
        numbers += e->step / 4;
        ++twice;
    }
}
INLINED void one_of_FORMAT(const one_FORMAT *e, bool once)
{
    const uint8_t *codes = e->codes;
    const int32_t *numbers = e->numbers;
    const int32_t *twice = e->twice;
    for (input_t *out = e->out; out != e->out_end; ++out) {
        const uint8_t *const end = end_of_codes_WEIGHT(codes);
        const input_t *at = e->x;
        int32_t sum = *twice++ / 2;
        for (codes += 2; codes != end; codes += PAIR_BYTES_WEIGHT) {
            const uint32_t gaps = codes[GAPS_AT_WEIGHT];
            at += gaps & 15u;
            sum += *at * first_packed_WEIGHT(codes);
            at += gaps >> 4;
            sum += *at * second_packed_WEIGHT(codes);
        }
        *out = (input_t)(once ? once_SIGN(sum, numbers) : rounded_SIGN(sum, numbers));
        numbers += e->step / 4;
    }
}
NOT_INLINED void eight_twice_FORMAT(eight_FORMAT *e) { eight_of_FORMAT(e, false); }
NOT_INLINED void eight_positive_FORMAT(eight_FORMAT *e) { eight_of_FORMAT(e, false); }
NOT_INLINED void eight_once_FORMAT(eight_FORMAT *e) { eight_of_FORMAT(e, true); }
NOT_INLINED void one_twice_FORMAT(const one_FORMAT *e) { one_of_FORMAT(e, false); }
NOT_INLINED void one_positive_FORMAT(const one_FORMAT *e) { one_of_FORMAT(e, false); }
NOT_INLINED void one_once_FORMAT(const one_FORMAT *e) { one_of_FORMAT(e, true); }
#endif

/* Results of less than the range of their type. */
INLINED void limit_FORMAT(const sparse_pairs_FORMAT *s, input_t *out, int32_t count)
{
    const bool full = s->low == (INPUT_MIN) && s->high == (INPUT_MIN) + 255;
    for (int32_t i = 0; i < (full ? 0 : count); ++i) {
        out[i] = (input_t)clamped(out[i], s->low, s->high);
    }
}

INLINED int32_t both_windows_FORMAT(uint32_t a, uint32_t b)
{
    return (input_t)a + (input_t)b * (1 << 23);
}

/* Widen the inputs of eight windows; of the last pixels there are ``count``. */
NOT_INLINED void widen_eight_FORMAT(const input_t *x, int32_t channels, int32_t count, int32_t *wide)
{
    for (int32_t k = 0; k < 8; k += 2) {
        const input_t *a = x + min_i32(k, count - 1) * channels;
        const input_t *b = x + min_i32(k + 1, count - 1) * channels;
        const input_t *const end = a + channels;
        const input_t *const whole = a + (channels & ~3);
        int32_t *to = wide++;
        for (; a != whole; a += 4) {
            uint32_t first;
            uint32_t second;
            (void)memcpy(&first, a, sizeof first);
            (void)memcpy(&second, b, sizeof second);
            to[0] = both_windows_FORMAT(first, second);
            to[4] = both_windows_FORMAT(first >> 8, second >> 8);
            to[8] = both_windows_FORMAT(first >> 16, second >> 16);
            to[12] = both_windows_FORMAT(first >> 24, second >> 24);
            b += 4;
            to += 16;
        }
        for (; a != end; ++a) {
            *to = both_windows_FORMAT((uint32_t)*a, (uint32_t)*b++);
            to += 4;
        }
    }
}

/* Compute ``pixels`` pixels of the result from pixels that follow each other. */
NOT_INLINED void sparse_eights_FORMAT(const sparse_pairs_FORMAT *s, const uint8_t *codes,
    const int32_t *twice, const int32_t *numbers, const input_t *x, input_t *out, int32_t pixels,
    int32_t *wide)
{
    const int32_t n = s->out_channels;
    for (; pixels > 0; pixels -= 8) {
        const int32_t count = min_i32(pixels, 8);
        eight_FORMAT e = {
            codes, twice, s->step, numbers, wide, out, out + n, {0, 0, 0, 0, 0, 0, 0, 0}};
        for (int32_t k = 0; k < 8; ++k) {
            e.to[7 - k] = min_i32(k, count - 1) * n;
        }
        widen_eight_FORMAT(x, s->channels, count, wide);
        s->eight(&e);
        limit_FORMAT(s, out, count * n);
        x += count * s->channels;
        out += count * n;
    }
}

/* The same, one pixel at a time. */
NOT_INLINED void sparse_ones_FORMAT(const sparse_pairs_FORMAT *s, const uint8_t *codes,
    const int32_t *twice, const int32_t *numbers, const input_t *x, input_t *out, int32_t pixels)
{
    for (; pixels > 0; --pixels) {
        const one_FORMAT e = {codes, numbers, x, out, s->step, out + s->out_channels, twice};
        s->one(&e);
        limit_FORMAT(s, out, s->out_channels);
        x += s->channels;
        out += s->out_channels;
    }
}
