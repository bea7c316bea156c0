"""Finding free rows and reserving them, whichever ORM reads them."""
