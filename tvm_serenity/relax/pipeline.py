"""The pipeline from a Relax module to kernels in an arena.

:func:`prepared` quantises, rewrites and lowers; :func:`planned` orders and places. Passes,
commands, rows, firmware and runtime all use it, each as far as it needs. The pipeline "serenity" is
:func:`pipeline_of` with a check of each kernel (``tvm_serenity.runtime.pipeline``).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import tvm

from tvm_serenity import compat, tvm_targets
from tvm_serenity.errors import InputError
from tvm_serenity.kernels.lean import lean
from tvm_serenity.kernels.measured import NONE, SHIPPED, KnownForms, known_for
from tvm_serenity.kernels.tile import Tiling, tiling_for
from tvm_serenity.memory import peak_bytes
from tvm_serenity.plan import PlanOptions
from tvm_serenity.quantize.choices import (
    AUTO,
    FOLD,
    KEEP,
    check_channels,
    check_quantized,
    check_rounding,
)
from tvm_serenity.relax.chosen_kernels import ChosenForm, with_faster
from tvm_serenity.relax.constant_channels import FoldedChannels, fold_constant_channels
from tvm_serenity.relax.dilations import dilations
from tvm_serenity.relax.lean_kernels import lean_module, shared_out, with_safe_indices, with_vectors
from tvm_serenity.relax.loops import kept_loops
from tvm_serenity.relax.lower import lowered
from tvm_serenity.relax.pack_weights import pack_weights
from tvm_serenity.relax.plan_memory import plan_module
from tvm_serenity.relax.quantize import is_quantised, kept_float, quantized_module, rounding_of
from tvm_serenity.relax.read import read_function
from tvm_serenity.relax.rewrite import Rewriting, names_rows, rewrite_by
from tvm_serenity.relax.rows import by_rows
from tvm_serenity.relax.schedule import order_module, ordering
from tvm_serenity.relax.sequences import images_last
from tvm_serenity.relax.tile_weights import tile_weights
from tvm_serenity.relax.tokens_first import tokens_first
from tvm_serenity.relax.turned_inputs import turned_inputs
from tvm_serenity.rewrite import RewriteOptions
from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.stream import Streaming
from tvm_serenity.schedule import Options
from tvm_serenity.search.deadline import limit_left, within

LAYOUTS = (AUTO, "given", "last")
STEP_SHARE = 0.5
"""Share of the search time for rows or rewriting; order and arena get the rest."""
"""The order of the axes of images: as fits, as the model has them, channels last."""


@dataclass(frozen=True, kw_only=True)
class Steps:
    """The conversion of a module to kernels: the options of each step.

    * ``quantized``: "auto" converts quantised models to integer kernels with the rounding
      ``rounding`` ("auto": that of the import, otherwise "tflite"); "off" keeps them in float.
    * ``layout``: "last" computes on images with channels last (NHWC) where possible, "given" keeps
      the model's layout. "auto": "last" for rows and integers, otherwise "given".
    * ``channels``: "fold" removes constant and unread integer channels, "keep" keeps all.
    * ``rewrite``: the allowed rules of ``SerenityRewrite`` ("all", names), by default none.
      ``rows``: split into rows, or raise :class:`UnsupportedError`. ``time_limit_s``: for either.
    * ``lean``: kernels need no memory beside their tensors. ``tiling``: their tiling, by default
      the target's with weights packed for its dot products. ``tuned``: returns the lean forms.
    * ``measured``: the source of faster kernel forms (``kernels.measured``): "shipped", "none", or
      a file of ``serenity tune``. Forms with scratch are used if no arena grows.
    * ``threads``: with more than one, lean kernels with enough work have parallel loops, which
      TVM's runtime distributes over ``TVM_NUM_THREADS`` threads.

    Raises :class:`InputError` for an unknown choice.
    """

    quantized: str = AUTO
    rounding: str = AUTO
    layout: str = AUTO
    channels: str = FOLD
    rewrite: str = ""
    rows: bool = False
    time_limit_s: float | None = None
    lean: bool = True
    tiling: Tiling | None = None
    tuned: Callable[[Any], Any] | None = None
    measured: str = SHIPPED
    threads: int = 1

    def __post_init__(self) -> None:
        check_quantized(self.quantized)
        if self.layout not in LAYOUTS:
            raise InputError(f"layout={self.layout!r}: choose one of {', '.join(LAYOUTS)}")
        check_rounding(self.rounding)
        check_channels(self.channels)
        if self.threads < 1:
            raise InputError(f"threads={self.threads}: must be at least 1")
        if self.threads > 1 and not self.lean:
            raise InputError(
                f"threads={self.threads}: only lean kernels can run in several threads"
            )
        if self.measured not in (SHIPPED, NONE) and not self.takes_measured:
            raise InputError(
                f"measured={self.measured!r}: only the target's own lean kernels take it"
            )
        if self.rows and self.rewrite:
            raise InputError("rows and rewrite cannot be combined")
        if self.layout == "given" and (self.rows or names_rows(self.rewrite)):
            raise InputError("layout='given': a split into rows needs channels last")

    @property
    def takes_measured(self) -> bool:
        """Whether kernels use the target's own tiles, for which measured forms may exist."""
        return self.lean and self.tiling is None and self.tuned is None


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A module with kernels, and the intermediate modules.

    ``integers``: after quantising. ``changed``: after the removal of channels, and rewriting or
    splitting into rows. ``plain``: lowered, with TVM's own kernels (and ours with packed weights,
    as expressions). ``kept_float``: operators that stayed float, with reasons. ``folded``: the
    removed channels. ``rewriting`` and ``rows``: their results, None unless requested.
    """

    target: tvm.target.Target
    steps: Steps
    integers: tvm.IRModule
    changed: tvm.IRModule
    plain: tvm.IRModule
    kept_float: tuple[str, ...]
    folded: FoldedChannels
    rewriting: Rewriting | None
    rows: Streaming | None

    @property
    def is_changed(self) -> bool:
        """Whether channels were removed, or the module was rewritten or split into rows."""
        rewritten = self.rewriting is not None and self.rewriting.changed
        return self.rows is not None or rewritten or self.folded.gone > 0

    @cached_property
    def known(self) -> KnownForms:
        """Measurements of kernels for the target, as the steps request; none for other tiles."""
        wanted = self.steps.measured if self.steps.takes_measured else NONE
        known = known_for(wanted, self.target)
        return known if self.steps.threads == 1 else known.in_tiles()

    @cached_property
    def kernels(self) -> Any:
        """``plain`` with the kernels that run: lean ones, unless they are switched off."""
        safe = partial(with_safe_indices, target=self.target)
        with self.target:
            return _pass("SerenitySafeIndices", safe, self.for_any_compiler)

    @property
    def for_any_compiler(self) -> Any:
        """The kernels that run, for what makes their indices safe for a compiler of its own."""
        return self._chosen[0]

    @property
    def chosen(self) -> tuple[ChosenForm, ...]:
        """The kernels with a known faster form, and whether it was chosen."""
        return self._chosen[1]

    @cached_property
    def _chosen(self) -> tuple[Any, tuple[ChosenForm, ...]]:
        if not self.steps.lean:
            return self.plain, ()
        tiling = self.steps.tiling or tiling_for(self.target)
        said: list[ChosenForm] = []

        def lean(mod: tvm.IRModule) -> Any:
            known = self.known.leanest(tiling) if self.known.kernels else None
            return lean_module(mod, self.target, tiling, self.steps.tuned or known)

        def faster(mod: tvm.IRModule) -> Any:
            made, found = with_faster(mod, self.plain, self.known, tiling)
            said.extend(found)
            return made

        with self.target:
            made = lowered(_pass("LeanKernels", lean, self.plain), self.target)
            made = _pass("SerenityFasterKernels", faster, made)
            if tvm_targets.names_processor(self.target):
                made = _pass("SerenityVectors", partial(with_vectors, target=self.target), made)
            if self.steps.threads > 1:
                made = _pass("SerenityThreads", shared_out, made)
        return made, tuple(said)

    @cached_property
    def reference(self) -> tvm.IRModule:
        """The calls of ``kernels``, with TVM's kernels before any schedule of ours.

        A kernel that only reshapes may be a view in ``kernels`` but not in ``plain``.
        """
        made = {v.name_hint: f for v, f in self.plain.functions.items() if compat.is_prim_func(f)}
        functions = {v: made.get(v.name_hint, f) for v, f in self.kernels.functions.items()}
        return tvm.IRModule(functions, attrs=self.kernels.attrs)


@dataclass(frozen=True, kw_only=True)
class Planning:
    """The parameters of ordering (``method``, ``options``) and of placement (the planner's).

    The ``PassContext`` supplies fields that are None (``SerenityOptions``).
    """

    method: str | None = None
    options: Options | None = None
    planner: str = "auto"
    plan_options: PlanOptions | None = None


def prepared(
    mod: tvm.IRModule, steps: Steps | None = None, target: tvm.target.Target | str | None = None
) -> Prepared:
    """Return ``mod``, fresh or lowered, quantised, rewritten and lowered for ``target``.

    Raises :class:`InputError` if the import of the module contradicts ``steps``.
    """
    steps = steps or Steps()
    machine = tvm_targets.current() if target is None else tvm.target.Target(target)
    with machine:
        integers = _integers(_turned(mod, steps), steps)
        fewer, folded = _folded(integers, steps)
        kept = _kept_loops(_by_tokens(fewer, steps), steps, machine)
        changed, rewriting, rows = _changed(kept, steps, machine)
        plain = lowered(changed, machine)
        if steps.lean and steps.tiling is None:
            plain = _pass("SerenityPackWeights", lambda m: pack_weights(m, machine), plain)
            if tvm_targets.names_processor(machine):
                plain = _pass("SerenityTileWeights", lambda m: tile_weights(m, machine), plain)
    return Prepared(
        target=machine,
        steps=steps,
        integers=integers,
        changed=changed,
        plain=plain,
        kept_float=kept_float(integers),
        folded=folded,
        rewriting=rewriting,
        rows=rows,
    )


def prepared_for_host(mod: tvm.IRModule, steps: Steps, target: tvm.target.Target) -> Prepared:
    """Return ``mod`` as :func:`prepared` does, in the layout that is fast on a processor.

    With ``layout`` "auto", images have their channels last if the given order needs no more memory
    then, because vectors run along channels.
    """
    given = prepared(mod, steps, target)
    if steps.layout != AUTO or steps.rewrite or steps.rows:
        return given
    last = prepared(mod, replace(steps, layout="last"), target)
    last = replace(last, plain=_pass("SerenityTurnedInputs", turned_inputs, last.plain))
    needs = [peak_bytes(read_function(made.kernels).graph) for made in (given, last)]
    return last if needs[1] <= needs[0] else given


def planned(mod: tvm.IRModule, planning: Planning, target: tvm.target.Target) -> Any:
    """Return ``mod``, of kernels, ordered and in one arena, as the Relax VM runs it."""
    order = ordering(planning.method, planning.options)
    planner, options = planning.planner, planning.plan_options
    with target:
        mod = _pass("SerenitySchedule", lambda m: order_module(m, order), mod)
        mod = _pass(
            "SerenityPlanMemory", lambda m: plan_module(m, "fresh", planner, options, target), mod
        )
        return compat.after_planning(target)(mod)


Check = Callable[[Prepared, tvm.IRModule], object]
"""Receives the prepared module and the module that runs; raises if it finds an error."""


def pipeline_of(
    steps: Steps | None = None, planning: Planning | None = None, check: Check | None = None
) -> Any:
    """Return the pass from a fresh or lowered module to one that the Relax VM can run."""

    def run(mod: tvm.IRModule) -> Any:
        made = prepared(mod, steps)
        placed = planned(made.kernels, planning or Planning(), made.target)
        if check is not None:
            check(made, placed)
        return placed

    return compat.named_pass("serenity", run)


def _pass(name: str, apply: Callable[[Any], Any], mod: tvm.IRModule) -> Any:
    """Apply a step as the pass ``name``, which instruments see and a context may disable."""
    return tvm.transform.Sequential([compat.named_pass(name, apply)])(mod)


def _turned(mod: tvm.IRModule, steps: Steps) -> Any:
    """Return the module with dilated convolutions, with channels last if requested."""
    mod = _pass("SerenityDilations", dilations, mod)
    fits = steps.rows or (steps.quantized != "off" and is_quantised(mod))
    if steps.layout == "last" or (steps.layout == "auto" and fits):
        return _pass("SerenityChannelsLast", images_last, mod)
    return mod


def _by_tokens(mod: tvm.IRModule, steps: Steps) -> Any:
    """Return the module with attention of integers token by token, unless it keeps its layout."""
    return mod if steps.layout == "given" else _pass("SerenityTokensFirst", tokens_first, mod)


def _kept_loops(mod: tvm.IRModule, steps: Steps, target: tvm.target.Target) -> Any:
    """Return the module with a kernel for each long loop, if kernels may be lean."""
    if not steps.lean:
        return mod
    form = steps.tuned or partial(lean, tiling=steps.tiling or tiling_for(target))
    return _pass("SerenityLoops", lambda m: kept_loops(m, target, form), mod)


def _integers(mod: tvm.IRModule, steps: Steps) -> Any:
    if steps.quantized == "auto":
        return _pass("SerenityQuantize", lambda m: quantized_module(m, steps.rounding), mod)
    if rounding_of(mod) is not None:
        raise InputError(
            "quantized='off': the module was imported with integer kernels; "
            "import it by to_relax(..., integers='off')"
        )
    return mod


def _folded(mod: tvm.IRModule, steps: Steps) -> tuple[Any, FoldedChannels]:
    """Return the module without superfluous channels, unless they are kept."""
    done = [FoldedChannels()]

    def fold(mod: tvm.IRModule) -> Any:
        made, found = fold_constant_channels(mod)
        done.append(found)
        return made

    made = mod if steps.channels == KEEP else _pass("SerenityFoldChannels", fold, mod)
    return made, done[-1]


def folded_channels(mod: tvm.IRModule) -> FoldedChannels:
    """Return the number of channels of fresh ``mod`` that are not computed by default."""
    steps = Steps()
    with tvm_targets.current():
        return _folded(_integers(_turned(mod, steps), steps), steps)[1]


def _changed(
    mod: tvm.IRModule, steps: Steps, target: tvm.target.Target
) -> tuple[Any, Rewriting | None, Streaming | None]:
    """Return the module rewritten or in rows, and the result of that search."""
    limit = steps.time_limit_s
    if steps.rows:
        with within(limit, STEP_SHARE):
            made, found = by_rows(mod, target, Limits.within(limit_left()))
        return made, None, found
    if not steps.rewrite:
        return mod, None, None
    done: list[Rewriting] = []

    def rewrite(mod: tvm.IRModule) -> Any:
        left = limit_left(None if limit is None else STEP_SHARE * limit)
        made, what = rewrite_by(mod, RewriteOptions(steps.rewrite, time_limit_s=left), target)
        done.append(what)
        return made

    made = _pass("SerenityRewrite", rewrite, mod)
    return made, done[0] if done else None, None
