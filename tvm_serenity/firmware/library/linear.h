/* Sums of two tensors of $X as one linear form of 32 bits, $B of them below the result, the zero
   point in its constant: shown at build time to be what LiteRT's reference makes of each pair of
   values. Shifts round, as assemblers of some years write those that round for those that do not;
   the constant knows. Each result is stored once its operands are read: it may lie on one of them. */
typedef struct {
    int32_t first, second, constant;
} linear_$X_$B;

#if defined(__ARM_FEATURE_MVE)
#if $V
#define LINEAR_OPERANDS_$X "vldrb.s32 q0, [r0], #4\n\tvldrb.s32 q1, [r1], #4\n\t"
#define LINEAR_NARROW_$X "vqrshrnb.s16 q0, q0, #6\n\t"
#else
#define LINEAR_OPERANDS_$X "vldrb.u32 q0, [r0], #4\n\tvldrb.u32 q1, [r1], #4\n\t"
#define LINEAR_NARROW_$X "vqrshrunb.s16 q0, q0, #6\n\t"
#endif
NOT_INLINED void add_linear_$X_$B(
    const linear_$X_$B *s, const $X_t *first, const $X_t *second, uint8_t *out, int32_t count)
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
                   "vqrshrnb.s32 q0, q0, #($B - 6)\n\t"
                   LINEAR_NARROW_$X
                   "vstrb.32 q0, [r2], #4\n\t"
                   "letp lr, 1b"
                   : "+r"(r0), "+r"(r1), "+r"(r2)
                   : "r"(s->first), "r"(s->second), "r"(s->constant), "r"(count)
                   : "lr", "q0", "q1", "q2", "memory");
}
#else
INLINED uint8_t linear_of_$X_$B(int32_t sum)
{
#if defined(__ARM_FEATURE_SAT)
    int32_t r;
#if $V
    __asm("ssat %0, #8, %1, asr #$B" : "=r"(r) : "r"(sum));
#else
    __asm("usat %0, #8, %1, asr #$B" : "=r"(r) : "r"(sum));
#endif
    return (uint8_t)r;
#else
    return (uint8_t)clamped(sum >> $B, ($L), ($L) + 255);
#endif
}
NOT_INLINED void add_linear_$X_$B(
    const linear_$X_$B *s, const $X_t *first, const $X_t *second, uint8_t *out, int32_t count)
{
    const int32_t a = s->first;
    const int32_t b = s->second;
    const int32_t constant = s->constant + (1 << ($B - 7)) + (1 << ($B - 1));
    const $X_t *const end = first + (count & ~3);
    for (; first != end; first += 4, second += 4, out += 4) {
        const int32_t s0 = first[0] * a + constant + second[0] * b;
        const int32_t s1 = first[1] * a + constant + second[1] * b;
        const int32_t s2 = first[2] * a + constant + second[2] * b;
        const int32_t s3 = first[3] * a + constant + second[3] * b;
        out[0] = linear_of_$X_$B(s0);
        out[1] = linear_of_$X_$B(s1);
        out[2] = linear_of_$X_$B(s2);
        out[3] = linear_of_$X_$B(s3);
    }
    for (int32_t i = 0; i < (count & 3); ++i) {
        out[i] = linear_of_$X_$B(first[i] * a + constant + second[i] * b);
    }
}
#endif
