/* Start-up on every core: memory, the value of a register in text, the end of a session. */
#ifndef STARTUP_H
#define STARTUP_H

#include "semihosting.h"

#include <stdint.h>

extern uint32_t data_load[];
extern uint32_t data_start[];
extern uint32_t data_end[];
extern uint32_t bss_start[];
extern uint32_t bss_end[];
extern uint32_t stack_painted[];
extern uint32_t stack_top[];

int main(void);

#define FAULT_STATUS 99u

/* End a semihosting session with a status; without a debugger the core stops here. */
__attribute__((noreturn)) static inline void stop(uint32_t status)
{
    const uint32_t block[2] = {STOPPED, status};
    (void)semihosting(SYS_EXIT_EXTENDED, block);
    for (;;) {
    }
}

static inline void print_value(const char *name, uint32_t value)
{
    char text[12] = " 00000000\n";
    for (uint32_t i = 0; i < 8u; ++i) {
        text[1u + i] = "0123456789abcdef"[(value >> (28u - 4u * i)) & 15u];
    }
    (void)semihosting(SYS_WRITE0, name);
    (void)semihosting(SYS_WRITE0, text);
}

/* Fill data and bss, and paint the stack below the caller, whose frame this must be inlined into. */
__attribute__((always_inline)) static inline void set_up_memory(void)
{
    uint32_t *to = data_start;
    for (const uint32_t *from = data_load; to < data_end;) {
        *to++ = *from++;
    }
    for (to = bss_start; to < bss_end;) {
        *to++ = 0;
    }
    const uint32_t *const painted = (const uint32_t *)__builtin_frame_address(0) - 16;
    for (to = stack_painted; to < painted;) {
        *to++ = 0xDEADBEEFu;
    }
}

#endif
