"""Three replicas on one store after a balancer, with six clients in four protocols, while everything around them breaks."""

import collections
import contextlib
import signal
import time

import numpy
from balancer import Balancer
from clients import ALL
from replica import TIMEOUT_S, Replica, process

# Four node numbers for three replicas, so another replica soon takes a number that was lost.
LAYOUT = "time:41@1ms node:2 sequence:12 epoch:2025-01-01"
NODE_SHIFT = 12
WINDOW_S = 10
# The time after which a frozen replica's lease has ended, and another replica may take its number.
FROZEN_S = WINDOW_S + 1.5


class Supervised(Replica):
    """A replica that is started again if it ends because the store, which may be busy or restarting, does not answer."""

    def start(self):
        while True:
            self.spawn()
            assert process.await_true(lambda: self.running.poll() is not None or self.is_ready(), TIMEOUT_S), self.log.read_text()
            if self.running.poll() is None:
                return
            assert self.events()[-1]["code"] == "STORE_UNREACHABLE", self.log.read_text()


class Show:
    """The whole set-up. In its `with` block, replicas serve and clients send requests."""

    def __init__(self, store, folder, say=lambda text: None):
        """Takes a server of tests/servers, and a function that is called with a line about each step."""
        url = f"store={store.url} namespace=show"
        names = [
            f"orders=layout='{LAYOUT}' start=zero {url} window={WINDOW_S}s renew=2s",
            f"invoice=segment {url} step=50000",
        ]
        self.store, self.say = store, say
        self.stack = contextlib.ExitStack()
        self.replicas = [Supervised(folder, *names) for _ in range(3)]
        self.balancer = Balancer([replica.ports for replica in self.replicas])
        self.clients = [client(self.balancer.ports) for client in ALL]
        self.faults = collections.Counter()
        self.rolling = collections.Counter()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            for part in (*self.replicas, self.balancer, *self.clients):
                stack.enter_context(part)
            self.stack = stack.pop_all()
        self.await_answers()
        return self

    def __exit__(self, *exception):
        return self.stack.__exit__(*exception)

    def await_answers(self, count=2):
        """Waits until each client has received `count` more answers."""
        wanted = [len(client.batches) + count for client in self.clients]

        def reached():
            return all(len(client.batches) >= many for client, many in zip(self.clients, wanted, strict=True))

        assert process.await_true(reached, TIMEOUT_S), {client.title: client.errors for client in self.clients}

    def total(self):
        return sum(client.count() for client in self.clients)

    def kill(self, number):
        """Kills a replica with SIGKILL, and starts it again."""
        replica = self.replicas[number]
        self.say(f"replica {number + 1} is killed (kill -9), and started again")
        self.faults["kill -9"] += 1
        replica.signal(signal.SIGKILL)
        replica.running.wait()
        replica.start()

    def freeze(self, number):
        """Freezes a replica until its lease has ended and another has its number: the two others are killed, and each leases a number."""
        replica = self.replicas[number]
        self.say(f"replica {number + 1} is frozen (SIGSTOP) until its lease is over")
        self.faults["SIGSTOP"] += 1
        replica.signal(signal.SIGSTOP)
        try:
            time.sleep(FROZEN_S)
            for other in range(len(self.replicas)):
                if other != number:
                    self.kill(other)
        finally:
            replica.signal(signal.SIGCONT)
        self.say(f"replica {number + 1} wakes up: another one may have its number")
        assert process.await_true(replica.is_ready, TIMEOUT_S), replica.log.read_text()

    def restart_store(self):
        self.say(f"{self.store.name} is killed, and started again")
        self.faults["restart of the store"] += 1
        self.store.restart()

    def roll(self):
        """Makes a rolling restart, as an operator does: each replica in turn, once the one before is ready."""
        self.say("a rolling restart: SIGTERM to each replica in turn")
        self.faults["rolling restart"] += 1
        before = sum(client.failed for client in self.clients), self.requests(), self.retries()
        for replica in self.replicas:
            assert replica.end() == 0, replica.log.read_text()
            replica.start()
            # Waits, so that no request lasts from the end of one replica to the end of the next.
            self.await_answers()
        self.rolling["failed"] += sum(client.failed for client in self.clients) - before[0]
        self.rolling["requests"] += self.requests() - before[1]
        self.rolling["retries"] += self.retries() - before[2]

    def requests(self):
        return sum(len(client.batches) for client in self.clients)

    def retries(self):
        return sum(client.retries for client in self.clients)

    def round(self, first=0):
        """Makes each fault once, and waits for answers after each. Begins with the replica `first`."""
        count = len(self.replicas)
        for fault in (lambda: self.kill(first % count), lambda: self.freeze((first + 1) % count), self.restart_store, self.roll):
            fault()
            self.await_answers()

    def end(self):
        """Stops the clients, and then the replicas, which must end normally."""
        for client in self.clients:
            client.stop()
        assert [replica.end() for replica in self.replicas] == [0, 0, 0]

    def duplicates(self):
        """Returns the number of IDs of each name, and of duplicates among them."""
        found = {}
        for name in sorted({client.name for client in self.clients}):
            ids = numpy.sort(numpy.concatenate([client.ids() for client in self.clients if client.name == name]))
            found[name] = len(ids), int(numpy.count_nonzero(ids[1:] == ids[:-1]))
        return found

    def nodes(self):
        """Returns the node numbers that were used."""
        used = [numpy.unique((client.ids() >> NODE_SHIFT) & 3) for client in self.clients if client.name == "orders"]
        return {int(node) for nodes in used for node in nodes}

    def report(self):
        """Yields the lines of the outcome."""
        faults = ", ".join(f"{name} {count}" for name, count in self.faults.items())
        rolling = f"{self.rolling['requests']:,} requests, {self.rolling['retries']} sent twice, {self.rolling['failed']} failed"
        clients = [
            f"{client.title:<18} {client.count():>12,} IDs  {len(client.batches):>6,} requests  {client.retries:>4} retries"
            for client in self.clients
        ]
        found = [f"{name:<18} {total:>12,} IDs  {twice:>6} duplicates" for name, (total, twice) in self.duplicates().items()]
        return [f"faults             {faults}", f"rolling restart    {rolling}", *clients, *found]
