"""``forms.c``: a project's ``kernels.c``, and functions that call the library's requantisation.

``verify`` compiles it for the host, to compare the requantisation with the reference.
"""

from tvm_serenity.firmware.emit.c import file, join
from tvm_serenity.firmware.kernels.sources import included
from tvm_serenity.firmware.program import Program

FORMS = "forms.c"
REQUANTISE, SHORT = "common/requantise.h", "common/epilogue.h"
"""The files of the kernel library with requantisation."""

_GENERAL = """\
void serenity_requantised(const int32_t *to, const int32_t *sums, const int32_t *multipliers,
    const int32_t *shifts, int32_t *out, int32_t count)
{
    const requantisation finish = {to[0], to[1], to[2], to[3], 1};
    for (int32_t i = 0; i < count; ++i) {
        out[i] = requantised(&finish, sums[i], multipliers[i], shifts[i]);
    }
}
/* ``count`` is a multiple of 4. */
void serenity_stored(const int32_t *to, const int32_t *sums, const int32_t *multipliers,
    const int8_t *shifts, uint8_t *out, int32_t count)
{
    const requantisation finish = {to[0], to[1], to[2], ROUND_TWICE_SMALL, 1};
    for (int32_t i = 0; i < count; i += 4) {
        if (to[3] == FULL_s8) {
            store_four(sums + i, multipliers + i, shifts + i, &finish, FULL_s8, out + i);
        } else if (to[3] == FULL_u8) {
            store_four(sums + i, multipliers + i, shifts + i, &finish, FULL_u8, out + i);
        } else {
            store_four(sums + i, multipliers + i, shifts + i, &finish, BOUNDED, out + i);
        }
    }
}
"""
_SHORT = """\
void serenity_short(int32_t form, const int32_t *sums, const int32_t *numbers, int32_t *out,
    int32_t count)
{
    for (int32_t i = 0; i < count; ++i) {
        const int32_t *const n = numbers + 2 * i;
        out[i] = form == 0 ? rounded_s8(sums[i], n) :
            form == 1 ? rounded_u8(sums[i], n) :
            form == 2 ? once_s8(sums[i], n) : once_u8(sums[i], n);
    }
}
"""


def forms_of(program: Program) -> frozenset[str]:
    """Return the files, of ``REQUANTISE`` and ``SHORT``, that kernels of ``program`` include."""
    used = included(file for kernel in program.kernels if kernel.body for file in kernel.support)
    return used & {REQUANTISE, SHORT}


def forms_source(program: Program) -> str:
    """Return ``forms.c``, which includes ``kernels.c`` and is compiled instead of it."""
    used = forms_of(program)
    return join(
        [
            f'#include "{file(program, "kernels.c")}"\n',
            _GENERAL if REQUANTISE in used else "",
            _SHORT if SHORT in used else "",
        ]
    )
