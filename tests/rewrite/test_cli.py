"""``serenity rewrite`` and ``--rewrite``: the keys of the JSON, what is refused."""

from pathlib import Path

import pytest

from tests.cli.run import answer, serenity


def test_schedule_with_rewrite() -> None:
    found = answer("schedule", "zoo:swiftnet-cell-c", "--rewrite", "--rules", "paper", "--check")
    assert found["schedule"]["outcome"] == "optimal"
    assert found["ops"] == 29
    assert found["given"]["peak_bytes"] == 215_600
    assert set(found["rewrite"]) >= {"applied", "refused", "rejected"}
    assert found["rewrite_only"]["peak_bytes"] >= found["schedule"]["peak_bytes"]


def test_explain_names_every_match() -> None:
    done = serenity("rewrite", "zoo:swiftnet-cell-b", "--explain")
    assert done.returncode == 0
    assert "applied: residual at output: peak 326,144 -> 213,248" in done.stdout
    assert "not worth it: channelwise at op51_relu" in done.stdout


def test_the_plot_shows_live_memory_before_and_after(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "memory.svg"
    done = serenity("rewrite", "zoo:swiftnet-cell-c", "--plot", str(file))
    assert done.returncode == 0, done.stderr
    drawn = file.read_text()
    for label in ("given order: peak 215,600", "rewritten: peak 65,072"):
        assert f"<!-- {label} bytes -->" in drawn


def test_compile_with_rewrite() -> None:
    found = answer("compile", "zoo:swiftnet-cell-c", "--rewrite", "--check", "--compare")
    assert found["rewrite"]["changed"]
    assert found["schedule"]["arena_bytes"] == 37_632
    assert found["outputs"]["max_abs_error_to_stock"] < 1e-4
    assert found["order_executed"]


def test_bad_input_is_one_line() -> None:
    for arguments, words in (
        (("rewrite", "zoo:swiftnet-cell-c", "--rules", "seven"), "unknown rewrite rule 'seven'"),
        (("schedule", "zoo:swiftnet-cell-c", "--rewrite", "-o", "x.txt"), "leave out --output"),
        (("schedule", "zoo:swiftnet-cell-c", "--rewrite", "--fold-concat"), "the rules choose"),
    ):
        done = serenity(*arguments)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert words in done.stderr
