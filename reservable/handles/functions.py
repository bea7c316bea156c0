"""Functions that run while a name is reserved, one call at a time wherever they are called."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from functools import cached_property, partialmethod, wraps
from typing import Any, Final, Literal, ParamSpec, TypeVar, Unpack, overload

from reservable.calling import check_no_generator, done, is_awaited
from reservable.errors import AlreadyReserved, ConfigurationError
from reservable.handles.handle import Handle
from reservable.handles.named import areservation, reservation
from reservable.handles.options import Options
from reservable.names import plain_name

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])

REFUSED = ("raise", "skip", "wait")


class _Skipped:
    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "SKIPPED"

    def __reduce__(self) -> str:
        return "SKIPPED"  # the same one in every process


SKIPPED: Final = _Skipped()
"""What a call gives that was refused under `refused="skip"`; false, and compared with `is`."""


@overload
def reserving(
    key: Any, duration: Any = 60, *, refused: Literal["raise", "wait"] = "raise", **options: Unpack[Options]
) -> Callable[[F], F]: ...
@overload
def reserving(
    key: Any, duration: Any = 60, *, refused: Literal["skip"], **options: Unpack[Options]
) -> Callable[[Callable[P, Any]], Callable[P, Any]]: ...
def reserving(key: Any, duration: Any = 60, *, refused: str = "raise", **options: Unpack[Options]) -> Any:
    """Decorate a function, plain or `async`, so that each call runs under a reservation of its own.

        @reserving("nightly-report", "1 hour", refused="skip")
        def report(): ...

    What a call does when somebody else holds the name: `"raise"` raises `AlreadyReserved`, `"skip"` returns
    `SKIPPED`, `"wait"` tries until granted. `wait=` (how long to try first) and the other `options` are those of
    `reservation`. The store is looked up at the call, so `configure` may come later.

    Raises `ConfigurationError`, `InvalidKey` and `InvalidDuration` when decorating, and `NotSupported` for
    generators, whose body runs when the call is over.
    """
    if refused not in REFUSED:
        raise ConfigurationError(f"refused is {refused!r}: use one of {', '.join(map(repr, REFUSED))}")
    if refused == "wait":
        limit = options.get("wait")
        options["wait"] = math.inf if limit is None else limit
    Handle(None, plain_name(key), duration, **options)  # refuses bad ones now and not at the first call

    def decorate(function: Any = None) -> Any:
        return _decorated(function, refused == "skip", lambda make: make(key, duration, **options))

    return decorate


def _decorated(function: Any, skips: bool, handle: Callable[[Any], Any]) -> Any:
    """The function under a reservation; `handle` makes one for each call, by `reservation` or `areservation`."""
    if isinstance(function, staticmethod | classmethod):
        return type(function)(_decorated(function.__func__, skips, handle))
    if isinstance(function, property | cached_property | partialmethod):
        kind = type(function).__name__
        raise ConfigurationError(
            f"reserving() decorates functions, and this is a {kind}: decorate the function inside it, below @{kind}"
        )
    if not callable(function):
        raise ConfigurationError("reserving() needs a name: write @reserving('nightly-report', '1 hour')")
    check_no_generator(function)

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        with ExitStack() as held:
            try:
                held.enter_context(handle(reservation))
            except AlreadyReserved:
                if skips:
                    return SKIPPED
                raise
            return done(function, function(*args, **kwargs))

    @wraps(function)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        async with AsyncExitStack() as held:
            try:
                await held.enter_async_context(handle(areservation))
            except AlreadyReserved:
                if skips:
                    return SKIPPED
                raise
            work: Any = function(*args, **kwargs)
            return await work

    return awaited if is_awaited(function) else called
