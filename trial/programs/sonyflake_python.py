"""sonyflake: the generator of its page's first example, with a machine number."""

import datetime

from sonyflake import Sonyflake

import trial

START = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)
trial.run(lambda node: Sonyflake(start_time=START, machine_id=node), lambda ids: ids.next_id())
