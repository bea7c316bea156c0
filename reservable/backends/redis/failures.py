"""The driver's errors made into ours, without the password that some of them repeat."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from reservable.errors import BackendError

_ECHO = "with args beginning with"
"""An old or restricted server answers with the arguments of the command, among them password or token."""


def broken(error: BaseException, secrets: Collection[str]) -> BackendError:
    """The `BackendError` to raise, its cause set; raise it outside of the `except`, or Python chains the original."""
    cause = error if _harmless(error, secrets) else _cleaned(error, secrets)
    failure = BackendError(f"Redis: {cause}")
    failure.__cause__ = cause
    return failure


def _harmless(error: BaseException, secrets: Collection[str]) -> bool:
    for link in chain(error):
        text = f"{link} {link!r}"
        if _ECHO in text or any(secret in text for secret in secrets):
            return False
    return True


def chain(error: BaseException) -> Iterator[BaseException]:
    """The error, its causes and the errors that were being handled when it came."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        link = todo.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            yield link
            todo += [link.__cause__, link.__context__]


def _cleaned(error: BaseException, secrets: Collection[str]) -> BaseException:
    text = str(error).partition(_ECHO)[0].rstrip(" ,")
    for secret in secrets:
        text = text.replace(secret, "***")
    try:
        return type(error)(text)
    except Exception:  # noqa: BLE001  # an error class whose constructor wants something else
        return RuntimeError(f"{type(error).__name__}: {text}")
