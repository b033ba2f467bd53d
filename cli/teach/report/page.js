/* page.js - the reader's choices, their address, and what is shown: one kernel or two, step by step. */
const $ = id => document.getElementById(id);
const plural = (n, word) => n + " " + word + (n === 1 ? "" : "s");

/* Returns numbers in ascending order as a text: "0-3, 8". */
function ranges(numbers) {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b), out = [];
  for (let i = 0, k; i < sorted.length; i = k + 1) {
    for (k = i; k + 1 < sorted.length && sorted[k + 1] === sorted[k] + 1;) k++;
    out.push(k > i ? sorted[i] + "-" + sorted[k] : sorted[i]);
  }
  return out.join(", ");
}

/* ---- Choices ---- */

const indexOf = name => kernels.find(r => r.name === name)?.index;
/* `a` and `b` are rungs (b: -1 for none), `shown` a block, `step` counts from 0, `tour` is a stop of the tour from 1. */
const opening = { a: indexOf("interleaved-modulo"), b: indexOf("contiguous"), n: 1024, block: 512, coarsen: 4, shown: 0, step: 0, tour: 0 };
const chosen = { ...opening };
let views = []; /* [{ kernel, steps: [{ launch, block, index, step }] }] */
let turn = 0;

const blocksOf = n => page.lengths.find(l => l.n === n).blocks;
const nearest = (list, wanted) => list.reduce((a, b) => Math.abs(b - wanted) < Math.abs(a - wanted) ? b : a);

function fill(select, options, value) {
  select.innerHTML = options.map(([v, text]) => `<option value="${v}">${escaped(text)}</option>`).join("");
  select.value = value;
}

function fillControls() {
  const list = kernels.map(r => [r.index, r.name]);
  fill($("rung-a"), list, chosen.a);
  fill($("rung-b"), [[-1, "nothing"], ...list], chosen.b);
  fill($("n"), page.lengths.map(l => [l.n, l.n]), chosen.n);
  fill($("block"), blocksOf(chosen.n).map(b => [b, b]), chosen.block);
  fill($("coarsen"), page.factors.map(f => [f, f]), chosen.coarsen);
  const coarsens = [chosen.a, chosen.b].some(i => i >= 0 && rungs[i].coarsens);
  $("coarsen").disabled = $("coarsen").parentElement.hidden = !coarsens;
}

/* Takes a change of `chosen`, and shows it. Another length, block or factor begins at step 1. `entry`: "push" adds an
 * address to the history, so that Back returns here; "replace" changes the address, and "keep" leaves it. */
async function choose(change, entry = "push") {
  const mine = ++turn;
  if (entry !== "keep") writeAddress("replace"); /* the step that is left */
  if (["n", "block", "coarsen", "shown"].some(key => key in change && change[key] !== chosen[key])) chosen.step = 0;
  Object.assign(chosen, change);
  chosen.n = nearest(page.lengths.map(l => l.n), chosen.n);
  chosen.block = nearest(blocksOf(chosen.n), chosen.block);
  const chunk = await loadLength(chosen.n);
  if (mine !== turn) return; /* something else has been chosen meanwhile */
  fillControls();
  showKernels([chosen.a, chosen.b].filter((i, k) => i >= 0 || k === 0).map(i => ladderKernel(chunk, i, chosen)));
  showTour();
  writeAddress(entry);
}

/* ---- The address: #kernel=contiguous&compare=shared&n=1024&block=512&step=3 ---- */

const addressKeys = { n: "n", block: "block", coarsen: "coarsen", shown: "shown", tour: "tour" };
let addressTimer = 0;

function address() {
  const q = new URLSearchParams({ kernel: rungs[chosen.a].name, compare: chosen.b < 0 ? "none" : rungs[chosen.b].name });
  for (const [key, name] of Object.entries(addressKeys))
    if (key === "n" || key === "block" || chosen[key] !== opening[key]) q.set(name, chosen[key]);
  q.set("step", chosen.step + 1);
  return "#" + q;
}

function writeAddress(entry) {
  clearTimeout(addressTimer);
  if (entry === "keep" || !views.length || location.hash === address()) return;
  history[entry === "push" ? "pushState" : "replaceState"](null, "", address());
}

/* Writes the address 0.2 s after the last of several quick steps: a browser refuses many addresses a second. */
function writeAddressSoon() {
  clearTimeout(addressTimer);
  addressTimer = setTimeout(writeAddress, 200, "replace");
}

/* Returns the choices of an address; null where it names no kernel, as "#claims". */
function readAddress(hash) {
  const q = new URLSearchParams(hash.slice(1)), number = (name, least, other) =>
    /^\d{1,9}$/.test(q.get(name) ?? "") ? Math.max(least, Number(q.get(name))) : other;
  if (!q.has("kernel")) return null;
  const read = { ...opening, a: indexOf(q.get("kernel")) ?? opening.a, b: indexOf(q.get("compare")) ?? -1 };
  for (const [key, name] of Object.entries(addressKeys)) read[key] = number(name, 0, opening[key]);
  if (!page.factors.includes(read.coarsen)) read.coarsen = opening.coarsen;
  return { ...read, ...(choicesOf(read.tour) ?? { tour: 0 }), step: number("step", 1, 1) - 1 };
}

/* ---- A kernel's lasting parts ---- */

const countNames = { steps: "steps", rounds: "rounds", barriers: "barriers", useful: "useful operations",
  operations: "operations applied", slots: "slots", issued: "slots issued", efficiency: "efficiency",
  divergent: "divergent branches", transactions: "transactions", fewest_transactions: "fewest possible",
  bank_conflicts: "bank conflicts", bytes_read: "bytes read", bytes_written: "bytes written", blocks: "blocks",
  atomics: "atomics", all_rounds: "rounds, all blocks", all_barriers: "barriers, all blocks" };

const pictureFrame = (kernel, i) => `<figure class="picture" id="picture-${i}" aria-labelledby="name-${i}">
    <figcaption><h3 id="name-${i}">${escaped(kernel.name)}</h3><p data-part="headline"></p></figcaption>
    <h4><span class="more">cost of each step: </span>slots above, lines below</h4><div data-part="timeline"></div><p class="step-line" data-part="line"></p>
    <div data-part="threads"></div><div data-part="arrays"></div><p class="hover" data-part="hover" aria-live="polite"></p></figure>`;

const panelFrame = (kernel, i) => `<article class="panel" id="panel-${i}" aria-labelledby="text-${i}">
    <h3 id="text-${i}">${escaped(kernel.name)}</h3><p class="soft">${escaped(kernel.idea)}</p>
    <div class="beside"><div><pre tabindex="0" aria-label="The text of ${escaped(kernel.name)}" data-part="source"></pre>
    <p class="waste" data-part="waste"></p></div><div class="course" data-part="course"></div></div>
    <h4>This step</h4><dl class="facts" data-part="facts"></dl>
    <details class="warps"><summary>Warp by warp</summary><div class="scroll" data-part="warps"></div></details>
    <div data-part="values"></div>
    <h4>All steps</h4><dl class="facts" data-part="totals"></dl></article>`;

const part = (i, name) => document.querySelector(`:is(#picture-${i}, #panel-${i}) [data-part="${name}"]`);
const fact = (key, name, value) => `<div><dt>${escaped(name)}</dt><dd data-key="${key}">${escaped(value)}</dd></div>`;

/* Returns what a kernel wastes, in one line. */
const headline = ({ counts: c }) => `efficiency <b>${(c.efficiency ?? 0).toFixed(2)}</b><span class="more"> (${c.useful} / ${c.issued} slots)</span>,
  <b>${c.transactions}</b> lines` + (c.bank_conflicts ? `, <b>${c.bank_conflicts}</b> conflicts` : "");

function fillPanel({ kernel }, i) {
  part(i, "headline").innerHTML = headline(kernel);
  part(i, "source").innerHTML = kernel.listing.map((text, k) => `<span data-line="${k + 1}">${escaped(text) || " "}</span>`).join("");
  part(i, "course").innerHTML = kernel.course;
  part(i, "totals").innerHTML = [["launches", kernel.launches.length], ["result", shownValue(kernel.value)],
    ...Object.entries(kernel.counts)].map(([key, v]) => fact(key, countNames[key] ?? key.replaceAll("_", " "),
    v === null ? "not counted" : v)).join("");
  const mends = indexOf(kernel.mends);
  part(i, "waste").innerHTML = kernel.waste ? `<strong>It wastes:</strong> ${escaped(kernel.waste)}. ` +
    (mends !== undefined ? `<button type="button" data-mends="${mends}">${escaped(kernel.mends)} mends that: show it beside</button>`
      : kernel.mends ? `<code>${escaped(kernel.mends)}</code> mends that.` : "") : "";
  part(i, "warps").parentElement.addEventListener("toggle", () => showWarps(i));
}

function stepsOf(kernel) {
  return kernel.launches.flatMap(({ blocks }, launch) => {
    const block = Math.min(chosen.shown, blocks.length - 1);
    return blocks[block].map((step, index) => ({ launch, block, index, step }));
  });
}

/* Shows kernels, objects as kernels.js describes them, at the chosen step. */
function showKernels(list) {
  const blocks = Math.max(...list.map(k => k.launches[0].blocks.length));
  chosen.shown = Math.min(chosen.shown, blocks - 1);
  $("shown").max = blocks - 1;
  $("shown").value = chosen.shown;
  $("shown").disabled = $("shown").parentElement.hidden = blocks === 1;
  const before = askedAbout();
  views = list.map(kernel => ({ kernel, steps: stepsOf(kernel) }));
  $("pictures").innerHTML = list.map(pictureFrame).join("");
  $("panels").innerHTML = list.map(panelFrame).join("");
  views.forEach(fillPanel);
  showStep(chosen.step);
  if (before !== askedAbout()) ask(list[0]);
}

/* ---- A step ---- */

const stepCount = () => Math.max(...views.map(v => v.steps.length));
const stepAt = v => v.steps[Math.min(chosen.step, v.steps.length - 1)];

function showStep(wanted) {
  const last = stepCount() - 1;
  chosen.step = Math.max(0, Math.min(last, wanted));
  $("step").max = last;
  $("step").value = chosen.step;
  $("step").setAttribute("aria-valuetext", `step ${chosen.step + 1} of ${last + 1}`);
  $("back").disabled = $("first").disabled = chosen.step === 0;
  $("forward").disabled = $("last").disabled = chosen.step === last;
  $("where").textContent = `${chosen.step + 1} of ${last + 1}`;
  $("pictures").classList.toggle("two", views.length > 1);
  $("pictures").classList.toggle("stacked", views.length > 1 && innerWidth < 600 && views.some(hasStrips));
  views.forEach(showView);
  $("said").textContent = `Step ${chosen.step + 1} of ${last + 1}. ` + views.map((v, i) =>
    `${v.kernel.name}: ${part(i, "line").textContent}`).join(" ");
  $("command").textContent = views.map(v => v.kernel.command).join("; ");
  writeAddressSoon();
}

function stepLine({ kernel }, at) {
  const s = at.step, launches = kernel.launches, threads = s.warps.reduce((sum, w) => sum + lanesOf(w.mask).length, 0);
  const blocks = launches[at.launch].blocks.length, where = [`Step ${s.step}`];
  if (s.stride) where.push(`stride ${s.stride}`);
  if (launches.length > 1) where.push(`launch ${at.launch + 1} of ${launches.length}`);
  if (blocks > 1) where.push(`block ${at.block} of ${blocks}`);
  return `${where.join(", ")}: ` + (threads ? `${plural(threads, "thread")} at work in ${s.active_warps} of ${plural(s.warps.length, "warp")}. `
    : "no thread applies the operator. ") + (s.barrier ? `<span class="barrier">Barrier.</span>` : "The kernel ends.");
}

function showView(v, i) {
  const at = stepAt(v), s = at.step;
  const most = { issued: 1, lines: 1 };
  for (const c of views.flatMap(w => w.steps.map(({ step }) => costOf(step))))
    for (const key in most) most[key] = Math.max(most[key], c[key]);
  part(i, "timeline").innerHTML = timeline(v.steps, v.steps.indexOf(at), most);
  part(i, "line").innerHTML = (chosen.step >= v.steps.length ? "It has ended; its last step: " : "") + stepLine(v, at);
  markSource(v.kernel, i, s);
  part(i, "facts").innerHTML = [["stride", "stride", s.stride || "-"], ["active_warps", "warps at work", s.active_warps],
    ...Object.entries(s.sums).map(([k, n]) => [k, countNames[k], n])].map(f => fact(...f)).join("");
  showWarps(i);
  showPictures(v, i, at);
}

/* Marks the lines that make the step's accesses, and the barrier that ends it. */
function markSource(kernel, i, s) {
  const pre = part(i, "source"), lines = pre.children, running = new Set(s.accesses.map(kernel.lineOf).filter(l => l >= 0));
  for (const line of pre.querySelectorAll(".now, .wall")) { line.classList.remove("now", "wall"); line.removeAttribute("aria-current"); }
  for (const l of running) { lines[l].classList.add("now"); lines[l].setAttribute("aria-current", "step"); }
  const last = Math.max(...running), wall = kernel.listing.findIndex((text, l) => l > last && text.includes("__syncthreads()"));
  if (s.barrier && running.size && wall >= 0) lines[wall].classList.add("wall");
  if (running.size) pre.scrollTop = lines[Math.min(...running)].offsetTop - pre.clientHeight / 3;
}

function showWarps(i) {
  const box = part(i, "warps");
  if (box.parentElement.open) box.innerHTML = warpTable(stepAt(views[i]).step);
}

function warpTable(s) {
  const wide = innerWidth > 600 ? 7 : 4, square = l => `M${l * wide} 0h${wide - 1}v11h-${wide - 1}z`;
  const rows = s.warps.map((w, k) => {
    const lanes = lanesOf(w.mask), count = lanes.length;
    return `<tr><th scope="row">${k}</th><td class="lanes"><svg role="img" aria-label="${count ? "lanes " + ranges(lanes) : "no lane"}"
      width="${WARP * wide}" height="11"><path d="${Array.from({ length: WARP }, (_, l) => square(l)).join("")}" fill="var(--${count ? "waste" : "idle"})"/>
      <path d="${lanes.map(square).join("")}" fill="var(--bar)"/></svg></td>
      <td>${count}</td><td>${w.transactions}</td><td class="wide">${w.fewest_transactions}</td><td>${w.bank_conflicts}</td><td class="wide">${w.divergent}</td></tr>`;
  }).join("");
  return `<table><thead><tr><th scope="col">warp</th><th scope="col" class="left">lanes at work</th><th scope="col"><abbr title="lanes that apply the operator">count</abbr></th>
    <th scope="col">lines</th><th scope="col" class="wide">fewest</th><th scope="col">conflicts</th><th scope="col" class="wide">divergent</th></tr></thead><tbody>${rows}</tbody></table>`;
}

/* ---- Arrays ---- */

const isMemory = a => a.act !== APPLY && a.act !== EXCHANGE && a.array;

/* Returns a Map of the arrays that a block touches in any of its steps, with the range of their elements. */
function extent(kernel, at) {
  const cache = kernel.extents ??= new Map(), key = at.launch + "," + at.block;
  if (!cache.has(key)) {
    const arrays = new Map();
    for (const a of kernel.launches[at.launch].blocks[at.block].flatMap(s => s.accesses).filter(isMemory)) {
      const e = arrays.get(a.array) ?? { name: a.array, shared: a.shared, first: Infinity, last: 0 };
      for (const k of a.elements) {
        e.first = Math.min(e.first, k);
        e.last = Math.max(e.last, k + a.each - 1);
      }
      arrays.set(a.array, e);
    }
    cache.set(key, arrays);
  }
  return cache.get(key);
}

const hasStrips = v => [...extent(v.kernel, stepAt(v)).values()].some(t => t.last > t.first && isStrip(t));

/* Returns { arrays, rounds } of a step. `arrays` says what it does with each array: { name, shared, first, last, values,
 * read: Set, written: Map to [value, thread], links, lines, fewest, conflicts }. `rounds` has the exchanges. */
function arraysOf(kernel, at) {
  const memory = memoryBefore(kernel, at.launch, at.block, at.index), { links, rounds } = gather(at.step), touched = new Map();
  for (const a of at.step.accesses.filter(isMemory)) {
    if (!touched.has(a.array)) touched.set(a.array, { ...extent(kernel, at).get(a.array), values: memory.of(a.array),
      read: new Set(), written: new Map(), links: [], lines: 0, fewest: 0, conflicts: 0 });
    const t = touched.get(a.array);
    t.lines += a.lines;
    t.fewest += a.fewest;
    t.conflicts += a.conflicts;
    a.elements.forEach((e, i) => {
      if (a.act !== WRITE) for (let k = 0; k < a.each; k++) t.read.add(e + k);
      if (a.act !== READ) t.written.set(e, [a.values[i], a.threads[i]]);
    });
  }
  for (const link of links)
    for (const t of touched.values()) {
      const from = [...new Set(link.reads.filter(r => r.array === t.name).map(r => r.element))].sort((a, b) => a - b);
      if (from.length) t.links.push({ thread: link.thread, from, to: link.to && link.to.array === t.name ? link.to.element : null });
    }
  return { arrays: [...touched.values()], rounds };
}

function arrayTitle(t) {
  const cost = t.shared ? plural(t.conflicts, "bank conflict") : `${plural(t.lines, "line")}, fewest ${t.fewest}`;
  return `<code>${escaped(t.name)}</code>, ${t.shared ? "shared" : "global"}: ${cost}`;
}

/* Returns the picture in words, for a screen reader. */
function arrayWords(t) {
  const words = [`${t.name}: elements ${t.first} to ${t.last}`];
  if (t.read.size) words.push(`read ${ranges(t.read)}`);
  if (t.written.size) words.push(`written ${ranges(t.written.keys())}`);
  if (t.links.length && t.links.length <= 16)
    words.push(t.links.map(l => `thread ${l.thread} combines ${l.from.join(" and ")}`).join(", "));
  return words.join("; ") + ".";
}

function valueTable(t) {
  const touched = [...new Set([...t.read, ...t.written.keys()])].sort((a, b) => a - b);
  return `<table><thead><tr><th scope="col">element</th><th scope="col">${t.shared ? "bank" : "line"}</th><th scope="col">before</th>
    <th scope="col">after</th><th scope="col">written by thread</th></tr></thead><tbody>` + touched.map(e => {
    const w = t.written.get(e);
    return `<tr><th scope="row">${e}</th><td>${t.shared ? e % 32 : e >> 5}</td><td>${shownValue(t.values.get(e))}</td>
      <td>${w ? shownValue(w[0]) : ""}</td><td>${w ? w[1] : ""}</td></tr>`;
  }).join("") + "</tbody></table>";
}

const exchangeTable = rounds => rounds.map((list, k) => `<h4>Exchange ${k + 1}</h4><table><thead><tr><th scope="col">thread</th>
  <th scope="col">holds</th><th scope="col">takes from thread</th><th scope="col">gets</th></tr></thead><tbody>` +
  list.map(a => a.threads.map((t, i) => `<tr><th scope="row">${t}</th><td>${shownValue(a.given[i])}</td><td>${a.elements[i]}</td>
  <td>${shownValue(a.values[i])}</td></tr>`).join("")).join("") + "</tbody></table>").join("");

/* Makes tables that are filled when they are opened; those that were open stay open. */
function showTables(i, tables) {
  const box = part(i, "values"), open = [...box.querySelectorAll("details[open]")].map(d => d.dataset.table);
  box.innerHTML = tables.map(([key, title]) => `<details data-table="${escaped(key)}"><summary>${title}</summary><div class="scroll"></div></details>`).join("");
  tables.forEach(([key, , make], k) => {
    const details = box.children[k], fillTable = () => { if (details.open) details.lastElementChild.innerHTML = make(); };
    details.addEventListener("toggle", fillTable);
    details.open = open.includes(key);
  });
}

/* ---- The pictures of a step ---- */

const canvasFrame = (title, words, key) => `<h4>${title}</h4><div class="scroll"><canvas ${key === undefined ? "" : `tabindex="0" data-array="${key}" aria-description="Arrow keys tell values, Enter opens a row" `}role="img"
  aria-label="${escaped(words)}"></canvas></div>`;

function showPictures(v, i, at) {
  const { arrays, rounds } = arraysOf(v.kernel, at), s = at.step;
  showThreads(i, v.kernel, s, rounds);
  part(i, "arrays").innerHTML = arrays.map((t, k) => canvasFrame(arrayTitle(t), arrayWords(t), k)).join("");
  arrays.forEach((t, k) => drawArray(part(i, "arrays").querySelector(`[data-array="${k}"]`), t, v, i));
  const hint = arrays.some(t => !isStrip(t)) ? "Point at an element for its value; click for its row." : "";
  if (part(i, "hover").textContent !== hint) part(i, "hover").textContent = hint; /* a screen reader says what changes */
  const exchanges = rounds.length ? [["exchanges", `${plural(rounds.length, "exchange")} of registers, as a table`, () => exchangeTable(rounds)]] : [];
  showTables(i, [...arrays.map(t => [t.name, `Values of <code>${escaped(t.name)}</code> in this step`, () => valueTable(t)]), ...exchanges]);
}

/* Draws the threads, and the exchanges of the first warp that has any. The values that this warp stores are drawn last. */
function showThreads(i, kernel, s, rounds) {
  const box = part(i, "threads"), warp = rounds[0]?.[0].warp, mine = rounds.flat().filter(a => a.warp === warp);
  const others = new Set(rounds.flat().map(a => a.warp)).size - 1;
  const title = `registers of warp ${warp}${others ? `; ${plural(others, "more warp")} do the same` : ""}`;
  const words = mine.map((a, k) => `exchange ${k + 1}: each lane takes from ${farOf(a)} further on`).join("; ");
  const atWork = s.warps.map((w, k) => w.mask ? `warp ${k}: ${ranges(lanesOf(w.mask))}` : "").filter(Boolean).join("; ");
  box.innerHTML = canvasFrame("threads: a row for each warp", "Lanes at work: " + (atWork || "none") + ".") +
    (mine.length ? canvasFrame(title, words) : "");
  const [threads, registers] = box.querySelectorAll("canvas");
  drawThreads(threads, s, kernel.block, box.clientWidth);
  if (!registers) return;
  const stored = s.accesses.filter(a => a.act === WRITE && a.warp === warp).at(-1);
  drawExchanges(registers, mine, stored ? stored.threads.map((t, k) => [t, shownValue(stored.values[k])]) : [], box.clientWidth);
}

/* Draws an array, and below a grid the row that was clicked: there the cells are wide enough for the values. */
function drawArray(canvas, t, v, i) {
  const room = canvas.parentElement.clientWidth, grid = !isStrip(t), cells = grid ? drawGrid(canvas, t, room) : drawStrip(canvas, t, room);
  const hover = part(i, "hover"), inside = e => e !== null && e >= t.first && e <= t.last;
  const tell = e => {
    const w = t.written.get(e);
    hover.textContent = `${t.name}[${e}] is ${shownValue(t.values.get(e)) || "not set"}` + (w ? `; thread ${w[1]} makes it ${shownValue(w[0])}` : "");
  };
  const openRow = e => {
    v.row = { ...v.row, [t.name]: v.row?.[t.name] === e - e % WARP ? undefined : e - e % WARP };
    showStep(chosen.step);
  };
  let cursor = t.first;
  canvas.addEventListener("pointermove", event => { const e = cells(event.offsetX, event.offsetY); if (inside(e)) tell(e); });
  canvas.addEventListener("click", event => {
    const e = cells(event.offsetX, event.offsetY);
    if (inside(e) && grid) openRow(e);
    if (inside(e)) tell(e);
  });
  canvas.addEventListener("keydown", event => {
    const far = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -WARP, ArrowDown: WARP }[event.key];
    if (event.key === "Enter" && grid) openRow(cursor);
    if (!far) return;
    event.preventDefault();
    if (inside(cursor + far)) cursor += far;
    tell(cursor);
  });
  const row = v.row?.[t.name];
  if (!grid || row === undefined || row > t.last) return;
  const first = Math.max(row, t.first), last = Math.min(row + WARP - 1, t.last), within = e => e >= first && e <= last;
  const written = new Map([...t.written].filter(([e]) => within(e)));
  const links = t.links.filter(l => l.from.every(within) && (l.to === null || within(l.to)));
  canvas.parentElement.insertAdjacentHTML("afterend", canvasFrame(`row ${first} to ${last}`, arrayWords({ ...t, first, last, written, links })));
  const drawn = canvas.parentElement.nextElementSibling.nextElementSibling.firstElementChild;
  drawStrip(drawn, { ...t, first, last, written, links }, room);
}

/* ---- Playing ---- */

let playing = 0;

function stopPlaying() {
  clearTimeout(playing);
  playing = 0;
  $("play").textContent = "▶ Play";
}

/* Steps on by itself until the last step. */
function play() {
  if (chosen.step >= stepCount() - 1) showStep(0);
  const next = () => {
    showStep(chosen.step + 1);
    if (chosen.step >= stepCount() - 1) stopPlaying();
    else playing = setTimeout(next, 1000 / Number($("speed").value));
  };
  $("play").textContent = "❚❚ Pause";
  playing = setTimeout(next, 1000 / Number($("speed").value));
}

const togglePlay = () => playing ? stopPlaying() : play();

/* ---- Start ---- */

/* Stops playing, and shows the step that the reader asks for. */
function goTo(step) {
  stopPlaying();
  showStep(step);
}

function listenToKeys(event) {
  const moves = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
  if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
  if (/^(SELECT|INPUT|TEXTAREA|PRE|CANVAS)$/.test(event.target.tagName)) return;
  if (event.key === " " && !/^(BUTTON|A|SUMMARY)$/.test(event.target.tagName)) togglePlay();
  else if (event.key in moves) goTo(chosen.step + moves[event.key]);
  else return;
  event.preventDefault();
}

function listen() {
  const number = (id, key) => $(id).addEventListener("change", () => {
    stopPlaying();
    choose({ [key]: Number($(id).value) || 0, tour: 0 });
  });
  number("rung-a", "a"); number("rung-b", "b"); number("n", "n"); number("block", "block");
  number("coarsen", "coarsen"); number("shown", "shown");
  $("controls").addEventListener("submit", event => event.preventDefault());
  $("step").addEventListener("input", () => goTo(Number($("step").value)));
  $("first").addEventListener("click", () => goTo(0));
  $("back").addEventListener("click", () => goTo(chosen.step - 1));
  $("forward").addEventListener("click", () => goTo(chosen.step + 1));
  $("last").addEventListener("click", () => goTo(Infinity));
  $("play").addEventListener("click", togglePlay);
  $("pictures").addEventListener("click", event => {
    const column = event.target.closest("[data-step]");
    if (column) goTo(Number(column.dataset.step));
  });
  $("panels").addEventListener("click", event => {
    const mends = event.target.closest("[data-mends]");
    if (mends) choose({ b: Number(mends.dataset.mends), tour: 0 });
  });
  document.addEventListener("keydown", listenToKeys);
  addEventListener("hashchange", () => {
    const read = readAddress(location.hash);
    stopPlaying();
    if (read && location.hash !== address()) choose(read, "keep");
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => showStep(chosen.step));
  let resized = 0;
  addEventListener("resize", () => { cancelAnimationFrame(resized); resized = requestAnimationFrame(() => showStep(chosen.step)); });
}

function start() {
  $("version").textContent = page.version;
  $("bars").innerHTML = page.measured.map(bars).join("") + `<p class="soft">${escaped(page.texts_note)}</p>`;
  if (page.claims) $("claims-text").innerHTML = markdown(page.claims, true);
  else { $("claims").hidden = true; $("to-claims").hidden = true; }
  listen();
  listenToTour();
  listenToExercises();
  return choose(readAddress(location.hash) ?? {}, "keep");
}

start().catch(error => {
  $("failed").hidden = false;
  $("failed").textContent = "The steps cannot be shown: " + error.message;
  throw error;
});
