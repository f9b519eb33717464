"""tsidpy: a generator with a node number, and the ID as an int."""

from tsidpy import TSIDGenerator

import trial

trial.run(lambda node: TSIDGenerator(node=node), lambda ids: ids.create().number)
