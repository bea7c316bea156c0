"""The table of reservations; one that SQLAlchemy's side has made is adopted as it is."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations, models

import reservable.django.fields
from reservable.django.operations import CreateReservations


class Migration(migrations.Migration):
    """The first layout, that of `reservable.backends.database.schema`."""

    initial = True

    dependencies: ClassVar[list[Any]] = []

    operations: ClassVar[list[Any]] = [
        CreateReservations(
            name="Reservation",
            fields=[
                (
                    "name",
                    reservable.django.fields.ExactField(max_length=831, primary_key=True, serialize=False),
                ),
                ("token", reservable.django.fields.ExactField(max_length=64)),
                ("owner", models.CharField(max_length=255)),
                ("fence", models.BigIntegerField()),
                ("since", models.BigIntegerField()),
                ("until", models.BigIntegerField()),
            ],
            options={"db_table": "reservations"},
        )
    ]
