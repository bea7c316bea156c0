"""An app whose rows are reserved."""
