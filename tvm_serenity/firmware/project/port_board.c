/* The port for a board under a debugger or QEMU: semihosting, the core's clock, the painted stack. */
#include "clock.h"
#include "port.h"
#include "port_files.h"
#include "semihosting.h"

#include <stddef.h>

#define OPEN_READ 1u
#define OPEN_WRITE 5u

extern uint32_t stack_limit[];
extern uint32_t stack_painted[];
extern uint32_t stack_top[];

static int32_t created = -1;

static uint32_t length_of(const char *text)
{
    uint32_t length = 0;
    while (text[length] != '\0') {
        ++length;
    }
    return length;
}

static int32_t open_file(const char *file, uint32_t mode)
{
    const uintptr_t block[3] = {(uintptr_t)file, mode, length_of(file)};
    return semihosting(SYS_OPEN, block);
}

static void close_file(int32_t handle)
{
    const uintptr_t block[1] = {(uintptr_t)handle};
    (void)semihosting(SYS_CLOSE, block);
}

void port_puts(const char *text)
{
    (void)semihosting(SYS_WRITE0, text);
    (void)semihosting(SYS_WRITE0, "\n");
}

void port_report(const char *name, uint64_t value)
{
    char digits[21];
    char *at = digits + sizeof digits - 1;
    *at = '\0';
    do {
        *--at = (char)('0' + (int32_t)(value % 10u));
        value /= 10u;
    } while (value != 0u);
    (void)semihosting(SYS_WRITE0, name);
    (void)semihosting(SYS_WRITE0, " ");
    port_puts(at);
}

int32_t port_read_at(const char *file, uint32_t offset, void *data, uint32_t size)
{
    const int32_t handle = open_file(file, OPEN_READ);
    if (handle < 0) {
        return -1;
    }
    const uintptr_t place[2] = {(uintptr_t)handle, offset};
    if (offset != 0u && semihosting(SYS_SEEK, place) != 0) {
        close_file(handle);
        return -1;
    }
    const uintptr_t block[3] = {(uintptr_t)handle, (uintptr_t)data, size};
    const int32_t missing = semihosting(SYS_READ, block);
    close_file(handle);
    return missing < 0 ? -1 : (int32_t)size - missing;
}

int32_t port_create(const char *file)
{
    if (created >= 0) {
        close_file(created);
    }
    created = open_file(file, OPEN_WRITE);
    return created < 0 ? -1 : 0;
}

int32_t port_append(const void *data, uint32_t size)
{
    const uintptr_t block[3] = {(uintptr_t)created, (uintptr_t)data, size};
    return semihosting(SYS_WRITE, block) == 0 ? 0 : -1;
}

uint32_t port_stack_used(void)
{
    if (*stack_painted != 0xDEADBEEFu) {
        /* The stack went beyond the paint: all of it may be used. */
        return (uint32_t)((uintptr_t)stack_top - (uintptr_t)stack_limit);
    }
    const uint32_t *word = stack_painted;
    while (word < stack_top && *word == 0xDEADBEEFu) {
        ++word;
    }
    return (uint32_t)((uintptr_t)stack_top - (uintptr_t)word);
}
