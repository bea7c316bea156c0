"""What a model's page in the admin gains by `QueuedAdmin`: the queue's columns, counts, filters and actions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.utils.html import format_html, format_html_join
from django.utils.timezone import get_current_timezone_name, localtime

from reservable.django.installed import check_templates
from reservable.django.queue import standing
from reservable.django.queue.actions import actions_of
from reservable.queue.options import options_of
from reservable.queue.statuses import Status

_STATES: dict[str, Callable[[Any], Any]] = {
    "due": standing.due,
    "running": standing.running,
    "expired": standing.expired,
}


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
    their tracebacks on the page of a row, and the actions pause, resume, retry and cancel for whoever may change rows
    (a child by multi-table inheritance has none: the queue is its parent's). Times are in the current time zone.
    """

    change_list_template = "reservable/admin/queue.html"
    actions: Any = ()

    def __init__(self: Any, model: Any, admin_site: Any) -> None:
        super().__init__(model, admin_site)  # type: ignore[call-arg]
        if self.actions is not None:  # which has none
            self.actions = [*self.actions, *actions_of(model)]

    def check(self: Any, **options: Any) -> list[Any]:
        return [*super().check(**options), *check_templates(self)]  # type: ignore[misc]

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
        if obj is None or not ours:
            return found
        zone = format_html("Times in {}.", get_current_timezone_name())
        return [*found, ("Queue", {"fields": ours, "description": zone})]

    def get_readonly_fields(self: Any, request: Any, obj: Any = None) -> tuple[Any, ...]:
        return (*super().get_readonly_fields(request, obj), *self._queue_fields())  # type: ignore[misc]

    def changelist_view(self: Any, request: Any, extra_context: Any = None) -> Any:
        shown = {
            "queue_counts": standing.counts(self.get_queryset(request)),
            "queue_zone": get_current_timezone_name(),
        }
        return super().changelist_view(request, {**shown, **(extra_context or {})})  # type: ignore[misc]

    @admin.display(description="due, or leased until", ordering="retry_at")
    def queue_until(self, row: Any) -> Any:
        """When it is due, or when its lease is over."""
        return "-" if row.retry_at is None else _time(row.retry_at)

    @admin.display(description="finished at", ordering="finished_at")
    def queue_finished(self, row: Any) -> Any:
        """When it ended."""
        return "-" if row.finished_at is None else _time(row.finished_at)

    @admin.display(description="last error")
    def queue_error(self, row: Any) -> str:
        """The newest failure in a line."""
        error = row.last_error
        return "" if error is None else _said(error)[:100]

    @admin.display(description="errors, the newest first")
    def queue_errors(self, row: Any) -> Any:
        """The failures with their tracebacks."""
        return format_html_join(
            "",
            "<details {}><summary>{} attempt {}: {}</summary><pre>{}</pre></details>",
            (
                (
                    "open" if number == 0 else "",
                    _time_of(error),
                    error["attempt"],
                    _said(error),
                    error["traceback"],
                )
                for number, error in enumerate(reversed(row.errors))
            ),
        )

    def _queue_fields(self: Any) -> tuple[str, ...]:
        steps = ("step",) if options_of(self.model).steps else ()
        return ("status", *steps, "queue_until", "attempts", "leased_by", "queue_finished", "queue_errors")


def _said(error: Any) -> str:
    return f"{error['type']}: {error['message']}" if error["type"] else str(error["message"])


def _time(moment: Any) -> Any:
    """A time in the current time zone, which the page names."""
    there = localtime(moment)
    return format_html('<time datetime="{}">{}</time>', there.isoformat(), f"{there:%Y-%m-%d %H:%M:%S}")


def _time_of(error: Any) -> Any:
    """When it failed; as it is written where that is no time with an offset, which others may have stored."""
    try:
        return _time(datetime.fromisoformat(error["at"]))
    except (ValueError, OverflowError):
        return error["at"]
