/* What marks in the library's files stand for, when a file is read or compiled as it lies here.

   A file is written once for all types of inputs and weights. In a project it stands once for each
   instance that is used, with every mark replaced (tvm_serenity/firmware/kernels/sources.py):

       input_t, INPUT       int8_t, int8 (or uint8): also at the end of a name, as in gather_INPUT
       INPUT_SIGNED, _MIN   1, -128 (or 0, 0)
       SIGN, SIGN_TEXT      s8, "s8" (or u8), as in even_SIGN
       WEIGHT, WEIGHT_BITS  w8, 8 (or w4, 4), as in first_WEIGHT
       FORMAT               INPUT with its weights: int8, int8_w4, as in convolve_FORMAT
       SHIFT, SHIFT_TEXT    a number, "22" (or "20")

   Here inputs are of int8 and weights of 8 bits, unless INSTANCE_UNSIGNED or INSTANCE_NARROW says
   otherwise. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "basics.h"

#if defined(INSTANCE_UNSIGNED)
typedef uint8_t input_t;
#define INPUT_SIGNED 0
#define INPUT_MIN 0
#define SIGN_TEXT "u8"
#define OF_SIGN(name) name##_u8
#define OF_INPUT(name) name##_uint8
#else
typedef int8_t input_t;
#define INPUT_SIGNED 1
#define INPUT_MIN -128
#define SIGN_TEXT "s8"
#define OF_SIGN(name) name##_s8
#define OF_INPUT(name) name##_int8
#endif
#if defined(INSTANCE_NARROW)
#define WEIGHT_BITS 4
#define OF_WEIGHT(name) name##_w4
#else
#define WEIGHT_BITS 8
#define OF_WEIGHT(name) name##_w8
#endif
#define SHIFT 22
#define SHIFT_TEXT "22"

/* Names that other files define for every type of input or weight. */
#define even_SIGN OF_SIGN(even)
#define odd_SIGN OF_SIGN(odd)
#define eight_SIGN OF_SIGN(eight)
#define rounded_SIGN OF_SIGN(rounded)
#define once_SIGN OF_SIGN(once)
#define FULL_SIGN OF_SIGN(FULL)
#define LOADED_SIGN OF_SIGN(LOADED)
#define SATURATE_SIGN OF_SIGN(SATURATE)
#define WIDENED_SIGN OF_SIGN(WIDENED)
#define begun_WEIGHT OF_WEIGHT(begun)
#define summed_WEIGHT OF_WEIGHT(summed)
#define all_summed_WEIGHT OF_WEIGHT(all_summed)
#define summed_four_WEIGHT OF_WEIGHT(summed_four)
#define first_of_WEIGHT OF_WEIGHT(first_of)
#define second_of_WEIGHT OF_WEIGHT(second_of)
#define first_WEIGHT OF_WEIGHT(first)
#define second_WEIGHT OF_WEIGHT(second)
#define sixteen_WEIGHT OF_WEIGHT(sixteen)
#define tap_WEIGHT OF_WEIGHT(tap)
#define even_tap_WEIGHT OF_WEIGHT(even_tap)
#define odd_tap_WEIGHT OF_WEIGHT(odd_tap)
#define BYTE_OF_INPUT OF_INPUT(BYTE_OF)
#define FILL_UNSIGNED_INPUT OF_INPUT(FILL_UNSIGNED)
#define FINISHED_TO_INPUT OF_INPUT(FINISHED_TO)
#define FINISHED_CLAMP_INPUT OF_INPUT(FINISHED_CLAMP)
#define UNSIGNED_PAIR_INPUT OF_INPUT(UNSIGNED_PAIR)
#define UNSIGNED_ONE_INPUT OF_INPUT(UNSIGNED_ONE)
