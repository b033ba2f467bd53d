/* tour.js - a guided tour: all rungs, with one sentence and one number each. The numbers are the model's, of the kernels that
 * the stop shows; the last one is measured. */

const roofShare = name => {
  const set = page.measured[0], row = set?.rows.find(r => r.name === name);
  return row ? (row.gbps / set.roof * 100).toFixed(1) + "%" : "-";
};

/* A stop: the rung, the one beside it, and tell(counts, counts of the one beside it, the step, the kernel), which returns the
 * number and the sentence that goes on from it. `a` is the kernel to show where the rung has no steps. */
const stops = [
  { rung: "sequential", a: "interleaved-modulo", tell: c => [c.useful,
    `additions, one after another, is what one processor does. A tree does as many, side by side, in ${c.steps} steps.`] },
  { rung: "interleaved-modulo", step: 5, tell: (c, _, s) => [s.active_warps,
    `warps are at work in step ${s.step}, each for the sake of ${plural(s.sums.operations / s.active_warps, "thread")}: the orange lanes are paid for and idle.`] },
  { rung: "interleaved-mask", b: "interleaved-modulo", step: 5, tell: c => [c.issued,
    "slots, as before: the mask replaces the slow division of %, and the idle lanes stay."] },
  { rung: "interleaved-index", b: "interleaved-modulo", step: 5, tell: (c, d) => [c.issued,
    `slots in place of ${d.issued}, because the threads at work stand side by side; but their elements lie apart.`] },
  { rung: "contiguous", b: "interleaved-index", step: 2, tell: (c, d) => [c.transactions,
    `lines of memory in place of ${d.transactions}, because the elements of a warp are neighbours.`] },
  { rung: "shared-modulo", b: "contiguous", step: 2, tell: (c, d) => [c.transactions,
    `lines in place of ${d.transactions}: each element comes from global memory once. But the old tree is back, with ${c.bank_conflicts} bank conflicts.`] },
  { rung: "shared-contiguous", b: "shared-modulo", step: 2, tell: (c, d) => [c.bank_conflicts,
    `bank conflicts in place of ${d.bank_conflicts}: a warp works on 32 neighbours, one in each bank.`] },
  { rung: "shared", b: "shared-contiguous", tell: (c, d) => [c.barriers,
    `barriers in place of ${d.barriers}: each thread adds its two elements on the way into shared memory.`] },
  { rung: "coarsened", b: "shared", n: 4096, block: 256, tell: (c, d) => [c.all_barriers,
    `barriers of all blocks in place of ${d.all_barriers}: each thread adds several elements before one tree begins.`] },
  { rung: "grid-stride", b: "coarsened", n: 4096, block: 32, coarsen: 1, tell: (c, d, s, k) => [k.launches[0].blocks.length,
    `blocks, four for each of the model's multiprocessors, however long the array is; coarsened by 1 has ${d.blocks - 1} and more.`] },
  { rung: "vectorized", b: "grid-stride", n: 4096, block: 256, tell: (c, d, s) => [Math.max(...s.accesses.map(a => a.each ?? 0)),
    "elements come by one load, 16 bytes: more is under way while a thread waits for memory."] },
  { rung: "shuffle", b: "vectorized", block: 256, tell: (c, d) => [c.barriers,
    `barriers in place of ${d.barriers}: the lanes of a warp read each other's registers, and need no memory for it.`] },
  { rung: "single-pass", b: "shuffle", block: 256, tell: (c, d, s, k) => [k.launches.length,
    `launch: the last block to finish combines what the others have left. shuffle needs a second launch.`] },
  { rung: "tally", a: "single-pass", n: 1024, block: 256, tell: () => [roofShare("tally"),
    "of the memory's fastest read, on an H200: Tally's own reduction adds integers, so no order of additions changes the sum."] },
];

function goToStop(number) {
  const stop = stops[number - 1];
  stopPlaying();
  return choose({ a: indexOf(stop.a ?? stop.rung), b: stop.b ? indexOf(stop.b) : -1, n: stop.n ?? opening.n,
    block: stop.block ?? opening.block, coarsen: stop.coarsen ?? opening.coarsen, shown: 0, step: stop.step ?? 0, tour: number });
}

/* Tells the stop that is chosen; stop 0 is none. */
function showTour() {
  const stop = stops[chosen.tour - 1];
  $("tour").hidden = !stop;
  $("take-tour").setAttribute("aria-expanded", !!stop);
  if (!stop) return;
  const [kernel, beside] = views.map(v => v.kernel), at = views[0].steps[Math.min(stop.step ?? 0, views[0].steps.length - 1)];
  const [number, sentence] = stop.tell(kernel.counts, beside?.counts, at.step, kernel);
  $("tour-where").textContent = `${chosen.tour} of ${stops.length}: ${stop.rung}`;
  $("tour-text").innerHTML = `<b class="tour-number">${escaped(number)}</b> ${escaped(sentence)}`;
  $("tour-back").disabled = chosen.tour === 1;
  $("tour-on").disabled = chosen.tour === stops.length;
}

function listenToTour() {
  $("take-tour").addEventListener("click", () => chosen.tour ? choose({ tour: 0 }) : goToStop(1));
  $("tour-back").addEventListener("click", () => goToStop(chosen.tour - 1));
  $("tour-on").addEventListener("click", () => goToStop(chosen.tour + 1));
  $("tour-end").addEventListener("click", () => choose({ tour: 0 }).then(() => $("take-tour").focus()));
}
