"""ObjectIds, as MongoDB has them."""

from ._frazil import ObjectId

__all__ = ["ObjectId"]
