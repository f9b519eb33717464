"""The generator of `settings.FRAZIL`, one in each process, opened for the first ID."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

import frazil

_MISSING = """settings.FRAZIL {}. It is the spec line of this project's IDs, or a dict of the same keys:
  FRAZIL = "standard store=local"              one machine, any number of processes
  FRAZIL = "standard store=postgresql://..."   several machines; also redis://, mysql://, etcd://, zookeeper://, frazil://
  FRAZIL = "standard node=7"                   a single process, and no other has the number 7"""

_lock = threading.Lock()
_snowflake: frazil.Snowflake | None = None
_layout: frazil.Layout | None = None
_forked = False


def get_snowflake() -> frazil.Snowflake:
    """Returns the generator of this process's keys: `get_snowflake().next()` mints one.

    It is opened by the first call, and the interpreter's exit closes it. A forked child leases its own node number. All threads may
    call it. Raises ImproperlyConfigured without settings.FRAZIL, and the errors of `frazil.Snowflake` for a bad one. Raises ForkedError in a
    forked child if the node number is fixed, because all children would have the same number.

    >>> get_snowflake().layout.decode(get_snowflake().next()).time
    """
    return _snowflake or _open()


def close_snowflake() -> None:
    """Releases the node number of this process, if it has one. Use it in processes that skip the interpreter's exit, such as Celery's.

    Minting an ID afterwards raises ClosedError.

    >>> worker_process_shutdown.connect(lambda **_: close_snowflake(), weak=False)
    """
    if _snowflake is not None:
        _snowflake.close()


def get_layout() -> frazil.Layout:
    """Returns the layout of settings.FRAZIL, without opening a generator. Raises ImproperlyConfigured, and the errors of a bad spec.

    >>> get_layout().decode(Item.objects.first().pk).time
    """
    global _layout
    if _layout is None:
        line, options = _setting()
        _layout = frazil.Layout.of(line, **options)
    return _layout


def leases_numbers() -> bool:
    """Returns true if each process of settings.FRAZIL leases a node number that no other process has."""
    line, options = _setting()
    stores = [option.removeprefix("store=").strip("'\"") for option in line.split() if option.startswith("store=")]
    return [*stores, options.get("store") or "memory"][0] != "memory"


def _setting() -> tuple[str, dict[str, Any]]:
    setting = getattr(settings, "FRAZIL", None)
    if isinstance(setting, str) and setting:
        return setting, {}
    if isinstance(setting, Mapping) and setting:
        return "", dict(setting)
    if setting in (None, "", {}):
        raise ImproperlyConfigured(_MISSING.format("is missing"))
    raise ImproperlyConfigured(_MISSING.format(f"is of type {type(setting).__name__}"))


def _open() -> frazil.Snowflake:
    global _snowflake
    with _lock:
        if _snowflake is None:
            line, options = _setting()
            # Without an explicit limit, the call would wait only 2 ms in a notebook's event loop.
            opened = frazil.Snowflake(line, timeout=math.inf, **options)
            if _forked and (opened.lease is None or opened.lease.store == "memory"):
                raise frazil.errors.ForkedError(
                    f"settings.FRAZIL gives every process of this project the same node number ({opened.spec}), and this process was forked"
                    " (gunicorn --preload, Celery's prefork pool, multiprocessing): its siblings would mint the same IDs. Let each process"
                    " lease a number (store=local on one machine, or the cluster's store), or run one process"
                )
            _snowflake = opened
        return _snowflake


def _after_fork() -> None:
    global _lock, _forked
    _lock, _forked = threading.Lock(), True


def _changed(*, setting: str, **_: object) -> None:
    """Drops the generator when a test overrides the setting."""
    global _snowflake, _layout
    if setting == "FRAZIL":
        _snowflake = _layout = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
setting_changed.connect(_changed, dispatch_uid="frazil.django")
