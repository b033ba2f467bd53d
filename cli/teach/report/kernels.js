/* kernels.js - a kernel as the page shows it, and the ladder's kernels made into such objects.
 *
 * A kernel is one object, wherever it comes from; showKernels() of page.js takes one or two:
 *
 *   name, idea              what it is called, and one sentence
 *   waste, mends            what it wastes, and the rung that mends it; "" for none
 *   n, block, coarsen       the elements, the threads a block, the factor (0: it has none)
 *   launches, counts, correct, value
 *                           the model's records, as findRun() of steps.js returns them
 *   x                       the elements, before the first launch
 *   listing                 the lines of its text
 *   lineOf(access)          the index in `listing` of the line that makes an access; -1 for none
 *   course                  what the course says of it, as HTML; "" for nothing
 *   command                 the command that prints the same numbers
 */
const page = JSON.parse(document.getElementById("data").textContent);
const rungs = page.rungs.map((r, index) => ({ ...r, index }));
const kernels = rungs.filter(r => r.kernel);

/* ---- The course: docs/ladder.md, cut at its headings ---- */

function cutCourse(text) {
  const sections = {};
  for (const part of text.split(/^### /m).slice(1)) {
    const end = part.indexOf("\n"), body = part.slice(end + 1).split(/^## /m)[0];
    const listing = /^```cuda\n([^]*?)^```\n/m.exec(body);
    sections[part.slice(0, end).trim()] = {
      listing: listing ? listing[1].trimEnd().split("\n") : [],
      html: markdown(listing ? body.replace(listing[0], "") : body),
    };
  }
  return sections;
}

const course = cutCourse(page.course);

/* ---- From a line of the file that ran to the line of the listing that does the same ----
 *
 * The model ran src/kernels/ladder, for every type and operator; the page shows the course's plain CUDA. A pair has words
 * of a line in the one, and words of the same line in the other. Where both have several such lines, the first belongs to
 * the first, and so on. A test checks that every access of every run finds its line. */
const sameWords = [
  ["x[left] = combine(", "input[left] += input[left + stride]"],
  ["values[left] = combine(", "values[left] += values[left + stride]"],
  ["values[t] = combine(values[t]", "values[t] += values[t + stride]"],
  ["values[t] = combine(fetch", "values[t] = (i < n ? input[i]"],
  ["values[t] = fetch", "values[t] = segment + t < n ? input"],
  ["values[t + blockDim.x] = fetch", "values[t + blockDim.x] = segment"],
  ["v = fetch", "v += i + k * blockDim.x < n ? input"],
  ["v = combine(v, fetch", "v += i + k * blockDim.x < n ? input"],
  ["v = combine(v, load(x[i]))", "v += input[i]"],
  ["p[k].bits = wide[", "float4 p = packs[i]"],
  ["p[k].bits = wide[", "v += input[i]"],
  ["p.bits = wide[i]", "v += packs[i].x"],
  ["p.bits = wide[i]", "v += input[i]"],
  ["values[t] = v;", "values[t] = v;"],
  ["values[t] = combine_share(", "values[t] = v;"],
  ["v = combine(v, from_word(__shfl_down_sync(", "v += __shfl_down_sync("],
  ["v = combine(v, from_word(__shfl_down_sync(", "values[t] += values[t + stride]"],
  ["warps[threadIdx.x / WARP] = v", "warps[t / 32] = v"],
  ["warps[threadIdx.x / WARP] = v", "values[t] = v;"],
  ["v = lane < count ? warps[lane]", "v = lane < blockDim.x / 32 ? warps[lane]"],
  ["v = lane < count ? warps[lane]", "values[t] += values[t + stride]"],
  ["atomicStore(&board[1", "board)[blockIdx.x] = values[0]"],
  ["last = atomicAdd(&board[0]", "last = atomicAdd(drawn"],
  ["if (UNIFORM(last))", "if (!last)"],
  ["v = combine(v, from_word(atomicLoad(&board", "v += ((volatile float *)board)[b]"],
  ["if (threadIdx.x == 0 && last)", "output[0] = values[0]"],
  ["atomicStore(&board[0]", "*drawn = 0"],
  ["deliver(", "output["],
];

function findLine(file, line, listing) {
  const lines = page.sources[file].split("\n"), text = lines[line - 1] ?? "";
  for (const [ran, shown] of sameWords) {
    const at = listing.flatMap((l, i) => l.includes(shown) ? [i] : []);
    if (!text.includes(ran) || !at.length) continue;
    const before = lines.slice(0, line - 1).filter(l => l.includes(ran)).length;
    return at[Math.min(before, at.length - 1)];
  }
  return -1;
}

/* ---- The ladder's kernels ---- */

function ladderKernel(chunk, index, wanted) {
  const rung = rungs[index], { n, block } = wanted;
  /* A rung that is not coarsened has one run a block, whatever the factor. */
  const coarsen = rung.coarsens ? wanted.coarsen : chunk.runs.find(r => r[0] === index && r[1] === block)[2];
  const { listing, html } = course[rung.name], found = new Map();
  const lineOf = access => {
    const key = access.file + ":" + access.line;
    if (!access.line) return -1;
    if (!found.has(key)) found.set(key, findLine(access.file, access.line, listing));
    return found.get(key);
  };
  return { ...rung, n, block, coarsen: rung.coarsens ? coarsen : 0, ...findRun(chunk, index, block, coarsen), x: chunk.x, listing,
    lineOf, course: html, command: `tally explain ${rung.name} -n ${n} --block ${block} --coarsen ${coarsen} --json --steps` };
}
