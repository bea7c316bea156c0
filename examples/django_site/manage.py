"""Django's own commands for this site: `python manage.py migrate`, `... download`, `... reservable list`."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "website.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
