/* Generated code allocates nothing: its memory is planned. */
#ifndef SERENITY_C_BACKEND_API_H
#define SERENITY_C_BACKEND_API_H
#include "c_runtime_api.h"
#endif
