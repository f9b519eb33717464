"""Snowflake IDs as primary keys of Django's models.

    DEFAULT_AUTO_FIELD = "frazil.django.SnowflakeAutoField"
    FRAZIL = "standard store=local"

`INSTALLED_APPS` with `"frazil.django"` in it adds the path converter `<snowflake:id>`, and Django REST framework's serializers then show IDs
as strings.
"""

try:
    import django as _django  # noqa: F401
except ImportError as _error:
    if _error.name != "django":  # it is there, and a part of it is missing
        raise
    raise ImportError("frazil.django needs Django: pip install 'frazil[django]'", name="django") from _error

from . import checks as _checks  # noqa: F401
from .fields import SnowflakeAutoField
from .forms import SnowflakeFormField
from .generator import close_snowflake, get_layout, get_snowflake
from .json import SnowflakeJSONEncoder
from .queries import CreatedAt, SnowflakeManager, SnowflakeQuerySet, created_at, created_between

__all__ = [
    "CreatedAt",
    "SnowflakeAutoField",
    "SnowflakeFormField",
    "SnowflakeJSONEncoder",
    "SnowflakeManager",
    "SnowflakeQuerySet",
    "close_snowflake",
    "created_at",
    "created_between",
    "get_layout",
    "get_snowflake",
]
