"""``serenity offchip`` and ``scripts/offchip.py``: rows, refusals, interruption and resumption."""

import csv
import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.offchip.running import SCRIPT, graph_files, offchip
from tvm_serenity.errors import InputError
from tvm_serenity.offchip import capacities_of
from tvm_serenity.offchip.points import COLUMNS, point_file

SMALL = ("--block", "1", "--capacities", "8:32:x2", "--effort", "1")


def test_rows_are_as_promised_and_the_same_in_processes(tmp_path: Path) -> None:
    files = graph_files(tmp_path, 3, 12)
    asked = (*files, *SMALL, "--orders", "given,serenity,traffic", "--policy", "belady,lru")
    one = offchip(*asked, "--json", "--plot", str(tmp_path / "figure.svg"))
    assert (one.returncode, one.stderr) == (0, "")
    rows = json.loads(one.stdout)
    assert len(rows) == 3 * 3 * 3 * 2
    assert all(tuple(row) == COLUMNS for row in rows)
    assert [row["model"] for row in rows] == sorted(row["model"] for row in rows)
    by = {(r["model"], r["capacity_bytes"], r["order"], r["policy"]): r for r in rows}
    for (model, capacity, order, policy), row in by.items():
        assert row["total_bytes"] == row["read_bytes"] + row["write_bytes"]
        assert row["fits"] == (row["peak_bytes"] <= capacity)
        if order == "traffic" and policy == "belady":
            for other in ("given", "serenity"):
                assert row["total_bytes"] <= by[model, capacity, other, policy]["total_bytes"]
    two = offchip(*asked, "--json", "--jobs", "2")
    assert two.stdout == one.stdout, two.stderr
    listed = offchip(*asked, "--csv")
    assert next(csv.reader(io.StringIO(listed.stdout))) == list(COLUMNS)
    assert len(listed.stdout.splitlines()) == 1 + len(rows)
    assert (tmp_path / "figure.svg").read_text().startswith("<?xml")


def test_an_order_for_traffic_with_energy(tmp_path: Path) -> None:
    (path,) = graph_files(tmp_path, 1, 12)
    output = tmp_path / "ordered.txt"
    asked = ("--order-for", "traffic", "--capacity", "12", "--block", "1", "--effort", "1")
    found = json.loads(offchip(path, *asked, "-o", str(output), "--json").stdout)
    assert found["compulsory_bytes"] <= found["lower_bound_bytes"] <= found["total_bytes"]
    assert found["total_bytes"] <= min(found["starts"].values())
    table = tmp_path / "board.toml"
    table.write_text('[ram]\nbytes_per_s = 1e6\nsource = "measured"\n')
    again = ("--block", "1", "--capacities", "12", "--orders", "given", "--json")
    (row,) = json.loads(offchip(str(output), *again, "--energy", f"{table}:ram").stdout)
    assert row["total_bytes"] == found["total_bytes"]
    assert (row["energy_uj"], row["time_us"]) == (None, row["total_bytes"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no models: name at least one file or zoo:NAME"),
        (("{file}", "--capacities", "100"), "capacity of 100 bytes is less than one block of 256"),
        (("{file}", "--capacities", "0"), "--capacities: size '0': out of range; write from 1 to"),
        (("{file}", "--capacities=-4K"), "--capacities: size '-4K': write bytes"),
        (
            ("{file}", "--capacities", "1K:2K"),
            "write a range as FIRST:LAST:xFACTOR or FIRST:LAST:+STEP",
        ),
        (("{file}", "--block", "0"), "--block: size '0'"),
        (("{file}", "--block", "tensor"), "use the scratchpad"),
        (
            ("{file}", "--block", "tensor", "--memory", "scratchpad", "--capacities", "1"),
            "bytes on-chip at a time",
        ),
        (("{file}", "--policy", "best"), "unknown policy 'best'; there are belady"),
        (("{file}", "--orders", "best"), "unknown order 'best'; there are given"),
        (("{file}", "--dask", "tcp://127.0.0.1:9"), "'tcp://127.0.0.1:9' did not answer"),
        (
            ("{file}", "--plot", "figure.txt"),
            "unknown suffix for a plot; write one of .svg, .png, .pdf",
        ),
        (
            ("{file}", "--dask", "tcp://x:1", "--time-limit", "1"),
            "--time-limit 1 does not take --dask",
        ),
        (("{file}", "--energy", "sun"), "unknown region 'sun'; choose one of"),
        (("{file}", "--order-for", "traffic"), "--order-for goes with --capacity"),
        (("missing.txt",), "missing.txt"),
        (("{file}", "--resume", "{file}"), "does not hold"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    (path,) = graph_files(tmp_path, 1, 5)
    refused = offchip(*(a.format(file=path) for a in arguments))
    assert refused.returncode == 2
    assert message in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_ctrl_c_keeps_the_finished_points(tmp_path: Path) -> None:
    files = graph_files(tmp_path, 4, 200)
    asked = [*files, "--block", "1", "--capacities", "16,32,48", "--orders", "given,traffic"]
    asked += ["--json", "--effort", "4"]
    kept = tmp_path / "sweep.points"
    whole = offchip(*asked)
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), *asked, "--resume", str(kept)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    deadline = time.monotonic() + 60
    while not kept.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    output, error = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, "")
    assert "points are finished and kept; resume with the same command and --resume" in error
    assert error.count("\n") == 1
    before = kept.stat().st_mtime_ns, len(point_file(kept).load())
    assert 0 < before[1] < 16
    again = offchip(*asked, "--resume", str(kept))
    assert again.stdout == whole.stdout
    assert len(point_file(kept).load()) == 16
    done = kept.stat().st_mtime_ns
    assert offchip(*asked, "--resume", str(kept)).stdout == whole.stdout
    assert kept.stat().st_mtime_ns == done  # nothing was left to do


def test_a_limit_ends_a_sweep_and_says_what_it_cut(tmp_path: Path) -> None:
    files, kept = graph_files(tmp_path, 2, 300), tmp_path / "sweep.points"
    asked = [*files, "--block", "1", "--capacities", "8,16", "--orders", "given,traffic"]
    plain = (*asked, "--effort", "2", "--resume", str(kept))
    none = json.loads(offchip(*plain, "--time-limit", "0", "--json").stdout)
    assert len(none) == 2 * 2 * 2
    assert {row["limit"] for row in none} == {"time"}
    assert {row["total_bytes"] for row in none} == {None}
    assert not kept.exists()  # what the limit ended is not finished
    began = time.monotonic()
    cut = offchip(*asked, "--effort", "100000", "--time-limit", "4", "--json", "--jobs", "2")
    assert time.monotonic() - began < 20  # the start of three processes included
    rows = {(r["model"], r["capacity_bytes"], r["order"]): r for r in json.loads(cut.stdout)}
    for (model, capacity, order), row in rows.items():
        assert row["limit"] == (None if order == "given" else "time")
        assert row["total_bytes"] <= rows[model, capacity, "given"]["total_bytes"]
    whole = json.loads(offchip(*plain, "--time-limit", "100", "--json").stdout)
    assert {row["limit"] for row in whole} == {None}
    assert len(point_file(kept).load()) == 2 * 3
    shown = offchip(*asked, "--time-limit", "0", "--energy", "dram-45nm")
    assert "limit" in shown.stdout, shown.stderr
    assert "time" in shown.stdout


def test_a_limit_ends_an_order_with_the_best_so_far(tmp_path: Path) -> None:
    (path,) = graph_files(tmp_path, 1, 300)
    asked = (path, "--order-for", "traffic", "--capacity", "16", "--block", "1", "--json")
    none = json.loads(offchip(*asked, "--time-limit", "0").stdout)
    assert (none["outcome"], none["statistics"]["limit"]) == ("timeout", "time")
    assert none["order"] == list(range(300))
    began = time.monotonic()
    output = tmp_path / "ordered.txt"
    longer = ("--effort", "100000", "--time-limit", "2", "-o", str(output))
    more = json.loads(offchip(*asked, *longer).stdout)
    assert time.monotonic() - began < 20
    assert (more["outcome"], more["statistics"]["limit"]) == ("timeout", "time")
    assert more["lower_bound_bytes"] < more["total_bytes"] < none["total_bytes"]
    plain = ("--block", "1", "--capacities", "16", "--orders", "given", "--json")
    (row,) = json.loads(offchip(str(output), *plain).stdout)
    assert row["total_bytes"] == more["total_bytes"]


def test_sizes_and_ranges() -> None:
    assert capacities_of("32K:256K:x2") == (32768, 65536, 131072, 262144)
    assert capacities_of("1M, 3:9:+3,64KB") == (3, 6, 9, 65536, 1 << 20)
    assert capacities_of("1.5K") == (1536,)
    for text in ("", "x", "1.3K", "1:2:3", "4:2:x2", "1:8:x1", "1:1G:+1", "99999999999G"):
        with pytest.raises(InputError):
            capacities_of(text)
