"""How programs for QEMU and the emulator of cycles speak with the machine that runs them."""

HOST = """\
static int32_t host(int32_t op, const void *at)
{
    register int32_t r0 __asm("r0") = op;
    register const void *r1 __asm("r1") = at;
    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}
"""
"""A call of the debugger: 4 writes a text, 0x18 ends."""
BAD = """\
static void bad(int32_t number)
{
    char text[] = "bad 00000\\n";
    for (int i = 8; i > 3; --i, number /= 10) {
        text[i] = (char)('0' + number % 10);
    }
    host(4, text);
}
"""
"""Says which call had another result."""
