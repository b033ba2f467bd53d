/* tour.js - a guided tour: all rungs, with one sentence and one number each. The numbers are the model's, of the kernels that
 * the stop shows; the last one is measured. */

const roofShare = name => {
  const set = page.measured[0], row = set?.rows.find(r => r.name === name);
  return row ? (row.gbps / set.roof * 100).toFixed(1) + "%" : "-";
};

/* A stop: the rung, the one beside it, and tell({ kernel, counts, beside, besides: its counts, step }), which returns the
 * number and the sentence that goes on from it. `a` is the kernel to show where the rung has no steps. */
const stops = [
  { rung: "sequential", a: "interleaved-modulo", tell: at => [at.counts.useful,
    `additions, one after another, are a loop's work, and a tree does as many, side by side, in ${at.counts.steps} steps.`] },
  { rung: "interleaved-modulo", step: 5, tell: at => [at.step.active_warps,
    `warps are at work in step ${at.step.step}, each for the sake of ${plural(at.step.sums.operations / at.step.active_warps, "thread")}: the orange lanes are paid for and idle.`] },
  { rung: "interleaved-mask", b: "interleaved-modulo", step: 5, tell: at => [at.counts.issued,
    "slots, as before: the mask replaces the slow division of %, and the idle lanes stay."] },
  { rung: "interleaved-index", b: "interleaved-modulo", step: 5, tell: at => [at.counts.issued,
    `slots in place of ${at.besides.issued}, because the threads at work stand side by side; but their elements lie apart.`] },
  { rung: "contiguous", b: "interleaved-index", step: 2, tell: at => [at.counts.transactions,
    `lines of memory in place of ${at.besides.transactions}, because the elements of a warp are neighbours.`] },
  { rung: "shared-modulo", b: "contiguous", step: 2, tell: at => [at.counts.transactions,
    `lines in place of ${at.besides.transactions}, as each element comes from global memory once; but the old tree is back, with ${at.counts.bank_conflicts} bank conflicts.`] },
  { rung: "shared-contiguous", b: "shared-modulo", step: 2, tell: at => [at.counts.bank_conflicts,
    `bank conflicts in place of ${at.besides.bank_conflicts}: a warp works on 32 neighbours, one in each bank.`] },
  { rung: "shared", b: "shared-contiguous", tell: at => [at.counts.barriers,
    `barriers in place of ${at.besides.barriers}: each thread adds its two elements on the way into shared memory.`] },
  { rung: "coarsened", b: "shared", n: 4096, block: 64, tell: at => [at.counts.all_barriers,
    `barriers of all blocks in place of ${at.besides.all_barriers}: each thread adds several elements before one tree begins.`] },
  { rung: "grid-stride", b: "coarsened", n: 4096, block: 64, coarsen: 1, tell: at => [at.kernel.launches[0].blocks.length,
    `blocks, four for each of the model's multiprocessors, however long the array is, where coarsened by 1 has ${at.beside.launches[0].blocks.length}, and more for more elements.`] },
  { rung: "vectorized", b: "grid-stride", n: 4096, block: 256, tell: at => [Math.max(...at.step.accesses.map(a => a.each ?? 0)),
    "elements come by one load, 16 bytes: more is under way while a thread waits for memory."] },
  { rung: "shuffle", b: "vectorized", block: 256, tell: at => [at.counts.barriers,
    `barriers in place of ${at.besides.barriers}: the lanes of a warp read each other's registers, and need no memory for it.`] },
  { rung: "single-pass", b: "shuffle", block: 256, tell: at => [at.kernel.launches.length,
    `launch in place of ${at.beside.launches.length}: the last block to finish combines what the others have left.`] },
  { rung: "tally", a: "single-pass", n: 1024, block: 256, tell: at => [roofShare("tally"),
    "of the memory's fastest read, on an H200: Tally's own reduction adds integers, so no order of additions changes the sum."] },
];

/* Returns the choices of a stop; null where there is none of that number. */
function choicesOf(number) {
  const stop = stops[number - 1];
  return stop ? { a: indexOf(stop.a ?? stop.rung), b: stop.b ? indexOf(stop.b) : -1, n: stop.n ?? opening.n, shown: 0,
    block: stop.block ?? opening.block, coarsen: stop.coarsen ?? opening.coarsen, step: stop.step ?? 0, tour: number } : null;
}

function goToStop(number) {
  stopPlaying();
  return choose(choicesOf(number));
}

/* Tells the stop that is chosen; stop 0 is none. */
function showTour() {
  const stop = stops[chosen.tour - 1];
  $("tour").hidden = !stop;
  $("take-tour").setAttribute("aria-expanded", !!stop);
  if (!stop) return;
  const [kernel, beside] = views.map(v => v.kernel), steps = views[0].steps;
  const { step } = steps[Math.min(stop.step ?? 0, steps.length - 1)];
  const [number, sentence] = stop.tell({ kernel, counts: kernel.counts, beside, besides: beside?.counts, step });
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
