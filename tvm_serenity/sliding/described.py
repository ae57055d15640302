"""The JSON form of an incremental step."""

from collections.abc import Sequence
from typing import Any

from tvm_serenity.sliding.choose import StepPoint, work_of
from tvm_serenity.sliding.step import SlidingStep


def steps_of(sliding: SlidingStep) -> dict[str, int]:
    """Return a JSON object with the step and the window in rows, and the retained bytes."""
    steady = sliding.steady
    return {
        "step": steady.step,
        "window": steady.network.rows(steady.source),
        "steps_to_fill": steady.steps_to_fill,
        "kept_bytes": steady.kept_bytes,
    }


def described_step(sliding: SlidingStep, operations: Sequence[float]) -> dict[str, Any]:
    """Return an incremental step as a JSON object."""
    steady, streaming = sliding.steady, sliding.streaming
    network = steady.network
    features = [
        {
            "name": known.name,
            "rows": known.height,
            "shift": steady.shifts[f],
            "period": steady.periods[f],
            "made": len(steady.made[f]),
            "kept": len(steady.kept[f]),
            "kept_bytes": steady.feature_bytes[f],
        }
        for f, known in enumerate(network.features)
        if known.height > 1
    ]
    return {
        **steps_of(sliding),
        "arena_bytes": streaming.arena_bytes,
        "peak_bytes": streaming.schedule.peak_bytes,
        "lower_bound_bytes": streaming.lower_bound_bytes,
        "outcome": str(streaming.outcome),
        "ops": len(streaming.banded.graph.ops),
        "work": round(work_of(sliding.steady, operations), 6),
        "phases": max(steady.periods),
        "states": len(steady.states),
        "anew": [f"{network.layers[layer].name} {why}" for layer, why in steady.anew],
        "features": features,
        "seconds": streaming.seconds,
    }


def described_point(point: StepPoint) -> dict[str, Any]:
    """Return a point of the trade-off curve as a JSON object."""
    sliding, network = point.step, point.step.steady.network
    return {
        "work": round(point.work, 6),
        "arena_bytes": sliding.arena_bytes,
        "kept_bytes": sliding.steady.kept_bytes,
        "lower_bound_bytes": point.least_bytes,
        "outcome": str(point.outcome),
        "kept": [network.features[f].name for f in sliding.blocks],
    }
