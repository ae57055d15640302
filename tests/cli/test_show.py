"""What commands print is what ``json`` would write, however long its lists are."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tvm_serenity.cli.show import json_text

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
KEYS = st.text(max_size=4) | st.integers() | st.booleans() | st.none()
VALUES = st.recursive(
    LEAVES | st.lists(st.integers()) | st.lists(st.text(max_size=4)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@settings(derandomize=True, max_examples=300, deadline=None)
@given(VALUES)
def test_json_is_what_the_standard_library_writes(value: object) -> None:
    assert json_text(value) == json.dumps(value, indent=2)
    assert json_text((value, value)) == json.dumps((value, value), indent=2)
