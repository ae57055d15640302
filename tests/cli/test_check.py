"""Certificates through the command line: written by ``schedule``, verified by ``check``."""

import json
from pathlib import Path

import pytest

from tests.cli.run import answer, serenity

NET = """
    input x[8]i8
    a CONV_2D: x -> p[12]i8
    b CONV_2D: x -> q[12]i8
    c CONV_2D: p -> r[2]i8
    d CONV_2D: q -> s[2]i8
    e CONCATENATION: r s -> t[4]i8
    output t
"""


@pytest.mark.parametrize("options", [[], ["--fold-concat"], ["--slice", "1:3"]])
def test_a_certificate_is_verified_and_a_changed_one_is_not(
    options: list[str], tmp_path: Path
) -> None:
    net, proof = tmp_path / "net.txt", tmp_path / "proof.json"
    net.write_text(NET)
    found = answer("schedule", net, "--certificate", proof, *options)["schedule"]
    verdict = answer("check", net, proof)
    assert verdict["peak_bytes"] == found["peak_bytes"]
    assert verdict["lower_bound_bytes"] == found["lower_bound_bytes"]
    assert verdict["bound_checked"] is True
    claims = json.loads(proof.read_text())
    for change in (
        {"peak_bytes": claims["peak_bytes"] - 1, "lower_bound_bytes": claims["peak_bytes"] - 1},
        {"order": claims["order"][::-1]},
        {"graph_sha256": "0" * 64},
        {"proof": {"kind": "magic"}},
        {"order": "all of them"},
    ):
        wrong = tmp_path / "wrong.json"
        wrong.write_text(json.dumps({**claims, **change}))
        failed = serenity("check", net, wrong)
        assert failed.returncode == 2, change
        assert failed.stderr.count("\n") == 1
        assert "Traceback" not in failed.stderr


def test_the_published_network_is_certified(shared: Path, tmp_path: Path) -> None:
    model = shared / "models/swiftnet/swiftnet_vww_224_uint8.tflite"
    for options in ([], ["--alias-copies"], ["--alias-copies", "--fold-concat"]):
        proof = tmp_path / "proof.json"
        answer("schedule", model, "--certificate", proof, *options)
        assert answer("check", model, proof)["bound_checked"]


def test_what_is_no_certificate(tmp_path: Path) -> None:
    net, proof = tmp_path / "net.txt", tmp_path / "proof.json"
    net.write_text(NET)
    for text in ("", "{", "[]", "{}", '{"options": 3}', "[" * 100_000):
        proof.write_text(text)
        failed = serenity("check", net, proof)
        assert failed.returncode == 2
        assert failed.stderr.count("\n") == 1
    failed = serenity("schedule", net, "--method", "greedy", "--certificate", proof)
    assert "gives no proof to certify" in failed.stderr
