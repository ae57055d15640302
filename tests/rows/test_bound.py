"""One bound for every height of bands, and its certificate."""

import json
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("tvm")

from tests.conformance.writer import T
from tests.quantize.test_operators import IMAGE, conv, weights
from tests.rows.nets import build, random_module
from tvm_serenity.cli import app
from tvm_serenity.cli.commands import register
from tvm_serenity.errors import CheckError
from tvm_serenity.rows.bound import check_bound, rows_bound
from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.split import SOURCE, heights_of, split
from tvm_serenity.rows.stream import stream

register()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("streamed", [False, True])
def test_no_bands_need_less_than_the_bound(seed: int, streamed: bool) -> None:
    network = build(random_module(seed, True)).kernels.network
    rng = Random(seed)
    bound = rows_bound(network, streamed=streamed, limits=Limits(2)).lower_bound_bytes
    for _ in range(3):
        heights = [rng.randint(1, f.height) for f in network.features]
        plan = stream(network, heights, streamed=streamed, limits=Limits(0.2))
        assert plan.arena_bytes >= bound
    finest = stream(network, heights_of(network, 1), streamed=streamed, limits=Limits(2))
    assert finest.lower_bound_bytes >= bound
    if split(network, heights_of(network, 1), streamed=streamed).feeding in (None, SOURCE):
        assert finest.lower_bound_bytes == bound


def test_bands_that_were_ordered_are_not_ordered_again() -> None:
    network = build(random_module(1, True)).kernels.network
    finest = stream(network, heights_of(network, 1), limits=Limits(2))
    coarse = stream(network, heights_of(network, 2), limits=Limits(2))
    found = rows_bound(network, limits=Limits(2), known=[coarse, finest])
    assert found.orders == (finest.schedule,)
    assert found.finest == (finest.banded,)
    confirmed = check_bound(network, json.loads(json.dumps(found.certificate())))
    assert confirmed.lower_bound_bytes == finest.lower_bound_bytes
    other = rows_bound(network, limits=Limits(2), known=[coarse])
    assert other.orders[0].lower_bound_bytes == finest.lower_bound_bytes


def test_taller_bands_never_need_less() -> None:
    network = build(random_module(5, True)).kernels.network
    tall = network.rows(network.inputs[0])
    peaks = [
        stream(network, heights_of(network, rows), limits=Limits(2)).lower_bound_bytes
        for rows in (tall, 4, 2, 1)
    ]
    assert all(a >= b for a, b in pairwise(peaks))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("streamed", [False, True])
def test_a_certificate_is_confirmed_and_a_changed_one_is_not(seed: int, streamed: bool) -> None:
    network = build(random_module(seed, True)).kernels.network
    found = rows_bound(network, streamed=streamed, limits=Limits(2))
    claims = json.loads(json.dumps(found.certificate()))
    confirmed = check_bound(network, claims)
    assert confirmed.bound_checked
    assert confirmed.lower_bound_bytes == found.lower_bound_bytes
    for changed in _changed(claims):
        with pytest.raises(CheckError):
            check_bound(network, changed)


def _changed(claims: dict[str, Any]) -> list[dict[str, Any]]:
    """Certificates that claim a byte more, another network, fewer orders, or nothing."""
    order = claims["orders"][0]
    more = {**order, "lower_bound_bytes": order["peak_bytes"] + 1}
    backwards = {**order, "order": order["order"][::-1]}
    return [
        {**claims, "lower_bound_bytes": claims["lower_bound_bytes"] + 1},
        {**claims, "orders": [more, *claims["orders"][1:]]},
        {**claims, "orders": [backwards, *claims["orders"][1:]]},
        {**claims, "orders": claims["orders"][1:]},
        {**claims, "streamed": not claims["streamed"]},
        {**claims, "orders": None},
        {"format": claims["format"]},
    ]


def test_the_command_writes_and_checks_it(tmp_path: Path) -> None:
    file, claims = tmp_path / "conv.tflite", tmp_path / "bound.json"
    small = T((8, 3, 3, 4), "int8", 0.08, data=weights(8, 3, 3, 4) // 64)
    file.write_bytes(conv(IMAGE, small, T((1, 7, 6, 8), "int8", 0.02, -5)))
    run = CliRunner()
    wrote = run.invoke(app, ["rows", str(file), "--certificate", str(claims)])
    assert wrote.exit_code == 0, wrote.output
    checked = run.invoke(app, ["check", str(file), str(claims), "--json"])
    assert checked.exit_code == 0, checked.output
    assert json.loads(checked.stdout)["bound_checked"]
    said = json.loads(claims.read_text())
    claims.write_text(json.dumps({**said, "lower_bound_bytes": said["lower_bound_bytes"] - 1}))
    refused = run.invoke(app, ["check", str(file), str(claims)])
    assert isinstance(refused.exception, CheckError)
