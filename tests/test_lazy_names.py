import subprocess
import sys

import pytest

from pytest_golden import gate, gateway, learning
from pytest_golden.gate import lessons as of_gate
from pytest_golden.learning import lessons


@pytest.mark.parametrize("room", [gate, gateway, learning, lessons, of_gate])
def test_each_name_that_a_room_hands_on_is_resolved(room: object) -> None:
    for name in room.__all__:  # type: ignore[attr-defined]
        assert getattr(room, name) is getattr(room, name)


def test_a_name_that_a_room_does_not_have_is_named() -> None:
    with pytest.raises(AttributeError, match=r"'pytest_golden\.learning' has no attribute 'nothing'"):
        _ = learning.nothing


def test_starting_a_session_loads_nothing_that_only_failures_and_its_end_need() -> None:
    late = ("gate.lessons.learning", "learning.lessons.specifics", "learning.recall", "learning.language_model")
    program = f"""
import sys
import pytest_golden.session.recording
print([name for name in {late!r} if f"pytest_golden.{{name}}" in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
