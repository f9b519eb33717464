"""snowflake-id-toolkit: the generator of its page's first example."""

from snowflake_id_toolkit import TwitterSnowflakeIDGenerator

import trial

trial.run(lambda node: TwitterSnowflakeIDGenerator(node_id=node, epoch=1288834974657), lambda ids: ids.generate_next_id())
