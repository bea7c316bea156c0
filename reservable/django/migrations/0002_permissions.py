"""Permissions to look at reservations and to release them; nothing of the table changes."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    """Options that Django alone reads."""

    dependencies: ClassVar[list[Any]] = [("reservable", "0001_initial")]

    operations: ClassVar[list[Any]] = [
        migrations.AlterModelOptions(
            name="reservation",
            options={
                "default_permissions": ("view",),
                "permissions": [("release_reservation", "Can release reservation")],
            },
        )
    ]
