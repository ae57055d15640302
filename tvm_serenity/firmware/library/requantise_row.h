/* ROUND_TWICE_SMALL of sums in $X: the stored value of ``sum``; ``twice`` is the zero point * 2 + 1.

   Adding half and shifting by n is shifting by n - 1, adding 1 and shifting by 1: the zero point
   comes with the 1, and the last shift with the saturation. */
INLINED uint8_t stored_row_$X(int32_t sum, int32_t multiplier, int32_t all_but_one, int32_t twice,
    const requantisation *to, bool full)
{
#if defined(__ARM_FEATURE_DSP)
    int32_t high;
    __asm("smmulr %0, %1, %2" : "=r"(high) : "r"(sum * 2), "r"(multiplier));
#else
    const int32_t high = high_product(sum, multiplier);
#endif
    const int32_t value = ((high + (high >> 31)) >> all_but_one) + twice;
#if defined(__ARM_FEATURE_SAT)
    if (full) {
        int32_t r;
        if (($L) != 0) {
            __asm("ssat %0, #8, %1, asr #1" : "=r"(r) : "r"(value));
        } else {
            __asm("usat %0, #8, %1, asr #1" : "=r"(r) : "r"(value));
        }
        return (uint8_t)r;
    }
#endif
    return (uint8_t)(full ? clamped_$S(value >> 1) : clamped(value >> 1, to->low, to->high));
}

/* Four channels of a pixel. */
INLINED void store_four_$X(const int32_t *sums, const int32_t *multipliers, const int8_t *shifts,
    const requantisation *to, bool full, uint8_t *out)
{
    const int32_t twice = 2 * to->zero_point + 1;
    const int32_t step = to->step;
    const int32_t s0 = ~(int32_t)shifts[0];
    const int32_t s1 = ~(int32_t)shifts[step];
    const int32_t s2 = ~(int32_t)shifts[2 * step];
    const int32_t s3 = ~(int32_t)shifts[3 * step];
    out[0] = stored_row_$X(sums[0], multipliers[0], s0, twice, to, full);
    out[1] = stored_row_$X(sums[1], multipliers[step], s1, twice, to, full);
    out[2] = stored_row_$X(sums[2], multipliers[2 * step], s2, twice, to, full);
    out[3] = stored_row_$X(sums[3], multipliers[3 * step], s3, twice, to, full);
}
