/* What programs need from the machine they run on: text and a clock. */
#ifndef PORT_H
#define PORT_H

#include <stdint.h>

/* Print a line, or a name and a number. */
void port_puts(const char *text);
void port_report(const char *name, uint64_t value);

/* A clock that counts up; its unit is the machine's. */
void port_clock_start(void);
uint64_t port_clock(void);

#endif
