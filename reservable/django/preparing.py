"""What a user's model gets when its class is made: a manager with our verbs, and a queue its index."""

from __future__ import annotations

from typing import Any

from django.db import models

ORDER = ("status", "priority", "retry_at")


def prepare(sender: Any, **_: Any) -> None:
    """Only of the user's own classes: the models of migrations are not made of the mixins."""
    mixins = {cls.__name__ for cls in sender.__mro__ if cls.__module__ == "reservable.django"}
    managers = sender._meta.local_managers
    if mixins and len(managers) == 1 and getattr(managers[0], "auto_created", False):
        _give_manager(sender, mixins)
    if "Queued" in mixins and not sender._meta.proxy and not sender._meta.parents:
        _add_index(sender)


def _give_manager(model: Any, mixins: set[str]) -> None:
    """The manager that Django gives to a model without one has none of our verbs."""
    from reservable.django.managers import manager_for

    manager = manager_for(mixins)
    manager.auto_created = True
    model._meta.local_managers.clear()
    model.add_to_class("objects", manager)


def _add_index(model: Any) -> None:
    """One index for claims and for taking over: within a status and a priority, rows stand in the order of claims."""
    meta = model._meta
    fields = [*ORDER, *(field.name for field in meta.pk_fields)]
    if any([*index.fields] == fields for index in meta.indexes):
        return
    index = models.Index(fields=fields)
    index.set_name_with_model(model)
    meta.indexes = [*meta.indexes, index]
    meta.original_attrs.setdefault("indexes", meta.indexes)  # what migrations look at
