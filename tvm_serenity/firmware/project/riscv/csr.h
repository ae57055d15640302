/* Control and status registers of RISC-V, for compilers whose flags do not name their extension. */
#ifndef CSR_H
#define CSR_H

#include <stdint.h>

#define READ_CSR(name, value)                                                                      \
    __asm volatile(".option push\n.option arch, +zicsr\ncsrr %0, " name "\n.option pop"            \
                   : "=r"(value))

#endif
