"""The ObjectIds of MongoDB."""

from ._frazil import ObjectId

__all__ = ["ObjectId"]
