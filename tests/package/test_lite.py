"""frazil/lite as npm packs it, in a real browser. The page is tests/package/lite.html."""

import functools
import http.server
import json
import shutil
import subprocess
import tarfile
import threading

from conftest import ROOT

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
]


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and receives the page's report."""

    def do_POST(self):
        self.server.report = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.reported.set()
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args):
        pass


def browse(folder, page):
    """Opens a page in a browser, and returns the page's report."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert browser, f"a browser is missing: install one of {', '.join(BROWSERS)}"
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder)) as server:
        server.reported = threading.Event()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/{page}"
        # A browser can hang at its start on a busy machine. Nothing of the page has run then, so it starts once more.
        for profile in ("profile", "second"):
            with open(folder / "browser.log", "ab") as log:
                process = subprocess.Popen([browser, *FLAGS, f"--user-data-dir={folder / profile}", url], stdout=log, stderr=log)
                try:
                    has_reported = server.reported.wait(120)
                finally:
                    process.kill()
                    process.wait()
            if has_reported:
                break
        server.shutdown()
    assert has_reported, f"{browser} has not reported:\n{(folder / 'browser.log').read_text(errors='replace')[-2000:]}"
    return server.report


def test_the_vectors_hold_in_a_browser(tarballs, tmp_path):
    with tarfile.open(tarballs[0]) as packed:
        packed.extractall(tmp_path, filter="data")
    exports = json.loads((tmp_path / "package/package.json").read_text())["exports"]["./lite"]
    imports = {"imports": {"frazil/lite": "/" + str((tmp_path / "package" / exports["import"]["default"]).relative_to(tmp_path))}}
    page = (ROOT / "tests/package/lite.html").read_text().replace("IMPORTS", json.dumps(imports))
    (tmp_path / "lite.html").write_text(page)
    shutil.copytree(ROOT / "tests/vectors", tmp_path / "vectors")
    shutil.copy(ROOT / "tests/node/layout_cases.mjs", tmp_path)

    report = browse(tmp_path, "lite.html")
    assert report["failures"] == []
    assert report["passed"] == ["known_ids", "texts", "layouts", "this page"]
    assert "Chrom" in report["browser"]
