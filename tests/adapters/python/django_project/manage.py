"""Django's command line for the project of the tests."""

import os
import sys

from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
execute_from_command_line(sys.argv)
