"""Transfers in C: calls of a port that the user may write, and when memory holds a tensor.

``start`` begins a copy, ``done`` waits for all that have begun. ``done`` is called where something
needs what is copied, or the bytes that it is copied from or to, and not before: a port with DMA
copies while kernels compute.
"""

from dataclasses import dataclass, field

from tvm_serenity.firmware.emit.arguments import pointer
from tvm_serenity.firmware.emit.c import PORT_HEADER, banner, file, join, symbol
from tvm_serenity.firmware.lifetimes import (
    ByteRange,
    Event,
    Lifetimes,
    bytes_of,
    events,
    holds,
    scratch_of,
    touched,
)
from tvm_serenity.firmware.program import Place, Program
from tvm_serenity.firmware.transfer import DONE, START, Transfer


def port_header(program: Program) -> str:
    """Return ``port.h`` of a network: how tensors move between its memories."""
    guard = f"{program.name.upper()}_PORT_H"
    start, done = symbol(program, START), symbol(program, DONE)
    return join(
        [
            banner(program, "transfers between its memories")
            + f"#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n\n"
            '#ifdef __cplusplus\nextern "C" {\n#endif\n',
            "/* Begin to copy `bytes` from `from` to `to`, which do not overlap; one is in fast,\n"
            "   the other in slow memory. The network touches neither, except to read `from`,\n"
            "   before it has called `done`. The default is memcpy; define both functions to use\n"
            "   DMA: then `start` also cleans and invalidates a data cache before the copy. */\n"
            f"void {start}(void *to, const void *from, uint32_t bytes);",
            f"/* Wait until every copy that has begun is complete. */\nvoid {done}(void);",
            "#ifdef __cplusplus\n}\n#endif\n\n#endif\n",
        ]
    )


def port_source(program: Program) -> str:
    """Return ``port.c`` of a network: the functions that hold if the user defines none."""
    return join(
        [
            banner(program, "transfers by memcpy, unless functions of these names are defined")
            + f'#include "{file(program, PORT_HEADER)}"\n\n#include <string.h>\n',
            "__attribute__((weak)) "
            f"void {symbol(program, START)}(void *to, const void *from, uint32_t bytes)\n"
            "{\n    (void)memcpy(to, from, bytes);\n}\n",
            f"__attribute__((weak)) void {symbol(program, DONE)}(void) {{}}\n",
        ]
    )


def counting_port(program: Program, count: str) -> str:
    """Return functions in place of the port's that add up the bytes in the variable ``count``.

    A copy happens when it is waited for, so that a call that does not wait finds old bytes.
    """
    return (
        f"static uint64_t {count};\n"
        "static struct { void *to; const void *from; uint32_t bytes; } begun[64];\n"
        "static uint32_t begun_count;\n"
        f"void {symbol(program, DONE)}(void)\n{{\n"
        "    for (uint32_t i = 0; i < begun_count; ++i) {\n"
        "        (void)memcpy(begun[i].to, begun[i].from, begun[i].bytes);\n    }\n"
        "    begun_count = 0;\n}\n"
        f"void {symbol(program, START)}(void *to, const void *from, uint32_t bytes)\n{{\n"
        f"    if (begun_count == 64u) {{\n        {symbol(program, DONE)}();\n    }}\n"
        "    begun[begun_count].to = to;\n    begun[begun_count].from = from;\n"
        f"    begun[begun_count++].bytes = bytes;\n    {count} += bytes;\n}}\n"
    )


def lifetime_macros(program: Program) -> str:
    """Return the macros that tell a caller when memory holds a tensor."""
    told = symbol(program, "lifetime")
    return (
        "/* With SERENITY_LIFETIMES the caller is told when memory begins and ends to hold a\n"
        "   tensor or a workspace. */\n"
        "#if defined(SERENITY_LIFETIMES)\n"
        f"void {told}(void *data, uint32_t size, int begins);\n"
        f"#define BEGINS(data, size) {told}(data, size, 1)\n"
        f"#define ENDS(data, size) {told}(data, size, 0)\n"
        "#else\n#define BEGINS(data, size) ((void)0)\n#define ENDS(data, size) ((void)0)\n#endif\n"
    )


def call_macros(program: Program) -> str:
    """Return the macros that tell a caller when a call of the walker begins and ends."""
    told = symbol(program, "called")
    return (
        "/* With SERENITY_LIFETIMES the caller is told before and after each call, by its number,\n"
        "   so that it knows which bytes hold rows. */\n"
        "#if defined(SERENITY_LIFETIMES)\n"
        f"void {told}(uint32_t number, int begins);\n"
        f"#define BEFORE(number) {told}(number, 1)\n#define AFTER(number) {told}(number, 0)\n"
        "#else\n#define BEFORE(number) ((void)0)\n#define AFTER(number) ((void)0)\n#endif\n"
    )


def told_of_rows(program: Program) -> str:
    """Return the function that passes on, for each call, which bytes begin and end to hold rows.

    It is compiled behind ``model.c`` with static arenas.
    """
    events = list[tuple[int, int, ByteRange]]()
    for one in holds(program):
        events += [(one.first, 1, one.where)] if one.first >= 0 else []
        events += [(one.last, 0, one.where)] if one.last >= 0 and not one.replaced else []
    events.sort(key=lambda event: (event[0], -event[1]))
    lines = [
        f"    {{{number}u, {begins}u, {_at(one)}, {one.stop - one.start}u}},\n"
        for number, begins, one in events
        if number < len(program.calls)
    ]
    lifetime, called = symbol(program, "lifetime"), symbol(program, "called")
    return (
        f"void {lifetime}(void *data, uint32_t size, int begins);\n"
        "static const struct {\n    uint32_t number, begins;\n    uint8_t *data;\n"
        "    uint32_t size;\n} held[] = {\n" + "".join(lines) + "};\n"
        "static uint32_t told;\n"
        f"void {called}(uint32_t number, int begins)\n{{\n"
        "    if (number == 0u && begins) {\n        told = 0u;\n    }\n"
        "    for (; told < sizeof held / sizeof held[0]; ++told) {\n"
        "        if (held[told].number != number || held[told].begins != (uint32_t)begins) {\n"
        "            break;\n        }\n"
        f"        {lifetime}(held[told].data, held[told].size, begins);\n    }}\n}}\n"
    )


def _at(one: ByteRange, external: bool = False) -> str:
    """Return the C expression of where bytes begin."""
    return pointer(Place(one.region, one.start), "uint8", external, False)


@dataclass
class Port:
    """The lines around the calls of a program, asked for in their order."""

    program: Program
    external: bool
    pending: list[tuple[ByteRange, ByteRange]] = field(default_factory=list)  # to, from
    ended: list[ByteRange] = field(default_factory=list)  # told after the copies are done

    def __post_init__(self) -> None:
        self.events = events(self.program)
        self.lifetimes = Lifetimes.of(self.program, self.events)
        self.next = 0

    def before(self, call: int) -> list[str]:
        """Return what precedes a call, or follows the last one: transfers, and waiting."""
        lines = []
        while self.next < len(self.events):
            event = self.events[self.next]
            if event.call != call:
                break
            lines += self._waits(event)
            lines += [self._told("BEGINS", bytes_of(self.program, t)) for t in self._begun()]
            lines += [self._told("BEGINS", one) for one in scratch_of(self.program, event)]
            if event.transfer is None:
                return lines
            lines += self._copies(event.transfer)
            lines += self._ends()
            self.next += 1
        return [*lines, *(self._done() if self.pending else [])]

    def after(self) -> list[str]:
        """Return what follows the call that ``before`` was asked for."""
        lines = self._ends()
        self.next += 1
        return lines

    def _begun(self) -> list[int]:
        return self.lifetimes.begin(self.next)

    def _copies(self, transfer: Transfer) -> list[str]:
        """The copy of a tensor: by the port between two memories, by memmove within one."""
        to, source = (bytes_of(self.program, t) for t in (transfer.target, transfer.source))
        passed = f"{_at(to, self.external)}, {_at(source, self.external)}, {to.stop - to.start}u"
        name = self.program.tensors[transfer.target].name
        if to.region == source.region:
            return [f"/* moved: {name} */", f"(void)memmove({passed});"]
        self.pending.append((to, source))
        return [f"/* copied: {name} */", f"{symbol(self.program, START)}({passed});"]

    def _waits(self, event: Event) -> list[str]:
        """A wait, if the event touches what is copied."""
        read, written = touched(self.program, event)
        scratch = list(scratch_of(self.program, event))
        changed = [*(bytes_of(self.program, t) for t in written), *scratch]
        seen = [*(bytes_of(self.program, t) for t in read), *changed]
        for to, source in self.pending:
            if any(one.meets(to) for one in seen) or any(one.meets(source) for one in changed):
                return self._done()
        return []

    def _done(self) -> list[str]:
        self.pending.clear()
        told = [self._told("ENDS", one) for one in self.ended]
        self.ended.clear()
        return [f"{symbol(self.program, DONE)}();", *told]

    def _ends(self) -> list[str]:
        """What is told of memory that is free now; of bytes that are being copied, later."""
        event = self.events[self.next]
        ended = [bytes_of(self.program, t) for t in self.lifetimes.end(self.program, self.next)]
        ended += scratch_of(self.program, event)
        lines = []
        for one in ended:
            if any(one.meets(busy) for pair in self.pending for busy in pair):
                self.ended.append(one)
            else:
                lines.append(self._told("ENDS", one))
        return lines

    def _told(self, macro: str, one: ByteRange) -> str:
        return f"{macro}({_at(one, self.external)}, {one.stop - one.start}u);"
