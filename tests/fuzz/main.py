"""scripts/fuzz: random problems for the library, each answer held against integers."""

import argparse
import os
import random
import re
import selectors
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import draw
import problems
import shrink
from workers import ROOT, Absent, Worker

LAYOUTS = 24                                              # of a batch
ALL_ISAS = ["cpu:isa=baseline", "cpu:isa=avx2", "cpu:isa=avx512"]


def arguments():
    p = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    p.add_argument("--seconds", type=float, help="how long (60, unless --problems is given)")
    p.add_argument("--problems", type=int, help="how many on each device, at least")
    p.add_argument("--seed", type=int, help="repeats a run")
    p.add_argument("--device", action="append", metavar="SPEC", help="as tally_open() has them, or 'null' for the calling "
                   "thread; every instruction set of this processor, if none is named. cpu:isa=neon runs under qemu elsewhere")
    p.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes that draw problems")
    p.add_argument("--how", action="append", choices=["whole", "axes", "segments", "groups", "states", "grouped"], help="only these")
    p.add_argument("--scale", type=float, help="the share of the usual number of elements (1; 0.2 on the model)")
    p.add_argument("--show", type=int, default=12, help="how many kinds of differences each process shows")
    p.add_argument("--stop", action="store_true", help="ends at the first difference")
    p.add_argument("--build", default=os.path.join(ROOT, "build"), help="the folder that has bin/fuzz_worker")
    p.add_argument("--repro", metavar="LINE", help="runs one problem, as it was printed")
    p.add_argument("--share", help=argparse.SUPPRESS)     # the part of this process: NUMBER/COUNT
    return p.parse_args()


def present(specs, build):
    out = []
    for spec in specs:
        try:
            Worker(spec, build).start().stop()
            out.append(spec)
        except Absent:
            pass
    return out


# ---- One process's share ------------------------------------------------------------------------

class Share:
    def __init__(self, options, number, count):
        self.options, self.number, self.step = options, number, count
        self.workers = [Worker(spec, options.build, number) for spec in options.device]
        self.alone = [Worker(spec, options.build, f"{number}-alone") for spec in options.device]
        self.counts = [0] * len(self.workers)
        self.differences = [0] * len(self.workers)
        self.seen = set()

    def run(self):
        began = told = time.monotonic()
        k = self.number
        o = self.options
        while True:
            batch = []
            for _ in range(LAYOUTS):
                batch.append((k, *drawn(o, k)))
                k += self.step
            self.do(batch)
            now = time.monotonic()
            done = (o.stop and any(self.differences)) or (o.problems and self.counts[0] * self.step >= o.problems) or (o.seconds and now - began >= o.seconds)
            if done or now - told > 1:
                told = now
                say("count", *self.counts, *self.differences)
            if done:
                break
        for worker in self.workers:
            worker.stop()

    def do(self, batch):
        cases = [(k, layout, q) for k, layout, questions in batch for q in questions]
        whole = rest(cases)
        for worker in self.workers:
            worker.send(whole)
        rights = [q.answer(layout) for _, layout, q in cases]
        wrong = {}
        for d, worker in enumerate(self.workers):
            for at, (_, layout, question) in enumerate(cases):
                got = worker.receive()
                self.counts[d] += 1
                if words := problems.difference(question, layout, rights[at], got):
                    wrong.setdefault(at, {})[d] = words
                    self.differences[d] += 1
                if got[0] < 0 and at + 1 < len(cases):    # it died: the rest once more
                    worker.send(rest(cases[at + 1:]))
        for at, found in sorted(wrong.items()):
            self.differ(*cases[at], found)

    def differ(self, k, layout, question, found):
        """Shows a problem whose answers on some devices are wrong, as simple as it can be made. One of a kind is enough."""
        first = min(found)
        kind = (question.op, layout.how, kind_of(found[first]))
        if kind in self.seen or len(self.seen) >= self.options.show:
            return
        self.seen.add(kind)

        def fails(l, q, d=first):
            return problems.difference(q, l, q.answer(l), self.alone[d].ask(l, q))
        if fails(layout, question):
            layout, question = shrink.simplest(layout, question, lambda l, q: kind_of(fails(l, q)) == kind[2], 20)
            found = {d: words for d in range(len(self.alone)) if (words := fails(layout, question, d))} or found
            where = ""
        else:
            where = f"; not when it is run alone: seed {self.options.seed}, problem {k}"
        for worker in self.alone:
            worker.stop()
        names = [self.options.device[d] for d in found]
        words = found.get(first) or next(iter(found.values()))
        say("found", ", ".join(names), f"{words}{where}\n    scripts/fuzz --device '{names[0]}' --repro "
            f"'{problems.line(layout, question)}'")


def kind_of(words):
    """What differences of one cause mostly have in common; None where there is none."""
    if not words:
        return None
    if match := re.search("expected ([0-9a-f]+), got ([0-9a-f]+)$", words):
        return f"{(int(match[1], 16) ^ int(match[2], 16)).bit_count() == 1}"
    return re.sub("[0-9]+", "", words)


def rest(cases):
    """The frames of some questions, with those of their layouts."""
    frames, last = [], None
    for _, layout, question in cases:
        if layout is not last:
            frames.append(layout.loads())
            last = layout
        frames.append(question.frame(layout))
    return b"".join(frames)


def drawn(options, k):
    """Problem k: its layout and its questions, without those that a device refuses by include/tally.h."""
    on_model = any(spec.startswith("model") for spec in options.device)
    r = random.Random(f"{options.seed}:{k}")
    results = r.choice((2, 3, 4, 6, 9, 40)) if on_model else 1 << 30  # each costs a millisecond or more there
    layout, questions = draw.problem(r, options.scale, hows=options.how, results=results)
    if on_model:
        questions = [q for q in questions if not q.user]
    elif layout.type in ("f16", "bf16") and any(not spec.startswith("cpu") for spec in options.device):
        questions = [q for q in questions if not q.user]
    return layout, questions


def say(*words):
    """A message to the process that collects them."""
    print("\t".join(map(str, words)).replace("\n", "\\n"), flush=True)


# ---- All of them --------------------------------------------------------------------------------

def collect(options):
    """Starts the shares and adds up what they say; returns whether there was a difference."""
    devices = len(options.device)
    command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--seed", str(options.seed)]
    if not options.problems:
        command += ["--seconds", str(options.seconds)]
    shares = [subprocess.Popen(command + ["--share", f"{i}/{options.jobs}"], stdout=subprocess.PIPE, text=True)
              for i in range(options.jobs)]
    chosen = selectors.DefaultSelector()
    counts = [[0] * 2 * devices for _ in shares]
    for i, share in enumerate(shares):
        chosen.register(share.stdout, selectors.EVENT_READ, i)
    began = told = time.monotonic()
    failed = False
    try:
        while chosen.get_map():
            for key, _ in chosen.select():
                text = key.fileobj.readline()
                if not text:
                    chosen.unregister(key.fileobj)
                    continue
                word, *rest = text.rstrip("\n").split("\t")
                if word == "count":
                    counts[key.data] = list(map(int, rest))
                else:
                    print(f"{rest[0]}: " + rest[1].replace("\\n", "\n"), flush=True)
            if time.monotonic() - told > 30:
                told = time.monotonic()
                done = [sum(c[d] for c in counts) for d in range(2 * devices)]
                print(f"{done[0]} problems, {done[0] / (told - began):.0f} a second, {sum(done[devices:])} differences", flush=True)
    except KeyboardInterrupt:
        pass
    for share in shares:
        failed |= share.wait() != 0
    for d, spec in enumerate(options.device):
        differences = sum(c[devices + d] for c in counts)
        print(f"{sum(c[d] for c in counts)} problems on {spec}: {differences} differences")
        failed |= differences > 0
    return failed


def repeat(options):
    layout, question = problems.read_line(options.repro)
    right = question.answer(layout)
    failed = False
    for spec in options.device:
        worker = Worker(spec, options.build)
        wrong = problems.difference(question, layout, right, worker.ask(layout, question))
        worker.stop()
        print(f"{spec}: {wrong or 'right'}")
        failed |= wrong is not None
    return failed


def main():
    options = arguments()
    worker = os.path.join(options.build, "bin", "fuzz_worker")
    if not os.path.exists(worker):
        sys.exit(f"fuzz: there is no {worker}; cmake --build {options.build} --target fuzz_worker makes it")
    if not options.device:
        options.device = present(ALL_ISAS if os.uname().machine == "x86_64" else ["cpu"], options.build)
        options.device[-1] += ";null"                     # the calling thread has the best instruction set
    elif not options.share:
        for spec in {*options.device} - {*present(options.device, options.build)}:
            sys.exit(f"fuzz: {spec} is not here")
    if options.seed is None:
        options.seed = random.SystemRandom().getrandbits(32)
    if options.seconds is None and not options.problems:
        options.seconds = 60
    if options.scale is None:
        slow = {"m": .2}
        options.scale = min(slow.get(spec[0], 1) for spec in options.device)
    if options.share:
        number, count = map(int, options.share.split("/"))
        Share(options, number, count).run()
        return 0
    if options.repro is not None:
        return repeat(options)
    print(f"seed {options.seed}: {', '.join(options.device)}", flush=True)
    return collect(options)


if __name__ == "__main__":
    sys.exit(main())
