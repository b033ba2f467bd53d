/* steps.js - the model's records, unpacked, and the values in memory before a step: those that the model saw written,
 * where it saw them written. report_data.c says how the records are laid out. */
"use strict";

const READ = 0, WRITE = 1, ATOMIC = 2, EXCHANGE = 3, APPLY = 4, WARP = 32;
const chunks = new Map();

/* Unpacks the runs of one length: { runs, arrays, files, x }. */
async function loadLength(n) {
  if (!chunks.has(n)) {
    const text = document.getElementById("steps-" + n).textContent;
    const bytes = Uint8Array.from(atob(text.replace(/\s/g, "")), c => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    chunks.set(n, JSON.parse(await new Response(stream).text()));
  }
  return chunks.get(n);
}

function lanesOf(mask) {
  const lanes = [];
  for (let l = 0; l < WARP; l++) if (mask >>> l & 1) lanes.push(l);
  return lanes;
}

function readAccess(chunk, a) {
  const [act, warp, mask] = a, lanes = lanesOf(mask), threads = lanes.map(l => warp * WARP + l);
  if (act === APPLY) return { act, warp, mask, threads };
  const [, , , array, shared, each, bytes, places, values, given, lines, fewest, conflicts, file, line] = a;
  const even = places.length === 2;
  const elements = lanes.map((l, i) => even ? places[0] + places[1] * (l - lanes[0]) : places[i]);
  return { act, warp, mask, threads, array: chunk.arrays[array], shared: !!shared, each, bytes,
    elements: act === EXCHANGE ? elements.map(l => warp * WARP + l) : elements,
    values, given, lines, fewest, conflicts, file: chunk.files[file], line };
}

/* A step's warps and accesses in words, and the sums over its warps. */
function readStep(chunk, launch, raw) {
  const [block, step, stride, barrier, warps, accesses] = raw;
  const sums = { operations: 0, issued: 0, divergent: 0, transactions: 0, fewest_transactions: 0, bank_conflicts: 0 };
  const list = warps.map(([mask, operations, issued, divergent, transactions, fewest_transactions, bank_conflicts]) => {
    const w = { mask, operations, issued, divergent, transactions, fewest_transactions, bank_conflicts };
    for (const key in sums) sums[key] += w[key];
    return w;
  });
  return { launch, block, step: step + 1, stride, barrier: !!barrier, warps: list, sums,
    active_warps: list.filter(w => w.mask).length, accesses: accesses.map(a => readAccess(chunk, a)) };
}

/* Returns { launches: [{ n, blocks: [[step...]...] }], correct, value, counts } of a run; null where there is none. */
function findRun(chunk, rung, block, coarsen) {
  const raw = chunk.runs.find(r => r[0] === rung && r[1] === block && r[2] === coarsen);
  if (!raw) return null;
  return raw.ready ??= { correct: !!raw[4], value: raw[6], counts: raw[7], launches: raw[3].map(([n, steps], i) => {
    const blocks = [];
    for (const s of steps) (blocks[s[0]] ??= []).push(s);
    return { n, blocks: blocks.map(list => list.map(s => readStep(chunk, i, s))) };
  }) };
}

/* Arrays in memory: a Map of element to value, by name. */
class Memory {
  constructor(x) { this.arrays = { x: new Map(x.map((v, i) => [i, v])) }; }
  of(name) { return this.arrays[name] ??= new Map(); }
  apply(step) {
    for (const a of step.accesses)
      if (a.act === WRITE || a.act === ATOMIC)
        a.elements.forEach((e, i) => this.of(a.array).set(e, a.values[i]));
  }
  /* Removes shared arrays: each block begins with its own. */
  drop(shared) { for (const name of shared) delete this.arrays[name]; }
  /* Makes the partial results of a launch the elements of the next one. */
  nextLaunch() {
    this.arrays.x = this.of("partials");
    this.arrays.partials = new Map();
  }
}

/* Returns the memory before step `index` of `block` in `launch`. */
function memoryBefore(kernel, launch, block, index) {
  const memory = new Memory(kernel.x), shared = new Set();
  for (let l = 0; l <= launch; l++) {
    if (l > 0) memory.nextLaunch();
    const blocks = kernel.launches[l].blocks, end = l < launch ? blocks.length : block + 1;
    for (let b = 0; b < end; b++) {
      memory.drop(shared);
      const steps = l === launch && b === block ? blocks[b].slice(0, index) : blocks[b];
      for (const s of steps) {
        memory.apply(s);
        for (const a of s.accesses) if (a.shared) shared.add(a.array);
      }
    }
  }
  return memory;
}

/* Returns { links, rounds } of a step. A link is { thread, reads: [{ array, element }], to }: what a thread has read since
 * it last wrote, if it has applied the operator since. `rounds` has the exchanges of registers, round by round. */
function gather(step) {
  const threads = new Map(), links = [], rounds = [], counts = {};
  const close = (t, to) => {
    const p = threads.get(t);
    if (p && p.applied && p.reads.length) links.push({ thread: t, reads: p.reads, to });
    threads.delete(t);
  };
  const pending = t => {
    if (!threads.has(t)) threads.set(t, { reads: [], applied: false });
    return threads.get(t);
  };
  for (const a of step.accesses) {
    if (a.act === APPLY) a.threads.forEach(t => { pending(t).applied = true; });
    else if (a.act === EXCHANGE) {
      const round = counts[a.warp] = (counts[a.warp] ?? -1) + 1;
      (rounds[round] ??= []).push(a);
      a.threads.forEach(t => close(t, null));
    } else a.threads.forEach((t, i) => {
      if (a.act !== WRITE) for (let k = 0; k < a.each; k++) pending(t).reads.push({ array: a.array, element: a.elements[i] + k });
      if (a.act !== READ) close(t, { array: a.array, element: a.elements[i] });
    });
  }
  for (const t of [...threads.keys()]) close(t, null);
  return { links, rounds };
}
