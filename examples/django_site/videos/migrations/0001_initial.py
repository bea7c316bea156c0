"""As `manage.py makemigrations` made it."""

from typing import Any, ClassVar

from django.db import migrations, models

import reservable.django


class Migration(migrations.Migration):
    initial = True

    dependencies: ClassVar[list[Any]] = []

    operations: ClassVar[list[Any]] = [
        migrations.CreateModel(
            name="Video",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("title", models.CharField(max_length=100)),
                ("url", models.URLField()),
                ("path", models.CharField(blank=True, default="", max_length=255)),
            ],
            bases=(reservable.django.Reservable, models.Model),
        ),
    ]
