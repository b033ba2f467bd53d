"""Every kernel of lessons/ says of itself what its lesson is about: each broken one is caught for its own reason."""

import json
import pathlib
import re
import shutil

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="a kernel of one's own needs g++")
LESSONS = pathlib.Path(__file__).resolve().parents[2] / "lessons"


def explain(tally, lesson, *args):
    (path,) = LESSONS.glob(f"{lesson:02}_*.cu")
    return tally.judged("explain", "--kernel", f"{path}{args[0] if args and str(args[0]).startswith(':') else ''}",
                      *[a for a in args if not str(a).startswith(":")])


def kinds(got):
    return [f["kind"] for f in got["faults"] if f["n"] == got["n"]]


def test_01(tally):
    got = explain(tally, 1)
    assert not got["wrong_for"] and got["counts"]["steps"] == 10 and got["counts"]["operations"] == 1023


def test_02(tally):
    got = explain(tally, 2)
    assert kinds(got) == ["race"] and "input_s[64]" in got["faults"][0]["sentence"]


def test_03(tally):
    got = explain(tally, 3)
    assert kinds(got) == ["barrier"] and "lanes 0-63" in got["faults"][0]["sentence"]


def test_04(tally):
    got = explain(tally, 4)
    assert got["right_for"] == [n for n in got["right_for"] + got["wrong_for"] if n & (n - 1) == 0]
    assert {6, 10, 12, 14} <= set(got["wrong_for"]) and not got["faults"]


def test_05(tally):
    got = explain(tally, 5)
    assert all(n % 2 == 0 for n in got["right_for"]) and all(n % 2 for n in got["wrong_for"])
    assert {f["kind"] for f in got["faults"]} == {"bounds"}


def test_06(tally):
    assert not explain(tally, 6)["wrong_for"]
    got = explain(tally, 6, "--block", 64, "--length", "block", "-n", 512)
    assert not got["correct"] and not kinds(got)


def test_07(tally):
    got = explain(tally, 7)
    assert got["host"]["segment"] == 512 and min(got["wrong_for"]) == 257 and not got["faults"]
    assert got["times_counted"] == [1] * 256 + [0]


def test_08(tally):
    got = explain(tally, 8)
    assert kinds(got) == [] and "unwritten" in {f["kind"] for f in got["faults"]}


def test_09_and_10(tally):
    assert kinds(explain(tally, 9)) == ["race"] and not explain(tally, 9)["correct"]
    assert explain(tally, 10)["correct"] and kinds(explain(tally, 10)) == []


def test_11(tally):
    got = explain(tally, 11, ":conflicts")
    warps = [w for s in got["steps"] for w in s["warps"]]
    # 32 lanes that read two words each and write one, of one bank: 31 more passes, three times.
    assert max(w["bank_conflicts"] for w in warps) == 3 * 31 and got["correct"]
    assert explain(tally, 11, ":no_conflicts")["counts"]["bank_conflicts"] == 0


def test_12(tally):
    got = explain(tally, 12, "--block", 32, "-n", 32)
    assert not got["wrong_for"] and got["counts"]["operations"] == 5 * 32 and got["counts"]["atomics"] == 1
    assert (got["counts"]["useful"], got["counts"]["issued"]) == (31, 5 * 32)


def test_13(tally):
    """Which elements are in front of which, followed by hand through the accesses that the model tells of."""
    def order(kernel):
        got = explain(tally, 13, kernel, "-n", 8, "--steps")
        assert got["correct"] and not got["wrong_for"]
        held = {i: [i] for i in range(8)}
        for step in got["steps"]:
            reads = [a for a in step["accesses"] if a["act"] == "read"]
            by_thread = {}
            for access in reads:
                for thread, element in zip(access["threads"], access["elements"]):
                    by_thread.setdefault(thread, []).append(element)
            for left, right in by_thread.values():
                held[left] = held[left] + held[right]
        return held[0]
    assert order(":growing") == list(range(8))
    assert order(":shrinking") != list(range(8)) and sorted(order(":shrinking")) == list(range(8))


def test_every_lesson_is_in_the_readme_and_opens_with_its_question(tally):
    readme = (LESSONS / "README.md").read_text()
    files = sorted(LESSONS.glob("*.cu"))
    assert len(files) == 21
    for path in files:
        text = path.read_text()
        assert f"({path.name})" in readme
        comment = text[: text.index("*/")]
        assert "?" in comment
        commands = re.findall(r"tally (explain --kernel .*)", comment)
        assert commands
        for command in commands:
            assert tally.run(*command.split(), cwd=LESSONS.parent).returncode in (0, 1)


REPAIRED = LESSONS / "repaired"


def path_of(number, folder=LESSONS):
    (path,) = folder.glob(f"{number:02}_*.cu")
    return path


@pytest.mark.parametrize("number", range(1, 22))
def test_a_lesson_and_its_answer(tally, number):
    """The question, the task, two hints, three sentences of why; and the answer's kernel is right."""
    shown = tally("lesson", number)
    text = path_of(number).read_text()
    assert text[text.index("*/") + 2:].strip() in shown and "Task: " in shown and "?" in shown
    hints = [tally("lesson", number, *["--hint"] * k) for k in (1, 2)]
    assert hints[0].count("Hint: ") == 1 and hints[1].startswith(hints[0]) and hints[1].count("Hint: ") == 2
    done = tally.run("lesson", number, "--answer")
    told = done.stdout.decode()
    why = told[told.index("Why: "):].split("\n\n")[0].split("\n0")[0]
    assert done.returncode == 0 and f"Lesson {number}: right." in told and not re.search(r"^ *\*?/", why, re.M)
    assert len(re.findall(r"[.?](?:\s|$)", re.sub(r"\n\d\d_.*", "", why, flags=re.S))) >= 3


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 7, 8, 9, 12, *range(14, 22)])
def test_a_lesson_as_it_stands_is_no_repair(tally, number):
    done = tally.run("lesson", number, path_of(number), "--json")
    said = json.loads(done.stdout)
    assert done.returncode == 1 and said["status"] == "wrong" and said["lesson"] == number
    if number in (1, 12):
        assert not said["faults"] and "no repair yet" in said["verdict"]
    told = tally.run("lesson", number, path_of(number))
    assert told.returncode == 1 and f"tally lesson {number} --hint" in told.stdout.decode()


KINDS = {14: "data", 15: "block", 16: "order", 17: "second launch", 18: "alignment", 19: "endless", 20: "overflow", 21: "race"}


@pytest.mark.parametrize("number", KINDS)
def test_what_a_lesson_is_about_names_that_lesson(tally, number):
    got = explain(tally, number)
    told = [f for f in got["faults"] + got["findings"] if f["kind"] == KINDS[number]]
    assert told and told[0]["lesson"] == f"lessons/{path_of(number).name}", got


def test_bank_conflicts_are_no_repair(tally, tmp_path):
    text = path_of(11).read_text()
    (tmp_path / "mine.cu").write_text(text[: text.index("__global__ void no_conflicts")])
    done = tally.run("lesson", 11, tmp_path / "mine.cu")
    assert done.returncode == 1 and b"bank conflicts" in done.stdout


def test_of_several_kernels_the_lesson_s_own_is_judged(tally):
    """Lessons 11 and 13 have two kernels, of which the task names one."""
    for number, kernel, status in ((11, "conflicts", 1), (13, "growing", 0)):
        done = tally.run("lesson", number, path_of(number), "--json")
        assert done.returncode == status and json.loads(done.stdout)["kernel"] == kernel
    assert tally.run("explain", "--kernel", path_of(11)).returncode == 2  # nobody names one
    done = tally.run("lesson", 13, f"{path_of(13)}:shrinking")
    assert done.returncode == 1 and b"elements 0 and 8, and the lesson asks for values of neighbours only" in done.stdout


BEGIN = "__global__ void mine(float *in, float *out, int n) {\n    __shared__ float s[256];\n    int t = threadIdx.x;\n"
LOAD = "    s[t] = t < n ? in[t] : 0;\n    __syncthreads();\n"
END = "    if (t == 0) *out = s[0];\n}\n"
ORDERS = {  # name -> the body of a kernel of one block, and whether it combines neighbours only
    "strides that grow": (LOAD + "    for (int h = 1; h < 256; h *= 2) {\n"
                          "        if (t % (2 * h) == 0) s[t] += s[t + h];\n        __syncthreads();\n    }\n", True),
    "a run for each thread": ("    int each = (n + 255) / 256; float v = 0;\n"
                              "    for (int i = t * each; i < n && i < (t + 1) * each; i++) v += in[i];\n"
                              "    s[t] = v;\n    __syncthreads();\n    for (int h = 1; h < 256; h *= 2) {\n"
                              "        if (t % (2 * h) == 0) s[t] += s[t + h];\n        __syncthreads();\n    }\n", True),
    "shuffles down that grow": ("    float v = t < n ? in[t] : 0;\n"
                                "    for (int h = 1; h < 32; h *= 2) v += __shfl_down_sync(0xffffffff, v, h);\n"
                                "    if (t % 32 == 0) s[t / 32] = v;\n    __syncthreads();\n"
                                "    if (t == 0) for (int w = 1; w < 8; w++) s[0] += s[w];\n", True),
    "strides that shrink": (LOAD + "    for (int h = 128; h; h /= 2) {\n        if (t < h) s[t] += s[t + h];\n"
                            "        __syncthreads();\n    }\n", False),
    "shuffles down that shrink": ("    float v = t < n ? in[t] : 0;\n"
                                  "    for (int h = 16; h; h /= 2) v += __shfl_down_sync(0xffffffff, v, h);\n"
                                  "    if (t % 32 == 0) s[t / 32] = v;\n    __syncthreads();\n"
                                  "    if (t == 0) for (int w = 1; w < 8; w++) s[0] += s[w];\n", False),
    "even ones, then odd ones": (LOAD + "    if (t < 2) for (int i = t + 2; i < 256; i += 2) s[t] += s[i];\n"
                                 "    __syncthreads();\n    if (t == 0) s[0] += s[1];\n", False),
}


@pytest.mark.parametrize("name", ORDERS)
def test_lesson_13_is_about_neighbours(tally, tmp_path, name):
    body, neighbours = ORDERS[name]
    if "in[t]" in body and "t < n" in body:  # of more than 256 elements each thread adds up a run
        body = body.replace("t < n ? in[t] : 0", "sum_of_run(in, t, n)")
    run = ("__device__ float sum_of_run(const float *in, int t, int n) {\n    int each = (n + 255) / 256;\n    float v = 0;\n"
           "    for (int i = t * each; i < n && i < (t + 1) * each; i++) v += in[i];\n    return v;\n}\n")
    (tmp_path / "mine.cu").write_text(run + BEGIN + body + END)
    done = tally.run("lesson", 13, tmp_path / "mine.cu", "--json")
    said = json.loads(done.stdout)
    assert not said["faults"] and not said["findings"] and not said["wrong_for"], said["verdict"]
    assert done.returncode == (0 if neighbours else 1), said["verdict"]
    assert ("values of neighbours only" in said["verdict"]) != neighbours


def test_what_lesson_refuses(tally, tmp_path):
    (tmp_path / "mine.cu").write_text("__global__ void f(float *a, int n) { a[0] += ; }")
    assert tally.run("lesson", 2, tmp_path / "mine.cu").returncode == 2
    assert "is no lesson" in tally.fails("lesson", 22, status=2)
    assert "is no lesson" in tally.fails("lesson", "2x", status=2)
    assert "one too many" in tally.fails("lesson", 2, "a.cu", "b.cu", status=2)
    assert "take no file" in tally.fails("lesson", 2, "--hint", "a.cu", status=2)
    assert "a file to judge" in tally.fails("lesson", 2, "--json", status=2)
    assert "two hints" in tally.fails("lesson", 2, *["--hint"] * 3, status=2)
    assert "a number" in tally.fails("lesson", "--hint", status=2)
    assert tally("lesson").count("?") >= 21
