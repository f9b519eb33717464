"""The application, with the parts that it registers when Django starts."""

import contextlib

from django.apps import AppConfig, apps
from django.conf import settings

from .formats import write_digits_alone_in_yaml


class FrazilConfig(AppConfig):
    """`"frazil.django"` in INSTALLED_APPS: the path converter `<snowflake:id>`, strings in REST framework's and django-ninja's models,
    and filters of django-filter."""

    name = "frazil.django"
    label = "frazil"
    verbose_name = "frazil"

    def ready(self) -> None:
        from . import urls  # noqa: F401

        if apps.is_installed("rest_framework"):
            from . import rest_framework  # noqa: F401
        if settings.USE_THOUSAND_SEPARATOR:
            write_digits_alone_in_yaml()
        # These need not be applications. One that cannot be imported fails again where the project uses it.
        with contextlib.suppress(Exception):
            from . import ninja  # noqa: F401
        with contextlib.suppress(Exception):
            from . import filters  # noqa: F401
