#pragma once
/* Small functions that generated kernels share. */
#include <limits.h>
#include <stdint.h>
#if CHAR_BIT != 8 || INT_MAX != 2147483647
#error "the network needs bytes of 8 bits and int of 32 bits: compile it for a core of 32 bits or more"
#endif
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the network needs a little-endian core: its constants are packed in that byte order"
#endif
#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#endif
#if defined(__clang__)
#define NOT_INLINED __attribute__((noinline, unused)) static
#else
#define NOT_INLINED __attribute__((noinline, noclone, unused)) static
#endif
#define INLINED __attribute__((always_inline, unused)) static inline
/* Before a loop of four rounds: cores with 32 registers run it without a counter. */
#if defined(__riscv) && !defined(__clang__)
#define UNROLLED_4 _Pragma("GCC unroll 4")
#else
#define UNROLLED_4
#endif
INLINED int32_t min_i32(int32_t a, int32_t b) { return a < b ? a : b; }
INLINED int32_t max_i32(int32_t a, int32_t b) { return a > b ? a : b; }
INLINED uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
INLINED uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }
INLINED int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
INLINED int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
INLINED float min_f32(float a, float b) { return a < b ? a : b; }
INLINED float max_f32(float a, float b) { return a > b ? a : b; }
INLINED double min_f64(double a, double b) { return a < b ? a : b; }
INLINED double max_f64(double a, double b) { return a > b ? a : b; }
INLINED int32_t clz_int32(int32_t a) { return (int32_t)__builtin_clz((uint32_t)a); }
INLINED int32_t clz_int64(int64_t a) { return (int32_t)__builtin_clzll((uint64_t)a); }
INLINED float f32_of_bits(uint32_t a) {
    const union {
        uint32_t bits;
        float value;
    } both = {a};
    return both.value;
}
