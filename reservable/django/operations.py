"""The migration operation that makes the table of reservations, or adopts one that is there."""

from __future__ import annotations

from typing import Any

from django.db.migrations.operations import CreateModel
from sqlalchemy.schema import CreateTable

from reservable.backends.database.schema import reservations_table
from reservable.django.dialects import engine_of


class CreateReservations(CreateModel):
    """`CreateModel` whose table is the one that all other users of it make, and which may be there already."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        model = to_state.apps.get_model(app_label, self.name)
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            table = reservations_table(name=model._meta.db_table)
            dialect = engine_of(schema_editor.connection).dialect
            created = CreateTable(table, if_not_exists=True).compile(dialect=dialect)
            schema_editor.execute(str(created).strip(), params=None)
