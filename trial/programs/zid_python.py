"""zid: its only function. It takes no node number."""

from zid import zid

import trial

trial.run(lambda node: zid, lambda ids: ids())
