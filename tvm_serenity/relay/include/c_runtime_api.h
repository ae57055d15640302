/* What C generated with the unpacked interface and planned memory needs: no runtime. */
#ifndef SERENITY_C_RUNTIME_API_H
#define SERENITY_C_RUNTIME_API_H
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#define TVM_DLL __attribute__((visibility("default")))
#endif
