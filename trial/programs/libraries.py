"""The libraries of the trial: LIBRARY WAY NODE COUNT SECONDS PAUSE FILE.

Each function imports a library, and returns two functions: one opens a generator with a number, the other mints an ID.
"""

import datetime
import sys

import trial


def frazil_fixed():
    """frazil, a fixed number."""
    import frazil

    return lambda node: frazil.Snowflake("standard", node=node), lambda ids: ids.next()


def frazil_leased():
    """frazil, a number leased from the folder store."""
    import frazil

    return lambda node: frazil.Snowflake("standard", store="local"), lambda ids: ids.next()


def snowflake_id():
    """snowflake-id: the generator of its page's first example."""
    from snowflake import SnowflakeGenerator

    return SnowflakeGenerator, next


def snowflake_toolkit():
    """snowflake-id-toolkit: the generator of its page's first example."""
    from snowflake_id_toolkit import TwitterSnowflakeIDGenerator

    return lambda node: TwitterSnowflakeIDGenerator(node_id=node, epoch=1288834974657), lambda ids: ids.generate_next_id()


def sonyflake_python():
    """sonyflake: the generator of its page's first example, with a machine number."""
    from sonyflake import Sonyflake

    start = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)
    return lambda node: Sonyflake(start_time=start, machine_id=node), lambda ids: ids.next_id()


def tsid_python():
    """tsidpy: a generator with a node number, and the ID as an int."""
    from tsidpy import TSIDGenerator

    return lambda node: TSIDGenerator(node=node), lambda ids: ids.create().number


def zid_python():
    """zid: its only function. It takes no node number."""
    from zid import zid

    return lambda node: zid, lambda ids: ids()


trial.run(*globals()[sys.argv.pop(1)]())
