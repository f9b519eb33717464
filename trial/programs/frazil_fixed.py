"""frazil, a fixed number."""

import frazil

import trial

trial.run(lambda node: frazil.Snowflake("standard", node=node), lambda ids: ids.next())
