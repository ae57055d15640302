/* From 32-bit sums to stored values, as LiteRT's reference kernels round. */
enum { ROUND_TWICE, ROUND_TWICE_SMALL, ROUND_ONCE };

typedef struct {
    int32_t zero_point;
    int32_t low;
    int32_t high;
    int32_t rounding; /* _SMALL: |sum| < 2^30 and every shift is below 0, shown at build time */
    int32_t step;     /* 1: every channel has its multiplier, 0: one for all */
} requantisation;

/* One channel of ROUND_TWICE_SMALL; ``half`` contains the zero point as well. */
typedef struct {
    int32_t multiplier;
    int32_t right;
    int32_t half;
} scale;

INLINED int32_t high_product(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b + (1 << 30)) >> 31);
}

INLINED scale scale_of(
    const requantisation *to, const int32_t *multipliers, const int8_t *shifts, int32_t channel)
{
    const int32_t right = -shifts[channel * to->step];
    const int32_t half = (int32_t)((1u << (right - 1)) + ((uint32_t)to->zero_point << right));
    return (scale){multipliers[channel * to->step], right, half};
}

INLINED int32_t scaled_small(int32_t sum, scale by)
{
#if defined(__ARM_FEATURE_DSP)
    int32_t high;
    __asm("smmulr %0, %1, %2" : "=r"(high) : "r"(sum * 2), "r"(by.multiplier));
#else
    const int32_t high = high_product(sum, by.multiplier);
#endif
    return (high + by.half + (high >> 31)) >> by.right;
}

INLINED int32_t clamped(int32_t value, int32_t low, int32_t high)
{
    return max_i32(min_i32(value, high), low);
}

INLINED int32_t clamped_s8(int32_t value)
{
#if defined(__ARM_FEATURE_SAT)
    int32_t r;
    __asm("ssat %0, #8, %1" : "=r"(r) : "r"(value));
    return r;
#else
    return clamped(value, -128, 127);
#endif
}

INLINED int32_t clamped_u8(int32_t value)
{
#if defined(__ARM_FEATURE_SAT)
    int32_t r;
    __asm("usat %0, #8, %1" : "=r"(r) : "r"(value));
    return r;
#else
    return clamped(value, 0, 255);
#endif
}

INLINED int32_t requantised(
    const requantisation *to, int32_t sum, int32_t multiplier, int32_t shift)
{
    int32_t value;
    if (to->rounding == ROUND_ONCE) {
        const int32_t right = 31 - shift;
        value = (int32_t)(((int64_t)sum * multiplier + ((int64_t)1 << (right - 1))) >> right);
    } else {
        const int32_t right = shift > 0 ? 0 : -shift;
        const int32_t left = shift > 0 ? shift : 0;
        const int32_t high = high_product((int32_t)((uint32_t)sum << left), multiplier);
        const int32_t half = (int32_t)((1u << right) >> 1);
        value = (high + half + (right > 0 ? high >> 31 : 0)) >> right;
    }
    return clamped(value + to->zero_point, to->low, to->high);
}
