"""Code that mypy must accept. Each line with an ignore must fail, because an unneeded ignore is an error."""

import array
import datetime
import uuid
from typing import Any, assert_type

import frazil
import numpy


def numbers() -> None:
    orders = frazil.Segment("orders", store=["file:/a", "file:/b"], offset=[1, 2], step=100, wait="1s")
    photos = frazil.Tickets("photos", store=("file:/a", "file:/b"))
    ids = frazil.Buffered("standard", node=7, size=8192, store=None, layout=frazil.Layout("twitter"))
    either: frazil.Numbers = photos
    assert_type(orders.next(), int)
    assert_type(orders(), int)
    assert_type(next(orders), int)
    assert_type([number for number in ids], list[int])
    assert_type(either.batch(3), list[int])
    assert_type(either.fill(array.array("q", [0])), int)
    assert_type(either.prepared, int)
    assert_type(either.last_error, frazil.FrazilError | None)
    assert_type(either.spec, str)
    assert_type(ids.layout, frazil.Layout)
    assert_type(orders.discard(), None)
    with orders as same:
        assert_type(same, frazil.Segment)
    photos.close()


async def asynchronous() -> None:
    orders = await frazil.Segment.aopen("orders", store="local")
    assert_type(orders, frazil.Segment)
    assert_type(await frazil.Buffered.aopen("standard", node=7), frazil.Buffered)
    assert_type(await orders.anext(), int)
    assert_type(await orders.abatch(3), list[int])


def generators(options: dict[str, Any], now: datetime.datetime) -> None:
    hour = datetime.timedelta(hours=1)
    ids = frazil.Snowflake("twitter", datacenter=1, worker="hostname+3", rollback="ahead:1s", lag=hour, epoch=now, after="17")
    frazil.Snowflake("standard", node=numpy.int64(7), store="env:STORE", window=hour, renew="10s", detached=True, clock="manual")
    frazil.Snowflake(layout=frazil.Layout("time:41@1ms own:10 sequence:12 epoch:1970-01-01"), fields={"own": 7})
    frazil.Snowflake("twitter", **options)
    frazil.Buffered("twitter", datacenter=1, worker=7, refill=30, empty="error")
    parts = ids.layout.decode("1541815603606036480")
    assert_type(parts.worker, int)
    assert_type(parts.fields, dict[str, int])
    assert_type(parts._asdict(), dict[str, Any])
    assert_type(sorted([parts, ids.layout.decode(numpy.int64(1))]), list[frazil.Parts])
    match parts:
        case frazil.Parts(time, fields, sequence, worker=worker):
            assert_type(time, datetime.datetime)
            assert_type(fields, dict[str, int])
            assert_type(sequence, int)
            assert_type(worker, int)
        case _:
            pass
    ids.observe("1541815603606036480")
    assert_type(frazil.format_id("7", "hex"), str)
    assert_type(frazil.parse_id("7"), int)
    assert_type(frazil.uuid.uuid7(now) > frazil.uuid.uuid7_min(now), bool)
    assert_type(frazil.uuid.uuid7(), uuid.UUID)


def arrays(ids: frazil.Snowflake) -> None:
    new = ids.array(1000, timeout=5)
    assert_type(int(new[0]), int)
    ids.fill(new)
    layout = ids.layout
    for table in (layout.decode_many(new), layout.decode_many([1, "2"]), layout.decode_many(str(id) for id in new)):
        assert_type(len(table["time"]), int)
        layout.decode_many(new, fields=["time", "tick"], out=table)


def errors(error: frazil.errors.SpecError | frazil.errors.IdInvalidError) -> None:
    value: ValueError = error
    unreachable: ConnectionError = frazil.errors.StoreUnreachableError("away")
    raise value from unreachable


async def refused_opening() -> None:
    await frazil.Snowflake.aopen("twitter", datacentre=1)  # type: ignore[call-arg]
    await frazil.Segment.aopen("orders", stepp=1)  # type: ignore[call-arg]


def refused(now: datetime.datetime) -> None:
    frazil.Snowflake("twitter", datacentre=1, worker=7)  # type: ignore[call-arg]
    frazil.Snowflake("twitter", datacenter=1, worker=7, rolback="error")  # type: ignore[call-arg]
    frazil.Snowflake("twitter", datacenter=1, worker=7.0)  # type: ignore[arg-type]
    frazil.Snowflake("standard", node=7, lag=5)  # type: ignore[arg-type]
    frazil.Snowflake("standard", node=7, epoch=now.date())  # type: ignore[arg-type]
    frazil.Snowflake("standard", fields=["own"])  # type: ignore[arg-type]
    frazil.Segment("orders", node=7)  # type: ignore[call-arg]
    frazil.Tickets("photos", step=7)  # type: ignore[call-arg]
    frazil.Buffered("standard", node=7, sise=7)  # type: ignore[call-arg]
    frazil.Layout("twitter").decode(7.0)  # type: ignore[arg-type]
    frazil.Layout("twitter").decode(7) < 7  # type: ignore[operator]  # noqa: B015
    orders = frazil.Segment(7)  # type: ignore[arg-type]
    frazil.Segment("orders", store={"memory"})  # type: ignore[arg-type]
    frazil.Snowflake("standard", store=["memory"])  # type: ignore[arg-type]
    orders.layout  # type: ignore[attr-defined]  # noqa: B018
    orders.prepared = 1  # type: ignore[misc]
