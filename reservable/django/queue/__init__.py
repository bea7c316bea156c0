"""`Queued` for Django's models: what differs from SQLAlchemy's is how rows are described, loaded and saved."""
