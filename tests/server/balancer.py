"""A TCP balancer like those in front of replicas: it distributes connections among the replicas that are ready by /readyz.

A connection that a replica refuses goes to the next one. A replica that does not answer /readyz at all loses its connections,
as with HAProxy's `on-marked-down shutdown-sessions`. Otherwise, a client of that replica would wait for ever.
"""

import asyncio
import contextlib
import functools
import itertools
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from servers import process

CHECK_S = 0.2
SILENT_S = 3
PROTOCOLS = ("http", "resp")


class Balancer:
    """Listens on `ports["http"]` and `ports["resp"]`, in its own thread, until the end of its `with` block."""

    def __init__(self, replicas):
        """Takes the ports of each replica: `http`, `resp`, `admin`."""
        self.reserved = {protocol: process.reserve_port() for protocol in PROTOCOLS}
        self.ports = {protocol: process.port_of(reserved) for protocol, reserved in self.reserved.items()}
        self._replicas = replicas
        self._ready = [False] * len(replicas)
        self._ways = [set() for _ in replicas]
        self._turn = itertools.count()
        self._begun = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()), name="balancer", daemon=True)

    def __enter__(self):
        self._thread.start()
        self._begun.wait()
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self._loop.close()
        for reserved in self.reserved.values():
            reserved.close()

    async def _serve(self):
        self._over = asyncio.Event()
        checks = [asyncio.create_task(self._check(number)) for number in range(len(self._replicas))]
        for protocol in PROTOCOLS:
            await asyncio.start_server(functools.partial(self._forward, protocol), "127.0.0.1", self.ports[protocol])
        self._begun.set()
        await self._over.wait()
        for task in (*checks, *itertools.chain(*self._ways)):
            task.cancel()
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)

    async def _check(self, number):
        while True:
            try:
                async with asyncio.timeout(SILENT_S):
                    self._ready[number] = await self._ask(self._replicas[number]["admin"])
            except TimeoutError:
                self._ready[number] = False
                for way in self._ways[number]:
                    way.cancel()
            await asyncio.sleep(CHECK_S)

    async def _ask(self, port):
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with contextlib.closing(writer):
                writer.write(b"GET /readyz HTTP/1.1\r\nhost: balancer\r\nconnection: close\r\n\r\n")
                return (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        except OSError:
            return False

    async def _forward(self, protocol, reader, writer):
        with contextlib.closing(writer):
            first = next(self._turn)
            numbers = [(first + n) % len(self._replicas) for n in range(len(self._replicas))]
            for number in sorted(numbers, key=lambda number: not self._ready[number]):
                try:
                    its_reader, its_writer = await asyncio.open_connection("127.0.0.1", self._replicas[number][protocol])
                except OSError:
                    continue
                with contextlib.closing(its_writer):
                    ways = {asyncio.create_task(copy(*way)) for way in ((reader, its_writer), (its_reader, writer))}
                    self._ways[number] |= ways
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                    self._ways[number] -= ways
                    for way in ways:
                        way.cancel()
                return


async def copy(reader, writer):
    """Copies bytes from the reader to the writer, until one of them ends."""
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
