/* Sums of two tensors of $X as one linear form of 32 bits, the zero point in its constant: shown at
   build time to be what LiteRT's reference makes of each pair of values. Shifts round, as assemblers
   of some years write those that round for those that do not; the constant knows. */
typedef struct {
    int32_t first, second, constant;
} linear_$X;

#if defined(__ARM_FEATURE_MVE)
#if $V
#define LINEAR_OPERANDS_$X "vldrb.s32 q0, [r0], #4\n\tvldrb.s32 q1, [r1], #4\n\t"
#define LINEAR_NARROW_$X "vqrshrnb.s16 q0, q0, #6\n\t"
#else
#define LINEAR_OPERANDS_$X "vldrb.u32 q0, [r0], #4\n\tvldrb.u32 q1, [r1], #4\n\t"
#define LINEAR_NARROW_$X "vqrshrunb.s16 q0, q0, #6\n\t"
#endif
NOT_INLINED void add_linear_$X(
    const linear_$X *s, const $X_t *first, const $X_t *second, uint8_t *out, int32_t count)
{
    register const $X_t *r0 __asm("r0") = first;
    register const $X_t *r1 __asm("r1") = second;
    register uint8_t *r2 __asm("r2") = out;
    __asm volatile("vdup.32 q2, %3\n\t"
                   "dlstp.32 lr, %6\n"
                   "1:\n\t"
                   LINEAR_OPERANDS_$X
                   "vmlas.s32 q0, q2, %5\n\t"
                   "vmla.s32 q0, q1, %4\n\t"
                   "vqrshrnb.s32 q0, q0, #16\n\t"
                   LINEAR_NARROW_$X
                   "vstrb.32 q0, [r2], #4\n\t"
                   "letp lr, 1b"
                   : "+r"(r0), "+r"(r1), "+r"(r2)
                   : "r"(s->first), "r"(s->second), "r"(s->constant), "r"(count)
                   : "lr", "q0", "q1", "q2", "memory");
}
#else
NOT_INLINED void add_linear_$X(
    const linear_$X *s, const $X_t *first, const $X_t *second, uint8_t *out, int32_t count)
{
    for (int32_t i = 0; i < count; ++i) {
        const int32_t sum = first[i] * s->first + second[i] * s->second + s->constant;
        out[i] = (uint8_t)clamped((((sum + (1 << 15)) >> 16) + 32) >> 6, ($L), ($L) + 255);
    }
}
#endif
