"""Completion of the command's words by bash, zsh and fish: what each offers after a line, and that none of the
words which the command's help names is missing. TALLY is the command."""
import json
import os
import re
import shutil
import subprocess

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = os.path.join(HERE, "..", "..", "cli", "completion")
BASH = """source "$1"; COMP_LINE=$2; read -ra COMP_WORDS <<<"$2"; [[ $2 != *' ' ]] || COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tally; printf '%s\\n' "${COMPREPLY[@]}" """


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, stdin=subprocess.DEVNULL)
    assert done.stderr == ""
    return done.stdout


def ask_bash(line, folder):
    return run("bash", "--norc", "-c", BASH, "bash", os.path.join(FILES, "tally.bash"), line)


def ask_zsh(line, folder):
    shutil.copy(os.path.join(FILES, "tally.zsh"), os.path.join(folder, "_tally"))
    return run("zsh", "-f", os.path.join(HERE, "capture.zsh"), str(folder), line)


def ask_fish(line, folder):
    return run("fish", "--no-config", "-c", f"source {FILES}/tally.fish; complete -C '{line}'")


@pytest.fixture(params=[ask_bash, ask_zsh, ask_fish], ids=["bash", "zsh", "fish"])
def offers(request, tmp_path):
    """offers(line): the words offered in place of the line's last, without what it says of several statistics."""
    shell = request.param.__name__[4:]
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    return lambda line: {word.split("\t")[0].split(",")[-1] for word in request.param(line, tmp_path).split("\n") if word}


@pytest.mark.parametrize("line, expected", [
    ("tally xo", "xor"),
    ("tally norm", "norm1 norm2 norminf"),
    ("tally count,su", "sum sumsq"),
    ("tally count,me", "mean"),
    ("tally de", "devices describe"),
    ("tally sum --dtype bf", "bf16"),
    ("tally sum --out ", "f16 bf16 f32 f64"),
    ("tally sum --dd", ""),
    ("tally var --dd", "--ddof"),
    ("tally count,var --dd", "--ddof"),
    ("tally sum --device o", "opencl"),
    ("tally sum nvc", "nvcc"),
    ("tally bench m", "min max mean minmax"),
    ("tally sum --co", "--column"),
    ("tally sum --sk", "--skip-na --skip-outside"),
    ("tally sum --ax", "--axis"),
    ("tally bench --data wi", "wild"),
    ("tally bench --segments gi", "giant"),
    ("tally bench --ids ", "random sorted zipf"),
    ("tally ladder --finish ", "relaunch atomic host"),
    ("tally ladder --only shuffle coa", "coarsened"),
    ("tally explain vec", "vectorized"),
    ("tally help lad", "ladder"),
    ("tally devices --js", "--json"),
])
def test_offers(offers, line, expected, monkeypatch):
    monkeypatch.chdir(HERE)
    assert offers(line) == set(expected.split())


def test_words_of_the_help(offers):
    tally = os.environ["TALLY"]
    commands = re.findall(r"^  ([a-z0-9]+) +\S", run(tally, "help").split("Commands:")[1], re.M)
    assert "sum" in commands and "help" in commands
    assert set(commands) <= offers("tally ")
    for command in commands:
        options = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", run(tally, "help", command), re.M))
        if command not in ("var", "std", "describe"):
            options.discard("--ddof")  # every operator's help has it, and these take it
        if command not in ("help", "version"):
            assert options and options <= offers(f"tally {command} --"), command


def test_rungs(offers):
    """Every rung that the ladder climbs on the model."""
    report = json.loads(run(os.environ["TALLY"], "ladder", "--device", "model", "-n", "1", "--json"))
    rungs = {row["name"] for row in report["kernels"]}
    assert len(rungs) > 10 and rungs <= offers("tally explain ") | {"sequential"}
    assert rungs <= offers("tally ladder --only ")
