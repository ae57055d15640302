/* Every form of requantisation in the kernel library against LiteRT's and gemmlowp's definitions.

   Says for each form how many cases it was given and how many it got wrong. What LiteRT leaves
   undefined (a result that leaves 32 bits) is no case. CASES, SEED: of a form. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "library.h"

#if defined(__SIZEOF_INT128__)
typedef __int128 wide;
#else
typedef int64_t wide; /* every product here fits: 2^31 * 2^31, 2^47 * 2^15 */
#endif

/* --- the reference: gemmlowp/fixedpoint.h, tensorflow/lite/kernels/internal/common.cc */

static int32_t saturating_rounding_doubling_high_mul(int32_t a, int32_t b)
{
    if (a == INT32_MIN && b == INT32_MIN) {
        return INT32_MAX;
    }
    const wide ab = (wide)a * b;
    const wide nudge = ab >= 0 ? (wide)1 << 30 : 1 - ((wide)1 << 30);
    return (int32_t)((ab + nudge) / ((wide)1 << 31));
}

static int32_t rounding_divide_by_pot(int32_t x, int32_t exponent)
{
    const int32_t mask = (int32_t)(((int64_t)1 << exponent) - 1);
    const int32_t remainder = x & mask;
    const int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
    return (x >> exponent) + (remainder > threshold ? 1 : 0);
}

static wide nearest_half_up(wide a, int32_t exponent)
{
    const wide divisor = (wide)1 << exponent;
    const wide sum = a + divisor / 2;
    const wide quotient = sum / divisor;
    return quotient - (sum % divisor < 0 ? 1 : 0);
}

enum { TWICE, ONCE, WIDE };

typedef struct {
    int64_t sum;
    int32_t multiplier, shift, zero_point, low, high, range;
} one_case;

/* Whether the value is defined; then ``*value`` before the clamp. */
static int reference(const one_case *c, int32_t how, int32_t *value)
{
    wide made;
    if (how == TWICE) {
        const int32_t left = c->shift > 0 ? c->shift : 0;
        const wide shifted = (wide)c->sum * ((wide)1 << left);
        if (shifted != (int32_t)shifted) {
            return 0;
        }
        const int32_t high =
            saturating_rounding_doubling_high_mul((int32_t)shifted, c->multiplier);
        made = rounding_divide_by_pot(high, c->shift > 0 ? 0 : -c->shift);
    } else if (how == ONCE) {
        made = nearest_half_up((wide)c->sum * c->multiplier, 31 - c->shift);
    } else {
        const int32_t reduced =
            c->multiplier < 0x7FFF0000 ? (c->multiplier + (1 << 15)) >> 16 : 0x7FFF;
        made = nearest_half_up((wide)c->sum * reduced, 15 - c->shift);
    }
    const wide moved = made + c->zero_point;
    *value = (int32_t)moved;
    return made == (int32_t)made && moved == (int32_t)moved;
}

static int32_t within(int32_t value, const one_case *c)
{
    return value < c->low ? c->low : value > c->high ? c->high : value;
}

/* --- cases */

static uint64_t state = SEED;

static uint64_t drawn(void)
{
    uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static int32_t below(int32_t end) { return (int32_t)((drawn() >> 33) % (uint64_t)end); }

/* From -2^bits to 2^bits - 1: anywhere, of any magnitude, at the ends, near halves of any place. */
static int64_t drawn_sum(int32_t bits)
{
    const int64_t end = (int64_t)1 << bits;
    const int64_t any = (int64_t)(drawn() >> (63 - bits)) - end;
    const int32_t few = below(4);
    const int32_t place = below(bits);
    switch (below(4)) {
    case 0: return any;
    case 1: return any >> place;
    case 2: return few & 1 ? end - 1 - below(3) : -end + below(3);
    default: {
        const int64_t many = few & 1 ? any >> place : below(1024) - 512;
        const int64_t near = many * ((int64_t)1 << place) + below(3) - 1;
        return near < -end ? -end : near >= end ? end - 1 : near;
    }
    }
}

static one_case drawn_case(int32_t how, int32_t small)
{
    one_case c;
    const int32_t ends[] = {1 << 30, (1 << 30) + 1, INT32_MAX, INT32_MAX - 1, 0x7FFEFFFF, 0x7FFF0000};
    c.multiplier = below(3) ? (1 << 30) + below(1 << 30) : ends[below(6)];
    c.shift = -below(32);
    if (small && c.shift == 0) {
        c.shift = -1;
    }
    if (!small && below(8) == 0) {
        c.shift = how == WIDE ? below(8) : below(31);
    }
    if (!small && below(64) == 0) {
        c.multiplier = c.shift = 0; /* a multiplier of 0 */
    }
    c.sum = drawn_sum(how == WIDE ? 47 : small ? 30 : 31);
    if (small && c.sum == -(1 << 30)) {
        c.sum += 1;
    }
    if (how == TWICE && c.shift > 0 && below(4)) {
        c.sum >>= c.shift; /* most of them then fit */
    }
    c.range = below(3);
    c.low = how == WIDE ? INT16_MIN : c.range == FULL_u8 ? 0 : -128;
    c.high = how == WIDE ? INT16_MAX : c.low + 255;
    const int32_t span = c.high - c.low;
    const int32_t third = below(3);
    c.zero_point = how == WIDE ? 0 : third == 0 ? c.low : third == 1 ? c.high : c.low + below(256);
    if (c.range == BOUNDED && how != WIDE) {
        c.low += below(span);
        c.high -= below(c.high - c.low);
    }
    return c;
}

/* --- what is said */

#if defined(__arm__)
static int32_t host(int32_t op, const void *at)
{
    register int32_t r0 __asm("r0") = op;
    register const void *r1 __asm("r1") = at;
    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}
static void say(const char *text) { host(4, text); }
#else
#include <stdio.h>
static void say(const char *text) { fputs(text, stdout); }
#endif

static void number(int64_t value)
{
    char text[24];
    int at = 23;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    text[at] = 0;
    do {
        text[--at] = (char)('0' + left % 10);
    } while ((left /= 10) != 0);
    if (value < 0) {
        text[--at] = '-';
    }
    say(" ");
    say(text + at);
}

typedef struct {
    const char *name;
    int64_t cases, wrong;
} tally;

static void compare(tally *of, const one_case *c, int32_t made, int32_t value)
{
    of->cases += 1;
    if (made == within(value, c)) {
        return;
    }
    if (of->wrong++ == 0) {
        say("first of ");
        say(of->name);
        say(": sum, multiplier, shift, zero point, low, high, made, wanted:");
        const int64_t all[] = {c->sum, c->multiplier, c->shift, c->zero_point, c->low, c->high, made,
            within(value, c)};
        for (int i = 0; i < 8; ++i) {
            number(all[i]);
        }
        say("\n");
    }
}

static void told(const tally *of)
{
    say(of->name);
    number(of->cases);
    number(of->wrong);
    say("\n");
}

/* --- the forms */

static int32_t as_stored(uint8_t byte, const one_case *c)
{
    return c->low < 0 ? (int8_t)byte : byte;
}

static void generally(const char *name, int32_t rounding, int32_t how, int32_t small)
{
    tally of = {name, 0, 0};
    while (of.cases < CASES) {
        const one_case c = drawn_case(how, small);
        int32_t value;
        if (reference(&c, how, &value)) {
            const requantisation to = {c.zero_point, c.low, c.high, rounding, 1};
            compare(&of, &c, requantised(&to, (int32_t)c.sum, c.multiplier, c.shift), value);
        }
    }
    told(&of);
}

/* store_four, whose bounds may be narrow; for a type's own bounds by constant, as kernels call it. */
static void by_fours(int32_t step)
{
    tally of = {step ? "store_four" : "store_four of one multiplier", 0, 0};
    while (of.cases < CASES) {
        one_case c[4];
        int32_t sums[4], multipliers[4], value;
        int8_t shifts[4];
        uint8_t out[4];
        for (int i = 0; i < 4; ++i) {
            c[i] = i == 0 || step ? drawn_case(TWICE, 1) : c[0];
            if (i > 0) {
                const int64_t sum = step ? c[i].sum : drawn_sum(29);
                const int32_t multiplier = c[i].multiplier, shift = c[i].shift;
                c[i] = c[0];
                c[i].sum = sum;
                c[i].multiplier = multiplier;
                c[i].shift = shift;
            }
            sums[i] = (int32_t)c[i].sum;
            multipliers[i] = c[i].multiplier;
            shifts[i] = (int8_t)c[i].shift;
        }
        if (c->range == BOUNDED && c->low < 0 && c->high > 127) {
            continue;
        }
        const requantisation to = {c->zero_point, c->low, c->high, ROUND_TWICE_SMALL, step};
        if (c->range == FULL_s8) {
            store_four(sums, multipliers, shifts, &to, FULL_s8, out);
        } else if (c->range == FULL_u8) {
            store_four(sums, multipliers, shifts, &to, FULL_u8, out);
        } else {
            store_four(sums, multipliers, shifts, &to, BOUNDED, out);
        }
        for (int i = 0; i < 4; ++i) {
            if (reference(&c[i], TWICE, &value)) {
                compare(&of, &c[i], as_stored(out[i], c), value);
            }
        }
    }
    told(&of);
}

/* short.h; only where nothing leaves 32 bits on the way, as ``is_short`` asks. */
static void shortly(int32_t how)
{
    tally of = {how == TWICE ? "five instructions" : "five instructions, once", 0, 0};
    while (of.cases < CASES) {
        const one_case c = drawn_case(how, 1);
        const int64_t twice = 2 * c.zero_point + 1;
        const int64_t added = twice * ((int64_t)1 << (-c.shift - 1));
        const int64_t sum = c.sum < 0 ? -c.sum : c.sum;
        int32_t value;
        if (c.range == BOUNDED || (added < 0 ? -added : added) + sum + 2 > INT32_MAX) {
            continue;
        }
        if (reference(&c, how, &value)) {
            const int32_t numbers[] = {c.multiplier, (int32_t)(twice * 256) - c.shift - 1};
            const int32_t s = (int32_t)c.sum;
            const int32_t made = how == TWICE
                ? (c.range == FULL_s8 ? rounded_s8(s, numbers) : rounded_u8(s, numbers))
                : (c.range == FULL_s8 ? once_s8(s, numbers) : once_u8(s, numbers));
            compare(&of, &c, made, value);
        }
    }
    told(&of);
}

#if defined(__ARM_FEATURE_MVE)
static void by_vectors(const char *name, int32_t rounding, int32_t how)
{
    tally of = {name, 0, 0};
    while (of.cases < CASES) {
        one_case c[4];
        int32_t sums[4], multipliers[4], shifts[4], made[4], value;
        for (int i = 0; i < 4; ++i) {
            c[i] = drawn_case(how, 1);
            c[i].zero_point = c->zero_point;
            c[i].low = c->low;
            c[i].high = c->high;
            sums[i] = (int32_t)c[i].sum;
            multipliers[i] = c[i].multiplier;
            shifts[i] = c[i].shift;
        }
        const requantisation to = {c->zero_point, c->low, c->high, rounding, 1};
        vst1q_s32(made, requantised_four(
            &to, vld1q_s32(sums), vld1q_s32(multipliers), vld1q_s32(shifts)));
        for (int i = 0; i < 4; ++i) {
            if (reference(&c[i], how, &value)) {
                compare(&of, &c[i], made[i], value);
            }
        }
    }
    told(&of);
}
#endif

#if defined(KERNELS)
/* Kernels from TIR, of KERNELS elements, each with its multiplier. */
static void by_kernel(const char *name, int32_t how)
{
    static one_case c[KERNELS];
    static int64_t longs[KERNELS];
    static int32_t sums[KERNELS], multipliers[KERNELS];
    static int32_t shifts[KERNELS], values[KERNELS];
    static int16_t made[KERNELS];
    tally of = {name, 0, 0};
    while (of.cases < CASES) {
        for (int i = 0; i < KERNELS;) {
            c[i] = drawn_case(how, 0);
            c[i].zero_point = 0;
            c[i].low = INT16_MIN;
            c[i].high = INT16_MAX;
            longs[i] = c[i].sum;
            sums[i] = (int32_t)c[i].sum;
            multipliers[i] = c[i].multiplier;
            shifts[i] = c[i].shift;
            i += reference(&c[i], how, &values[i]);
        }
        if (how == WIDE) {
            net_wide(longs, multipliers, shifts, made);
        } else if (how == TWICE) {
            net_tflite(sums, multipliers, shifts, made);
        } else {
            net_single(sums, multipliers, shifts, made);
        }
        for (int i = 0; i < KERNELS; ++i) {
            compare(&of, &c[i], made[i], values[i]);
        }
    }
    told(&of);
}
#endif

static void run(void)
{
    generally("ROUND_TWICE", ROUND_TWICE, TWICE, 0);
    generally("ROUND_TWICE_SMALL", ROUND_TWICE_SMALL, TWICE, 1);
    generally("ROUND_ONCE", ROUND_ONCE, ONCE, 0);
    generally("ROUND_ONCE_SMALL", ROUND_ONCE_SMALL, ONCE, 1);
    by_fours(0);
    by_fours(1);
    shortly(TWICE);
    shortly(ONCE);
#if defined(__ARM_FEATURE_MVE)
    by_vectors("vectors", ROUND_TWICE_SMALL, TWICE);
    by_vectors("vectors, once", ROUND_ONCE_SMALL, ONCE);
#endif
#if defined(KERNELS)
    by_kernel("kernel of int16x8", WIDE);
    by_kernel("kernel, twice", TWICE);
    by_kernel("kernel, once", ONCE);
#endif
}

#if defined(__arm__)
void start(void)
{
#if defined(__ARM_FEATURE_MVE)
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* vectors on */
    __asm volatile("dsb\n isb" ::: "memory");
#endif
    run();
    say("done\n");
    host(0x18, (const void *)0x20026);
    for (;;) {
    }
}
__attribute__((section(".vectors"), used)) static const void *const vectors[] = {
    (const void *)STACK_TOP, (const void *)start};
#else
int main(void)
{
    run();
    say("done\n");
    return 0;
}
#endif
