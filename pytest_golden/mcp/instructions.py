"""What the server tells an agent when it connects: when to use which tool, and when not to."""

from __future__ import annotations

_READING = """\
Golden projects are data pipelines of this workspace that must always work. `pytest --golden` runs them all and records each run; these tools read that record.

Before you change something: `recall` with the text of the error at hand, or `search_lessons` with a few words, tells what earlier failures taught. \
Nothing found means that nothing is known, not that nothing can go wrong.
After a gate run: `golden_status` tells its verdict. For each project that FAILED or is in ERROR, `explain_failure` gives the reasons, the failing step, \
the end of the output, what changed since the last pass, and what is known of it. Do not weaken a golden project to make it pass.
At the start of a piece of work, and when you come back to one: `review_journal` with filter "failure", then "open"; what failed is to be mended first."""
_WRITING = """\
The journal keeps what you meant to do and whether it came true:
1. Before work whose success shows only later (a deploy, a migration, a change to a pipeline, a fix that is to hold): `log_intent`, one sentence. Keep its entry_id.
2. When it is done: `log_outcome` with what you saw at once, and with expectations for what must come true later. An expectation is one \
thing that can be observed, with expires_minutes, and with a match_hint of keys that the answering news will carry, such as {"source": "ci", "sha": "..."}.
3. When you learn something that answers an expectation: `add_signal` with your own source name and the same keys in data. Never report what you did not see.

Do not log trifles: reading files, searching, formatting, running a test while you work, or steps of something that is logged already. One entry for each piece \
of work that a colleague would want to know of next week. Write no secrets: they are blotted out."""
_READ_ONLY = "This server only reads: it was started with --read-only."


def write_instructions(*, is_read_only: bool) -> str:
    """Give the text for an agent."""
    return f"{_READING}\n\n{_READ_ONLY if is_read_only else _WRITING}"
