/* measured.js - bars of measured times beside the roof. */
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

