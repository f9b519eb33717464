"""frazil, a number leased from the folder store."""

import frazil

import trial

trial.run(lambda node: frazil.Snowflake("standard", store="local"), lambda ids: ids.next())
