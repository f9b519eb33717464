import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
application = get_wsgi_application()

if "SHOP_MINTS_FIRST" in os.environ:
    from frazil.django import get_snowflake

    get_snowflake().next()
