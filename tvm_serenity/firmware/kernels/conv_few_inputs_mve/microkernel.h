#pragma once
#include "../common/instance.h"
#include "../common/convolution.h"
/* Many windows of a line of INPUT with the same weights, which stay in registers.

   Up to 16 inputs: four outputs of a window at a time; up to 32 inputs: two outputs of two
   windows. The layout of the weights is that of conv_mve/microkernel.h, signed. Unsigned inputs
   are converted to signed ones; the bias compensates for it. Results have the full range of their
   type; the number of outputs is a multiple of four. */
typedef struct {
    const input_t *x;
    int32_t step; /* elements to the next window */
    int32_t windows;
    uint8_t *out;
} strip_FORMAT;
typedef void (*summed_strip_FORMAT)(
    const convolution_INPUT *c, const with_INPUT *with, const strip_FORMAT *strip);

#if defined(__ARM_FEATURE_MVE)
/* The structure that the assembly reads, by offsets. */
typedef struct {
    const input_t *x;
    uint8_t *out;
    int32_t to_next;
    const int8_t *shifts, *weights;
    int32_t next_out, zero_point, vector;
    const int32_t *bias, *multipliers;
    int32_t times;
    const int32_t *places;
} stripes_FORMAT;

#if INPUT_SIGNED
#define STRIP_SIGNED_FORMAT
#define STRIP_NARROW_FORMAT "vqmovnb.s16 q0, q0\n\t"
#else
#define STRIP_SIGNED_FORMAT "vadd.i8 q0, q0, r11\n\t"
#define STRIP_NARROW_FORMAT "vqmovunb.s16 q0, q0\n\t"
#endif
/* Halves are rounded away from 0. If results are clamped at the zero point or above, the rounding
   of negative sums does not matter. */
#define STRIP_AWAY "vshr.s32 q2, q0, #31\n\tvadd.i32 q0, q0, q2\n\t"
/* The last vector of a window: the lanes that it fills; all lanes if the bytes after it may be
   read, because their weights are 0. */
#define STRIP_PART "vpst\n\tvldrbt.8"
#define STRIP_WHOLE "vldrb.8"
#define STRIP_BEGIN \
    "ldr lr, [r12, #28]\n\t" \
    "vctp.8 lr\n\t" \
    "ldr r2, [r12, #32]\n\t" \
    "ldr r4, [r12, #36]\n\t" \
    "vldrw.32 q3, [r2]\n\t" \
    "vldrw.32 q1, [r4]\n\t" \
    "ldr r6, [r12, #44]\n\t" \
    "ldr lr, [r12, #40]\n\t" \
    "ldm r12, {r0, r1, r3, r5, r8, r9, r10}\n\t" \
    "movs r11, #128\n\t" \
    "vldrb.s32 q2, [r5]\n\t"
#define STRIP_16_FORMAT(load, away) \
    __asm volatile(STRIP_BEGIN \
                   "vldrb.8 q4, [r8]\n\t" \
                   "vldrb.8 q5, [r8, #32]\n\t" \
                   "vldrb.8 q6, [r8, #16]\n\t" \
                   "vldrb.8 q7, [r8, #48]\n\t" \
                   "dls lr, lr\n" \
                   "1:\n\t" \
                   load " q0, [r0]\n\t" \
                   STRIP_SIGNED_FORMAT \
                   "vmladav.s8 r2, q0, q4\n\t" \
                   "vmladav.s8 r4, q0, q5\n\t" \
                   "vmladav.s8 r6, q0, q6\n\t" \
                   "vmladav.s8 r8, q0, q7\n\t" \
                   "add r0, r3\n\t" \
                   "vmov q0[2], q0[0], r2, r6\n\t" \
                   "vmov q0[3], q0[1], r4, r8\n\t" \
                   "vadd.i32 q0, q0, q3\n\t" \
                   "vqrdmulh.s32 q0, q0, q1\n\t" \
                   away \
                   "vrshl.s32 q0, q0, q2\n\t" \
                   "vadd.i32 q0, q0, r10\n\t" \
                   "vqmovnb.s32 q0, q0\n\t" \
                   STRIP_NARROW_FORMAT \
                   "vstrb.32 q0, [r1]\n\t" \
                   "add r1, r9\n\t" \
                   "le lr, 1b" \
                   : "+r"(r12) \
                   : \
                   : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "lr", \
                   "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory")
#define STRIP_32_FORMAT(load, away) \
    __asm volatile(STRIP_BEGIN \
                   "vldrb.8 q4, [r8]\n\t" \
                   "vldrb.8 q5, [r8, #64]\n\t" \
                   "vldrb.8 q6, [r8, #32]\n\t" \
                   "vldrb.8 q7, [r8, #96]\n\t" \
                   "vldrw.32 q3, [r6]\n\t" \
                   "ldr r12, [r12, #32]\n\t" \
                   "dls lr, lr\n" \
                   "1:\n\t" \
                   "vldrb.8 q0, [r0]\n\t" \
                   STRIP_SIGNED_FORMAT \
                   "vmladav.s8 r2, q0, q4\n\t" \
                   "vmladav.s8 r4, q0, q6\n\t" \
                   load " q0, [r0, #16]\n\t" \
                   STRIP_SIGNED_FORMAT \
                   "vmladava.s8 r2, q0, q5\n\t" \
                   "vmladava.s8 r4, q0, q7\n\t" \
                   "add r0, r3\n\t" \
                   "vldrb.8 q0, [r0]\n\t" \
                   STRIP_SIGNED_FORMAT \
                   "vmladav.s8 r6, q0, q4\n\t" \
                   "vmladav.s8 r8, q0, q6\n\t" \
                   load " q0, [r0, #16]\n\t" \
                   STRIP_SIGNED_FORMAT \
                   "vmladava.s8 r6, q0, q5\n\t" \
                   "vmladava.s8 r8, q0, q7\n\t" \
                   "add r0, r3\n\t" \
                   "vldrw.32 q2, [r12]\n\t" \
                   "vmov q0[2], q0[0], r2, r6\n\t" \
                   "vmov q0[3], q0[1], r4, r8\n\t" \
                   "vadd.i32 q0, q0, q2\n\t" \
                   "vqrdmulh.s32 q0, q0, q1\n\t" \
                   away \
                   "vldrb.s32 q2, [r5]\n\t" \
                   "vrshl.s32 q0, q0, q2\n\t" \
                   "vadd.i32 q0, q0, r10\n\t" \
                   "vqmovnb.s32 q0, q0\n\t" \
                   STRIP_NARROW_FORMAT \
                   "vstrb.32 q0, [r1, q3]\n\t" \
                   "add r1, r9\n\t" \
                   "le lr, 1b" \
                   : "+r"(r12) \
                   : \
                   : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "lr", \
                   "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory")

INLINED void of_16_FORMAT(const convolution_INPUT *c, const with_INPUT *with, const strip_FORMAT *strip,
    void (*run)(const stripes_FORMAT *))
{
    const int32_t step = c->to.step;
    int32_t same[4];
    int8_t shifts[4];
    for (int32_t i = 0; step == 0 && i < 4; ++i) {
        same[i] = *with->multipliers;
        shifts[i] = *with->shifts;
    }
    const int32_t inputs = c->kernel_height * c->kernel_width * c->channels[0];
    stripes_FORMAT s = {strip->x, strip->out, strip->step, step == 0 ? shifts : with->shifts,
        with->weights, c->out_channels, c->to.zero_point, inputs, with->bias,
        step == 0 ? same : with->multipliers, strip->windows, NULL};
    for (int32_t o = 0; o < c->out_channels; o += 4) {
        run(&s);
        s.out += 4;
        s.weights += 64;
        s.bias += 4;
        s.multipliers += 4 * step;
        s.shifts += 4 * step;
    }
}
INLINED void of_32_FORMAT(const convolution_INPUT *c, const with_INPUT *with, const strip_FORMAT *strip,
    void (*run)(const stripes_FORMAT *))
{
    const int32_t n = c->out_channels;
    const int32_t step = c->to.step;
    const int8_t *w = with->weights;
    const int32_t inputs = c->kernel_height * c->kernel_width * c->channels[0];
    const int32_t places[4] = {0, 1, n, n + 1};
    const int32_t at_once[4] = {0, 1, 0, 1};
    for (int32_t o = 0; o < n; o += 2) {
        const int32_t *const b = with->bias + o;
        const int32_t *const m = with->multipliers + o * step;
        const int8_t *const r = with->shifts + o * step;
        const int32_t bias[4] = {b[0], b[1], b[0], b[1]};
        const int32_t multipliers[4] = {m[0], m[step], m[0], m[step]};
        const int8_t shifts[4] = {r[0], r[step], r[0], r[step]};
        stripes_FORMAT s = {strip->x, strip->out + o, strip->step, shifts, w, 2 * n,
            c->to.zero_point, inputs - 16, bias, multipliers, strip->windows / 2, places};
        if (s.times > 0) {
            run(&s);
        }
        if (strip->windows % 2 != 0) { /* the last one twice */
            s.x += (strip->windows - 1) * strip->step;
            s.out += (strip->windows - 1) * n;
            s.to_next = 0;
            s.times = 1;
            s.places = at_once;
            run(&s);
        }
        w += o % 4 == 0 ? 16 : 112;
    }
}
NOT_INLINED void run_16_FORMAT(const stripes_FORMAT *s)
{
    register const stripes_FORMAT *r12 __asm("r12") = s;
    STRIP_16_FORMAT(STRIP_PART, STRIP_AWAY "vldrb.s32 q2, [r5]\n\t");
}
NOT_INLINED void run_16_positive_FORMAT(const stripes_FORMAT *s)
{
    register const stripes_FORMAT *r12 __asm("r12") = s;
    STRIP_16_FORMAT(STRIP_PART, "");
}
NOT_INLINED void run_16_whole_FORMAT(const stripes_FORMAT *s)
{
    register const stripes_FORMAT *r12 __asm("r12") = s;
    STRIP_16_FORMAT(STRIP_WHOLE, STRIP_AWAY "vldrb.s32 q2, [r5]\n\t");
}
NOT_INLINED void run_16_whole_positive_FORMAT(const stripes_FORMAT *s)
{
    register const stripes_FORMAT *r12 __asm("r12") = s;
    STRIP_16_FORMAT(STRIP_WHOLE, "");
}
NOT_INLINED void run_32_FORMAT(const stripes_FORMAT *s)
{
    register const stripes_FORMAT *r12 __asm("r12") = s;
    STRIP_32_FORMAT(STRIP_PART, STRIP_AWAY);
}
NOT_INLINED void run_32_positive_FORMAT(const stripes_FORMAT *s)
{
    register const stripes_FORMAT *r12 __asm("r12") = s;
    STRIP_32_FORMAT(STRIP_PART, "");
}
NOT_INLINED void run_32_whole_FORMAT(const stripes_FORMAT *s)
{
    register const stripes_FORMAT *r12 __asm("r12") = s;
    STRIP_32_FORMAT(STRIP_WHOLE, STRIP_AWAY);
}
NOT_INLINED void run_32_whole_positive_FORMAT(const stripes_FORMAT *s)
{
    register const stripes_FORMAT *r12 __asm("r12") = s;
    STRIP_32_FORMAT(STRIP_WHOLE, "");
}
#else
/* The same computation in plain C. */
enum {
    run_16_FORMAT, run_16_positive_FORMAT, run_16_whole_FORMAT, run_16_whole_positive_FORMAT,
    run_32_FORMAT, run_32_positive_FORMAT, run_32_whole_FORMAT, run_32_whole_positive_FORMAT
};
INLINED void of_16_FORMAT(
    const convolution_INPUT *c, const with_INPUT *with, const strip_FORMAT *strip, int32_t run)
{
    static const int32_t place[4] = {0, 32, 16, 48};
    const int32_t inputs = c->kernel_height * c->kernel_width * c->channels[0];
    const int32_t step = c->to.step;
    for (int32_t i = 0; i < strip->windows; ++i) {
        const input_t *const x = strip->x + i * strip->step;
        for (int32_t o = 0; o < c->out_channels; ++o) {
            const int8_t *const w =
                with->weights + o / 4 * (run >= run_32_FORMAT ? 128 : 64) + place[o % 4];
            int32_t sum = with->bias[o];
            for (int32_t k = 0; k < inputs; ++k) {
                sum += (INPUT_SIGNED ? x[k] : x[k] - 128) * w[k / 16 * 64 + k % 16];
            }
            strip->out[i * c->out_channels + o] = (uint8_t)requantised(
                &c->to, sum, with->multipliers[o * step], with->shifts[o * step]);
        }
    }
}
INLINED void of_32_FORMAT(
    const convolution_INPUT *c, const with_INPUT *with, const strip_FORMAT *strip, int32_t run)
{
    of_16_FORMAT(c, with, strip, run);
}
#endif
NOT_INLINED void strip_16_FORMAT(
    const convolution_INPUT *c, const with_INPUT *with, const strip_FORMAT *strip)
{
    of_16_FORMAT(c, with, strip, run_16_FORMAT);
}
NOT_INLINED void strip_16_positive_FORMAT(
    const convolution_INPUT *c, const with_INPUT *with, const strip_FORMAT *strip)
{
    of_16_FORMAT(c, with, strip, run_16_positive_FORMAT);
}
NOT_INLINED void strip_16_whole_FORMAT(
    const convolution_INPUT *c, const with_INPUT *with, const strip_FORMAT *strip)
{
    of_16_FORMAT(c, with, strip, run_16_whole_FORMAT);
}
NOT_INLINED void strip_16_whole_positive_FORMAT(
    const convolution_INPUT *c, const with_INPUT *with, const strip_FORMAT *strip)
{
    of_16_FORMAT(c, with, strip, run_16_whole_positive_FORMAT);
}
NOT_INLINED void strip_32_FORMAT(
    const convolution_INPUT *c, const with_INPUT *with, const strip_FORMAT *strip)
{
    of_32_FORMAT(c, with, strip, run_32_FORMAT);
}
NOT_INLINED void strip_32_positive_FORMAT(
    const convolution_INPUT *c, const with_INPUT *with, const strip_FORMAT *strip)
{
    of_32_FORMAT(c, with, strip, run_32_positive_FORMAT);
}
NOT_INLINED void strip_32_whole_FORMAT(
    const convolution_INPUT *c, const with_INPUT *with, const strip_FORMAT *strip)
{
    of_32_FORMAT(c, with, strip, run_32_whole_FORMAT);
}
NOT_INLINED void strip_32_whole_positive_FORMAT(
    const convolution_INPUT *c, const with_INPUT *with, const strip_FORMAT *strip)
{
    of_32_FORMAT(c, with, strip, run_32_whole_positive_FORMAT);
}
