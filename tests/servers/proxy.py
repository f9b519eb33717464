"""A TCP proxy in front of a server, which breaks connections on command.

    with Proxy(server.port) as proxy:
        url = server.url_at(proxy.port)
        proxy.cut()              # all connections, at once
        proxy.cut(or_next=True)  # all connections, or the next one if there is none
        proxy.lose_answers(1)    # the next request reaches the server, but its answer is dropped
        proxy.lose_requests(1)   # the next request does not reach the server
        proxy.hold()             # the proxy holds answers until release()
        proxy.refuse()           # no new connections until accept()

One thread does all the work. Any other thread may call the methods, which have taken effect when they return.
"""

import collections
import contextlib
import os
import selectors
import socket
import struct
import threading
from time import monotonic

from . import process

# The time that a server may take for an answer that will be dropped.
LAST_WORDS = 2.0
# With this option, a close sends a reset and drops unsent data.
AT_ONCE = struct.pack("ii", 1, 0)


class Pair:
    """A client's connection, and its connection to the server."""

    def __init__(self, client, server):
        self.client, self.server = client, server
        # Set once the client has been cut off. Until then, the server's answer is awaited and dropped.
        self.deadline = None


class Proxy:
    """Forwards to a port on the loopback interface. `target` may be set to another port at any time."""

    def __init__(self, target):
        self.target = target
        self.pairs = set()
        self.counts = collections.Counter()
        self._cuts_next = False
        self._losses = 0
        self._lost_requests = 0
        self._held = False
        self._stopped = False
        self._orders = collections.deque()
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._listener = None
        self._reserved = process.reserve_port()
        self.port = process.port_of(self._reserved)
        self._listen()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()

    def cut(self, or_next=False):
        """Cuts all connections at once or, with `or_next` and without connections, the next one."""
        self._order(lambda: self._cut(or_next))

    def lose_answers(self, count=1):
        """Forwards each of the next requests, and cuts its connection before the answer."""
        self._order(lambda: setattr(self, "_losses", count))

    def lose_requests(self, count=1):
        """Drops each of the next requests, and cuts its connection."""
        self._order(lambda: setattr(self, "_lost_requests", count))

    @property
    def losses_left(self):
        """Returns the number of answers that are still to be lost."""
        return self._losses

    def hold(self):
        """Holds answers back. Requests pass, and connections stay."""
        self._order(lambda: self._set_held(True))

    def release(self):
        """Ends `hold`, and delivers the held answers."""
        self._order(lambda: self._set_held(False))

    def refuse(self):
        """Refuses new connections, as if nothing listened. Old connections stay."""
        self._order(self._stop_listening)

    def accept(self):
        """Ends `refuse`."""
        self._order(self._listen)

    def stop(self):
        """Cuts everything, and ends the thread."""
        if self._thread.is_alive():
            self._order(lambda: setattr(self, "_stopped", True))
            self._thread.join(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # Only the proxy's thread calls the following methods, except `_order`.

    def _order(self, action):
        done = threading.Event()
        self._orders.append((action, done))
        os.write(self._wake_write, b"!")
        if not done.wait(10):
            raise TimeoutError("the proxy hangs")

    def _run(self):
        while not self._stopped:
            waiting = any(pair.deadline for pair in self.pairs)
            for key, _ in self._selector.select(0.1 if waiting else None):
                if key.fd == self._wake_read:
                    os.read(self._wake_read, 1)
                    action, done = self._orders.popleft()
                    action()
                    done.set()
                elif key.fileobj is self._listener:
                    self._take()
                elif key.data is not None and key.data in self.pairs:
                    self._forward(key.data, key.fileobj)
            now = monotonic()
            for pair in [pair for pair in self.pairs if pair.deadline and pair.deadline < now]:
                self._close(pair)
        for pair in list(self.pairs):
            self._close(pair)
        self._stop_listening()
        self._reserved.close()
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _listen(self):
        if self._listener is not None:
            return
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=128)
        self._selector.register(self._listener, selectors.EVENT_READ)

    def _stop_listening(self):
        if self._listener is not None:
            self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None

    def _take(self):
        client, _ = self._listener.accept()
        try:
            server = socket.create_connection(("127.0.0.1", self.target), timeout=2)
        except OSError:
            self.counts["connections refused by the server"] += 1
            close_at_once(client)
            return
        for side in (client, server):
            # The few bytes of a lease never fill a buffer. A side that reads nothing for this time is cut.
            side.settimeout(2)
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = Pair(client, server)
        self.pairs.add(pair)
        self.counts["connections"] += 1
        self._selector.register(client, selectors.EVENT_READ, pair)
        if not self._held:
            self._selector.register(server, selectors.EVENT_READ, pair)
        if self._cuts_next:
            self._cut()

    def _forward(self, pair, side):
        try:
            data = side.recv(1 << 16)
            if not data:
                self._close(pair)
            elif side is pair.server:
                if pair.deadline:
                    # This answer is lost.
                    self._close(pair)
                else:
                    pair.client.sendall(data)
            elif self._lost_requests:
                self._lost_requests -= 1
                self.counts["requests lost"] += 1
                self._close(pair)
            else:
                pair.server.sendall(data)
                if self._losses:
                    self._losses -= 1
                    self.counts["answers lost"] += 1
                    self._lose(pair)
        except OSError:
            self._close(pair)

    def _lose(self, pair):
        """Cuts the client off. The server keeps its connection until it has answered, so that it has executed the request."""
        pair.deadline = monotonic() + LAST_WORDS
        self._forget(pair.client)
        close_at_once(pair.client)

    def _cut(self, or_next=False):
        self._cuts_next = or_next and not self.pairs
        self.counts["connections cut"] += len(self.pairs)
        for pair in list(self.pairs):
            self._close(pair)

    def _close(self, pair):
        self.pairs.discard(pair)
        for side in (pair.client, pair.server):
            self._forget(side)
            close_at_once(side)

    def _set_held(self, held):
        if held == self._held:
            return
        self._held = held
        for pair in self.pairs:
            if held:
                self._forget(pair.server)
            else:
                self._selector.register(pair.server, selectors.EVENT_READ, pair)

    def _forget(self, side):
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(side)


def close_at_once(side):
    """Closes with a reset, which the other end notices at its next read or write."""
    with contextlib.suppress(OSError):
        side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    side.close()
