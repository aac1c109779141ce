from __future__ import annotations

from pytest_golden.regression.failing_step import find_failing_step


def test_last_failing_step_counts_and_observations_do_not() -> None:
    steps = (
        {"type": "action", "content": "one", "metadata": {"error": "x"}},
        {"type": "action", "content": "two", "metadata": {}},
        {"type": "observation", "content": "three", "metadata": {"error": "x"}},
    )
    assert find_failing_step(steps) is steps[0]
    assert find_failing_step(steps[1:]) is None


def test_failing_step_is_looked_for_from_the_end() -> None:
    looked_at: list[int] = []

    class Counted(dict[str, object]):
        def get(self, key: str, default: object = None) -> object:
            looked_at.append(self["number"])  # type: ignore[arg-type]
            return super().get(key, default)

    steps = tuple(Counted(number=number, type="action", metadata={"failed": number == 998}) for number in range(1000))
    assert find_failing_step(steps) is steps[998]
    assert set(looked_at) == {998, 999}
