"""What the rest of learning asks of a language model, whichever it is. Who speaks to one over the network is elsewhere.

Call it through `asking.ask`, which takes clients that are not ours: theirs may give text, be late, or raise.
"""

from __future__ import annotations

from typing import Any, Protocol


class CompletesPrompts(Protocol):
    """A language model, or anything that stands in for one.

    `prompt` is sent redacted by whoever implements this; what a pipeline or an agent wrote is put into it as data, by
    `prompting.as_data`. `schema` says what the reply must be: a pydantic model or any type that pydantic can describe.
    The answer is a value of `schema`, or None when the model gave nothing that can be used: not in time, cut off, or of
    another form. It never raises for what the model or the network does.
    """

    async def complete(self, prompt: str, schema: Any) -> Any:
        """Give a validated value of `schema`, or None."""
        ...
