"""Chromium without a window, driven by its own protocol over a pipe: nothing but the standard library.

    with Chromium() as browser:
        page = browser.open("/tmp/page.html", 1600, 1000)
        page.run("1 + 1"), page.click(100, 200), page.screenshot("shot.png"), page.complaints"""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SECONDS_MAX = 60


def program():
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Chromium:
    def __init__(self):
        to_read, self.to_send = os.pipe()
        self.to_receive, to_write = os.pipe()
        self.folder = tempfile.mkdtemp(prefix="tarn-browser-")

        def place_pipes():  # the protocol reads from 3 and writes to 4
            high = [os.dup(fd) for fd in (to_read, to_write)]
            high = [os.dup2(fd, 40 + i) for i, fd in enumerate(high)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        words = [program(), "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
                 "--hide-scrollbars", "--force-color-profile=srgb", "--user-data-dir=" + self.folder]
        self.process = subprocess.Popen(words, preexec_fn=place_pipes, close_fds=False, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.received, self.number, self.pages = b"", 0, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to_send)
        os.close(self.to_receive)
        shutil.rmtree(self.folder, ignore_errors=True)

    def receive(self, deadline):
        while b"\0" not in self.received:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.to_receive], [], [], left)[0]:
                raise RuntimeError("the browser does not answer")
            more = os.read(self.to_receive, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self.received += more
        message, self.received = self.received.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.to_send, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(method + ": " + answer["error"]["message"])
                return answer["result"]
            if answer.get("sessionId") in self.pages:
                self.pages[answer["sessionId"]].hear(answer)

    def open(self, path, width, height, fragment="", ratio=1):
        return Page(self, pathlib.Path(path).resolve().as_uri() + fragment, width, height, ratio)


class Page:
    def __init__(self, browser, address, width, height, ratio):
        self.browser, self.complaints, self.requests = browser, [], []
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        browser.pages[self.session] = self
        for domain in ("Runtime", "Log", "Network", "Page"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=False)
        self.call("Page.navigate", url=address)
        self.wait_for("window.tarn !== undefined && tarn.loaded > 0")

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def hear(self, message):
        what, about = message["method"], message["params"]
        if what == "Runtime.exceptionThrown":
            self.complaints.append(about["exceptionDetails"].get("exception", {}).get("description", "exception"))
        if what == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(about["args"]))
        if what == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.complaints.append(about["entry"]["text"])
        if what == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])

    def run(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description", expression))
        return result["result"].get("value")

    def wait_for(self, expression):
        deadline = time.monotonic() + SECONDS_MAX
        while not self.run(expression):
            if time.monotonic() > deadline:
                raise RuntimeError("never true: " + expression + " " + str(self.complaints))
            time.sleep(0.01)

    def settle(self):
        """Until what was asked for has been drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    # ---- Hands ----

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def hover(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.settle()

    def click(self, x, y, count=1):
        self.mouse("mouseMoved", x, y)
        for i in range(1, count + 1):
            self.mouse("mousePressed", x, y, button="left", clickCount=i)
            self.mouse("mouseReleased", x, y, button="left", clickCount=i)
        self.settle()

    def drag(self, x, y, x2, y2, shift=False):
        keys = {"modifiers": 8} if shift else {}
        self.mouse("mouseMoved", x, y, **keys)
        self.mouse("mousePressed", x, y, button="left", clickCount=1, **keys)
        for share in (0.3, 0.7, 1):
            self.mouse("mouseMoved", x + (x2 - x) * share, y + (y2 - y) * share, button="left", **keys)
        self.mouse("mouseReleased", x2, y2, button="left", clickCount=1, **keys)
        self.settle()

    def wheel(self, x, y, delta, shift=False):
        self.mouse("mouseWheel", x, y, deltaX=0, deltaY=delta, modifiers=8 if shift else 0)
        self.settle()

    def key(self, key):
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def type(self, text):
        for letter in text:
            self.key(letter)

    def press(self, choice):
        """A button of the toolbar, by its data-choice."""
        spot = self.run(f"(() => {{ const b = document.querySelector('[data-choice=\"{choice}\"]').getBoundingClientRect();"
                        " return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        self.click(*spot)

    # ---- Eyes ----

    def screenshot(self, path):
        self.settle()
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])


def screenshot(path, picture, width, height, fragment=""):
    """As programs take it that know nothing of the page: once it says that it has loaded. The file's bytes."""
    with tempfile.TemporaryDirectory(prefix="tarn-browser-") as folder:
        subprocess.run([program(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
                        "--force-color-profile=srgb", "--user-data-dir=" + folder, f"--window-size={width},{height}",
                        "--screenshot=" + str(pathlib.Path(picture).resolve()), pathlib.Path(path).resolve().as_uri() + fragment],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=SECONDS_MAX, check=True)
    return pathlib.Path(picture).read_bytes()
