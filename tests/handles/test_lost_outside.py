"""The loss of a reservation for asyncio that is not used in an event loop."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import pytest

from reservable import configure
from tests.sqlalchemy.models import Video
from tests.waiting import eventually


def test_a_plain_callback_is_called():
    configure("memory://")
    video, calls = Video(id=1), []  # type: ignore[var-annotated]
    assert video.reserve("download", 0.5)
    handle = video.areservation("download", on_lost=calls.append)
    eventually(lambda: calls == [handle])


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_coroutine_function_is_an_error_in_the_log_and_nothing_else(
    caplog: pytest.LogCaptureFixture, wrapped: bool
):
    async def on_lost(_: Any) -> None:
        raise AssertionError

    def wrapping(it: Any) -> Any:
        return on_lost(it)

    configure("memory://")
    video = Video(id=1)
    with warnings.catch_warnings(record=True) as noise:
        warnings.simplefilter("always")
        assert video.reserve("download", 0.5)
        handle = video.areservation("download", on_lost=wrapping if wrapped else on_lost)
        eventually(lambda: "there is no event loop that could" in caplog.text)
        gc.collect()
    assert not noise
    assert "failed by itself" not in caplog.text
    assert not handle.held
