#pragma once
#include "../common/instance.h"
#include "../common/convolution.h"
/* Groups of four channels of one, two or three windows of INPUT, sums of 16 products at a time.

   The weights of a group are in blocks of 16 inputs, for its first, third, second and fourth
   channel, padded with 0. A window is read in runs, and each run of inputs begins a block. For
   unsigned inputs 128 is added to the weights, and 128 times the sum of the inputs is subtracted.
   */
typedef struct {
    const input_t *at[3]; /* of each window */
    int32_t inputs;
} group_run_FORMAT;

#if defined(__ARM_FEATURE_MVE)
/* Halves are rounded away from 0. If results are clamped at the zero point or above, the rounding
   of negative sums does not matter. */
enum { AWAY_FORMAT, ONCE_FORMAT, POSITIVE_FORMAT };

/* The structure that the assembly reads, by offsets. */
typedef struct {
    const group_run_FORMAT *runs;
    const int8_t *weights;
    uint8_t *out[3];
    const int8_t *shifts;
    int32_t left; /* channels */
    const int32_t *bias, *multipliers;
    int32_t step; /* bytes from multipliers to the next */
    int32_t zero_point, low, high;
    int32_t rounds; /* as below */
    int32_t excess[3];
} groups_FORMAT;

#define FIRST_3_FORMAT \
    "vctp.8 lr\n\t" \
    "vpsttt\n\t" \
    "vldrbt.8 q0, [r1], #16\n\t" \
    "vldrbt.8 q1, [r3], #16\n\t" \
    "vldrbt.8 q2, [r5], #16\n\t" \
    "vldrb.8 q4, [r9, #16]\n\t" \
    "vmladav." SIGN_TEXT " r8, q0, q4\n\t" \
    "vldrb.8 q3, [r9], #64\n\t" \
    "vmladav." SIGN_TEXT " r2, q0, q3\n\t" \
    "vmladav." SIGN_TEXT " r10, q1, q4\n\t" \
    "vmladav." SIGN_TEXT " r4, q1, q3\n\t" \
    "vmladav." SIGN_TEXT " r12, q2, q4\n\t" \
    "vmladav." SIGN_TEXT " r6, q2, q3\n\t"

#define NEXT_3_FORMAT \
    "vldrb.8 q4, [r9, #16]\n\t" \
    "vldrb.8 q0, [r1], #16\n\t" \
    "vmladava." SIGN_TEXT " r8, q0, q4\n\t" \
    "vldrb.8 q3, [r9], #64\n\t" \
    "vmladava." SIGN_TEXT " r2, q0, q3\n\t" \
    "vldrb.8 q1, [r3], #16\n\t" \
    "vmladava." SIGN_TEXT " r10, q1, q4\n\t" \
    "vmladava." SIGN_TEXT " r4, q1, q3\n\t" \
    "vldrb.8 q2, [r5], #16\n\t" \
    "vmladava." SIGN_TEXT " r12, q2, q4\n\t" \
    "vmladava." SIGN_TEXT " r6, q2, q3\n\t"

#define FIRST_2_FORMAT \
    "vctp.8 lr\n\t" \
    "vpstt\n\t" \
    "vldrbt.8 q0, [r1], #16\n\t" \
    "vldrbt.8 q1, [r3], #16\n\t" \
    "vldrb.8 q4, [r9, #16]\n\t" \
    "vmladav." SIGN_TEXT " r8, q0, q4\n\t" \
    "vldrb.8 q3, [r9], #64\n\t" \
    "vmladav." SIGN_TEXT " r2, q0, q3\n\t" \
    "vmladav." SIGN_TEXT " r10, q1, q4\n\t" \
    "vmladav." SIGN_TEXT " r4, q1, q3\n\t"

#define NEXT_2_FORMAT \
    "vldrb.8 q4, [r9, #16]\n\t" \
    "vldrb.8 q0, [r1], #16\n\t" \
    "vmladava." SIGN_TEXT " r8, q0, q4\n\t" \
    "vldrb.8 q3, [r9], #64\n\t" \
    "vmladava." SIGN_TEXT " r2, q0, q3\n\t" \
    "vldrb.8 q1, [r3], #16\n\t" \
    "vmladava." SIGN_TEXT " r10, q1, q4\n\t" \
    "vmladava." SIGN_TEXT " r4, q1, q3\n\t"

#define FIRST_1_FORMAT \
    "vctp.8 lr\n\t" \
    "vpst\n\t" \
    "vldrbt.8 q0, [r1], #16\n\t" \
    "vldrb.8 q1, [r9, #16]\n\t" \
    "vmladav." SIGN_TEXT " r8, q0, q1\n\t" \
    "vldrb.8 q2, [r9, #32]\n\t" \
    "vmladav." SIGN_TEXT " r4, q0, q2\n\t" \
    "vldrb.8 q3, [r9, #48]\n\t" \
    "vmladav." SIGN_TEXT " r10, q0, q3\n\t" \
    "vldrb.8 q4, [r9], #64\n\t" \
    "vmladav." SIGN_TEXT " r2, q0, q4\n\t"

#define NEXT_1_FORMAT \
    "vldrb.8 q0, [r1], #16\n\t" \
    "vldrb.8 q1, [r9, #16]\n\t" \
    "vmladava." SIGN_TEXT " r8, q0, q1\n\t" \
    "vldrb.8 q2, [r9, #32]\n\t" \
    "vmladava." SIGN_TEXT " r4, q0, q2\n\t" \
    "vldrb.8 q3, [r9, #48]\n\t" \
    "vmladava." SIGN_TEXT " r10, q0, q3\n\t" \
    "vldrb.8 q4, [r9], #64\n\t" \
    "vmladava." SIGN_TEXT " r2, q0, q4\n\t"

/* Sums of all runs of the windows; the first run starts them. q0 to q4 are free, r0: the
   structure. */
#define SUM_ALONE_FORMAT(wide) \
    "ldr r11, [r0]\n\t" \
    "ldm r11, {r1, r3, r5, lr}\n\t" \
    FIRST_##wide##_FORMAT \
    "subs lr, lr, #16\n\t" \
    "ble 3f\n\t" \
    "dlstp.8 lr, lr\n" \
    "2:\n\t" \
    NEXT_##wide##_FORMAT \
    "letp lr, 2b\n" \
    "3:\n\t"
/* The last of several runs is followed by an empty run. */
#define SUM_RUNS_FORMAT(wide) \
    "ldr r11, [r0]\n\t" \
    "ldm r11!, {r1, r3, r5, lr}\n\t" \
    FIRST_##wide##_FORMAT \
    "subs lr, lr, #16\n\t" \
    "ble 3f\n" \
    "1:\n\t" \
    "dlstp.8 lr, lr\n" \
    "2:\n\t" \
    NEXT_##wide##_FORMAT \
    "letp lr, 2b\n" \
    "3:\n\t" \
    "ldm r11!, {r1, r3, r5, lr}\n\t" \
    "cmp lr, #0\n\t" \
    "bne 1b\n\t"
#define EVEN_LANES_1 "vmov q5[2], q5[0], r2, r8\n\t"
#define EVEN_LANES_2 EVEN_LANES_1 "vmov q6[2], q6[0], r4, r10\n\t"
#define EVEN_LANES_3 EVEN_LANES_2 "vmov q7[2], q7[0], r6, r12\n\t"
#define ODD_LANES_1 "vmov q5[3], q5[1], r2, r8\n\t"
#define ODD_LANES_2 ODD_LANES_1 "vmov q6[3], q6[1], r4, r10\n\t"
#define ODD_LANES_3 ODD_LANES_2 "vmov q7[3], q7[1], r6, r12\n\t"
/* The four channels of a window are summed together. */
#define GROUP_1_FORMAT(sum) \
    sum(1) \
    EVEN_LANES_1 \
    "vmov q5[3], q5[1], r4, r10\n\t" \
    "str r9, [r0, #4]\n\t"
#define TWICE_FORMAT(wide, sum) \
    sum(wide) \
    EVEN_LANES_##wide \
    "ldr r9, [r0, #4]\n\t" \
    "adds r9, #32\n\t" \
    sum(wide) \
    ODD_LANES_##wide \
    "subs r9, #32\n\t" \
    "str r9, [r0, #4]\n\t"
#define GROUP_2_FORMAT(sum) TWICE_FORMAT(2, sum)
#define GROUP_3_FORMAT(sum) TWICE_FORMAT(3, sum)
#define EACH_1(f) f("q5")
#define EACH_2(f) EACH_1(f) f("q6")
#define EACH_3(f) EACH_2(f) f("q7")
#if INPUT_SIGNED
#define EXCESS_FORMAT(wide)
#else
#define EXCESS_FORMAT(wide) \
    "add r11, r0, #56\n\t" \
    "ldm r11, {r1, r2, r3}\n\t" \
    EXCESS_##wide
#endif
#define EXCESS_1 "vadd.i32 q5, q5, r1\n\t"
#define EXCESS_2 EXCESS_1 "vadd.i32 q6, q6, r2\n\t"
#define EXCESS_3 EXCESS_2 "vadd.i32 q7, q7, r3\n\t"
#define BIASED(q) "vadd.i32 " q ", " q ", q0\n\t"
#define DOUBLED(q) "vqdmulh.s32 " q ", " q ", q1\n\t"
#define ROUNDED(q) "vqrdmulh.s32 " q ", " q ", q1\n\t"
#define AWAY(q) "vshr.s32 q3, " q ", #31\n\tvadd.i32 " q ", " q ", q3\n\t"
#define SHIFTED(q) \
    "vrshl.s32 " q ", " q ", q2\n\t" \
    "vadd.i32 " q ", " q ", r10\n\t" \
    "vmax.s32 " q ", " q ", q0\n\t" \
    "vmin.s32 " q ", " q ", q4\n\t"
#define STORED_1 "vpst\n\tvstrbt.32 q5, [r1], #4\n\t"
#define STORED_2 "vpstt\n\tvstrbt.32 q5, [r1], #4\n\tvstrbt.32 q6, [r2], #4\n\t"
#define STORED_3 \
    "vpsttt\n\t" \
    "vstrbt.32 q5, [r1], #4\n\tvstrbt.32 q6, [r2], #4\n\tvstrbt.32 q7, [r3], #4\n\t"
#define FINISH_FORMAT(wide) \
    EXCESS_FORMAT(wide) \
    "add r11, r0, #8\n\t" \
    "ldm r11, {r1, r2, r3, r4, r5, r6, r8, r9, r10, r12, lr}\n\t" \
    "vldrw.32 q0, [r6], #16\n\t" \
    "vldrw.32 q1, [r8]\n\t" \
    "vldrb.s32 q2, [r4]\n\t" \
    "vdup.32 q4, lr\n\t" \
    "ldr lr, [r0, #52]\n\t" \
    "add r8, r9\n\t" \
    "add r4, r4, r9, lsr #2\n\t" \
    EACH_##wide(BIASED) \
    "vdup.32 q0, r12\n\t" \
    "cmp lr, #1\n\t" \
    "beq 5f\n\t" \
    EACH_##wide(ROUNDED) \
    "bgt 4f\n\t" \
    EACH_##wide(AWAY) \
    "4:\n\t" \
    EACH_##wide(SHIFTED) \
    "vctp.32 r5\n\t" \
    STORED_##wide \
    "subs r5, #4\n\t" \
    "stm r11, {r1, r2, r3, r4, r5, r6, r8}\n\t"
#define GROUPS_FORMAT(wide, sum) \
    __asm volatile("0:\n\t" \
                   "ldr r9, [r0, #4]\n\t" \
                   GROUP_##wide##_FORMAT(sum) \
                   FINISH_FORMAT(wide) \
                   "bgt 0b\n\t" \
                   "b 6f\n" \
                   "5:\n\t" \
                   EACH_##wide(DOUBLED) \
                   "b 4b\n" \
                   "6:" \
                   : "+r"(r0) \
                   : \
                   : "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", \
                   "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory")

/* The value that is subtracted from the sums of a window of unsigned inputs. */
INLINED int32_t excess_FORMAT(const group_run_FORMAT *runs, const group_run_FORMAT *end, int32_t window)
{
    register uint32_t sum __asm("r2") = 0;
    for (const group_run_FORMAT *run = runs; run != end; ++run) {
        const input_t *x = run->at[window];
        __asm volatile("dlstp.8 lr, %2\n"
                       "1:\n\t"
                       "vldrb.8 q0, [%0], #16\n\t"
                       "vaddva.u8 %1, q0\n\t"
                       "letp lr, 1b"
                       : "+r"(x), "+r"(sum)
                       : "r"(run->inputs)
                       : "lr", "q0", "memory");
    }
    return -128 * (int32_t)sum;
}

INLINED int32_t rounds_FORMAT(const requantisation *to)
{
    if (to->rounding == ROUND_ONCE_SMALL) {
        return ONCE_FORMAT;
    }
    return to->zero_point <= to->low ? POSITIVE_FORMAT : AWAY_FORMAT;
}

INLINED groups_FORMAT begun_groups_FORMAT(const convolution_INPUT *c, const with_INPUT *with,
    const group_run_FORMAT *runs, const group_run_FORMAT *end, int32_t wide, uint8_t *const *to)
{
    groups_FORMAT g = {runs, with->weights, {to[0], to[1], to[2]}, with->shifts, c->out_channels,
        with->bias, with->multipliers, 16, c->to.zero_point, c->to.low, c->to.high,
        rounds_FORMAT(&c->to), {0, 0, 0}};
    for (int32_t i = 0; !INPUT_SIGNED && i < wide; ++i) {
        g.excess[i] = excess_FORMAT(runs, end, i);
    }
    return g;
}

/* One multiplier for all channels is read as a vector of four. */
typedef struct {
    int32_t multipliers[4];
    int8_t shifts[4];
} all_alike_FORMAT;
INLINED void alike_FORMAT(const convolution_INPUT *c, all_alike_FORMAT *four, groups_FORMAT *g)
{
    if (c->to.step == 0) {
        vstrwq_s32(four->multipliers, vdupq_n_s32(*g->multipliers));
        vstrbq_s32(four->shifts, vdupq_n_s32(*g->shifts));
        g->multipliers = four->multipliers;
        g->shifts = four->shifts;
        g->step = 0;
    }
}

NOT_INLINED void groups_3_FORMAT(const convolution_INPUT *c, const with_INPUT *with,
    const group_run_FORMAT *runs, const group_run_FORMAT *end, uint8_t *const *to)
{
    groups_FORMAT g = begun_groups_FORMAT(c, with, runs, end, 3, to);
    all_alike_FORMAT four;
    alike_FORMAT(c, &four, &g);
    register groups_FORMAT *r0 __asm("r0") = &g;
    if (end == runs + 1) {
        GROUPS_FORMAT(3, SUM_ALONE_FORMAT);
    } else {
        GROUPS_FORMAT(3, SUM_RUNS_FORMAT);
    }
}
NOT_INLINED void groups_2_FORMAT(const convolution_INPUT *c, const with_INPUT *with,
    const group_run_FORMAT *runs, const group_run_FORMAT *end, uint8_t *const *to)
{
    groups_FORMAT g = begun_groups_FORMAT(c, with, runs, end, 2, to);
    all_alike_FORMAT four;
    alike_FORMAT(c, &four, &g);
    register groups_FORMAT *r0 __asm("r0") = &g;
    GROUPS_FORMAT(2, SUM_ALONE_FORMAT);
}
NOT_INLINED void groups_1_FORMAT(const convolution_INPUT *c, const with_INPUT *with,
    const group_run_FORMAT *runs, const group_run_FORMAT *end, uint8_t *const *to)
{
    groups_FORMAT g = begun_groups_FORMAT(c, with, runs, end, 1, to);
    all_alike_FORMAT four;
    alike_FORMAT(c, &four, &g);
    register groups_FORMAT *r0 __asm("r0") = &g;
    GROUPS_FORMAT(1, SUM_ALONE_FORMAT);
}
#else
/* The same computation in plain C. */
INLINED void groups_FORMAT(const convolution_INPUT *c, const with_INPUT *with, const group_run_FORMAT *runs,
    const group_run_FORMAT *end, int32_t wide, uint8_t *const *to)
{
    static const int32_t place[4] = {0, 32, 16, 48};
    const int32_t step = c->to.step;
    int32_t length = 0;
    for (const group_run_FORMAT *run = runs; run != end; ++run) {
        length += (run->inputs + 15) / 16 * 64;
    }
    for (int32_t o = 0; o < c->out_channels; ++o) {
        for (int32_t i = 0; i < wide; ++i) {
            const int8_t *w = with->weights + o / 4 * length + place[o % 4];
            int32_t sum = with->bias[o];
            for (const group_run_FORMAT *run = runs; run != end; ++run) {
                for (int32_t k = 0; k < run->inputs; ++k) {
                    const int8_t *const at = w + k / 16 * 64 + k % 16;
                    sum += run->at[i][k] * (INPUT_SIGNED ? *at : (int32_t)(uint8_t)*at - 128);
                }
                w += (run->inputs + 15) / 16 * 64;
            }
            const int32_t m = with->multipliers[o * step];
            to[i][o] = (uint8_t)requantised(&c->to, sum, m, with->shifts[o * step]);
        }
    }
}
INLINED void groups_3_FORMAT(const convolution_INPUT *c, const with_INPUT *with,
    const group_run_FORMAT *runs, const group_run_FORMAT *end, uint8_t *const *to)
{
    groups_FORMAT(c, with, runs, end, 3, to);
}
INLINED void groups_2_FORMAT(const convolution_INPUT *c, const with_INPUT *with,
    const group_run_FORMAT *runs, const group_run_FORMAT *end, uint8_t *const *to)
{
    groups_FORMAT(c, with, runs, end, 2, to);
}
INLINED void groups_1_FORMAT(const convolution_INPUT *c, const with_INPUT *with,
    const group_run_FORMAT *runs, const group_run_FORMAT *end, uint8_t *const *to)
{
    groups_FORMAT(c, with, runs, end, 1, to);
}
#endif
