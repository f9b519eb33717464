#!/usr/bin/env bash
# Tortoise: a new object has a key from its default, but save() replaces the key with the database's counter.
#
# tortoise-orm 1.1.9 treats every integer primary key as generated, even one with `default=`. The object shows the default's key
# until it is saved. save() and bulk_create() then omit the key from the INSERT, and the row gets the number 1. A log, a message or
# a file name that already has the first key then refers to no row.
# Remedy: `generated=False`.
. "$(dirname "$0")/begin.sh"
python_packages tortoise-orm==1.1.9
cat > try.py <<'PY'
import asyncio

from tortoise import Tortoise, fields
from tortoise.models import Model


def new_key():
    return 1541815603606036481


class Counted(Model):
    id = fields.BigIntField(primary_key=True, default=new_key)
    name = fields.CharField(max_length=9)


class Kept(Model):
    id = fields.BigIntField(primary_key=True, default=new_key, generated=False)
    name = fields.CharField(max_length=9)


async def main():
    await Tortoise.init(db_url="sqlite://rows.sqlite", modules={"models": ["__main__"]})
    await Tortoise.generate_schemas()
    for model in Counted, Kept:
        row = model(name="a")
        before = row.id
        await row.save()
        print(f"{model.__name__}: {before} before save(), {row.id} after, {[row.id async for row in model.all()]} in the table")
    await Tortoise.close_connections()


asyncio.run(main())
PY
timeout 60 "$python" try.py > seen
expect seen <<'SEEN'
Counted: 1541815603606036481 before save(), 1 after, [1] in the table
Kept: 1541815603606036481 before save(), 1541815603606036481 after, [1541815603606036481] in the table
SEEN
