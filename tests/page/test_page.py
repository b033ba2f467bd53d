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


def explain(rung, n, block, coarsen, steps=True):
    args = ["explain", rung, "-n", n, "--block", block, "--coarsen", coarsen, "--json"] + ["--steps"] * steps
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
        self.uri = file.as_uri()
        self.load("")

    def wait(self, what):
        end = time.time() + 20
        while not what():
            assert time.time() < end, "the page does not get there"
            time.sleep(0.01)

    def js(self, text, *args):
        return self.driver.execute_script(text, *args)

    def by(self, id):
        return self.driver.find_element(By.ID, id)

    def load(self, address):
        """Loads the page anew, at an address within it."""
        self.driver.get("about:blank")
        self.driver.get(self.uri + address)
        self.wait(lambda: self.js("return document.readyState === 'complete' && views.length > 0"))

    def text(self, id):
        return self.by(id).text

    def choose(self, **change):
        self.driver.execute_async_script("choose(arguments[0]).then(arguments[1])", change)

    def size(self, width, height=900, dark=False, still=True):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"}]})

    def keys(self, id, *keys):
        self.by(id).send_keys(*keys)


@pytest.fixture(scope="session")
def opened(browser, page):
    return Page(browser, page)


@pytest.fixture(autouse=True)
def no_errors(opened):
    opened.size(900)
    opened.choose(a=1, b=-1, n=16, block=8, coarsen=1, shown=0, step=0, tour=0)
    opened.js("document.activeElement.blur(); scrollTo(0, 0)")
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
    assert opened.js("return document.title") == "Parallel reduction in CUDA, step by step"


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
    got = opened.js("const { launches, counts, correct } = views[0].kernel; return { launches, counts, correct }")
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
    check_run(opened, chance.choice(rungs(opened)), 2048, 512, 4)


def test_what_is_shown(opened):
    """The texts on the page, step by step, of a rung with two launches."""
    rung = next(r for r in rungs(opened) if r["name"] == "shared-modulo")
    want = check_run(opened, rung, 256, 64, 4)
    steps = [s for s in want["steps"] if s["block"] == 0]
    opened.js("document.querySelector('#panel-0 .warps summary').click()")
    opened.wait(lambda: opened.js("return document.querySelector('#panel-0 .warps tbody')"))
    for s in steps:
        facts = shown(opened, 0, "facts")
        for key in FACTS:
            check_text(facts[key], s[key])
        lanes = [[int(t) for t in row.split("\t")] for row in opened.js("""return [...document.querySelectorAll(
            '#panel-0 [data-part="warps"] tbody tr')].map(r => [...r.cells].filter((c, i) => i !== 1)
            .map(c => c.textContent.trim()).join("\\t"))""")]
        assert [row[1] for row in lanes] == [w["lanes"] for w in s["warps"]]
        assert [row[2] for row in lanes] == [w["transactions"] for w in s["warps"]]
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
        count = opened.js("return views[0].steps.length")
        for i in range(count):
            at, before = opened.js("""const at = views[0].steps[arguments[0]];
                const memory = memoryBefore(views[0].kernel, at.launch, at.block, at.index);
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


# ---- The first screen ----

def in_sight(opened):
    """The parts of the pictures, and Forward, that are not wholly on the screen."""
    return opened.js("""return [...document.querySelectorAll("#forward, .timeline, #pictures canvas")].map(e => [e.id || e.ariaLabel.slice(0, 40),
        e.getBoundingClientRect()]).filter(([, r]) => r.top < 0 || r.left < 0 || r.bottom > innerHeight || r.right > innerWidth)""")


def drawn(opened):
    return opened.js("return [...document.querySelectorAll('#pictures canvas')].map(c => c.toDataURL())")


@pytest.mark.parametrize("size", [(900, 700), (400, 740)])
def test_opens_on_the_waste(opened, size):
    """Two kernels beside each other, whose pictures move on Forward without scrolling."""
    opened.size(*size)
    opened.load("")
    assert opened.js("return views.map(v => v.kernel.name)") == ["interleaved-modulo", "contiguous"]
    for i, rung in enumerate(("interleaved-modulo", "contiguous")):
        want = explain(rung, 1024, 512, 1, steps=False)["counts"]
        line = opened.driver.find_element(By.CSS_SELECTOR, f'#picture-{i} [data-part="headline"]').text
        assert f"efficiency {want['efficiency']:.2f}" in line and f"{want['transactions']} lines" in line
    assert in_sight(opened) == []
    before = drawn(opened)
    opened.by("forward").click()
    assert len(before) == 4 and all(a != b for a, b in zip(before, drawn(opened)))
    assert opened.js("return scrollY") == 0 and in_sight(opened) == []


def test_tells_what_it_is(opened, page):
    """For a search engine, and for who has no script."""
    text = page.read_text(encoding="utf-8")
    meta = dict(re.findall(r'<meta (?:name|property)="([^"]+)" content="([^"]+)">', text))
    assert "CUDA" in meta["og:description"] and "reduction" in meta["og:title"] and 100 < len(meta["description"]) < 300
    without = re.search(r"<noscript>(.*?)</noscript>", text, re.S)[1]
    for rung in opened.js("return page.rungs"):
        assert f"<li><b>{rung['name']}</b>: {rung['idea']}</li>" in without
    assert re.search(r"^make\b", opened.text("install"), re.M)


# ---- Code and course ----

LADDER = (ROOT / "docs/ladder.md").read_text(encoding="utf-8")


def section(rung):
    return re.split(r"^##+ ", LADDER.split(f"\n### {rung}\n")[1], flags=re.M)[0]


def test_code_and_course(opened):
    """The course's listing, line by line, and its text beside it."""
    opened.size(1600)
    for rung in rungs(opened):
        opened.choose(a=rung["index"])
        lines = opened.js("""return [...document.querySelectorAll('#panel-0 [data-part="source"] span')].map(e => e.textContent)""")
        assert [l.rstrip() for l in lines] == re.search(r"^```cuda\n(.*?)\n```", section(rung["name"]), re.M | re.S)[1].split("\n")
        question = re.sub(r"[`*]", "", re.search(r"\*\*Question\*\*: .*", section(rung["name"]))[0])
        code, text = opened.js("""return ["source", "course"].map(p => document.querySelector(`#panel-0 [data-part="${p}"]`))
            .map(e => ({ text: e.textContent, left: e.getBoundingClientRect().left, top: e.getBoundingClientRect().top }))""")
        assert question in text["text"] and "**" not in text["text"] and "-->" not in text["text"]
        assert abs(code["top"] - text["top"]) < 30 and code["left"] < text["left"]


def test_every_access_has_its_line(opened):
    """In every run that the page has: the marked line names what the access touches."""
    found = opened.driver.execute_async_script("""const done = arguments[0], out = new Map();
        (async () => {
          for (const { n } of page.lengths) {
            const chunk = await loadLength(n);
            for (const run of chunk.runs) {
              const rung = rungs[run[0]], { listing } = course[rung.name];
              for (const [, steps] of run[3]) for (const s of steps) for (const a of s[5]) {
                if (a[0] === APPLY || !a[14]) continue;
                const key = [rung.name, a[0], chunk.arrays[a[3]], chunk.files[a[13]], a[14]].join();
                if (!out.has(key)) out.set(key, [rung.name, a[0], a[0] === EXCHANGE ? "" : chunk.arrays[a[3]],
                  listing[findLine(chunk.files[a[13]], a[14], listing)] ?? null]);
              }
            }
          }
          done([...out.values()]);
        })()""")
    assert len(found) > 60
    for rung, act, array, line in found:
        words = {"x": "input|packs", "partials": "output", "": "__shfl_down_sync"}.get(array, array)
        if rung == "single-pass":  # its listing has the tree of `shared`, and says so; `drawn` is the first word of the board
            words = {"": "values", "warps": "values", "board": "board|drawn", "last": "last|output"}.get(array, words)
        elif array == "x" and rung == "vectorized":
            words = "packs|input"
        assert line and re.search(rf"\b({words})\b", line), (rung, ACTS[act], array, line)


def test_marks_the_running_line(opened):
    for name, step, line, wall in (("contiguous", 0, "input[left] += input[left + stride];", "__syncthreads();"),
                                   ("shared", 0, "values[t] = (i < n ? input[i] : 0)", "__syncthreads();"),
                                   ("contiguous", 4, "output[blockIdx.x] = input[segment];", None)):
        opened.choose(a=next(r["index"] for r in rungs(opened) if r["name"] == name), step=step)
        now, walls = opened.js("""return ["[aria-current]", ".wall"].map(s => [...document.querySelectorAll("#panel-0 pre " + s)]
            .map(e => e.textContent.trim()))""")
        assert len(now) == 1 and now[0].startswith(line) and walls == ([wall] if wall else [])


# ---- The address ----

def test_address(opened):
    opened.load("#kernel=shared&compare=contiguous&n=256&block=32&shown=1&step=4")
    assert opened.js("return [chosen.n, chosen.block, chosen.shown, chosen.step]") == [256, 32, 1, 3]
    assert opened.js("return views.map(v => v.kernel.name)") == ["shared", "contiguous"]
    opened.by("forward").click()
    opened.wait(lambda: opened.js("return location.hash").endswith("step=5"))
    opened.by("forward").click()  # (and before this one is written, another length is chosen)
    opened.choose(n=1024)
    assert "n=1024" in opened.js("return location.hash") and opened.js("return chosen.step") == 0
    opened.choose(b=-1)
    opened.driver.back()
    opened.wait(lambda: opened.js("return views.length") == 2)
    opened.driver.back()
    opened.wait(lambda: opened.js("return chosen.n") == 256)
    assert opened.js("return [location.hash, chosen.step]") == ["#kernel=shared&compare=contiguous&n=256&block=32&shown=1&step=6", 5]
    opened.driver.forward()
    opened.wait(lambda: opened.js("return chosen.n") == 1024)


@pytest.mark.parametrize("address", ["#kernel=none&compare=such&n=7000&block=x&step=99", "#kernel=contiguous&n=-3&block=99999999&step=0",
                                     "#kernel=contiguous&compare=none&tour=9", "#kernel=contiguous&compare=none&tour=99",
                                     "#claims"])
def test_address_of_nothing(opened, address):
    opened.load(address)
    assert not opened.by("failed").is_displayed() and opened.text("where")


# ---- Playing ----

def test_play(opened):
    opened.js("$('speed').options[3].value = '40'")
    Select(opened.by("speed")).select_by_index(3)
    opened.by("play").click()
    opened.wait(lambda: opened.text("where") == "5 of 5")
    assert "Play" in opened.text("play")
    opened.js("$('speed').options[3].value = '0.01'")
    opened.driver.find_element(By.TAG_NAME, "body").send_keys(Keys.SPACE)  # from the end: anew
    assert opened.text("where") == "1 of 5" and "Pause" in opened.text("play")
    opened.by("forward").click()
    assert opened.text("where") == "2 of 5" and "Play" in opened.text("play")


def test_another_length_begins_at_step_1(opened):
    opened.js("showStep(3)")
    Select(opened.by("n")).select_by_visible_text("32")
    opened.wait(lambda: opened.js("return views[0].kernel.n") == 32)
    assert opened.text("where").startswith("1 of")


def test_less_motion(opened):
    moves = """return [...document.querySelectorAll("*")].some(e => parseFloat(getComputedStyle(e).transitionDuration)
        || getComputedStyle(e).scrollBehavior === "smooth" || getComputedStyle(e).animationName !== "none")"""
    opened.size(900, still=False)
    assert opened.js(moves)
    opened.size(900)
    assert not opened.js(moves)


# ---- The tour ----

def test_tour(opened):
    """Every rung is a stop, in order; its number is the one that `tally explain` has."""
    most = lambda e: max(a.get("elements_each", 0) for a in e["steps"][0]["accesses"])
    of = lambda key: lambda e: e["counts"][key]
    wanted = {"sequential": of("useful"), "interleaved-modulo": lambda e: e["steps"][5]["active_warps"], "interleaved-mask": of("issued"),
              "interleaved-index": of("issued"), "contiguous": of("transactions"), "shared-modulo": of("transactions"),
              "shared-contiguous": of("bank_conflicts"), "shared": of("barriers"), "coarsened": of("all_barriers"),
              "grid-stride": lambda e: 1 + max(s["block"] for s in e["steps"] if s["launch"] == 0), "vectorized": most,
              "shuffle": of("barriers"), "single-pass": lambda e: e["launches"]}
    opened.by("take-tour").click()
    opened.wait(lambda: opened.by("tour").is_displayed())
    names = opened.js("return page.rungs.map(r => r.name)")
    for i, name in enumerate(names):
        opened.wait(lambda: opened.text("tour-where") == f"{i + 1} of {len(names)}: {name}")
        number, rest = opened.driver.find_element(By.CLASS_NAME, "tour-number").text, opened.text("tour-text")
        if name in wanted:
            k = opened.js("const k = views[0].kernel; return [k.name, k.n, k.block, k.coarsen || 4]")
            steps = name in ("interleaved-modulo", "grid-stride", "vectorized")
            assert int(number) == wanted[name](explain(*k, steps=steps)), name
        else:
            assert number == "100.0%"
        assert len(rest.split()) < 35 and len(re.findall(r"[.!?](?:\s|$)", rest)) == 1
        if i + 1 < len(names):
            opened.js("$('tour-on').click()")
    assert not opened.by("tour-on").is_enabled() and "tour=14" in opened.js("return location.hash")
    opened.driver.back()
    opened.wait(lambda: opened.text("tour-where").startswith("13 "))
    opened.by("tour-end").click()
    opened.wait(lambda: not opened.by("tour").is_displayed())


# ---- Exercises ----

def answer(question, run):
    """What `tally explain` says."""
    kind, at = question["kind"], question["at"]
    if at:
        (s,) = [s for s in run["steps"] if [s["launch"], s["block"], s["step"]] == at]
        first = {act: next((a for a in s["accesses"] if a["act"] == act and (act == "exchange" or a["array"])), None) for act in ("write", "exchange")}
        counted = {"threads": lambda: sum(w["lanes"] for w in s["warps"]), "issued": lambda: s["issued"],
                   "diverging_warps": lambda: sum(w["divergent"] > 0 for w in s["warps"]), "written": lambda: first["write"]["values"][0],
                   "taken_from": lambda: first["exchange"]["from_threads"][0]}
        return counted.get(kind, lambda: s[kind])()
    return run["launches"] if kind == "launches" else run["counts"][kind]


def test_exercises_have_the_models_answers(opened):
    """Several for each rung: every question that can be drawn."""
    for rung in rungs(opened):
        opened.choose(a=rung["index"], n=256, block=64, coarsen=2)
        asked = opened.js("""return questionsOf(views[0].kernel, views[0].steps).map(q => ({ kind: q.kind, answer: q.answer, text: q.text,
            at: q.whole ? null : [q.at.launch, q.at.block, q.at.step.step] }))""")
        assert opened.js("return questionsOf(views[0].kernel, views[0].steps).every(q => views[0].steps[q.place] === q.at)")
        run = explain(rung["name"], 256, 64, 2 if rung["coarsens"] else 4)
        assert len({q["kind"] for q in asked}) >= 6
        for q in asked:
            assert q["answer"] == answer(q, run), (rung["name"], q)
        drawn_kinds = opened.js("""return [1, 2, 3, 4, 5].map(seed => drawQuestions(views[0].kernel, views[0].steps, seed).map(q => q.kind))""")
        assert all(len(set(k)) == 3 for k in drawn_kinds) and len({tuple(k) for k in drawn_kinds}) > 1


def test_exercises_name_the_launch(opened):
    """Steps are counted anew in each launch. With one launch there is nothing to name."""
    (rung,) = [r for r in rungs(opened) if r["name"] == "interleaved-modulo"]
    for n, launches in ((1000, 2), (256, 1)):
        opened.choose(a=rung["index"], n=n, block=256)
        asked = opened.js("return questionsOf(views[0].kernel, views[0].steps).filter(q => !q.whole).map(q => [q.text, q.at.launch, q.at.step.step])")
        assert asked and {launch for _, launch, _ in asked} == set(range(launches))
        for text, launch, step in asked:
            assert text.startswith(f"In launch {launch + 1}, step {step}" if launches > 1 else f"In step {step}"), text


def test_exercises(opened):
    opened.choose(a=2, n=1024, block=512)
    opened.js("ask(views[0].kernel, 7)")
    right = opened.js("return asked[0].answer")
    verdict = lambda: opened.driver.find_element(By.CSS_SELECTOR, "[data-verdict='0']").text
    opened.keys("answer-0", "123456", Keys.ENTER)
    assert verdict().startswith("Not 123456.") and not re.search(rf"\b{right}\b", verdict().replace("123456", ""))
    opened.keys("answer-0", "7", Keys.ENTER)
    assert verdict().startswith(f"The model counts {right}.")
    opened.js("$('answer-0').value = ''")
    opened.keys("answer-0", str(right), Keys.ENTER)
    assert verdict() == f"Right: {right}."
    for _ in range(20):  # until one is about a step
        see = opened.driver.find_elements(By.CSS_SELECTOR, "[data-see]")
        if see:
            break
        opened.js("$('more-exercises').click()")
    texts = opened.js("return asked.map(q => q.text + q.at.step.step)")
    opened.choose(b=1)  # the questions stay
    assert opened.js("return asked.map(q => q.text + q.at.step.step)") == texts
    see = opened.driver.find_elements(By.CSS_SELECTOR, "[data-see]")
    want = opened.js("return asked[arguments[0]].at.step.step", int(see[0].get_attribute("data-see")))
    see[0].click()
    assert opened.text("where").startswith(f"{want} of")


# ---- Values and registers ----

def test_values_of_any_width(opened):
    """showKernels() draws any kernel that it is given: here one with long values, which have room in a strip and in a row
    of a grid."""
    opened.js("""const k = views[0].kernel, long = v => v + 0.12345678901, wide = structuredClone(k.launches);
        for (const s of wide.flatMap(l => l.blocks.flat())) for (const a of s.accesses) if (Array.isArray(a.values)) a.values = a.values.map(long);
        showKernels([{ ...k, name: "mine", command: "", launches: wide, x: k.x.map(long) }])""")
    width = opened.js("return document.querySelector('[data-array]').getBoundingClientRect().width")
    assert width > 16 * len("12.12345678901") * 7
    opened.choose(n=1024, block=512)
    opened.js("""const c = document.querySelector("[data-array]"), r = c.getBoundingClientRect();
        c.dispatchEvent(new MouseEvent("click", { clientX: r.left + r.width / 2, clientY: r.top + r.height / 2, bubbles: true }))""")
    titles = opened.js("return [...document.querySelectorAll('#picture-0 h4')].map(e => e.textContent)")
    assert any(re.fullmatch(r"row (\d+) to \d+", t) and int(t.split()[1]) % 32 == 0 for t in titles), titles
    cursor = opened.driver.find_element(By.CSS_SELECTOR, "[data-array]")
    cursor.send_keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    told = opened.driver.find_element(By.CSS_SELECTOR, '#picture-0 [data-part="hover"]').text
    assert re.match(r"x\[33\] is \d", told) and opened.text("where").startswith("1 of")


def test_shuffles_are_unfolded(opened):
    """Each exchange is a row of the picture: the lanes that count are halved."""
    shuffle = next(r["index"] for r in rungs(opened) if r["name"] == "shuffle")
    opened.choose(a=shuffle, n=1024, block=256)
    labels = opened.js("return [...document.querySelectorAll('#picture-0 canvas')].filter(c => c.checkVisibility()).map(c => c.ariaLabel)")
    assert any(re.findall(r"each lane takes from (\d+)", l) == ["16", "8", "4", "2", "1"] for l in labels), labels
    counted = opened.js("""const mine = gather(views[0].steps[0].step).rounds.flat().filter(a => a.warp === 0);
        return lanesThatCount(mine).map(s => [...s].sort((a, b) => a - b))""")
    assert counted == [list(range(k)) for k in (32, 16, 8, 4, 2, 1)]


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
        before = opened.js("return location.hash")
        Select(opened.by(id)).select_by_visible_text(text)
        opened.wait(lambda: opened.js("return location.hash") != before)
        assert Select(opened.by(id)).first_selected_option.text == text
    assert opened.js("return views.map(v => v.kernel.name)") == ["contiguous", "coarsened"]
    assert opened.js("return views[1].kernel.coarsen") == 2
    assert len(opened.driver.find_elements(By.CSS_SELECTOR, ".panel")) == 2
    Select(opened.by("rung-b")).select_by_visible_text("nothing")
    opened.wait(lambda: len(opened.driver.find_elements(By.CSS_SELECTOR, ".panel")) == 1)
    assert not opened.by("coarsen").is_enabled()
    mends = opened.driver.find_element(By.CSS_SELECTOR, "[data-mends]")
    assert "shared-contiguous mends that" in mends.text
    mends.click()
    opened.wait(lambda: opened.js("return views.map(v => v.kernel.name)") == ["contiguous", "shared-contiguous"])
    details = opened.driver.find_element(By.CSS_SELECTOR, "#panel-0 details[data-table] summary")
    details.click()
    opened.wait(lambda: opened.js("return document.querySelectorAll('#panel-0 details[data-table] tbody tr').length") == 64)


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
    opened.wait(lambda: opened.js("return views[0].kernel.name") == "contiguous")
    opened.choose(n=1024, block=64)
    opened.keys("shown", Keys.ARROW_UP, Keys.ARROW_UP, Keys.TAB)
    opened.wait(lambda: opened.js("return views[0].steps[0].block") == 2)
    order = []
    opened.js("document.querySelector('nav a').focus()")
    for _ in range(16):
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
    assert said.startswith("Step 2 of 5. interleaved-modulo: Step 2, stride 2: 4 threads at work in 1 of 1 warp. Barrier.")
    words = opened.js("return document.querySelector('[data-array]').getAttribute('aria-label')")
    assert words.startswith("x: elements 0 to 15; read 0, 2, 4, 6") and "thread 0 combines 0 and 2" in words


def test_words_are_explained(opened):
    """Those of the controls and of the counts."""
    words = opened.js("return [...document.querySelectorAll('#words dt, #words code')].map(e => e.textContent).join(' ')")
    for word in ("thread", "warp", "lane", "block", "barrier", "launch", "global", "shared", "stride", "round", "coarsening", "line",
                 "transaction", "bank", "slot", "efficiency", "output", "partials", "input", "divergent", "shuffle"):
        assert re.search(rf"\b{word}\b", words), word
    said = " ".join(opened.js("return document.getElementById('words').textContent").split())
    assert "Volta" in said and "one instruction at a time" not in said


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
    """Its frame, and its packed steps."""
    text = file.read_text(encoding="utf-8")
    packed = dict(re.findall(r'<script type="text/plain" id="(steps-\d+)">\n(.*?)\n</script>', text, re.S))
    return re.sub(r'(<script type="text/plain" id="steps-\d+">).*?</script>', r"\1", text, flags=re.S), packed


def unpacked(packed):
    return {k: json.loads(gzip.decompress(base64.b64decode(v))) for k, v in packed.items()}


def test_the_page_in_docs_is_current(page):
    """What `make page` would make anew. Another zlib may pack the same steps otherwise."""
    (frame, steps), (in_docs, steps_in_docs) = pieces(page), pieces(ROOT / "docs/reduction.html")
    same_steps = steps == steps_in_docs or unpacked(steps) == unpacked(steps_in_docs)
    same_frame = frame == in_docs  # (a difference of megabytes is not to be shown)
    assert same_steps, "docs/reduction.html is not of today's kernels: run `make page`"
    picture = subprocess.run([TALLY, "explain", "contiguous", "-n", "8", "--block", "4", "--svg", "-"],
                             check=True, capture_output=True).stdout
    assert picture == (ROOT / "docs/contiguous.svg").read_bytes(), "docs/contiguous.svg is old: run `make page`"
    assert same_frame, "docs/reduction.html is not of today's page: run `make page`"
