from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

from pytest_golden.learning.outcome_writer import wait_for

if TYPE_CHECKING:
    import pytest


def end(futures: list[Future[bool]]) -> None:
    for future in futures:
        future.set_result(True)


async def test_all_who_wait_are_woken_by_another_thread() -> None:
    futures: list[Future[bool]] = [Future() for _ in range(500)]
    waits = [asyncio.create_task(wait_for(future)) for future in futures]
    waits[3].cancel()
    threads = [threading.Thread(target=end, args=(futures[start::2],)) for start in (0, 1)]
    for thread in threads:
        thread.start()
    done = await asyncio.gather(*waits, return_exceptions=True)
    for thread in threads:
        thread.join()
    assert [one for one in done if one is not None] == [done[3]]
    assert isinstance(done[3], asyncio.CancelledError)
    assert not futures[3].cancelled()


async def test_nothing_is_waited_for_that_is_done_or_not_there() -> None:
    future: Future[bool] = Future()
    future.set_result(False)
    await wait_for(future)
    await wait_for(None)


def test_end_that_comes_after_the_event_loop_is_closed_troubles_nobody(caplog: pytest.LogCaptureFixture) -> None:
    futures: list[Future[bool]] = [Future(), Future()]

    async def give_up() -> None:
        waits = [asyncio.create_task(wait_for(future)) for future in futures]
        await asyncio.sleep(0)
        for wait in waits:
            wait.cancel()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(give_up())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    end(futures)
    del loop
    assert caplog.records == []
