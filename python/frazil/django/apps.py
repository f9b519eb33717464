"""The application: what it registers when Django starts."""

from django.apps import AppConfig, apps


class FrazilConfig(AppConfig):
    """`"frazil.django"` in INSTALLED_APPS: the path converter `<snowflake:id>`, and strings in Django REST framework's serializers."""

    name = "frazil.django"
    label = "frazil"
    verbose_name = "frazil"

    def ready(self) -> None:
        from . import urls  # noqa: F401

        if apps.is_installed("rest_framework"):
            from . import rest_framework  # noqa: F401
