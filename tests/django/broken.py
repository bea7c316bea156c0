"""A module of a project that cannot be imported."""

raise NameError("name 'redis' is not defined")
