/* From 32-bit sums to stored values, as LiteRT's reference kernels round. */
enum { ROUND_TWICE, ROUND_TWICE_SMALL, ROUND_ONCE };

typedef struct {
    int32_t zero_point;
    int32_t low;
    int32_t high;
    int32_t rounding; /* _SMALL: |sum| < 2^30 and every shift is below 0, shown at build time */
    int32_t step;     /* 1: every channel has its multiplier, 0: one for all */
} requantisation;

static inline int32_t high_product(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b + (1 << 30)) >> 31);
}

static inline int32_t requantised(
    const requantisation *to, int32_t sum, int32_t multiplier, int32_t shift)
{
    int32_t value;
    if (to->rounding == ROUND_TWICE_SMALL) {
#if defined(__ARM_FEATURE_DSP)
        int32_t high;
        __asm("smmulr %0, %1, %2" : "=r"(high) : "r"(sum * 2), "r"(multiplier));
#else
        const int32_t high = high_product(sum, multiplier);
#endif
        value = (high + (int32_t)(1u << (-shift - 1)) + (high >> 31)) >> -shift;
    } else if (to->rounding == ROUND_ONCE) {
        const int32_t right = 31 - shift;
        value = (int32_t)(((int64_t)sum * multiplier + ((int64_t)1 << (right - 1))) >> right);
    } else {
        const int32_t right = shift > 0 ? 0 : -shift;
        const int32_t left = shift > 0 ? shift : 0;
        const int32_t high = high_product((int32_t)((uint32_t)sum << left), multiplier);
        const int32_t half = (int32_t)((1u << right) >> 1);
        value = (high + half + (right > 0 ? high >> 31 : 0)) >> right;
    }
    value += to->zero_point;
    value = value < to->low ? to->low : value;
    return value > to->high ? to->high : value;
}
