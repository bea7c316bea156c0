"""The fields of a queue; their columns are those of SQLAlchemy's mixin, so that one table serves both."""

# Django has no types, and what pyright guesses of its sources is wrong.
# pyright: reportArgumentType=false

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from reservable.django.queue.guard import changes
from reservable.grants import utc
from reservable.leasing.columns import microseconds
from reservable.queue.failures import dumped, read
from reservable.queue.options import options_of
from reservable.queue.statuses import LONGEST, Status


class Owned(models.Field):
    """A column that the verbs of the queue change: a `save()` writes it only if the object's value was changed.

    So an old object that is saved whole takes no row from its worker.
    """

    def pre_save(self, model_instance: Any, add: bool) -> Any:
        value = super().pre_save(model_instance, add)
        if add or changes(model_instance, self, value):
            return value
        return models.F(self.name)  # the column stays what it is


class InstantField(models.BigIntegerField):
    """An aware datetime in UTC; whole microseconds since the epoch in the database, which no time zone moves."""

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return None if value is None else utc(value)

    def to_python(self, value: Any) -> Any:
        if isinstance(value, int):
            return utc(value)
        try:
            return models.DateTimeField().to_python(value)
        except ValidationError as error:
            raise ValidationError(f"{value!r} is no time: {error}") from error

    def get_prep_value(self, value: Any) -> Any:
        if value is None or hasattr(value, "resolve_expression"):
            return value
        if isinstance(value, str):  # of a fixture
            value = self.to_python(value)
        return microseconds(value)

    def value_to_string(self, obj: Any) -> str:
        value = self.value_from_object(obj)
        return "" if value is None else value.isoformat()

    def formfield(self, **options: Any) -> Any:
        return models.DateTimeField.formfield(self, **options)

    def validate(self, value: Any, model_instance: Any) -> None:
        models.Field.validate(self, value, model_instance)

    def run_validators(self, value: Any) -> None:
        """Those of whole numbers do not go for times."""


class OwnedInstantField(Owned, InstantField):
    """A time that the queue sets."""


class OwnedBigIntegerField(Owned, models.BigIntegerField):
    """A number that the queue sets."""


class OwnedIntegerField(Owned, models.IntegerField):
    """A count that the queue sets."""


class OwnedCharField(Owned, models.CharField):
    """A text that the queue sets."""


class WorkerField(OwnedCharField):
    """Names of people and hosts in any language, whatever the character set of the database."""

    def db_type(self, connection: Any) -> Any:
        found = super().db_type(connection)
        return f"{found} CHARACTER SET utf8mb4" if connection.vendor == "mysql" else found


class ErrorsField(Owned, models.TextField):
    """The newest failures as a list of dicts; JSON in plain ASCII in the database, NULL where there are none."""

    def db_type(self, connection: Any) -> Any:
        return "mediumtext" if connection.vendor == "mysql" else super().db_type(connection)

    def get_default(self) -> list[Any]:
        return []

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> list[Any]:
        return read(value)

    def to_python(self, value: Any) -> Any:
        return read(value)

    def get_prep_value(self, value: Any) -> Any:
        return dumped(value) if value else None

    def value_to_string(self, obj: Any) -> str:
        value = self.value_from_object(obj)
        return dumped(value) if value else ""


class StatusField(Owned, models.Field):
    """What is to be done with the row: text, or whole numbers where the queue stores such."""

    def __init__(self, *arguments: Any, numeric: bool = False, **options: Any) -> None:
        self.numeric = numeric
        options.setdefault("max_length", LONGEST)
        super().__init__(*arguments, **options)

    def contribute_to_class(self, cls: Any, name: str, private_only: bool = False) -> None:
        if getattr(cls, "__queue__", None) is not None:  # a model of a migration says it by its arguments
            statuses = options_of(cls).values
            self.numeric = statuses.numeric
            self.default = self.db_default = statuses.value(Status.PENDING)
        super().contribute_to_class(cls, name, private_only)

    def deconstruct(self) -> Any:
        name, path, arguments, options = super().deconstruct()
        options.pop("max_length", None)
        if self.numeric:
            options["numeric"] = True
        return name, path, arguments, options

    def get_internal_type(self) -> str:
        return "IntegerField" if self.numeric else "CharField"

    def to_python(self, value: Any) -> Any:
        if value is None:
            return None
        try:
            return int(value) if self.numeric else str(value)
        except (TypeError, ValueError) as error:
            raise ValidationError(f"{value!r} is no whole number") from error

    def get_prep_value(self, value: Any) -> Any:
        return self.to_python(super().get_prep_value(value))


class StepField(OwnedCharField):
    """The step a row has come to; a column only where the queue has steps."""

    def contribute_to_class(self, cls: Any, name: str, private_only: bool = False) -> None:
        if getattr(cls, "__queue__", None) is not None and not cls._meta.abstract:
            steps = options_of(cls).steps
            if not steps:
                cls.step = None
                return
            self.default = self.db_default = steps[0]
        super().contribute_to_class(cls, name, private_only)
