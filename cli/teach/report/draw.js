/* draw.js - the pictures of a step: all steps at a glance, the threads of a block, arrays, and exchanges of registers. */

const font = size => `${size}px ui-monospace, "DejaVu Sans Mono", monospace`;
const colorNames = ["paper", "ink", "soft", "line", "other", "accent", "read", "write", "both", "idle", "bar", "waste", "wall"];
const color = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const palette = () => Object.fromEntries(colorNames.map(c => [c, color(c)]));

/* Returns a value as text. -0, the neutral element of a float sum, keeps its sign. */
const shownValue = v => v === undefined ? "" : Object.is(v, -0) ? "-0" : String(v);

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

/* ---- All steps at a glance ----
 *
 * Each step has a column. Its slots stand on the line, the wasted ones on top of the used ones. Its transactions hang
 * from the line, the wasted ones below the needed ones. */

const costOf = step => ({ issued: step.sums.issued, applied: step.sums.operations, lines: step.sums.transactions,
  fewest: Math.min(step.sums.fewest_transactions, step.sums.transactions) });

function timeline(steps, now, most) {
  const up = 34, down = 20, gap = 1, wide = 100 / steps.length, bar = Math.min(wide * 0.86, 14);
  const rects = steps.map(({ step }, i) => {
    const c = costOf(step), x = (i * wide + (wide - bar) / 2).toFixed(2), rect = (y, high, kind) => high > 0
      ? `<rect x="${x}%" width="${bar.toFixed(2)}%" y="${y.toFixed(1)}" height="${high.toFixed(1)}" fill="var(--${kind})"/>` : "";
    const slots = c.issued / most.issued * up, used = c.applied / most.issued * up;
    const lines = c.lines / most.lines * down, needed = c.fewest / most.lines * down;
    return `<g data-step="${i}"${i === now ? ` class="now"` : ""}><rect class="hit" x="${(i * wide).toFixed(2)}%" width="${wide.toFixed(2)}%" y="0" height="100%"/>` +
      rect(up - slots, slots - used, "waste") + rect(up - used, used, "bar") + rect(up + gap, needed, "line-needed") +
      rect(up + gap + needed, lines - needed, "waste") + "</g>";
  });
  const words = steps.map(({ step }, i) => `step ${i + 1}: ${step.sums.issued} slots, ${step.sums.operations} used, ${step.sums.transactions} lines`);
  return `<svg class="timeline" role="img" aria-label="All steps. ${words.join("; ")}." width="100%" height="${up + gap + down}">${rects.join("")}
    <rect x="0" width="100%" y="${up}" height="1" fill="var(--other)"/></svg>`;
}

/* ---- The threads of a block: a row for each warp, a column for each lane ---- */

function drawThreads(canvas, step, threads, room) {
  const c = palette(), warps = step.warps.length, left = 22, cell = Math.max(4, Math.min(14, (room - left - 1) / WARP));
  const high = warps > 16 ? 5 : warps > 8 ? Math.max(5, Math.min(cell, 8)) : 12;
  const g = prepare(canvas, left + WARP * cell, warps * high + 1);
  g.font = font(10);
  g.textAlign = "right";
  step.warps.forEach((w, k) => {
    g.fillStyle = c.soft;
    if (k % Math.ceil(11 / high) === 0 && k * high + 9 <= warps * high) g.fillText(k, left - 5, k * high + Math.max(high / 2, 5));
    for (let l = 0; l < WARP; l++) {
      const x = left + l * cell, there = k * WARP + l < threads, wide = cell - (cell > 6 ? 1 : 0.5), tall = high - (high > 4 ? 1 : 0.5);
      g.fillStyle = w.mask >>> l & 1 ? c.bar : w.mask ? c.waste : c.idle;
      if (there || w.mask) g.fillRect(x, k * high, wide, tall);
      else { g.strokeStyle = c.line; g.strokeRect(x + 0.5, k * high + 0.5, wide - 1, tall - 1); }
    }
  });
}

/* ---- Arrays ---- */

function cellColor(t, e, colors) {
  const read = t.read.has(e), written = t.written.has(e);
  return read && written ? colors.both : read ? colors.read : written ? colors.write : colors.idle;
}

const valuesOf = t => [...t.values].filter(([e]) => e >= t.first && e <= t.last).map(([, v]) => shownValue(v))
  .concat([...t.written].filter(([e]) => e >= t.first && e <= t.last).map(([, [v]]) => shownValue(v)));

const isStrip = t => t.last - t.first < WARP;

/* Puts links that overlap into different rows; returns how many rows. */
function stackLinks(links) {
  const ends = [];
  for (const l of [...links].sort((a, b) => a.from[0] - b.from[0])) {
    l.row = ends.findIndex(end => end <= l.from[0]);
    if (l.row < 0) l.row = ends.length;
    ends[l.row] = l.from.at(-1) + 1;
  }
  return ends.length;
}

/* Draws a row of cells with their values, the threads' links below, and the values after the step. A cell is as wide as the
 * longest value. Returns a function from a point to the element there. */
function drawStrip(canvas, t, room) {
  const c = palette(), count = t.last - t.first + 1, left = 42, high = 22, row = 16;
  const longest = Math.max(2, ...valuesOf(t).map(v => v.length));
  const cell = Math.max(longest * 7.3 + 5, Math.min(34, (room - left - 1) / count));
  const rows = stackLinks(t.links), below = rows ? rows * row + 12 : 4, after = t.written.size ? high : 0;
  const g = prepare(canvas, left + count * cell + 1, 16 + high + below + after + 2);
  const top = 16, bottom = top + high + below, x = e => left + (e - t.first) * cell, mid = e => x(e) + cell / 2;
  g.fillStyle = c.soft; g.font = font(10);
  if (rows) g.fillText("thread", 0, top + high + 12);
  g.fillText("before", 0, top + high / 2);
  if (after) g.fillText("after", 0, bottom + high / 2);
  g.textAlign = "center";
  const box = (e, y, fill, value) => {
    g.fillStyle = fill; g.fillRect(x(e), y, cell, high);
    g.strokeStyle = c.other; g.strokeRect(x(e) + 0.5, y + 0.5, cell, high);
    g.font = font(12); g.fillStyle = c.ink; g.fillText(shownValue(value), mid(e), y + high / 2 + 1);
  };
  for (let e = t.first; e <= t.last; e++) {
    g.font = font(10); g.fillStyle = c.soft; g.fillText(e, mid(e), 8);
    box(e, top, t.read.has(e) ? c.read : c.idle, t.values.get(e));
    if (t.written.has(e)) box(e, bottom, c.write, t.written.get(e)[0]);
  }
  drawLinks(g, t.links, { mid, cell, top: top + high, bottom, row, c });
  return (px, py) => px < left || py > top + high && py < bottom ? null : t.first + Math.floor((px - left) / cell);
}

function drawLinks(g, links, { mid, cell, top, bottom, row, c }) {
  g.font = font(11);
  g.strokeStyle = g.fillStyle = c.accent;
  for (const l of links) {
    const y = top + 12 + l.row * row, end = mid(l.to);
    g.beginPath();
    for (const e of l.from) { g.moveTo(mid(e), top); g.lineTo(mid(e), y); }
    g.moveTo(mid(l.from[0]), y); g.lineTo(mid(l.from.at(-1)), y);
    if (l.to !== null) { g.moveTo(end, y); g.lineTo(end, bottom - 4); }
    g.stroke();
    if (l.to !== null) { g.beginPath(); g.moveTo(end, bottom); g.lineTo(end - 4, bottom - 6); g.lineTo(end + 4, bottom - 6); g.fill(); }
  }
  for (const l of links) {
    const y = top + 12 + l.row * row, at = mid(l.from[0]) + (l.from.length > 1 ? cell / 2 : 0), width = g.measureText(l.thread).width;
    g.fillStyle = c.paper; g.fillRect(at - width / 2 - 1, y - 6, width + 2, 12);
    g.fillStyle = c.accent; g.fillText(l.thread, at, y);
  }
}

/* Draws 32 elements a row: a row is a line of global memory, a column a bank of shared memory. A bar at the left marks a
 * line that the step touches. */
function drawGrid(canvas, t, room) {
  const c = palette(), start = t.first - t.first % WARP, rows = Math.floor((t.last - start) / WARP) + 1, left = 34;
  const cell = Math.max(4, Math.min(30, (room - left - 1) / WARP)), top = cell < 12 ? 0 : 16;
  const high = Math.max(3, Math.min(cell < 18 ? cell : 20, 160 / rows));
  const g = prepare(canvas, left + WARP * cell + 1, top + rows * high + 1), every = Math.ceil(11 / high);
  g.font = font(10); g.fillStyle = c.soft; g.textAlign = "center";
  for (let k = 0; top && k < WARP; k += cell < 18 ? 4 : 1) g.fillText(k, left + (k + 0.5) * cell, 7);
  for (let r = 0; r < rows; r++) {
    const y = top + r * high;
    g.textAlign = "right"; g.fillStyle = c.soft; g.font = font(10);
    if (r % every === 0 && r * high + 9 <= rows * high) g.fillText(start + r * WARP, left - 8, y + Math.max(high / 2, 5));
    g.textAlign = "center";
    let touched = false;
    for (let k = 0; k < WARP; k++) {
      const e = start + r * WARP + k;
      if (e < t.first || e > t.last) continue;
      touched ||= t.read.has(e) || t.written.has(e);
      g.fillStyle = cellColor(t, e, c); g.fillRect(left + k * cell, y, cell - (cell > 6 ? 1 : 0.5), high - (high > 5 ? 1 : 0.5));
      const value = shownValue(t.written.has(e) ? t.written.get(e)[0] : t.values.get(e)), size = value.length * 6.6 < cell ? 11 : 9;
      if (value.length * size * 0.62 < cell && high > 11) { g.font = font(size); g.fillStyle = c.ink; g.fillText(value, left + (k + 0.5) * cell, y + high / 2); }
    }
    if (touched) { g.fillStyle = c.wall; g.fillRect(left - 5, y, 3, high - (high > 5 ? 1 : 0)); }
  }
  return (px, py) => px < left || py < top || px >= left + WARP * cell ? null
    : start + Math.floor((py - top) / high) * WARP + Math.floor((px - left) / cell);
}

/* ---- Exchanges of registers: a row of lanes before each exchange, and one after the last ---- */

/* Returns the threads of a warp whose values reach its first lane: a Set before each exchange, and one after the last. */
function lanesThatCount(exchanges) {
  const counted = [new Set([exchanges.at(-1).threads[0]])];
  for (const a of exchanges.toReversed()) {
    const lanes = new Set(counted[0]);
    a.threads.forEach((t, i) => { if (counted[0].has(t)) lanes.add(a.elements[i]); });
    counted.unshift(lanes);
  }
  return counted;
}

function drawExchanges(canvas, exchanges, last, room) {
  const c = palette(), left = 42, first = exchanges[0].warp * WARP, high = 15, gap = 13;
  const held = [...exchanges.map(a => new Map(a.threads.map((t, i) => [t, shownValue(a.given[i])]))), new Map(last)];
  const longest = Math.max(1, ...held.flatMap(m => [...m.values()].map(v => v.length))), cell = Math.max(longest * 5.3 + 2, Math.min(30, (room - left - 1) / WARP));
  const counted = lanesThatCount(exchanges), g = prepare(canvas, left + WARP * cell + 1, held.length * (high + gap) - gap + 2);
  const x = t => left + (t - first) * cell, mid = t => x(t) + cell / 2;
  const size = longest * 6.2 < cell ? 10 : 8;
  held.forEach((values, k) => {
    const y = k * (high + gap), a = exchanges[k];
    g.textAlign = "left"; g.font = font(10); g.fillStyle = c.soft;
    g.fillText(a ? "from " + farOf(a) : "sum", 0, y + high / 2 + (a ? 0 : 1));
    g.textAlign = "center"; g.font = font(size);
    for (let t = first; t < first + WARP; t++) {
      g.fillStyle = counted[k].has(t) ? k === exchanges.length ? c.write : c.read : c.idle;
      g.fillRect(x(t), y, cell - (cell > 6 ? 1 : 0.5), high);
      const value = values.get(t) ?? "";
      if (value.length * size * 0.62 < cell) { g.fillStyle = counted[k].has(t) ? c.ink : c.soft; g.fillText(value, mid(t), y + high / 2 + 1); }
    }
    if (!a) return;
    g.strokeStyle = c.accent; g.beginPath();
    a.threads.forEach((t, i) => {
      if (!counted[k + 1].has(t)) return;
      g.moveTo(mid(a.elements[i]), y + high); g.lineTo(mid(t), y + high + gap);
      g.moveTo(mid(t), y + high); g.lineTo(mid(t), y + high + gap);
    });
    g.stroke();
  });
}

/* Returns how many lanes further on the values come from. */
const farOf = a => Math.max(...a.threads.map((t, i) => a.elements[i] - t));
