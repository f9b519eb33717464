"""What mypy must accept; each line with an ignore must not pass (an ignore that is not needed is an error)."""

import array
from typing import assert_type

import frazil


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
    assert_type(orders.renew(), None)
    with orders as same:
        assert_type(same, frazil.Segment)
    photos.close()


async def asynchronous() -> None:
    orders = await frazil.Segment.open("orders", store="local")
    assert_type(orders, frazil.Segment)
    assert_type(await frazil.Buffered.open("standard", node=7), frazil.Buffered)
    assert_type(await orders.next_async(), int)
    assert_type(await orders.batch_async(3), list[int])


def refused() -> None:
    orders = frazil.Segment(7)  # type: ignore[arg-type]
    frazil.Segment("orders", store={"memory"})  # type: ignore[arg-type]
    frazil.Snowflake("standard", store=["memory"])  # type: ignore[arg-type]
    orders.layout  # type: ignore[attr-defined]  # noqa: B018
    orders.prepared = 1  # type: ignore[misc]
