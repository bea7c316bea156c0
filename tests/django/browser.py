"""Debian's Chromium without a screen, and Django's own server to look at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.support.expected_conditions import element_to_be_clickable
from selenium.webdriver.support.wait import WebDriverWait

from tests.servers import program

PATIENCE = 20
"""Seconds that a page may take on a machine that has much to do."""

SWITCHES = (
    "--headless=new",
    "--no-sandbox",  # it does not start as root with one
    "--disable-dev-shm-usage",  # /dev/shm is small in containers
    "--disable-gpu",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--window-size=1400,700",
)

NAMES = "return [...document.querySelectorAll('#result_list tr[data-name]')].map(row => row.dataset.name)"


class Browser:
    """What a person does with the pages, each step waiting until the page shows what it needs."""

    def __init__(self, driver: Chrome, address: str, pictures: Path) -> None:
        self.driver = driver
        self._address = address
        self._pictures = pictures

    def open(self, path: str) -> None:
        self.driver.get(self._address + path)

    def log_in(self, name: str, password: str) -> None:
        self.open("/admin/")
        self.write("#id_username", name)
        self.write("#id_password", password)
        self.click("input[type=submit]")
        self.until(lambda: self.driver.find_elements(By.CSS_SELECTOR, "#logout-form"))

    def write(self, selector: str, text: str) -> None:
        field = self._ready(By.CSS_SELECTOR, selector)
        field.clear()
        field.send_keys(text)

    def rect(self, selector: str) -> dict[str, float]:
        """Where it is on the page, and how large: x, y, width, height."""
        found: dict[str, float] = self._ready(By.CSS_SELECTOR, selector).rect
        return found

    def style(self, selector: str, name: str) -> str:
        return str(self._ready(By.CSS_SELECTOR, selector).value_of_css_property(name))

    def click(self, selector: str) -> None:
        self._ready(By.CSS_SELECTOR, selector).click()

    def follow(self, text: str) -> None:
        """Click the link that begins so."""
        self._ready(By.PARTIAL_LINK_TEXT, text).click()

    def names(self) -> list[str]:
        """The reservations in the table."""
        return list(self.driver.execute_script(NAMES) or ())

    def shows(self, *names: str) -> None:
        """Wait for these reservations, and no others, in this order."""
        self.until(lambda: self.names() == [*names])

    def says(self, text: str) -> None:
        """Wait for the text on the page."""
        self.until(lambda: text in self.driver.find_element(By.TAG_NAME, "body").text)

    def has(self, selector: str) -> bool:
        return bool(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def picture(self, name: str) -> None:
        """Keep what can be seen as `name`.png."""
        assert self.driver.save_screenshot(str(self._pictures / f"{name}.png"))

    def until(self, condition: Any) -> None:
        """Wait for the condition; elements that vanish while it looks make it look again."""
        ignored = (NoSuchElementException, StaleElementReferenceException)
        WebDriverWait(self.driver, PATIENCE, ignored_exceptions=ignored).until(lambda _: condition())

    def _ready(self, by: str, what: str) -> Any:
        return WebDriverWait(self.driver, PATIENCE).until(element_to_be_clickable((by, what)))


@contextmanager
def chromium(profile: Path) -> Iterator[Chrome]:
    """Raises `ServerMissing` where there is none."""
    options = ChromeOptions()
    options.binary_location = program("chromium", "usr/lib/chromium")
    for switch in (*SWITCHES, f"--user-data-dir={profile}"):
        options.add_argument(switch)
    # By its path, or else selenium would look for a driver to download.
    driver = Chrome(options, ChromeService(program("chromedriver", "usr/lib/chromium")))
    try:
        yield driver
    finally:
        driver.quit()


@contextmanager
def served() -> Iterator[str]:
    """The address of the project's pages and static files."""
    from django.contrib.staticfiles.handlers import StaticFilesHandler
    from django.test.testcases import LiveServerThread

    server = LiveServerThread("127.0.0.1", StaticFilesHandler)
    server.daemon = True
    server.start()
    server.is_ready.wait()
    if server.error:
        raise server.error
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.terminate()
