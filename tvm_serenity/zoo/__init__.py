"""Networks that are built from their published definitions, as Relax modules with seeded weights.

``NAMES`` lists them. ``build("swiftnet")`` or ``build("randwire?n=64&seed=7")`` builds one. The
list does not import TVM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm_serenity.errors import InputError
from tvm_serenity.system.files import ZOO
from tvm_serenity.zoo import darts, liberis_lane, mobilenet_v2, nasnet, randwire, swiftnet
from tvm_serenity.zoo.entry import ZooEntry, ZooParameter

if TYPE_CHECKING:
    from tvm import IRModule

__all__ = ["NAMES", "ZooEntry", "ZooParameter", "build"]

NAMES: dict[str, ZooEntry] = {
    entry.name: entry
    for module in (swiftnet, darts, nasnet, randwire, liberis_lane, mobilenet_v2)
    for entry in module.ENTRIES
}


def build(spec: str) -> IRModule:
    """Return the Relax module of ``spec``, which is "name" or "name?param=value&...".

    A prefix "zoo:" is allowed. The module has one function ``main``. Its parameters are the
    network's inputs (batch 1; float32, or int8 with ``quantised=1``); weights are constants. Each
    operator is a binding of one dataflow block; the bias and the relu of a convolution are separate
    bindings. The same spec always gives the same module and weights. Raises :class:`InputError` if
    the name, a parameter or a value is not allowed.
    """
    name, _, query = spec.removeprefix(ZOO).partition("?")
    if name not in NAMES:
        raise InputError(f"the zoo has no network {name!r}; choose one of {', '.join(NAMES)}")
    entry = NAMES[name]
    values = entry.values(_pairs(query))
    from tvm_serenity.zoo.net import NetBuilder, module

    own = {param.name: values[param.name] for param in entry.own}
    kind: type[NetBuilder] = NetBuilder
    if own.pop("quantised", 0):
        from tvm_serenity.zoo.quantised import QuantisedNet

        kind = QuantisedNet
    return module(lambda net: entry.build(net, **own), values["layout"], values["seed"], kind)


def _pairs(query: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        name, equals, value = part.partition("=")
        if not equals or name in pairs:
            raise InputError(
                f"the zoo parameter {part!r} is not valid; write each parameter once, as name=value"
            )
        pairs[name] = value
    return pairs
