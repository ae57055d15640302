"""``serenity rows`` and ``serenity build --rows``: what they say, and what they refuse."""

import json
from pathlib import Path

from tests.cli.run import serenity
from tests.rows.nets import model

RESNET = "mlperf_tiny/ic_resnet8_int8.tflite"


def test_rows_in_json_with_checks() -> None:
    path = str(model(RESNET))
    done = serenity("rows", path, "--graph", "--rows", "4", "--check", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert found["arena_bytes"] == found["lower_bound_bytes"] == 24576
    assert found["outcome"] == "optimal"
    assert found["left_unsplit"] == []
    assert set(found["bands"].values()) == {4}


def test_a_limit_out_of_reach_is_exit_1_with_the_least() -> None:
    path = str(model(RESNET))
    arguments = ("--graph", "--ram", "2K", "--time-limit", "1", "--json")
    done = serenity("rows", path, *arguments)
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert found["met"] is False
    assert found["arena_bytes"] > found["lower_bound_bytes"] // 2 > 2048


def test_what_cannot_be_asked_for() -> None:
    path = str(model(RESNET))
    for arguments, message in (
        (("rows", path, "--graph", "--rows", "0"), "--rows 0: write a number of rows"),
        (("rows", path, "--graph", "--ram", "much"), "size 'much'"),
        (
            ("build", path, "--board", "microbit", "-o", "none", "--rows", "off", "--stream-input"),
            "--rows off does not take --stream-input",
        ),
        (
            ("build", path, "--board", "microbit", "-o", "none", "--rows", "-1"),
            "--rows '-1': write a number of rows",
        ),
    ):
        done = serenity(*arguments)
        assert done.returncode == 2
        assert message in done.stderr
    assert not Path("none").exists()
