/* markdown.js - the little of Markdown that docs/claims.md and docs/ladder.md are written in, as HTML. */
const escaped = s => String(s).replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

/* A link to another file is its label alone, as the page stands by itself; so is one to a heading, but where `anchors` says
 * that the page has the headings. */
function inline(text, anchors) {
  const link = (whole, label, to) => /^https?:/.test(to) || anchors && to[0] === "#" ? `<a href="${to}">${label}</a>` : label;
  return text.split(/(`[^`]*`)/).map(s => s.startsWith("`") && s.length > 1 ? `<code>${escaped(s.slice(1, -1))}</code>`
    : escaped(s).replace(/\[([^\]]*)\]\(([^)]*)\)/g, link)
      .replace(/\*\*([^*]+)\*\*/g, "<strong>$1</strong>").replace(/\*([^*]+)\*/g, "<em>$1</em>").replace(/\\(.)/g, "$1")).join("");
}

const cellsOf = line => line.replace(/^\s*\||\|\s*$/g, "").split(/(?<!\\)\|/).map(s => s.trim());

/* The address of a heading within the page, as GitHub makes it. */
const slug = text => text.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");

const codeBlock = lines => `<pre tabindex="0">${lines.map(l => `<span>${escaped(l)}</span>`).join("")}</pre>`;

function tableBlock(rows, anchors) {
  const [head, , ...body] = rows.map(cellsOf);
  return `<div class="scroll text"><table><thead><tr>${head.map(h => `<th scope="col">${inline(h, anchors)}</th>`).join("")}</tr></thead><tbody>` +
    body.map(r => `<tr>${r.map(d => `<td>${inline(d, anchors)}</td>`).join("")}</tr>`).join("") + "</tbody></table></div>";
}

function listBlock(lines, anchors) {
  const items = [];
  for (const l of lines)
    if (/^[-*] /.test(l)) items.push(l.slice(2)); else items[items.length - 1] += " " + l.trim();
  return `<ul>${items.map(t => `<li>${inline(t, anchors)}</li>`).join("")}</ul>`;
}

function headingBlock(line, anchors) {
  const level = line.match(/^#+/)[0].length + 1, title = line.replace(/^#+\s*/, "");
  return `<h${level}${anchors ? ` id="${level === 2 ? "claims-title" : slug(title)}"` : ""}>${inline(title, anchors)}</h${level}>`;
}

function markdown(text, anchors = false) {
  const lines = text.replace(/<!--[^]*?-->/g, "").split("\n"), out = [];
  let i = 0;
  const take = test => { const from = i; while (i < lines.length && test(lines[i])) i++; return lines.slice(from, i); };
  while (i < lines.length) {
    const line = lines[i];
    if (!line.trim()) i++;
    else if (/^#/.test(line)) out.push(headingBlock(lines[i++], anchors));
    else if (/^```/.test(line)) {
      i++;
      out.push(codeBlock(take(l => !/^```/.test(l))));
      i++;
    } else if (/^ {4}/.test(line)) out.push(codeBlock(take(l => /^ {4}/.test(l)).map(l => l.slice(4))));
    else if (/^\s*\|/.test(line)) out.push(tableBlock(take(l => /^\s*\|/.test(l)), anchors));
    else if (/^[-*] /.test(line)) out.push(listBlock(take(l => /^[-*] /.test(l) || /^ +\S/.test(l)), anchors));
    else out.push(`<p>${inline([lines[i++], ...take(l => l.trim() && !/^(#|```|\s*\||[-*] | {4})/.test(l))].join(" "), anchors)}</p>`);
  }
  return out.join("\n");
}
