/* page.js - the controls, and what they show: elements, warps, source and counts of one step, of one rung or two. */
const $ = id => document.getElementById(id);
const page = JSON.parse($("data").textContent);
const kernels = page.rungs.map((r, i) => ({ ...r, index: i })).filter(r => r.kernel);
const chosen = { a: 0, b: -1, n: 16, block: 8, coarsen: 1, shown: 0, step: 0 };
let shownRuns = []; /* [{ rung, run, steps: [{ launch, block, index }] }] of the panels */
let chunk = null, turn = 0;

const escaped = s => String(s).replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const plural = (n, word) => n + " " + word + (n === 1 ? "" : "s");
/* -0, the sum's identity, keeps its sign. */
const shownValue = v => v === undefined ? "" : Object.is(v, -0) ? "-0" : String(v);

/* Numbers in ascending order as "0-3, 8". */
function ranges(numbers) {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b), out = [];
  for (let i = 0, k; i < sorted.length; i = k + 1) {
    for (k = i; k + 1 < sorted.length && sorted[k + 1] === sorted[k] + 1;) k++;
    out.push(k > i ? sorted[i] + "-" + sorted[k] : sorted[i]);
  }
  return out.join(", ");
}

/* ---- Choices ---- */

function fill(select, options, value) {
  select.innerHTML = options.map(([v, text]) => `<option value="${v}">${escaped(text)}</option>`).join("");
  select.value = value;
}

const blocksOf = n => page.lengths.find(l => l.n === n).blocks;
const nearest = (list, wanted) => list.reduce((a, b) => Math.abs(b - wanted) < Math.abs(a - wanted) ? b : a);

function fillControls() {
  const rungs = kernels.map(r => [r.index, r.name]);
  chosen.block = nearest(blocksOf(chosen.n), chosen.block);
  fill($("rung-a"), rungs, chosen.a);
  fill($("rung-b"), [[-1, "nothing"], ...rungs], chosen.b);
  fill($("n"), page.lengths.map(l => [l.n, l.n]), chosen.n);
  fill($("block"), blocksOf(chosen.n).map(b => [b, b]), chosen.block);
  fill($("coarsen"), page.factors.map(f => [f, f]), chosen.coarsen);
  $("coarsen").disabled = ![chosen.a, chosen.b].some(i => i >= 0 && page.rungs[i].coarsens);
}

/* A rung that is not coarsened has one run a block, whatever the factor. */
function runOf(index) {
  const coarsen = page.rungs[index].coarsens ? chosen.coarsen
    : chunk.runs.find(r => r[0] === index && r[1] === chosen.block)[2];
  return { coarsen, run: findRun(chunk, index, chosen.block, coarsen) };
}

function stepsOf(run) {
  const steps = [];
  run.launches.forEach((launch, l) => {
    const block = Math.min(chosen.shown, launch.blocks.length - 1);
    launch.blocks[block].forEach((s, index) => steps.push({ launch: l, block, index, step: s }));
  });
  return steps;
}

async function choose(change) {
  const mine = ++turn;
  Object.assign(chosen, change);
  const loaded = await loadLength(chosen.n);
  if (mine !== turn) return; /* something else has been chosen meanwhile */
  chunk = loaded;
  fillControls();
  const made = [chosen.a, chosen.b].filter((i, k) => i >= 0 || k === 0).map(i => {
    const { coarsen, run } = runOf(i);
    return { rung: page.rungs[i], index: i, coarsen, run };
  });
  const most = Math.max(...made.map(m => m.run.launches[0].blocks.length));
  chosen.shown = Math.max(0, Math.min(chosen.shown, most - 1));
  $("shown").max = most - 1;
  $("shown").value = chosen.shown;
  $("shown").disabled = most === 1;
  for (const m of made) m.steps = stepsOf(m.run);
  shownRuns = made;
  $("panels").innerHTML = made.map((m, i) => panelFrame(m, i)).join("");
  made.forEach((m, i) => fillPanel(m, i));
  showStep(chosen.step);
}

/* ---- A panel's lasting parts ---- */

const countNames = { steps: "steps", rounds: "rounds", barriers: "barriers", useful: "useful operations",
  operations: "operations applied", slots: "slots", issued: "slots issued", efficiency: "efficiency",
  divergent: "divergent branches", transactions: "transactions", fewest_transactions: "fewest possible",
  bank_conflicts: "bank conflicts", bytes_read: "bytes read", bytes_written: "bytes written", blocks: "blocks",
  atomics: "atomics", all_rounds: "rounds, all blocks", all_barriers: "barriers, all blocks" };

function panelFrame(m, i) {
  return `<article class="panel" id="panel-${i}" aria-labelledby="name-${i}">
    <h3 id="name-${i}">${escaped(m.rung.name)}</h3><p class="soft">${escaped(m.rung.idea)}</p>
    <p class="step-line" data-part="line"></p>
    <pre tabindex="0" aria-label="The kernel's text" data-part="source"></pre>
    <div data-part="arrays"></div>
    <h4>This step</h4><dl class="facts" data-part="facts"></dl>
    <div class="scroll" data-part="warps"></div>
    <h4>All of it</h4><dl class="facts" data-part="totals"></dl>
    <p class="waste" data-part="waste"></p></article>`;
}

const part = (i, name) => document.querySelector(`#panel-${i} [data-part="${name}"]`);

function filesOf(m) {
  const own = m.rung.name.replaceAll("-", "_") + ".cu", files = new Set(page.sources[own] ? [own] : []);
  for (const s of m.steps) for (const a of s.step.accesses) if (a.file && page.sources[a.file]) files.add(a.file);
  return [...files];
}

function fillPanel(m, i) {
  part(i, "source").innerHTML = filesOf(m).map(file => {
    const lines = page.sources[file].replace(/\n$/, "").split("\n");
    return `<span class="soft" data-line="">${escaped(file)}</span>` + lines.map((text, k) =>
      `<span data-line="${k + 1}" data-at="${file}:${k + 1}">${escaped(text) || " "}</span>`).join("");
  }).join("");
  part(i, "totals").innerHTML = [["launches", m.run.launches.length], ["result", shownValue(m.run.value)],
    ...Object.entries(m.run.counts)].map(([key, v]) => fact(key, countNames[key] ?? key.replaceAll("_", " "),
    v === null ? "not counted" : v)).join("");
  const mends = page.rungs.findIndex(r => r.name === m.rung.mends && r.kernel);
  part(i, "waste").innerHTML = m.rung.waste ? `<strong>It wastes:</strong> ${escaped(m.rung.waste)}. ` +
    (mends >= 0 ? `<button type="button" data-mends="${mends}">${escaped(m.rung.mends)} mends that: show it beside</button>`
      : m.rung.mends ? `<code>${escaped(m.rung.mends)}</code> mends that.` : "") : "";
}

const fact = (key, name, value) => `<div><dt>${escaped(name)}</dt><dd data-key="${key}">${escaped(value)}</dd></div>`;

/* ---- A step ---- */

const stepCount = () => Math.max(...shownRuns.map(m => m.steps.length));

function showStep(wanted) {
  const last = stepCount() - 1;
  chosen.step = Math.max(0, Math.min(last, wanted));
  $("step").max = last;
  $("step").value = chosen.step;
  $("step").setAttribute("aria-valuetext", `step ${chosen.step + 1} of ${last + 1}`);
  $("back").disabled = $("first").disabled = chosen.step === 0;
  $("forward").disabled = $("last").disabled = chosen.step === last;
  shownRuns.forEach((m, i) => showPanel(m, i));
  $("where").textContent = `${chosen.step + 1} of ${last + 1}`;
  $("said").textContent = `Step ${chosen.step + 1} of ${last + 1}. ` + shownRuns.map((m, i) =>
    `${m.rung.name}: ${part(i, "line").textContent}`).join(" ");
  $("command").textContent = shownRuns.map(m => `tally explain ${m.rung.name} -n ${chosen.n} --block ${chosen.block}` +
    ` --coarsen ${m.coarsen} --json --steps`).join("; ");
}

function stepLine(m, at) {
  const s = at.step, launches = m.run.launches;
  const where = launches.length > 1 ? `Launch ${at.launch + 1} of ${launches.length}, ` : "";
  const blocks = launches[at.launch].blocks.length;
  const block = blocks > 1 ? `block ${at.block} (of 0 to ${blocks - 1}), ` : "";
  const threads = s.warps.reduce((sum, w) => sum + lanesOf(w.mask).length, 0);
  const text = `${where}${block}step ${s.step}: ` + (threads
    ? `${plural(threads, "thread")} in ${s.active_warps} of ${plural(s.warps.length, "warp")} apply the operator` +
      (s.stride ? `, stride ${s.stride}` : "") : "the operator is not applied");
  const [before, after] = [text.slice(0, 1).toUpperCase() + text.slice(1),
    s.barrier ? "a barrier ends the step" : "the kernel ends"];
  return `${escaped(before)}; <span class="${s.barrier ? "barrier" : ""}">${after}</span>.`;
}

function showPanel(m, i) {
  const over = chosen.step >= m.steps.length, at = m.steps[Math.min(chosen.step, m.steps.length - 1)], s = at.step;
  part(i, "line").innerHTML = (over ? "It has ended; its last step: " : "") + stepLine(m, at);
  markSource(i, s);
  part(i, "facts").innerHTML = [["stride", "stride", s.stride || "-"], ["active_warps", "warps at work", s.active_warps],
    ...Object.entries(s.sums).map(([k, v]) => [k, countNames[k], v])].map(f => fact(...f)).join("");
  part(i, "warps").innerHTML = warpTable(s);
  showArrays(m, i, at);
}

function markSource(i, s) {
  const pre = part(i, "source");
  for (const line of pre.querySelectorAll(".now")) { line.classList.remove("now"); line.removeAttribute("aria-current"); }
  let best = null, before = null, applied = false;
  for (const a of s.accesses) {
    if (a.act === APPLY) { if (!applied) best = before ?? best; applied = true; }
    else if (a.line) before = a;
  }
  const marks = new Set(s.accesses.filter(a => a.line).map(a => `${a.file}:${a.line}`));
  for (const mark of marks) {
    const line = pre.querySelector(`[data-at="${mark}"]`);
    if (line) { line.classList.add("now"); line.setAttribute("aria-current", "step"); }
  }
  best = best ?? before;
  const target = best && pre.querySelector(`[data-at="${best.file}:${best.line}"]`);
  if (target) pre.scrollTop = target.offsetTop - pre.clientHeight / 2;
}

function warpTable(s) {
  const wide = innerWidth > 600 ? 7 : 4;
  const rows = s.warps.map((w, k) => {
    const lanes = lanesOf(w.mask), count = lanes.length;
    const squares = lanes.map(l => `M${l * wide} 0h${wide - 1}v11h-${wide - 1}z`).join("");
    const idle = Array.from({ length: WARP }, (_, l) => `M${l * wide} 0h${wide - 1}v11h-${wide - 1}z`).join("");
    return `<tr><th scope="row">${k}</th><td class="lanes"><svg role="img" aria-label="${count ? "lanes " + ranges(lanes) : "no lane"}"
      width="${WARP * wide}" height="11"><path d="${idle}" fill="var(--idle)"/><path d="${squares}" fill="var(--bar)"/></svg></td>
      <td>${count}</td><td>${w.transactions}</td><td class="wide">${w.fewest_transactions}</td><td>${w.bank_conflicts}</td><td class="wide">${w.divergent}</td></tr>`;
  }).join("");
  return `<table><thead><tr><th scope="col">warp</th><th scope="col" class="left">lanes at work</th><th scope="col"><abbr title="lanes that apply the operator">count</abbr></th>
    <th scope="col">lines</th><th scope="col" class="wide">fewest</th><th scope="col">conflicts</th><th scope="col" class="wide">divergent</th></tr></thead><tbody>${rows}</tbody></table>`;
}

/* ---- Arrays ---- */

/* The arrays that a block touches in any of its steps, and which of their elements. */
function extent(m, at) {
  const cache = m.extents ??= new Map(), key = at.launch + "," + at.block;
  if (!cache.has(key)) {
    const arrays = new Map();
    for (const s of m.run.launches[at.launch].blocks[at.block])
      for (const a of s.accesses) {
        if (a.act === APPLY || a.act === EXCHANGE || !a.array) continue;
        const e = arrays.get(a.array) ?? { name: a.array, shared: a.shared, first: Infinity, last: 0 };
        for (const k of a.elements) {
          if (k < e.first) e.first = k;
          if (k + a.each - 1 > e.last) e.last = k + a.each - 1;
        }
        arrays.set(a.array, e);
      }
    cache.set(key, arrays);
  }
  return cache.get(key);
}

/* What a step does with an array: { name, shared, first, last, values, read: Set, written: Map to [value, thread], links,
 * lines }. */
function arraysOf(m, at) {
  const memory = memoryBefore(chunk, m.run, at.launch, at.block, at.index), { links, rounds } = gather(at.step);
  const touched = new Map();
  for (const a of at.step.accesses) {
    if (a.act === APPLY || a.act === EXCHANGE || !a.array) continue;
    if (!touched.has(a.array)) touched.set(a.array, { ...extent(m, at).get(a.array), values: memory.of(a.array),
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
  const cost = t.shared ? plural(t.conflicts, "bank conflict") : `${plural(t.lines, "transaction")}, fewest ${t.fewest}`;
  return `<code>${escaped(t.name)}</code>, ${t.shared ? "shared" : "global"} memory: ${cost}`;
}

/* What a screen reader is told of the picture. */
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

function exchangeTable(rounds) {
  if (!rounds.length) return "";
  return `<details><summary>${plural(rounds.length, "exchange")} of registers: lanes take from lanes further on</summary><div class="scroll">` +
    rounds.map((list, k) => `<h4>Exchange ${k + 1}</h4><table><thead><tr><th scope="col">thread</th><th scope="col">holds</th>
      <th scope="col">takes from thread</th><th scope="col">gets</th></tr></thead><tbody>` + list.map(a => a.threads.map((t, i) =>
      `<tr><th scope="row">${t}</th><td>${shownValue(a.given[i])}</td><td>${a.elements[i]}</td><td>${shownValue(a.values[i])}</td></tr>`)
      .join("")).join("") + "</tbody></table>").join("") + "</div></details>";
}

function showArrays(m, i, at) {
  const { arrays, rounds } = arraysOf(m, at), box = part(i, "arrays");
  const open = [...box.querySelectorAll("details[open]")].map(d => d.dataset.array);
  box.innerHTML = arrays.map((t, k) => `<h4>${arrayTitle(t)}</h4><div class="scroll"><canvas role="img" data-array="${k}"
    aria-label="${escaped(arrayWords(t))}"></canvas></div><details data-array="${escaped(t.name)}"><summary>Values of
    <code>${escaped(t.name)}</code> in this step</summary><div class="scroll" data-values="${k}"></div></details>`).join("") +
    exchangeTable(rounds) +
    `<p class="legend"><span><i style="background:var(--read)"></i>read</span><span><i style="background:var(--write)"></i>written</span>
    <span><i style="background:var(--both)"></i>read and written</span><span data-part="hover"></span></p>`;
  arrays.forEach((t, k) => {
    const canvas = box.querySelector(`canvas[data-array="${k}"]`), details = canvas.parentElement.nextElementSibling;
    drawArray(canvas, t);
    const fillValues = () => { if (details.open) details.querySelector("[data-values]").innerHTML = valueTable(t); };
    details.addEventListener("toggle", fillValues);
    if (open.includes(t.name)) details.open = true;
  });
}

/* ---- Drawing ---- */

const color = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

function prepare(canvas, width, height) {
  const scale = devicePixelRatio || 1;
  canvas.width = Math.ceil(width * scale);
  canvas.height = Math.ceil(height * scale);
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  const g = canvas.getContext("2d");
  g.scale(scale, scale);
  g.textBaseline = "middle";
  return g;
}

function cellColor(t, e, colors) {
  const read = t.read.has(e), written = t.written.has(e);
  return read && written ? colors.both : read ? colors.read : written ? colors.write : colors.idle;
}

function drawArray(canvas, t) {
  const colors = Object.fromEntries(["paper", "ink", "soft", "line", "other", "accent", "read", "write", "both", "idle"].map(c => [c, color(c)]));
  const count = t.last - t.first + 1;
  const fits = count <= 32 || 58 + count * 40 < canvas.parentElement.clientWidth;
  const cells = fits ? drawStrip(canvas, t, count, colors) : drawGrid(canvas, t, colors);
  canvas.addEventListener("pointermove", event => {
    const e = cells(event.offsetX, event.offsetY), hover = canvas.closest(".panel").querySelector('[data-part="hover"]');
    if (e === null || e < t.first || e > t.last) { hover.textContent = ""; return; }
    const w = t.written.get(e);
    hover.textContent = `${t.name}[${e}] ${shownValue(t.values.get(e))}` + (w ? ` becomes ${shownValue(w[0])}, by thread ${w[1]}` : "");
  });
}

/* A row of cells with their values, the threads' links below, and the values after the step. */
function drawStrip(canvas, t, count, c) {
  const longest = Math.max(2, ...[...t.values].filter(([e]) => e >= t.first && e <= t.last).map(([, v]) => shownValue(v).length),
    ...[...t.written.values()].map(([v]) => shownValue(v).length));
  const cell = Math.max(28, longest * 8 + 10), left = 58, high = 24, row = 17;
  const ends = [], links = [...t.links].sort((a, b) => a.from[0] - b.from[0]);
  for (const l of links) {
    l.row = ends.findIndex(end => end <= l.from[0]);
    if (l.row < 0) l.row = ends.length;
    ends[l.row] = l.from.at(-1) + 1;
  }
  const below = ends.length ? ends.length * row + 12 : 4, after = t.written.size ? high : 0;
  const g = prepare(canvas, left + count * cell + 2, 16 + high + below + after + 2);
  const font = "13px ui-monospace, 'DejaVu Sans Mono', monospace", small = "11px ui-monospace, 'DejaVu Sans Mono', monospace";
  const x = e => left + (e - t.first) * cell, mid = e => x(e) + cell / 2, top = 16, bottom = top + high + below;
  g.font = small; g.fillStyle = c.soft;
  g.fillText("element", 0, 8); g.fillText("before", 0, top + high / 2);
  if (links.length) g.fillText("thread", 0, top + high + 12);
  if (after) g.fillText("after", 0, bottom + high / 2);
  g.textAlign = "center";
  for (let e = t.first; e <= t.last; e++) {
    g.font = small; g.fillStyle = c.soft; g.fillText(e, mid(e), 8);
    g.fillStyle = t.read.has(e) ? c.read : c.idle; g.fillRect(x(e), top, cell, high);
    g.strokeStyle = c.other; g.strokeRect(x(e) + 0.5, top + 0.5, cell, high);
    g.font = font; g.fillStyle = c.ink; g.fillText(shownValue(t.values.get(e)), mid(e), top + high / 2 + 1);
    const w = t.written.get(e);
    if (!w) continue;
    g.fillStyle = c.write; g.fillRect(x(e), bottom, cell, high); g.strokeRect(x(e) + 0.5, bottom + 0.5, cell, high);
    g.fillStyle = c.ink; g.fillText(shownValue(w[0]), mid(e), bottom + high / 2 + 1);
  }
  g.font = small;
  for (const l of links) {
    const y = top + high + 12 + l.row * row, end = mid(l.from.at(-1));
    g.strokeStyle = c.accent; g.beginPath();
    for (const e of l.from) { g.moveTo(mid(e), top + high); g.lineTo(mid(e), y); }
    g.moveTo(mid(l.from[0]), y); g.lineTo(end, y);
    if (l.to !== null) { g.moveTo(mid(l.to), y); g.lineTo(mid(l.to), bottom - 4); }
    g.stroke();
    if (l.to !== null) { g.fillStyle = c.accent; g.beginPath(); g.moveTo(mid(l.to), bottom); g.lineTo(mid(l.to) - 4, bottom - 6); g.lineTo(mid(l.to) + 4, bottom - 6); g.fill(); }
  }
  for (const l of links) {
    const y = top + high + 12 + l.row * row, at = l.from.length > 1 ? mid(l.from[0]) + cell / 2 : mid(l.from[0]);
    const width = g.measureText(l.thread).width;
    g.fillStyle = c.paper; g.fillRect(at - width / 2 - 1, y - 6, width + 2, 12);
    g.fillStyle = c.accent; g.fillText(l.thread, at, y);
  }
  return (px, py) => px < left || py > top + high && py < bottom ? null : t.first + Math.floor((px - left) / cell);
}

/* 32 elements a row: a row is a line of global memory, a column a bank of shared memory. */
function drawGrid(canvas, t, c) {
  const start = t.first - t.first % 32, rows = Math.floor((t.last - start) / 32) + 1, left = 46, top = 18;
  const room = canvas.parentElement.clientWidth - left - 2;
  const cell = Math.max(8, Math.min(30, Math.floor(room / 32))), high = Math.max(8, Math.min(cell, rows > 32 ? 14 : 20));
  const g = prepare(canvas, left + 32 * cell + 1, top + rows * high + 1);
  const fontOf = "px ui-monospace, 'DejaVu Sans Mono', monospace";
  g.font = 11 + fontOf;
  g.fillStyle = c.soft;
  g.fillText(t.shared ? "bank" : "line", 0, 8);
  g.textAlign = "center";
  for (let k = 0; k < 32; k += cell < 18 ? 8 : cell < 24 ? 4 : 1) g.fillText(k, left + (k + 0.5) * cell, 8);
  for (let r = 0; r < rows; r++) {
    g.textAlign = "right"; g.fillStyle = c.soft; g.font = 11 + fontOf;
    if (high > 10 || r % 2 === 0) g.fillText(t.shared ? start + r * 32 : start / 32 + r, left - 6, top + (r + 0.5) * high + 1);
    g.textAlign = "center";
    for (let k = 0; k < 32; k++) {
      const e = start + r * 32 + k;
      if (e < t.first || e > t.last) continue;
      g.fillStyle = cellColor(t, e, c); g.fillRect(left + k * cell, top + r * high, cell - 1, high - 1);
      const value = shownValue(t.written.has(e) ? t.written.get(e)[0] : t.values.get(e));
      const size = value.length * 7 < cell ? 11 : 9;
      if (value.length * size * 0.6 < cell && high > 12) { g.font = size + fontOf; g.fillStyle = c.ink; g.fillText(value, left + (k + 0.5) * cell - 0.5, top + (r + 0.5) * high + 0.5); }
    }
  }
  return (px, py) => px < left || py < top || px >= left + 32 * cell ? null
    : start + Math.floor((py - top) / high) * 32 + Math.floor((px - left) / cell);
}

/* ---- Measured ---- */

function bars(set) {
  const texts = new Map(page.texts.map(t => [t.name, t]));
  const rows = set.rows.map(r => {
    const t = texts.get(r.name), said = t ? [t.mflops && t.mflops + " MFLOPS", t.ms && t.ms + " ms"].filter(Boolean).join(", ") : "";
    const share = r.gbps / set.roof * 100;
    return `<tr><th scope="row">${escaped(r.name)}</th>` + (r.gbps === undefined
      ? `<td class="left">not measured</td><td class="wide"></td><td></td><td class="bar"></td>`
      : `<td>${r.ms}</td><td class="wide">${r.gbps}</td><td>${share.toFixed(1)}%</td><td class="bar"><div role="img" aria-label="${share.toFixed(1)}% of the roof" style="width:${Math.min(100, share)}%"></div></td>`) +
      `<td>${escaped(said).replace(", ", "<br>")}</td></tr>`;
  }).join("");
  return `<h3>${escaped(set.where)}</h3><p class="soft">${escaped(set.what)}. The roof: ${set.roof} GB/s. <code>${escaped(set.command)}</code>${set.file ? ", " + escaped(set.file) : ""}</p>
    <div class="scroll"><table class="bars"><thead><tr><th scope="col">kernel</th><th scope="col">ms</th><th scope="col" class="wide">GB/s</th>
    <th scope="col">of roof</th><th scope="col" class="bar left">0 to 100%</th><th scope="col">the texts</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

/* ---- The claims: the little of Markdown that the page is written in ---- */

function inline(text) {
  return text.split(/(`[^`]*`)/).map(s => s.startsWith("`") && s.length > 1 ? `<code>${escaped(s.slice(1, -1))}</code>`
    : escaped(s).replace(/\[([^\]]*)\]\(([^)]*)\)/g, (_, label, to) => /^(https?:|#)/.test(to) ? `<a href="${to}">${label}</a>` : label)
      .replace(/\*\*([^*]+)\*\*/g, "<strong>$1</strong>").replace(/\*([^*]+)\*/g, "<em>$1</em>").replace(/\\(.)/g, "$1")).join("");
}

const cellsOf = line => line.replace(/^\s*\||\|\s*$/g, "").split(/(?<!\\)\|/).map(s => s.trim());

/* The address of a heading within the page, as GitHub makes it. */
const slug = text => text.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");

function markdown(text) {
  const lines = text.replace(/<!--[^]*?-->/g, "").split("\n"), out = [];
  for (let i = 0; i < lines.length;) {
    const line = lines[i], take = test => { const from = i; while (i < lines.length && test(lines[i])) i++; return lines.slice(from, i); };
    if (!line.trim()) i++;
    else if (/^#/.test(line)) {
      const level = line.match(/^#+/)[0].length + 1, title = line.replace(/^#+\s*/, "");
      out.push(`<h${level} id="${level === 2 ? "claims-title" : slug(title)}">${inline(title)}</h${level}>`);
      i++;
    } else if (/^```/.test(line)) {
      i++;
      out.push(`<pre tabindex="0">${take(l => !/^```/.test(l)).map(l => `<span>${escaped(l)}</span>`).join("")}</pre>`);
      i++;
    } else if (/^ {4}/.test(line)) out.push(`<pre tabindex="0">${take(l => /^ {4}/.test(l)).map(l => `<span>${escaped(l.slice(4))}</span>`).join("")}</pre>`);
    else if (/^\s*\|/.test(line)) {
      const [head, , ...rows] = take(l => /^\s*\|/.test(l)).map(cellsOf);
      out.push(`<div class="scroll text"><table><thead><tr>${head.map(h => `<th scope="col">${inline(h)}</th>`).join("")}</tr></thead><tbody>` +
        rows.map(r => `<tr>${r.map(d => `<td>${inline(d)}</td>`).join("")}</tr>`).join("") + "</tbody></table></div>");
    } else if (/^[-*] /.test(line)) {
      const items = take(l => /^[-*] /.test(l) || /^ +\S/.test(l)).reduce((list, l) => {
        if (/^[-*] /.test(l)) list.push(l.slice(2)); else list[list.length - 1] += " " + l.trim();
        return list;
      }, []);
      out.push(`<ul>${items.map(t => `<li>${inline(t)}</li>`).join("")}</ul>`);
    } else out.push(`<p>${inline(take(l => l.trim() && !/^(#|```|\s*\||[-*] | {4})/.test(l)).join(" "))}</p>`);
    if (out.length > 5000) break;
  }
  return out.join("\n");
}

/* ---- Start ---- */

function listen() {
  const number = (id, key) => $(id).addEventListener("change", () => choose({ [key]: Number($(id).value) || 0 }));
  number("rung-a", "a"); number("rung-b", "b"); number("n", "n"); number("block", "block");
  number("coarsen", "coarsen"); number("shown", "shown");
  $("controls").addEventListener("submit", event => event.preventDefault());
  $("step").addEventListener("input", () => showStep(Number($("step").value)));
  $("first").addEventListener("click", () => showStep(0));
  $("back").addEventListener("click", () => showStep(chosen.step - 1));
  $("forward").addEventListener("click", () => showStep(chosen.step + 1));
  $("last").addEventListener("click", () => showStep(Infinity));
  $("panels").addEventListener("click", event => {
    const mends = event.target.closest("[data-mends]");
    if (mends) choose({ b: Number(mends.dataset.mends) });
  });
  document.addEventListener("keydown", event => {
    const moves = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    if (!(event.key in moves) || event.ctrlKey || event.altKey || event.metaKey) return;
    if (/^(SELECT|INPUT|TEXTAREA|PRE)$/.test(event.target.tagName)) return;
    event.preventDefault();
    showStep(chosen.step + moves[event.key]);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => showStep(chosen.step));
  let resized = 0;
  addEventListener("resize", () => { cancelAnimationFrame(resized); resized = requestAnimationFrame(() => showStep(chosen.step)); });
}

function start() {
  chosen.a = kernels[0].index;
  $("version").textContent = page.version;
  $("bars").innerHTML = page.measured.map(bars).join("") + `<p class="soft">${escaped(page.texts_note)}</p>`;
  if (page.claims) $("claims-text").innerHTML = markdown(page.claims);
  else { $("claims").hidden = true; $("to-claims").hidden = true; }
  listen();
  return choose({});
}

start().catch(error => {
  $("failed").hidden = false;
  $("failed").textContent = "The steps cannot be shown: " + error.message;
  throw error;
});
