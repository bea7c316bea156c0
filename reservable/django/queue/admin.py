"""What a model's page in the admin gains by `QueuedAdmin`: the queue's columns, counts, filters and actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import display_for_value, flatten_fieldsets
from django.utils.html import format_html_join

from reservable.django.queue import standing
from reservable.queue.options import options_of
from reservable.queue.statuses import Status

_STATES: dict[str, Callable[[Any], Any]] = {
    "due": standing.due,
    "running": standing.running,
    "expired": standing.expired,
}

_DONE = {"pause": "paused", "resume": "resumed", "retry": "queued again", "cancel": "cancelled"}


class StateFilter(admin.SimpleListFilter):
    """Due, running, expired or failed; "running" is a lease that is not over, and "expired" one that is."""

    title = "queue"
    parameter_name = "queue"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [(state, state) for state in (*_STATES, "failed")]

    def queryset(self, request: Any, queryset: Any) -> Any:
        state = self.value()
        if state == "failed":
            return queryset.filter(status=options_of(queryset.model).values.value(Status.FAILED))
        return queryset.filter(_STATES[state](queryset.model)) if state in _STATES else queryset


class QueuedAdmin:
    """A mixin for the `ModelAdmin` of a model with `Queued`.

        @admin.register(Crawl)
        class CrawlAdmin(QueuedAdmin, admin.ModelAdmin): ...

    Adds to what the class itself shows: columns, the counts of every status above the list, a filter, the errors with
    their tracebacks on the page of a row, and the actions pause, resume, retry and cancel for whoever may change rows.
    """

    change_list_template = "reservable/admin/queue.html"
    actions: Any = ()

    def __init__(self: Any, model: Any, admin_site: Any) -> None:
        super().__init__(model, admin_site)  # type: ignore[call-arg]
        if self.actions is not None:  # which has none
            verbs = _DONE if Status.PAUSED in options_of(model).values else ("retry", "cancel")
            self.actions = [*self.actions, *map(_action, verbs)]

    def get_list_display(self: Any, request: Any) -> tuple[Any, ...]:
        shown = ("status", "priority", "queue_until", "attempts", "leased_by", "queue_error")
        return (*super().get_list_display(request), *shown)  # type: ignore[misc]

    def get_list_filter(self: Any, request: Any) -> tuple[Any, ...]:
        return (*super().get_list_filter(request), StateFilter)  # type: ignore[misc]

    def get_fields(self: Any, request: Any, obj: Any = None) -> list[Any]:
        found = super().get_fields(request, obj)  # type: ignore[misc]
        chosen = self.fields or ()
        return [field for field in found if field in chosen or field not in self._queue_fields()]

    def get_fieldsets(self: Any, request: Any, obj: Any = None) -> Any:
        found = super().get_fieldsets(request, obj)  # type: ignore[misc]
        shown = flatten_fieldsets(found)
        ours = [field for field in self._queue_fields() if field not in shown]
        return [*found, ("Queue", {"fields": ours})] if obj is not None and ours else found

    def get_readonly_fields(self: Any, request: Any, obj: Any = None) -> tuple[Any, ...]:
        return (*super().get_readonly_fields(request, obj), *self._queue_fields())  # type: ignore[misc]

    def changelist_view(self: Any, request: Any, extra_context: Any = None) -> Any:
        counts = self.get_queryset(request).order_by().status_counts()
        return super().changelist_view(request, {"queue_counts": counts, **(extra_context or {})})  # type: ignore[misc]

    @admin.display(description="due, or leased until", ordering="retry_at")
    def queue_until(self, row: Any) -> Any:
        """When it is due, or when its lease is over."""
        return display_for_value(row.retry_at, "-")

    @admin.display(description="finished at", ordering="finished_at")
    def queue_finished(self, row: Any) -> Any:
        """When it ended."""
        return display_for_value(row.finished_at, "-")

    @admin.display(description="last error")
    def queue_error(self, row: Any) -> str:
        """The newest failure in a line."""
        error = row.last_error
        return "" if error is None else f"{error['type']}: {error['message']}".removeprefix(": ")[:100]

    @admin.display(description="errors, the newest first")
    def queue_errors(self, row: Any) -> Any:
        """The failures with their tracebacks."""
        return format_html_join(
            "",
            "<details {}><summary>{} attempt {}: {} {}</summary><pre>{}</pre></details>",
            (
                (
                    "open" if number == 0 else "",
                    error["at"],
                    error["attempt"],
                    error["type"],
                    error["message"],
                    error["traceback"],
                )
                for number, error in enumerate(reversed(row.errors))
            ),
        )

    def _queue_fields(self: Any) -> tuple[str, ...]:
        steps = ("step",) if options_of(self.model).steps else ()
        return ("status", *steps, "queue_until", "attempts", "leased_by", "queue_finished", "queue_errors")


def _action(verb: str) -> Any:
    @admin.action(description=f"{verb.capitalize()} selected rows", permissions=["change"])
    def act(model_admin: Any, request: Any, queryset: Any) -> None:
        rows = [*queryset]
        moved = [row for row in rows if getattr(row, verb)()]
        for row in moved:
            model_admin.log_change(request, row, f"{_DONE[verb].capitalize()}.")
        level = messages.SUCCESS if len(moved) == len(rows) else messages.WARNING
        left = f"; {len(rows) - len(moved)} were in another status" if len(moved) < len(rows) else ""
        model_admin.message_user(request, f"{len(moved)} {_DONE[verb]}{left}.", level)

    act.__name__ = f"queue_{verb}"
    return act
