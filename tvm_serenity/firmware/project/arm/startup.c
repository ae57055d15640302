/* Start-up for Cortex-M: vectors, data and bss, a painted stack, the FPU, faults that are seen.

   A fault, and the return of main, end a semihosting session with a status; without a debugger
   the core stops there. */
#include "semihosting.h"

#include <stddef.h>
#include <stdint.h>

extern uint32_t data_load[];
extern uint32_t data_start[];
extern uint32_t data_end[];
extern uint32_t bss_start[];
extern uint32_t bss_end[];
extern uint32_t stack_painted[];
extern uint32_t stack_top[];

int main(void);
void Reset_Handler(void);
void Fault_Handler(void);
void Default_Handler(void);
void SysTick_Handler(void) __attribute__((weak, alias("Default_Handler")));

#define FAULT_STATUS 99u

__attribute__((noreturn)) static void stop(uint32_t status)
{
    const uint32_t block[2] = {STOPPED, status};
    (void)semihosting(SYS_EXIT_EXTENDED, block);
    for (;;) {
    }
}

#if !defined(__ARM_ARCH_6M__)
static void print_register(const char *name, uint32_t address)
{
    const uint32_t value = *(volatile uint32_t *)(uintptr_t)address;
    char text[12] = " 00000000\n";
    for (uint32_t i = 0; i < 8u; ++i) {
        text[1u + i] = "0123456789abcdef"[(value >> (28u - 4u * i)) & 15u];
    }
    (void)semihosting(SYS_WRITE0, name);
    (void)semihosting(SYS_WRITE0, text);
}
#endif

void Fault_Handler(void)
{
    (void)semihosting(SYS_WRITE0, "FAULT\n");
#if !defined(__ARM_ARCH_6M__)
    print_register("CFSR", 0xE000ED28u);
    print_register("HFSR", 0xE000ED2Cu);
    print_register("BFAR", 0xE000ED38u);
#endif
    stop(FAULT_STATUS);
}

void Default_Handler(void) { stop(FAULT_STATUS); }

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    stack_top,
    (const void *)(uintptr_t)Reset_Handler,
    (const void *)(uintptr_t)Fault_Handler,
    (const void *)(uintptr_t)Fault_Handler,
    (const void *)(uintptr_t)Fault_Handler,
    (const void *)(uintptr_t)Fault_Handler,
    (const void *)(uintptr_t)Fault_Handler,
    (const void *)(uintptr_t)Fault_Handler,
    NULL,
    NULL,
    NULL,
    (const void *)(uintptr_t)Default_Handler,
    (const void *)(uintptr_t)Default_Handler,
    NULL,
    (const void *)(uintptr_t)Default_Handler,
    (const void *)(uintptr_t)SysTick_Handler,
};

__attribute__((noinline, noreturn)) static void run(void) { stop((uint32_t)main()); }

void Reset_Handler(void)
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
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20;
    __asm volatile("dsb\n isb");
#endif
    run();
}
