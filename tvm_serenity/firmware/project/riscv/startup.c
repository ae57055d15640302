/* Start-up for RISC-V in machine mode: data and bss, a painted stack, the FPU, traps that are seen.

   A trap, and the return of main, end a semihosting session with a status; without a debugger
   the core stops there. */
#include "csr.h"
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
void start(void);
void begin(void);
void trapped(void);

#define FAULT_STATUS 99u

__attribute__((noreturn)) static void stop(uint32_t status)
{
    const uint32_t block[2] = {STOPPED, status};
    (void)semihosting(SYS_EXIT_EXTENDED, block);
    for (;;) {
    }
}

static void print_value(const char *name, uint32_t value)
{
    char text[12] = " 00000000\n";
    for (uint32_t i = 0; i < 8u; ++i) {
        text[1u + i] = "0123456789abcdef"[(value >> (28u - 4u * i)) & 15u];
    }
    (void)semihosting(SYS_WRITE0, name);
    (void)semihosting(SYS_WRITE0, text);
}

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
    run();
}
