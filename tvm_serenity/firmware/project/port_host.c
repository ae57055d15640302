/* The port for a host: files and standard output. */
#include "port.h"
#include "port_files.h"

#include <inttypes.h>
#include <stdio.h>

static FILE *created;

void port_puts(const char *text) { puts(text); }

void port_report(const char *name, uint64_t value) { printf("%s %" PRIu64 "\n", name, value); }

int32_t port_read_at(const char *file, uint32_t offset, void *data, uint32_t size)
{
    FILE *opened = fopen(file, "rb");
    if (opened == NULL) {
        return -1;
    }
    const int moved = fseek(opened, (long)offset, SEEK_SET);
    const size_t count = moved == 0 ? fread(data, 1, size, opened) : 0;
    (void)fclose(opened);
    return (int32_t)count;
}

int32_t port_create(const char *file)
{
    if (created != NULL) {
        (void)fclose(created);
    }
    created = fopen(file, "wb");
    return created == NULL ? -1 : 0;
}

int32_t port_append(const void *data, uint32_t size)
{
    if (created == NULL || fwrite(data, 1, size, created) != size) {
        return -1;
    }
    return fflush(created) == 0 ? 0 : -1;
}

void port_clock_start(void) {}

uint64_t port_clock(void) { return 0; }

uint32_t port_stack_used(void) { return 0; }
