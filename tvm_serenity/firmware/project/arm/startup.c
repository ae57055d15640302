/* Start-up for Cortex-M: vectors, data and bss, a painted stack, the FPU, faults that are seen.

   A fault, and the return of main, end a semihosting session with a status; without a debugger
   the core stops there. */
#include "startup.h"

#include <stddef.h>
#include <stdint.h>

void Reset_Handler(void);
void Fault_Handler(void);
void Default_Handler(void);
void SysTick_Handler(void) __attribute__((weak, alias("Default_Handler")));

#define REGISTER(address) (*(volatile uint32_t *)(address))

void Fault_Handler(void)
{
    (void)semihosting(SYS_WRITE0, "FAULT\n");
#if !defined(__ARM_ARCH_6M__)
    print_value("CFSR", REGISTER(0xE000ED28u));
    print_value("HFSR", REGISTER(0xE000ED2Cu));
    print_value("BFAR", REGISTER(0xE000ED38u));
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
    set_up_memory();
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    REGISTER(0xE000ED88u) |= 0xFu << 20;
    __asm volatile("dsb\n isb");
#endif
    run();
}
