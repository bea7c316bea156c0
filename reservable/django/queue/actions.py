"""The admin's actions on the rows of a queue: pause, resume, retry and cancel."""

# Django has no types, and what pyright guesses of its sources is wrong.
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

from collections import Counter
from typing import Any

from django.contrib import admin, messages
from django.db import Error, router
from django.db.transaction import atomic

from reservable.django.identity import root_of
from reservable.django.named import text_of
from reservable.errors import ReservableError
from reservable.queue.options import options_of
from reservable.queue.statuses import Status

_DONE = {"pause": "paused", "resume": "resumed", "retry": "queued again", "cancel": "cancelled"}


def actions_of(model: Any) -> list[Any]:
    """Those that the queue of this model has; none where the queue is that of a parent, whose page has them."""
    if root_of(model) is not model._meta.concrete_model:
        return []
    return [*map(_action, _DONE if Status.PAUSED in options_of(model).values else ("retry", "cancel"))]


def _action(verb: str) -> Any:
    @admin.action(description=f"{verb.capitalize()} selected rows", permissions=["change"])
    def act(model_admin: Any, request: Any, queryset: Any) -> None:
        rows, fates = [*queryset], Counter[str]()
        for number, row in enumerate(rows, 1):
            try:
                fates[_fate(model_admin, request, row, verb)] += 1
            except (ReservableError, Error) as error:
                these = _and_more(row, len(rows) - number)
                model_admin.message_user(
                    request, f"{these} could not be {_DONE[verb]}: {error}", messages.ERROR
                )
                break
        moved = fates.pop(_DONE[verb], 0)
        told = [f"{moved} {_DONE[verb]}", *(f"{count} {fate}" for fate, count in sorted(fates.items()))]
        level = messages.SUCCESS if moved == len(rows) else messages.WARNING
        model_admin.message_user(request, f"{'; '.join(told)}.", level)

    act.__name__ = f"queue_{verb}"
    return act


def _fate(model_admin: Any, request: Any, row: Any, verb: str) -> str:
    """What became of the row, in words; one that was moved is in the admin's log.

    What fails leaves a transaction of the request whole.
    """
    if not model_admin.has_change_permission(request, row):
        return "may not be changed by you"
    with atomic(using=router.db_for_write(type(row), instance=row)):
        if not getattr(row, verb)():
            return "were in another status"
        model_admin.log_change(request, row, f"{_DONE[verb].capitalize()}.")
        return _DONE[verb]


def _and_more(row: Any, further: int) -> str:
    text = text_of(row) or str(row.pk)
    return f"{text} and {further} more" if further else text
