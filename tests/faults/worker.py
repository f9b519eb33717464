"""Mints until FOLDER/stop exists, and writes down every ID at once: worker.py KIND SPEC FOLDER NAME.

KIND is the class that it opens: Snowflake, or Segment, whose numbers are called IDs here, too. IDs go to FOLDER/NAME.PID.ids, 8 bytes each,
little endian, in one write(2) as soon as they are minted. Neither kill -9 nor a stop undoes a write. Errors go to FOLDER/NAME.PID.log, one
on each line.

Now and then it closes and opens, releases its number, observes an ID of another process (FOLDER/NAME.PID.observed gets a byte), forks, or
starts a visitor. A visitor is a thread that opens the same spec, waiting or polling, mints and closes. Its files are PID.waits.N or PID.polls.N.
The workers in the other languages do the same. Node cannot fork, runs its visitors in threads with a separate heap, and ends some of them.
"""

import array
import asyncio
import glob
import os
import random
import signal
import sys
import threading
import time

import frazil

KIND, SPEC, FOLDER, NAME = sys.argv[1:]
STOP = f"{FOLDER}/stop"
FORKS = os.environ.get("FRAZIL_WORKER_FORKS") == "1"
# The average number of steps between two of a kind of the rare things.
RARE = int(os.environ["FRAZIL_WORKER_RARE"])
# The number of IDs of a usual step, and of a rare large one.
FEW, MANY = int(os.environ["FRAZIL_WORKER_FEW"]), 5000
# The pause between two steps.
PAUSE_S = 0.004
# The time that a visitor polls.
POLLS_S = 1
# The number of detached generators beside the first one of a process. Their leases are renewed together.
BESIDE = int(os.environ.get("FRAZIL_FAULT_BESIDE", "0"))
# Longer than any child lives.
CHILD_LIMIT_S = int(os.environ["FRAZIL_WORKER_CHILD_LIMIT"])


def append_to(ending):
    return os.open(f"{FOLDER}/{NAME}.{os.getpid()}.{ending}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


def somebodys_newest():
    """Returns the last ID that one of the processes has written down, or None."""
    with open(random.choice(glob.glob(f"{FOLDER}/*.ids")), "rb") as file:
        whole = file.seek(0, os.SEEK_END) // 8 * 8
        file.seek(max(whole - 8, 0))
        return int.from_bytes(file.read(8), "little") if whole else None


class Worker:
    def __init__(self, part="", spec=SPEC):
        self.part, self.spec = part, spec
        self.beside = []
        self.own_files()
        self.newest = -1
        self.child = 0
        self.ids = None
        self.visits = 0
        self.visitor = None

    def own_files(self):
        self.out, self.log = append_to(f"{self.part}ids"), append_to(f"{self.part}log")
        self.random = random.Random(f"{os.getpid()}{self.part}")
        for other in self.beside:
            other.own_files()

    def note(self, code, text):
        os.write(self.log, f"{code} {text}\n".encode())

    def open(self):
        while self.ids is None and not os.path.exists(STOP):
            try:
                self.ids = getattr(frazil, KIND)(self.spec)
                self.newest = -1
            except frazil.FrazilError as error:
                self.note(error.name, error)
                time.sleep(0.02)

    async def poll(self):
        """Opens as a program with a running event loop must, without a wait. Gives up after a while."""
        end = time.monotonic() + POLLS_S
        while self.ids is None and time.monotonic() < end and not os.path.exists(STOP):
            try:
                self.ids = getattr(frazil, KIND)(SPEC)
            except frazil.FrazilError as error:
                self.note(error.name, error)
                await asyncio.sleep(0.02)

    def mint(self, count):
        buffer = array.array("q", bytes(8 * count))
        refused = None
        try:
            written = self.ids.fill(buffer)
        except frazil.FrazilError as error:
            refused, written = error, error.written
        os.write(self.out, memoryview(buffer)[:written])
        if written and buffer[0] <= self.newest:
            self.note("NOT_ASCENDING", f"{buffer[0]} after {self.newest}")
        if written:
            self.newest = buffer[written - 1]
        if refused:
            self.note(refused.name, refused)
            time.sleep(0.02)

    def close(self):
        self.ids.close()
        self.ids = None

    def release(self):
        try:
            self.ids.discard() if KIND == "Segment" else self.ids.release_node()
        except frazil.FrazilError as error:
            self.note(error.name, error)

    def observe(self):
        theirs = somebodys_newest()
        if KIND == "Segment" or theirs is None:
            return
        try:
            self.ids.observe(theirs)
        except frazil.FrazilError as error:
            self.note(error.name, error)
        else:
            self.newest = max(self.newest, theirs)
            with open(f"{FOLDER}/{NAME}.{os.getpid()}.observed", "ab") as file:
                file.write(b".")

    def visit(self):
        """Starts a visitor, at most one at a time. Visitors wait and poll in turn."""
        if self.visitor is None or not self.visitor.is_alive():
            self.visits += 1
            self.visitor = threading.Thread(target=self.stay, args=(f"{'polls' if self.visits % 2 else 'waits'}.{self.visits}.",))
            self.visitor.start()

    def stay(self, part):
        visitor = Worker(part)
        try:
            if part.startswith("polls"):
                asyncio.run(visitor.poll())
            else:
                visitor.open()
            end = time.monotonic() + visitor.random.uniform(0, 1)
            while visitor.ids and time.monotonic() < end:
                visitor.mint(FEW)
                time.sleep(PAUSE_S)
            if visitor.ids:
                visitor.close()
        except BaseException as error:
            visitor.note("UNTYPED", repr(error))
            raise

    def fork(self):
        """Forks. Both processes continue, the child for a while and with its own files."""
        if self.child:
            ended, status = os.waitpid(self.child, os.WNOHANG)
            if not ended:
                return
            if status:
                self.note("CHILD", f"ended with status {status}")
        self.child = os.fork()
        if self.child == 0:
            try:
                signal.alarm(CHILD_LIMIT_S)
                self.own_files()
                # Before the child leases its own number, another thread may open, and the inherited handle may be closed.
                if self.random.random() < 0.5:
                    self.visit()
                if self.random.random() < 0.25:
                    self.close()
                self.run(time.monotonic() + self.random.uniform(0.5, 3), forks=False)
            except BaseException as error:
                self.note("UNTYPED", repr(error))
                raise
            finally:
                os._exit(0)

    def run(self, end, forks):
        while time.monotonic() < end:
            draw = self.random.randrange(RARE)
            if draw < 2 and self.ids:
                self.close()
            if not self.ids:
                self.open()
            if not self.ids or (draw % 16 == 0 and os.path.exists(STOP)):
                break
            if draw == 2:
                self.release()
            if draw == 3 and forks:
                self.fork()
            if draw == 4:
                self.observe()
            if draw == 5:
                self.visit()
            self.mint(MANY if draw < 6 else FEW)
            for other in self.random.sample(self.beside, min(2, len(self.beside))):
                if not other.ids:
                    other.open()
                if other.ids:
                    other.mint(FEW)
                if other.ids and draw in (6, 7):
                    other.release() if draw == 6 else other.close()
            time.sleep(PAUSE_S)
        # Half of the children exit without a close, like crashed processes.
        for each in (self, *self.beside):
            if each.ids and (forks or self.random.random() < 0.5):
                each.close()


if __name__ == "__main__":
    worker = Worker()
    worker.beside = [Worker(f"beside.{number}.", f"{SPEC} detached=true") for number in range(BESIDE)]
    try:
        worker.run(float("inf"), FORKS)
    except BaseException as error:
        worker.note("UNTYPED", repr(error))
        raise
