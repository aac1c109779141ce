from __future__ import annotations

from pytest_golden.regression.wording import find_failing_step


def test_last_failing_step_counts_and_the_note_of_the_harness_does_not() -> None:
    steps = (
        {"type": "action", "content": "one", "metadata": {"error": "x"}},
        {"type": "action", "content": "two", "metadata": {}},
        {"type": "observation", "content": "it left no step", "metadata": {"error": "it left no step"}},
    )
    assert find_failing_step(steps) is steps[0]
    assert find_failing_step(steps[1:]) is None


def test_data_test_that_failed_is_the_failing_step_although_it_only_observes() -> None:
    test = {"type": "observation", "content": "unique_id", "metadata": {"error": "Got 1 result"}}
    assert find_failing_step(({"type": "action", "content": "one", "metadata": {}}, test)) is test


def test_failing_step_is_looked_for_from_the_end() -> None:
    looked_at: list[int] = []

    class Counted(dict[str, object]):
        def get(self, key: str, default: object = None) -> object:
            looked_at.append(self["number"])  # type: ignore[arg-type]
            return super().get(key, default)

    steps = tuple(Counted(number=number, type="action", metadata={"failed": number == 998}) for number in range(1000))
    assert find_failing_step(steps) is steps[998]
    assert set(looked_at) == {998, 999}
