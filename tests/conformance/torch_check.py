"""A PyTorch module through ``to_relax`` and the serenity pipeline, against PyTorch."""

import traceback
import warnings
from typing import Any

from tests.conformance.verdict import (
    CRASHED,
    DIFFERENT,
    EQUAL,
    REFUSED,
    TARGET,
    Verdict,
    difference,
)

RTOL, ATOL = 1e-3, 1e-4
"""Allowed difference, the absolute one times the largest expected value where that is above 1."""


def compared_with_eager(module: Any, inputs: tuple[Any, ...]) -> Verdict:
    """Return the verdict on ``module``, exported with ``inputs`` and run on them."""
    import numpy as np
    import torch

    from tvm_serenity.errors import SerenityError

    module = module.eval()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        expected = [
            part.numpy()
            for part in torch.utils._pytree.tree_leaves(module(*inputs))
            if isinstance(part, torch.Tensor)
        ]
        program = torch.export.export(module, inputs)
    arrays = [array.numpy() for array in inputs]
    try:
        found = compiled_and_run(program, arrays)
    except SerenityError as error:
        return Verdict(CRASHED if "\n" in str(error) else REFUSED, str(error))
    except Exception:
        return Verdict(CRASHED, traceback.format_exc())
    largest = max(
        (float(np.abs(e).max()) for e in expected if e.dtype.kind == "f" and e.size), default=1.0
    )
    wrong = difference(
        found, expected, RTOL, ATOL * max(1.0, largest if np.isfinite(largest) else 1.0)
    )
    return Verdict(DIFFERENT, wrong) if wrong else Verdict(EQUAL)


def compiled_and_run(program: Any, inputs: list[Any]) -> Any:
    """Return what ``program`` computes on the Relax VM, in one arena."""
    import tvm

    from tvm_serenity.frontends.relax import to_relax
    from tvm_serenity.runtime.pipeline import serenity_pipeline
    from tvm_serenity.runtime.vm import run

    executable = tvm.compile(
        to_relax(program),
        tvm.target.Target(TARGET),
        relax_pipeline=serenity_pipeline(validate=False),
    )
    return run(executable, inputs).outputs
