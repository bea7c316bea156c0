"""The app of the table of reservations: put "reservable.django" into INSTALLED_APPS."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig


class ReservableConfig(AppConfig):
    """Makes the project's settings known to the library, and the checks to Django."""

    name = "reservable.django"
    label = "reservable"
    verbose_name = "Reservations"
    default_auto_field: Any = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from reservable.config import fall_back_on
        from reservable.django import checks, homes, settings

        checks.register_all()
        settings.apply()
        fall_back_on(homes.default_store)
