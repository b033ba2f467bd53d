"""The page of `tally report` in headless Chromium: it loads without an error and from itself alone, every control
works by mouse and by key, nothing overflows, text has contrast, and its numbers are those of `tally explain --json`.

A browser that cannot be started fails these tests: scripts/install-deps check installs chromium, chromium-driver and
python3-selenium.
"""

import base64
import gzip
import json
import os
import pathlib
import random
import re
import subprocess
import time

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

ROOT = pathlib.Path(__file__).resolve().parents[2]
TALLY = pathlib.Path(os.environ.get("TALLY", ROOT / "build" / "bin" / "tally")).resolve()
SEED = int(os.environ.get("TALLY_SEED", time.time()))


def explain(rung, n, block, coarsen):
    args = ["explain", rung, "-n", n, "--block", block, "--coarsen", coarsen, "--json", "--steps"]
    return json.loads(subprocess.run([TALLY, *map(str, args)], check=True, capture_output=True).stdout)


@pytest.fixture(scope="session")
def page(tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "reduction.html"
    done = subprocess.run([TALLY, "report", "-o", file], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    return file


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.chrome.service.Service("/usr/bin/chromedriver")
    driver = webdriver.Chrome(service=service, options=options)
    driver.set_script_timeout(30)
    yield driver
    driver.quit()


class Page:
    def __init__(self, driver, file):
        self.driver = driver
        driver.execute_cdp_cmd("Network.enable", {})
        driver.execute_cdp_cmd("Network.emulateNetworkConditions",
                               {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0})
        driver.get(file.as_uri())
        self.wait(lambda: self.text("where"))

    def wait(self, what):
        end = time.time() + 20
        while not what():
            assert time.time() < end, "the page does not get there"
            time.sleep(0.01)

    def js(self, text, *args):
        return self.driver.execute_script(text, *args)

    def by(self, id):
        return self.driver.find_element(By.ID, id)

    def text(self, id):
        return self.by(id).text

    def choose(self, **change):
        self.driver.execute_async_script("choose(arguments[0]).then(arguments[1])", change)

    def size(self, width, height=900, dark=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def keys(self, id, *keys):
        self.by(id).send_keys(*keys)


@pytest.fixture(scope="session")
def opened(browser, page):
    return Page(browser, page)


@pytest.fixture(autouse=True)
def no_errors(opened):
    opened.size(900)
    opened.choose(a=1, b=-1, n=16, block=8, coarsen=1, shown=0)
    opened.js("showStep(0); document.activeElement.blur()")
    yield
    assert [entry for entry in opened.driver.get_log("browser") if entry["level"] != "DEBUG"] == []


def test_is_one_small_file(page):
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) < 3e6
    text = re.sub(r"<script type=.*?</script>", "", text, flags=re.S)
    assert not re.search(r"<(link|img|iframe)\b|<script[^>]*\bsrc|@import|url\(|fetch\(|XMLHttpRequest|import\(", text)
    assert not re.search(r"\{\{\w", text)


def test_opens_at_once(opened):
    """Not a time: it has drawn when the browser says that it has loaded, and has unpacked one length only."""
    assert opened.js("return chunks.size") <= len(opened.js("return page.lengths"))
    assert opened.by("failed").is_displayed() is False
    assert opened.js("return document.title") == "Parallel reduction, step by step"


# ---- Numbers ----

FACTS = ["stride", "active_warps", "operations", "divergent", "transactions", "fewest_transactions", "bank_conflicts"]
ACTS = ["read", "write", "atomic", "exchange", "apply"]


def shown(opened, panel, part):
    """What a panel of numbers shows: {key: text}."""
    return opened.js("""return Object.fromEntries([...document.querySelectorAll(
        `#panel-${arguments[0]} [data-part="${arguments[1]}"] [data-key]`)].map(e => [e.dataset.key, e.textContent]))""",
                     panel, part)


def check_text(got, wanted):
    assert float(got.replace("not counted", "nan").replace("-", "0")) == pytest.approx(wanted, rel=1e-5)


def check_access(got, want):
    assert ACTS[got["act"]] == want["act"] and got["threads"] == want["threads"] and got["warp"] == want["warp"]
    if want["act"] == "apply":
        return
    elements = want.get("elements") or want["from_threads"]
    assert got["elements"] == elements
    if want["act"] != "read":
        assert [v if isinstance(v, str) else float(v) for v in got["values"]] == want["values"]
    if want["act"] == "exchange":
        assert [v if isinstance(v, str) else float(v) for v in got["given"]] == want["given"]
        return
    assert got["array"] == want["array"] and got["shared"] == (want["memory"] == "shared")
    assert (got["file"], got["line"]) == (want["file"], want["line"])
    assert got["lines"] == want.get("transactions", 0) and got["fewest"] == want.get("fewest_transactions", 0)
    assert got["conflicts"] == want.get("bank_conflicts", 0)


def check_run(opened, rung, n, block, coarsen):
    opened.choose(a=rung["index"], b=-1, n=n, block=block, coarsen=coarsen, shown=0)
    got = opened.js("return shownRuns[0].run")
    want = explain(rung["name"], n, block, coarsen)
    assert got["correct"] and len(got["launches"]) == want["launches"]
    assert got["counts"] == want["counts"]
    steps = [s for launch in got["launches"] for b in launch["blocks"] for s in b]
    assert len(steps) == len(want["steps"])
    for g, w in zip(steps, want["steps"]):
        for key in ("launch", "block", "step", "stride", "barrier", "active_warps"):
            assert g[key] == w[key], (key, g, w)
        for key in ("operations", "divergent", "transactions", "fewest_transactions", "bank_conflicts"):
            assert g["sums"][key] == w[key]
            assert [warp[key] for warp in g["warps"]] == [warp[key] for warp in w["warps"]]
        assert [warp["mask"] for warp in g["warps"]] == [int(warp["mask"], 16) for warp in w["warps"]]
        assert len(g["accesses"]) == len(w["accesses"])
        for a, b in zip(g["accesses"], w["accesses"]):
            check_access(a, b)
    return want


def rungs(opened):
    return opened.js("return kernels")


def test_numbers_are_the_models(opened):
    """Every rung once, at lengths and blocks by chance."""
    chance = random.Random(SEED)
    print(f"TALLY_SEED={SEED}")
    factors = opened.js("return page.factors")
    lengths = [l for l in opened.js("return page.lengths") if l["n"] <= 1024]
    for rung in rungs(opened):
        length = chance.choice(lengths)
        coarsen = chance.choice(factors) if rung["coarsens"] else 4
        check_run(opened, rung, length["n"], chance.choice(length["blocks"]), coarsen)
    check_run(opened, chance.choice(rungs(opened)), 4096, 512, 4)


def test_what_is_shown(opened):
    """The texts on the page, step by step, of a rung with two launches."""
    rung = next(r for r in rungs(opened) if r["name"] == "shared-modulo")
    want = check_run(opened, rung, 256, 64, 4)
    steps = [s for s in want["steps"] if s["block"] == 0]
    for s in steps:
        facts = shown(opened, 0, "facts")
        for key in FACTS:
            check_text(facts[key], s[key])
        lanes = [[int(t) for t in row.split("\t")] for row in opened.js("""return [...document.querySelectorAll(
            '#panel-0 [data-part="warps"] tbody tr')].map(r => [...r.cells].filter((c, i) => i !== 1)
            .map(c => c.textContent.trim()).join("\\t"))""")]
        assert [row[1] for row in lanes] == [w["lanes"] for w in s["warps"]]
        assert [row[2] for row in lanes] == [w["transactions"] for w in s["warps"]]
        line = opened.js("return document.querySelector('#panel-0 [aria-current]').dataset.at")
        assert line in {f"{a['file']}:{a['line']}" for a in s["accesses"] if "line" in a}
        opened.js("showStep(chosen.step + 1)")
    totals = shown(opened, 0, "totals")
    for key, value in want["counts"].items():
        check_text(totals[key], value)
    assert opened.text("command") == "tally explain shared-modulo -n 256 --block 64 --coarsen 4 --json --steps"


def test_values_at_a_step(opened):
    """Before and after, replayed in the page, against the reads that the model saw."""
    for name in ("interleaved-modulo", "shared", "single-pass"):
        rung = next(r for r in rungs(opened) if r["name"] == name)
        want = check_run(opened, rung, 100, 16, 4)
        opened.choose(shown=2)
        count = opened.js("return shownRuns[0].steps.length")
        for i in range(count):
            at, before = opened.js("""const at = shownRuns[0].steps[arguments[0]];
                const memory = memoryBefore(chunk, shownRuns[0].run, at.launch, at.block, at.index);
                return [[at.launch, at.block, at.step.step],
                        Object.fromEntries(Object.entries(memory.arrays).map(([k, v]) => [k, [...v]]))]""", i)
            (step,) = [s for s in want["steps"] if [s["launch"], s["block"], s["step"]] == at]
            written = set()
            for a in step["accesses"]:
                for e, v in zip(a.get("elements", []), a.get("values", [])):
                    if a["act"] == "read" and (a["array"], e) not in written and a["elements_each"] == 1:
                        assert dict(before[a["array"]])[e] == v
                    elif a["act"] in ("write", "atomic"):
                        written.add((a["array"], e))


# ---- Controls ----

def test_mouse(opened):
    opened.by("forward").click()
    assert opened.text("where") == "2 of 5"
    opened.by("last").click()
    assert opened.text("where") == "5 of 5" and not opened.by("forward").is_enabled()
    opened.by("back").click()
    assert opened.text("where") == "4 of 5"
    opened.by("first").click()
    assert opened.text("where") == "1 of 5" and not opened.by("back").is_enabled()
    for id, text in (("rung-a", "contiguous"), ("rung-b", "coarsened"), ("n", "256"), ("block", "32"), ("coarsen", "2")):
        before = opened.text("panels")
        Select(opened.by(id)).select_by_visible_text(text)
        opened.wait(lambda: opened.text("panels") != before)
        assert Select(opened.by(id)).first_selected_option.text == text
    assert opened.js("return shownRuns.map(m => m.rung.name)") == ["contiguous", "coarsened"]
    assert opened.js("return shownRuns[1].coarsen") == 2
    assert len(opened.driver.find_elements(By.CSS_SELECTOR, ".panel")) == 2
    Select(opened.by("rung-b")).select_by_visible_text("nothing")
    opened.wait(lambda: len(opened.driver.find_elements(By.CSS_SELECTOR, ".panel")) == 1)
    assert not opened.by("coarsen").is_enabled()
    mends = opened.driver.find_element(By.CSS_SELECTOR, "[data-mends]")
    assert "shared-contiguous mends that" in mends.text
    mends.click()
    opened.wait(lambda: opened.js("return shownRuns.map(m => m.rung.name)") == ["contiguous", "shared-contiguous"])
    details = opened.driver.find_element(By.CSS_SELECTOR, "#panel-0 summary")
    details.click()
    opened.wait(lambda: opened.js("return document.querySelectorAll('#panel-0 details tbody tr').length") == 64)


def test_keys(opened):
    body = opened.driver.find_element(By.TAG_NAME, "body")
    for key, where in ((Keys.ARROW_RIGHT, "2 of 5"), (Keys.ARROW_RIGHT, "3 of 5"), (Keys.ARROW_LEFT, "2 of 5"),
                       (Keys.END, "5 of 5"), (Keys.HOME, "1 of 5")):
        body.send_keys(key)
        assert opened.text("where") == where
    opened.keys("forward", Keys.SPACE)
    opened.keys("forward", Keys.ENTER)
    assert opened.text("where") == "3 of 5"
    opened.keys("step", Keys.ARROW_RIGHT)
    assert opened.text("where") == "4 of 5"
    opened.keys("rung-a", "contig")
    opened.wait(lambda: opened.js("return shownRuns[0].rung.name") == "contiguous")
    opened.choose(n=1024, block=64)
    opened.keys("shown", Keys.ARROW_UP, Keys.ARROW_UP, Keys.TAB)
    opened.wait(lambda: opened.js("return shownRuns[0].steps[0].block") == 2)
    order = []
    opened.js("document.querySelector('nav a').focus()")
    for _ in range(12):
        opened.driver.switch_to.active_element.send_keys(Keys.TAB)
        order.append(opened.js("return document.activeElement.id || document.activeElement.tagName"))
    wanted = ["rung-a", "rung-b", "n", "block", "shown", "forward"]
    assert [id for id in order if id in wanted] == wanted


# ---- Looks ----

@pytest.mark.parametrize("width", [400, 1600])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_overflows(opened, width, dark):
    opened.size(width, dark=dark)
    for change in ({"a": 1, "n": 16, "block": 8}, {"a": 2, "b": 9, "n": 4096, "block": 512}):
        opened.choose(**change)
        for step in (0, 1, 10**9):
            opened.js("showStep(arguments[0])", step)
            assert opened.js("return [document.documentElement.scrollWidth, document.body.scrollWidth]") <= [width] * 2
            out = opened.js("""return [...document.querySelectorAll("body *")].filter(e => {
                const box = e.getBoundingClientRect();
                return box.width && box.right > innerWidth + 1 && !e.closest(".scroll, pre, canvas");
            }).map(e => e.outerHTML.slice(0, 100))""")
            assert out == []


def luminance(rgb):
    part = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in rgb)]
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2]


@pytest.mark.parametrize("dark", [False, True])
def test_contrast(opened, dark):
    """Every element that has text of its own, against the nearest background that is painted."""
    opened.size(900, dark=dark)
    opened.choose(a=1, b=5, n=64, block=16)
    found = opened.js("""const seen = new Map(), ground = e => {
          for (; e; e = e.parentElement) {
            const c = getComputedStyle(e).backgroundColor;
            if (!/, 0\\)$/.test(c)) return c;
          }
        };
        for (const e of document.querySelectorAll("body *")) {
          if (e.disabled || e.closest("script") || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
          seen.set(getComputedStyle(e).color + "|" + ground(e), e.outerHTML.slice(0, 80));
        }
        return [...seen]""")
    assert len(found) > 5
    for colors, where in found:
        text, ground = ([int(v) for v in re.findall(r"\d+", c)[:3]] for c in colors.split("|"))
        a, b = sorted([luminance(text), luminance(ground)])
        assert (b + 0.05) / (a + 0.05) >= 4.5, (colors, where)
    value = opened.js("""return ["read", "write", "both", "idle"].map(c => [color("ink"), color(c)])""")
    for ink, ground in value:
        a, b = sorted(luminance([int(c[i:i + 2], 16) for i in (1, 3, 5)]) for c in (ink, ground))
        assert (b + 0.05) / (a + 0.05) >= 4.5, (ink, ground)


def test_roles_and_names(opened):
    nameless = opened.js("""return [...document.querySelectorAll("select, input, button, canvas, [role=img]")].filter(e =>
        !(e.labels && e.labels.length) && !e.getAttribute("aria-label") && !e.textContent.trim()).map(e => e.outerHTML.slice(0, 80))""")
    assert nameless == []
    assert opened.js("return document.documentElement.lang") == "en"
    assert opened.js("return document.querySelectorAll('h1').length") == 1
    said = opened.js("showStep(1); return document.getElementById('said').textContent")
    assert said.startswith("Step 2 of 5. interleaved-modulo: Step 2: 4 threads in 1 of 1 warp apply the operator, stride 2")
    words = opened.js("return document.querySelector('canvas').getAttribute('aria-label')")
    assert words.startswith("x: elements 0 to 15; read 0, 2, 4, 6") and "thread 0 combines 0 and 2" in words


def test_words_are_explained(opened):
    """Those of the controls and counts, and what the listings call that is no word of CUDA's."""
    words = opened.js("return [...document.querySelectorAll('#words dt, #words code')].map(e => e.textContent).join(' ')")
    calls = set(re.findall(r"\b([a-z_]+)\(", opened.js("return document.querySelector('#panel-0 pre').textContent")))
    assert {"combine", "deliver", "neutral"} <= calls
    calls -= {"if", "for", "interleaved_modulo", "__syncthreads"}
    for word in {"thread", "warp", "lane", "block", "barrier", "launch", "global", "shared", "stride", "round", "coarsening", "line",
                 "transaction", "bank", "slot", "efficiency", "partials", "GLOBAL", "load"} | calls:
        assert re.search(rf"\b{word}\b", words), word


# ---- Measured, and the claims ----

def test_measured(opened):
    text = (ROOT / "docs/results/h200-ladder.txt").read_text().split("$ tally ladder --device cuda --dtype f32 -n 2^30\n")[1]
    table = text.split("The roof:")[0]
    rows = dict(opened.js("""return [...document.querySelectorAll("#bars tbody tr")].map(r =>
        [r.cells[0].textContent, [...r.cells].slice(1).map(c => c.textContent)])"""))
    assert list(rows) == opened.js("return page.rungs.map(r => r.name)")
    today = "interleaved-mask" in table
    for name, cells in rows.items():
        line = next((l.split() for l in table.splitlines() if l.startswith(name + " ")), None)
        if line is None or name == "interleaved-index" and not today:
            assert cells[0] == "not measured"
        else:
            assert float(cells[0]) == float(line[1]) and float(cells[1]) == float(line[4])
            if line[5].endswith("%"):
                assert float(cells[2][:-1]) == pytest.approx(float(line[5][:-1]), abs=0.11)
    assert rows["coarsened"][-1] == "0.677 ms" and rows["contiguous"][-1] == "1978 MFLOPS2.752 ms"


def test_claims(opened):
    claims = ROOT / "docs/claims.md"
    if not claims.exists():
        assert not opened.by("claims").is_displayed()
        return
    shown_text = opened.js("return document.getElementById('claims-text').textContent")
    text = re.sub(r"<!--.*?-->", "", claims.read_text(), flags=re.S)
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    assert headings
    for heading in headings:
        assert re.sub(r"[`*\\]", "", heading) in shown_text
    assert "](" not in shown_text and "**" not in shown_text and "<!--" not in shown_text
    links = opened.js("""return [...document.querySelectorAll("#claims-text a, nav a")].map(a => a.getAttribute("href"))
        .filter(to => to.startsWith("#") && !document.getElementById(to.slice(1)))""")
    assert links == []


# ---- The page in docs/ ----

def pieces(file):
    """Its data, unpacked: what `make page` would make anew."""
    text = file.read_text(encoding="utf-8")
    packed = dict(re.findall(r'<script type="text/plain" id="(steps-\d+)">\n(.*?)\n</script>', text, re.S))
    frame = re.sub(r'(<script type="text/plain" id="steps-\d+">).*?</script>', r"\1", text, flags=re.S)
    return frame, {k: json.loads(gzip.decompress(base64.b64decode(v))) for k, v in packed.items()}


def test_the_page_in_docs_is_current(page):
    frame, steps = pieces(page)
    in_docs, steps_in_docs = pieces(ROOT / "docs/reduction.html")
    same_steps, same_frame = steps == steps_in_docs, frame == in_docs  # (a difference of megabytes is not to be shown)
    assert same_steps, "docs/reduction.html is not of today's kernels: run `make page`"
    picture = subprocess.run([TALLY, "explain", "contiguous", "-n", "8", "--block", "4", "--svg", "-"],
                             check=True, capture_output=True).stdout
    assert picture == (ROOT / "docs/contiguous.svg").read_bytes(), "docs/contiguous.svg is old: run `make page`"
    assert same_frame, "docs/reduction.html is not of today's page: run `make page`"
