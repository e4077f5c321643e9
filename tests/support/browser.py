"""A headless Chromium of this machine, driven over WebDriver."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

#: Set to `required` by .ci/run: there a browser that is missing is a failure.
VARIABLE = "TXNLIB_BROWSER"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PHONE, DESKTOP = (390, 844), (1280, 900)


@dataclass(frozen=True)
class Browser:
    driver: webdriver.Chrome

    def open(self, page: Path, size: tuple[int, int] = DESKTOP, scheme: str = "light", media: str = "") -> None:
        """Opens a file in a window of that size, with the reader's colours."""
        self.logged()
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.command("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.command("Emulation.setEmulatedMedia", {"media": media, "features": features})
        self.driver.get(page.as_uri())

    def command(self, name: str, parameters: Mapping[str, Any]) -> Any:
        """A command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, dict(parameters))

    def ask(self, script: str, *arguments: Any) -> Any:
        """What a script in the page returns."""
        return self.driver.execute_script(f"return {script}", *arguments)

    def logged(self) -> list[str]:
        """What stood in the console since it was last asked for."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requested(self) -> list[str]:
        """What was fetched since it was last asked for."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser; fails where .ci/run asks for one, and skips with the reason where there is none."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        lacking = (
            f"the report page was NOT opened in a browser: no {'chromium' if program is None else 'chromedriver'} on"
            " PATH"
        )
        remedy = "install both (Debian: apt-get install chromium chromium-driver)"
        if os.environ.get(VARIABLE) == "required":
            pytest.fail(f"{lacking}; {remedy}")
        pytest.skip(f"{lacking}; {remedy}")
    options = Options()
    options.binary_location = program
    # A container's root has no sandbox, and its /dev/shm is small.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield Browser(started)
    finally:
        started.quit()
