/* exercises.js - predict, then see: questions about a kernel, drawn by chance from its records. The model's numbers decide
 * whether an answer is right.
 *
 * A kind of question is { kind, of(kernel, at): whether the step can be asked about, text(kernel, at), answer(kernel, at),
 * hint }. `at` is { launch, block, index, step } as in views; kinds with `whole` are about all steps. */

const ASKED = 3;
/* Steps are counted anew in each launch, so that one of several launches is named. */
const launchName = (k, at) => k.launches.length > 1 ? `launch ${at.launch + 1}, ` : "";
const stepName = (k, at) => `In ${launchName(k, at)}step ${at.step.step}${at.step.stride ? `, stride ${at.step.stride},` : ""}`;
const works = at => at.step.active_warps > 0;
const lanesAtWork = at => at.step.warps.map(w => lanesOf(w.mask).length);
const touchesShared = at => at.step.accesses.some(a => a.shared);
const firstWrite = at => at.step.accesses.find(a => a.act === WRITE && a.array);
const firstExchange = at => at.step.accesses.find(a => a.act === EXCHANGE);

const kinds = [
  { kind: "active_warps", of: (k, at) => works(at) && at.step.warps.length > 1,
    text: (k, at) => `${stepName(k, at)} how many of the ${at.step.warps.length} warps have a thread at work?`,
    answer: (k, at) => at.step.active_warps,
    hint: "Which threads have work? 32 threads in a row are a warp; count the warps that have one of them." },
  { kind: "threads", of: (k, at) => works(at),
    text: (k, at) => `${stepName(k, at)} how many threads are at work?`,
    answer: (k, at) => lanesAtWork(at).reduce((a, b) => a + b),
    hint: "Read the condition of the if in the marked line, and count the threads for which it holds." },
  { kind: "diverging_warps", of: (k, at) => works(at),
    text: (k, at) => `${stepName(k, at)} how many warps diverge?`,
    answer: (k, at) => at.step.warps.filter(w => w.divergent).length,
    hint: "A warp diverges where some of its lanes take a branch and others do not. All or none is no divergence." },
  { kind: "issued", of: (k, at) => works(at),
    text: (k, at) => `${stepName(k, at)} how many slots are issued?`,
    answer: (k, at) => at.step.sums.issued,
    hint: "Each instruction that applies the operator costs a warp 32 slots, however many of its lanes need it." },
  { kind: "transactions", of: (k, at) => at.step.accesses.some(a => !a.shared && a.array),
    text: (k, at) => `${stepName(k, at)} how many lines of global memory do the warps touch, access by access?`,
    answer: (k, at) => at.step.sums.transactions,
    hint: "A line has 32 elements of 4 bytes. Take each read and each write of each warp, and count the lines that its lanes need." },
  { kind: "bank_conflicts", of: (k, at) => touchesShared(at),
    text: (k, at) => `${stepName(k, at)} how many bank conflicts are there?`,
    answer: (k, at) => at.step.sums.bank_conflicts,
    hint: "Element i of shared memory lies in bank i % 32. Lanes that want different elements of one bank queue: count the extra turns." },
  { kind: "written", of: (k, at) => firstWrite(at),
    text: (k, at) => `${stepName(k, at)} what does ${firstWrite(at).array}[${firstWrite(at).elements[0]}] become?`,
    answer: (k, at) => firstWrite(at).values[0],
    hint: "Which elements does the marked line read for it? Take their values before the step." },
  { kind: "taken_from", of: (k, at) => firstExchange(at),
    text: (k, at) => `${stepName(k, at)} from which thread does thread ${firstExchange(at).threads[0]} take a value by the first shuffle?`,
    answer: (k, at) => firstExchange(at).elements[0],
    hint: "The lanes halve their distance with each shuffle. With how many lanes does the first one begin?" },
  { kind: "steps", whole: true, of: k => k.launches.length === 1,
    text: () => "How many steps are there in which a thread applies the operator?",
    answer: k => k.counts.steps,
    hint: "Each step of a tree halves what is left." },
  { kind: "barriers", whole: true, of: k => k.launches.length === 1,
    text: () => "How many barriers does a block execute?",
    answer: k => k.counts.barriers,
    hint: "Count the __syncthreads() before the loop, and how often the loop comes to its own." },
  { kind: "launches", whole: true, of: k => k.launches[0].blocks.length > 1,
    text: k => `The first launch has ${k.launches[0].blocks.length} blocks. How many launches are there in all?`,
    answer: k => k.launches.length,
    hint: "Each block leaves one value. Does the kernel combine them by itself, or does another launch?" },
  { kind: "useful", whole: true, of: () => true,
    text: k => `How many additions are useful for ${k.n} elements?`,
    answer: k => k.counts.useful,
    hint: "Each addition makes one number of two, and one is left in the end." },
];

/* Returns a function that returns numbers from 0 to count - 1 by chance, the same for the same seed. */
function chance(seed) {
  let state = seed >>> 0;
  return count => {
    state = Math.imul(state ^ state >>> 15, 0x2c1b3c6d) + 0x9e3779b9 >>> 0;
    return ((state ^ state >>> 16) >>> 0) % count;
  };
}

/* Returns all questions that a kernel's steps of one block have. */
function questionsOf(kernel, steps) {
  return kinds.flatMap(q => (q.whole ? [steps[0]] : steps).filter(at => q.of(kernel, at)).map(at => ({ kind: q.kind, at,
    place: steps.indexOf(at), whole: !!q.whole, text: q.text(kernel, at), answer: q.answer(kernel, at), hint: q.hint })));
}

/* Draws ASKED questions, each of another kind. */
function drawQuestions(kernel, steps, seed) {
  const next = chance(seed), left = questionsOf(kernel, steps), drawn = [];
  while (drawn.length < ASKED && left.length) {
    const kindsLeft = [...new Set(left.map(q => q.kind))], kind = kindsLeft[next(kindsLeft.length)], own = left.filter(q => q.kind === kind);
    drawn.push(own[next(own.length)]);
    left.splice(0, left.length, ...left.filter(q => q.kind !== kind));
  }
  return drawn;
}

/* ---- On the page ---- */

let asked = [];

/* Returns the kernel and the block that the questions are about, as a text. */
const askedAbout = () => views.length ? views[0].kernel.command + "; block " + chosen.shown : "";

function ask(kernel, seed = Math.floor(Math.random() * 2 ** 32)) {
  asked = drawQuestions(kernel, views[0].steps, seed).map(q => ({ ...q, misses: 0 }));
  $("exercise-about").innerHTML = `<code>${escaped(kernel.name)}</code>, ${kernel.n} elements, ${kernel.block} threads a block`;
  $("exercise-list").innerHTML = asked.map((q, i) => `<li><form data-question="${i}"><label for="answer-${i}">${escaped(q.text)}</label>
    <span class="answer"><input id="answer-${i}" inputmode="decimal" autocomplete="off"> <button>Check</button>
    ${q.whole ? "" : `<button type="button" data-see="${i}">See ${launchName(kernel, q.at)}step ${q.at.step.step}</button>`}</span>
    <p data-verdict="${i}" role="status"></p></form></li>`).join("");
}

/* Checks an answer. The first wrong one gets a hint, the second the answer. */
function check(i, text) {
  const q = asked[i], verdict = document.querySelector(`[data-verdict="${i}"]`), given = Number(text.trim().replace(",", "."));
  const right = text.trim() !== "" && given === q.answer;
  if (!right) q.misses++;
  verdict.className = right ? "right" : "missed";
  verdict.textContent = right ? `Right: ${shownValue(q.answer)}.` : q.misses < 2 ? `Not ${text.trim() || "empty"}. ${q.hint}`
    : `The model counts ${shownValue(q.answer)}. ${q.hint}`;
}

function listenToExercises() {
  $("exercise-list").addEventListener("submit", event => {
    event.preventDefault();
    const i = Number(event.target.dataset.question);
    check(i, $("answer-" + i).value);
  });
  $("exercise-list").addEventListener("click", event => {
    const see = event.target.closest("[data-see]");
    if (!see) return;
    goTo(asked[see.dataset.see].place);
    $("pictures").scrollIntoView({ block: "center" });
  });
  $("more-exercises").addEventListener("click", () => ask(views[0].kernel));
}
