"""Headless Chromium, driven by its DevTools protocol over a pipe."""

import base64
import json
import os
import select
import shutil
import time

from servers import process

BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]
TIMEOUT = 120
# The errors of a script whose page was left while it ran.
LEFT = ("Inspected target navigated or closed", "Execution context was destroyed.", "Cannot find context with specified id")


class PageLeft(Exception):
    """The browser left the page on which a script ran, so the script has no result."""


class Browser:
    """A new browser, with an empty profile in a folder."""

    def __init__(self, folder):
        browser = next(filter(None, map(shutil.which, BROWSERS)), None)
        assert browser, f"a browser is missing: install one of {', '.join(BROWSERS)}"
        theirs_in, self.out = os.pipe()
        self.back, theirs_out = os.pipe()
        # Chromium reads from descriptor 3 and writes to descriptor 4.
        command = [browser, *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
        moved = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", *command]
        self.log = folder / "browser.log"
        self.running = process.spawn(moved, self.log, pass_fds=[theirs_in, theirs_out])
        os.close(theirs_in)
        os.close(theirs_out)
        self.read, self.last = b"", 0

    def call(self, method, session=None, **parameters):
        """Calls a method of the protocol, and returns its result."""
        self.last += 1
        order = {"id": self.last, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        data = json.dumps(order).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data) :]
        until = time.monotonic() + TIMEOUT
        while True:
            answer = self.receive(until, method)
            if answer.get("id") == self.last:
                if "error" in answer and answer["error"]["message"] in LEFT:
                    raise PageLeft(answer["error"]["message"])
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def receive(self, until, method):
        """Returns the next message."""
        while b"\0" not in self.read:
            ready, _, _ = select.select([self.back], [], [], max(0, until - time.monotonic()))
            data = os.read(self.back, 1 << 16) if ready else b""
            assert data, f"the browser does not answer {method}; it has said:\n{self.log.read_text(errors='replace')[-2000:]}"
            self.read += data
        message, _, self.read = self.read.partition(b"\0")
        return json.loads(message)

    def open(self, url, before=""):
        """Opens a page, and returns it once it has loaded its data. The script `before` runs before the page's own scripts."""
        return Page(self, url, before)

    def close(self):
        members = process.family(self.running.pid)
        process.send(members, 9)
        self.running.wait(TIMEOUT)
        os.close(self.out)
        os.close(self.back)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# Counts the page's answers, and collects errors that the page does not show.
WATCH = """
window.failures = []; window.answers = 0
for (const kind of ['error', 'unhandledrejection']) addEventListener(kind, event => failures.push(event.message ?? `${event.reason}`))
const asked = window.fetch
window.fetch = async (...request) => { try { return await asked(...request) } finally { answers++ } }
"""


class Page:
    """The board's page in a tab."""

    def __init__(self, browser, url, before):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH + before)
        self.call("Page.navigate", url=url)
        self.ready()

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def evaluate(self, script):
        """Returns the value of an expression. A promise is awaited."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def ready(self, answers=1):
        """Waits until the page has received and shown `answers` answers. Fails with the page's text if it does not."""
        look = f"answers >= {answers} && document.documentElement.dataset.state !== 'loading'"
        until = time.monotonic() + TIMEOUT
        while not self.evaluate(look):
            assert time.monotonic() < until, f"the page is still loading:\n{self.evaluate('document.body.innerText')}"
            time.sleep(0.05)
        wrong = self.evaluate("[...failures, document.getElementById('problem').textContent].join('\\n')")
        assert not wrong, f"the page has failed: {wrong}"

    def click(self, selector):
        """Clicks into the middle of an element with the mouse, and waits until the page has loaded."""
        answers = self.evaluate("answers")
        middle = """(found => {
            found.scrollIntoView({ block: 'center' })
            const box = found.getClientRects()[0], x = box.x + box.width / 2, y = box.y + box.height / 2
            return [x, y, found.contains(document.elementFromPoint(x, y))]
        })"""
        x, y, free = self.evaluate(f"{middle}(document.querySelector({json.dumps(selector)}))")
        assert free, f"{selector} is covered"
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.ready(answers + 1)

    def write(self, selector, text):
        """Types a text into a field."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def choose(self, name, value):
        """Chooses a value of a list or a date, and waits until the page has loaded."""
        answers = self.evaluate("answers")
        choice = f"document.getElementById({json.dumps(name)})"
        self.evaluate(f"{choice}.value = {json.dumps(value)}; {choice}.dispatchEvent(new Event('change'))")
        self.ready(answers + 1)

    def rows(self):
        """Returns (ID, its link's address, text) of each message on the page, from the top."""
        return self.evaluate(
            "[...document.querySelectorAll('#messages > li')].map(row => [row.querySelector('.id').textContent,"
            " row.querySelector('a.id').getAttribute('href'), row.querySelector('.words').textContent])"
        )

    def one(self):
        """Returns the single message that the page shows as a dict, which is empty without a message."""
        return self.evaluate(
            "document.getElementById('one').hidden ? {} :"
            " Object.fromEntries([...document.querySelectorAll('#one [data-field]')].map(cell => [cell.dataset.field, cell.textContent]))"
        )

    def shot(self, path, width, height, scheme):
        """Writes a picture of the page, in light or dark colours, into a PNG file."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
