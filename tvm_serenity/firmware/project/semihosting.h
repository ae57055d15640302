/* Semihosting: the requests to the debugger or QEMU that the port and the start-up make. */
#ifndef SEMIHOSTING_H
#define SEMIHOSTING_H

#include "trap.h"

#define SYS_OPEN 0x01
#define SYS_CLOSE 0x02
#define SYS_WRITE0 0x04
#define SYS_WRITE 0x05
#define SYS_READ 0x06
#define SYS_SEEK 0x0A
#define SYS_EXIT_EXTENDED 0x20
#define STOPPED 0x20026u

#endif
