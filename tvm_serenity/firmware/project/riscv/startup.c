/* Start-up for RISC-V in machine mode: data and bss, a painted stack, the FPU, traps that are seen.

   A trap, and the return of main, end a semihosting session with a status; without a debugger
   the core stops there. */
#include "csr.h"
#include "startup.h"

#include <stdint.h>

void start(void);
void begin(void);
void trapped(void);

__attribute__((aligned(4), used, noreturn)) void trapped(void)
{
    uint32_t cause;
    uint32_t address;
    uint32_t about;
    READ_CSR("mcause", cause);
    READ_CSR("mepc", address);
    READ_CSR("mtval", about);
    (void)semihosting(SYS_WRITE0, "FAULT\n");
    print_value("mcause", cause);
    print_value("mepc", address);
    print_value("mtval", about);
    stop(FAULT_STATUS);
}

/* The first instruction of the image. */
__attribute__((naked, section(".vectors"), used)) void start(void)
{
    __asm volatile(".option push\n"
                   ".option norelax\n"
                   ".option arch, +zicsr\n"
                   "la gp, __global_pointer$\n"
                   "la sp, stack_top\n"
                   "la t0, trapped\n"
                   "csrw mtvec, t0\n"
#if defined(__riscv_flen)
                   "li t0, 0x6000\n"
                   "csrs mstatus, t0\n"
#endif
                   "tail begin\n"
                   ".option pop");
}

__attribute__((noinline, noreturn)) static void run(void) { stop((uint32_t)main()); }

__attribute__((used, noreturn)) void begin(void)
{
    set_up_memory();
    run();
}
