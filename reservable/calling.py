"""Whether a function has done its work when its call is over: a coroutine or a generator has not even begun."""

from __future__ import annotations

from collections.abc import Callable
from inspect import (
    isasyncgen,
    isasyncgenfunction,
    isawaitable,
    iscoroutine,
    iscoroutinefunction,
    isgenerator,
    isgeneratorfunction,
    isroutine,
)
from typing import Any

from reservable.errors import NotSupported


def is_awaited(function: Callable[..., Any]) -> bool:
    """Whether it is a coroutine function, or an object that is called like one."""
    return iscoroutinefunction(function) or iscoroutinefunction(_body(function))


def check_no_generator(function: Callable[..., Any]) -> None:
    """Raises `NotSupported` for a function whose body runs bit by bit, after the call."""
    if isgeneratorfunction(_body(function)) or isasyncgenfunction(_body(function)):
        raise _later(function, "a generator")


def done(function: Callable[..., Any], result: Any) -> Any:
    """The result of a call that has done its work; `NotSupported` for one that is yet to be run, and is not."""
    if isgenerator(result) or iscoroutine(result):
        result.close()
    elif not isawaitable(result) and not isasyncgen(result):
        return result
    raise _later(function, f"a {type(result).__name__}")


def _body(function: Any) -> Any:
    """What runs when it is called: itself, or the method of an object that can be called."""
    return function if isroutine(function) else type(function).__call__


def _later(function: Any, what: str) -> NotSupported:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return NotSupported(
        f"what {name} gives is {what}, whose body runs when the call is over and the row or name is given back: give "
        "the function that does the work, and a coroutine function to asyncio"
    )
