"""snowflake-id: the generator of its page's first example."""

from snowflake import SnowflakeGenerator

import trial

trial.run(SnowflakeGenerator, next)
