"""The admin's page of reservations: what is reserved in every store, and an action that releases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied
from django.db import connections, transaction
from django.http import HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path

from reservable.django.listing import Listing
from reservable.django.models import Reservation
from reservable.django.overview import overview
from reservable.django.releasing import Fate, Outcome, look_again, release_shown
from reservable.errors import ReservableError

LEVELS = {Fate.RELEASED: messages.SUCCESS, Fate.UNKNOWN: messages.ERROR}


@admin.register(Reservation)
class ReservationAdmin(admin.ModelAdmin):
    """Reads the stores and not this model's table, so it is the same for Redis and for a database.

    `reservable.view_reservation` shows the page, `reservable.release_reservation` adds the action to it. There is
    nothing to add, change or delete.
    """

    list_per_page = 100
    list_template = "reservable/admin/reservations.html"
    release_template = "reservable/admin/release.html"

    def get_urls(self) -> list[Any]:
        return [path("", self._view(self.changelist_view), name="reservable_reservation_changelist")]

    def _view(self, view: Callable[..., Any]) -> Any:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return self.admin_site.admin_view(view)(*args, **kwargs)

        wrapped: Any = update_wrapper(wrapper, view)
        # What is released is released whatever becomes of the request, and SQLite would be locked by it.
        for alias in connections:
            wrapped = transaction.non_atomic_requests(using=alias)(wrapped)
        return wrapped

    def has_add_permission(self, request: Any) -> bool:
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: Any, obj: Any = None) -> bool:
        return self._may(request, "view")

    def has_release_permission(self, request: Any) -> bool:
        return self._may(request, "release")

    def _may(self, request: Any, action: str) -> bool:
        return bool(request.user.has_perm(f"reservable.{get_permission_codename(action, self.opts)}"))

    def changelist_view(self, request: Any, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            if not self.has_release_permission(request):
                raise PermissionDenied
            return self._act(request)
        found = overview()
        listing = Listing(self, request, found.entries)
        return self._page(
            request,
            self.list_template,
            title="Reservations",
            listing=listing,
            failures=found.failures,
            may_release=self.has_release_permission(request),
            **(extra_context or {}),
        )

    def _act(self, request: Any) -> HttpResponse:
        """The answer to a form: ask whether to release what was chosen, or release it."""
        shown = request.POST.getlist(ACTION_CHECKBOX_NAME)
        again = HttpResponseRedirect(request.get_full_path())
        if request.POST.get("action") != "release":
            self.message_user(request, "No action selected.", messages.WARNING)
            return again
        if not shown:
            self.message_user(
                request, "No reservations were selected: nothing is released.", messages.WARNING
            )
            return again
        try:
            if request.POST.get("confirmed") == "yes":
                self._tell(request, release_shown(shown))
                return again
            seen = look_again(shown)
        except ReservableError as error:
            self.message_user(request, str(error), messages.ERROR)
            return again
        standing = [one.entry for one in seen if one.entry is not None and one.fate is Fate.STANDING]
        if not standing:
            self._tell(request, seen)
            return again
        return self._page(
            request,
            self.release_template,
            title="Release reservations",
            listing=Listing(self, request, standing, whole=True),
            others=[one for one in seen if one.fate is not Fate.STANDING],
            back=request.get_full_path(),
            checkbox=ACTION_CHECKBOX_NAME,
        )

    def _tell(self, request: Any, outcomes: Sequence[Outcome]) -> None:
        """A message for each fate, and an entry in the admin's log for what was released."""
        for fate in Fate:
            told = [one for one in outcomes if one.fate is fate]
            if told:
                names = ", ".join(_told(one) for one in told)
                self.message_user(
                    request, f"{len(told)} {fate.value}: {names}", LEVELS.get(fate, messages.WARNING)
                )
        released = [Reservation(name=one.name) for one in outcomes if one.fate is Fate.RELEASED]
        if released:
            self.log_deletions(request, released)

    def _page(self, request: Any, template: str, **context: Any) -> TemplateResponse:
        request.current_app = self.admin_site.name
        page = {
            "opts": self.opts,
            "has_filters": True,
        }  # of what Django's own page of a list knows, what it needs
        shown = {"opts": self.opts, "cl": page, "action_form": True, "actions_on_top": True}
        context = {**self.admin_site.each_context(request), **shown, **context}
        return TemplateResponse(request, template, context)


def _told(one: Outcome) -> str:
    if one.fate is Fate.UNKNOWN:
        return f"{one.name} ({one.why})"
    if one.fate is Fate.PASSED_ON and one.entry is not None:
        return f"{one.name} (by {one.entry.owner}, since {one.entry.holder.since:%Y-%m-%d %H:%M:%S} UTC)"
    return one.name
