#!/usr/bin/env bash
# django-import-export: in one exported row the primary key is exact text, and the foreign key beside it is a rounded number.
#
# django-import-export 4.4.3 passes a primary key to the sheet as a str, and the value of its ForeignKeyWidget as an int, which
# XLSX stores as a float. After an import, rows refer to missing customers or to wrong ones. The import also accepts a primary
# key that a spreadsheet has turned into a number, and inserts the row under another key.
# Remedy: a custom widget, with `str(value)` in `render`, that refuses numbers in `clean`.
. "$(dirname "$0")/begin.sh"
python_packages django==5.2.9 django-import-export==4.4.3 openpyxl==3.1.5
mkdir shop && touch shop/__init__.py
cat > try.py <<'PY'
import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["shop"], DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
)
django.setup()
import tablib
from django.db import connection, models
from import_export.resources import ModelResource

KEY = 1541815603606036481


class Customer(models.Model):
    class Meta:
        app_label = "shop"


class Order(models.Model):
    customer = models.ForeignKey(Customer, models.CASCADE)

    class Meta:
        app_label = "shop"


class OrderResource(ModelResource):
    class Meta:
        model = Order


with connection.schema_editor() as schema:
    schema.create_model(Customer)
    schema.create_model(Order)
Order.objects.create(pk=KEY, customer=Customer.objects.create(pk=KEY))
[row] = tablib.Dataset().load(OrderResource().export().export("xlsx"), "xlsx").dict
print("id:", repr(row["id"]), "customer:", repr(row["customer"]))
rounded = tablib.Dataset([float(KEY), str(KEY)], headers=["id", "customer"])
print("errors:", OrderResource().import_data(rounded).has_errors())
print("keys:", *Order.objects.order_by("pk").values_list("pk", flat=True))
PY
"$python" try.py > seen
expect seen <<'SEEN'
id: '1541815603606036481' customer: 1.541815603606036e+18
errors: False
keys: 1541815603606036480 1541815603606036481
SEEN
