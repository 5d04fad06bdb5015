"""The workbench: from a moved weight to the redrawn page, measured in the page."""

import shutil
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.common import section, skipped

TITLE = "The workbench (`likewise workbench`)"
N, NUMBERS, CATEGORIES, CHANGES = 30_000, 12, 8, 12


def run() -> str:
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        return skipped(TITLE, "Not run: playwright is not installed.")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        return skipped(TITLE, "Not run: no browser is installed.")
    from likewise.workbench.server import HOST, bind, make_server

    with tempfile.TemporaryDirectory() as place:
        bound = bind(0)
        server = make_server(hub(Path(place)), "benchmark", bound)
        thread = threading.Thread(target=lambda: server.run(sockets=[bound]), daemon=True)
        thread.start()
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium, args=["--headless", "--no-sandbox"])
                page = browser.new_page()
                page.set_default_timeout(600_000)
                page.goto(f"http://{HOST}:{bound.getsockname()[1]}/?token=benchmark")
                took = sorted(measure(page))
                browser.close()
        finally:
            server.should_exit = True
            thread.join(30)
    rows = [[f"{N:,} people, {NUMBERS + CATEGORIES} columns", f"{took[len(took) // 2]:.2f} s", f"{took[-1]:.2f} s"]]
    note = (
        f"{CHANGES} changes of single weights, one after the other, by the page's own clock: refit of the card on four "
        "fifths of the people, scores of the others, prices, pairs, shapes and redraw. The other folds and the card of "
        "everybody follow. The first change, which compiles, is left out."
    )
    return section(TITLE, ["table", "median", "largest"], rows, note)


def hub(place):
    import numpy as np
    import pandas as pd

    from likewise.workbench.engine import Engine, Problem
    from likewise.workbench.exports import Tools
    from likewise.workbench.hub import Hub
    from likewise.workbench.state import Session

    rng = np.random.default_rng(0)
    X = pd.DataFrame({f"n{i}": rng.normal(50, 10, N) for i in range(NUMBERS)}, index=range(1, N + 1))
    for i in range(CATEGORIES):
        X[f"c{i}"] = rng.choice(list("abcdef"), N)
    z = (X["n0"] - 50) / 10 + (X["n1"] - 50) / 15 + (X["c0"] == "a")
    y = np.where(z + rng.normal(size=N) > 0, "yes", "no")
    engine = Engine(Problem(X, y, "classification", "people.csv", "outcome"))
    start = engine.empty_sheet().with_weights(
        {"numeric": dict.fromkeys(X.columns[:NUMBERS], 0.004), "categorical": dict.fromkeys(X.columns[NUMBERS:], 0.05)}
    )
    table = {"name": "people.csv", "target": "outcome", "fingerprint": engine.problem.fingerprint}
    session = Session(place / "people.likewise.json", table, start, engine.ranges)
    return Hub(
        session, engine, Tools(None, None, lambda *words: " ".join(map(str, words)), "people.csv"), place / "out"
    )


def measure(page):
    """Seconds from a change to its figures on the page."""
    page.fill("#name", "benchmark")
    page.wait_for_selector("html[data-done='0']", state="attached")
    page.wait_for_selector("#f-today:not(:text-is('…'))")  # models without a guarantee are measured
    page.wait_for_selector("#status:text-is('Up to date')")
    for k in range(CHANGES + 1):
        field = page.locator("#weights-list .amount input").nth(k)
        field.fill("3" if k < NUMBERS else "7")
        field.press("Enter")
        page.wait_for_selector(f"html[data-done='{k + 1}']", state="attached")
        time.sleep(0.1)
    entries = page.evaluate("performance.getEntriesByName('refit and redraw').map((entry) => entry.duration / 1000)")
    return entries[1:]
