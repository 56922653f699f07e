// Puts the frames of a run into the page as they come, and connects again when they stop coming.
"use strict";
(() => {
  const SILENCE = 15000, AGAIN = [1000, 2000, 5000, 10000];
  const state = document.getElementById("state");
  const runs = new Map();
  for (const section of document.querySelectorAll("section.run")) {
    const parts = new Map();
    for (const part of section.querySelectorAll("[data-part]")) parts.set(part.dataset.part, part);
    runs.set(section.dataset.run, { section, parts, shown: {}, curve: null });
  }
  if (location.search) history.replaceState(null, "", "/"); // the token is used: nobody needs it

  let source = null, tries = 0, heard = Date.now(), framed = 0, waiting = 0, told = "";

  function say(kind, text) {
    if (told !== kind + text) {
      told = kind + text;
      state.className = kind;
      state.textContent = text;
    }
  }

  function show(run) {
    const own = runs.get(run.name);
    if (!own) return location.reload(); // another memfit, with other runs
    for (const [name, html] of Object.entries(run.parts)) {
      if (own.shown[name] === html) continue;
      const part = own.parts.get(name);
      const open = part.querySelector("details[open]") !== null;
      part.innerHTML = html; // escaped where it is made; the page's policy runs no script of it
      if (open) part.querySelector("details")?.setAttribute("open", "");
      own.shown[name] = html;
    }
    own.ended = Boolean(run.ended);
    own.curve = run.curve;
    draw(own);
  }

  function connect() {
    clearTimeout(waiting);
    source?.close();
    heard = Date.now();
    source = new EventSource("/events");
    source.addEventListener("run", (event) => {
      heard = framed = Date.now();
      tries = 0;
      show(JSON.parse(event.data));
      look();
    });
    source.addEventListener("beat", () => { heard = Date.now(); });
    source.addEventListener("bye", () => { source.close(); again("memfit has stopped watching: this is what it saw last"); });
    source.onerror = () => { source.close(); again("no answer from memfit: trying again"); };
  }

  function again(why) {
    say("lost", why);
    framed = 0;
    clearTimeout(waiting);
    waiting = setTimeout(connect, AGAIN[Math.min(tries++, AGAIN.length - 1)]);
  }

  function look() {
    if (Date.now() - heard > SILENCE) return again("no answer from memfit: trying again"), source.close();
    if (!framed) return;
    const over = [...runs.values()].every((own) => own.ended);
    const age = Math.round((Date.now() - framed) / 1000);
    say("live", over ? "ended" : age > 5 ? `live, last read ${age} s ago` : "live");
  }

  // The curve, where plotly is there: else it stays as the page has it.
  let plotly = null;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function draw(own) {
    if (!plotly || !own.curve || own.curve.seconds.length < 2) return;
    const { seconds, bytes, limit, limit_text, reaches } = own.curve;
    const high = Math.max(...bytes, limit ?? 0);
    const [unit, size] = high >= 2 ** 30 ? ["GiB", 2 ** 30] : ["MiB", 2 ** 20];
    const last = seconds.at(-1), now = bytes.at(-1);
    const [axis, scale] = last > 7200 ? ["hours", 3600] : last > 180 ? ["minutes", 60] : ["seconds", 1];
    const traces = [{
      x: seconds.map((s) => s / scale), y: bytes.map((b) => b / size), mode: "lines", fill: "tozeroy",
      line: { color: colour("--fill"), width: 2 }, fillcolor: colour("--fill") + "2e",
      hovertemplate: `%{y:.2f} ${unit}<br>%{x:.1f} ${axis}<extra></extra>`,
    }];
    const shapes = [], notes = [];
    let end = last;
    if (limit !== null) {
      shapes.push({ type: "line", xref: "paper", x0: 0, x1: 1, y0: limit / size, y1: limit / size,
        line: { color: colour("--bad"), width: 1.5, dash: "dot" } });
      notes.push({ xref: "paper", x: 0, xanchor: "left", y: limit / size, yanchor: "bottom", text: limit_text,
        showarrow: false, font: { color: colour("--bad"), size: 12 } });
      if (reaches) {
        const [at, low, until] = reaches;
        end = Math.min(Math.max(at, last), 3 * last); // a limit that is far off is pointed at only
        const share = at > last ? (end - last) / (at - last) : 1;
        traces.push({ x: [last / scale, end / scale], y: [now / size, (now + (limit - now) * share) / size],
          mode: "lines", line: { color: colour("--warn"), width: 2, dash: "dash" },
          hovertemplate: "forecast<extra></extra>" });
        if (low !== null && low < end) shapes.push({ type: "rect", layer: "below", line: { width: 0 },
          x0: Math.max(low, last) / scale, x1: Math.min(until ?? end, end) / scale, yref: "paper", y0: 0, y1: 1,
          fillcolor: colour("--warn") + "22" });
      }
    }
    const soft = colour("--soft"), grid = colour("--line");
    const plot = own.section.querySelector(".plot");
    plot.hidden = false;
    own.section.classList.add("drawn");
    plotly.react(plot, traces, {
      margin: { l: 58, r: 12, t: 12, b: 42 }, showlegend: false, shapes, annotations: notes,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: soft, size: 12 },
      xaxis: { title: { text: axis }, range: [seconds[0] / scale, end / scale], gridcolor: grid, zeroline: false },
      yaxis: { title: { text: unit }, range: [0, (high / size) * 1.12], gridcolor: grid, zeroline: false },
      hoverlabel: { bgcolor: colour("--panel"), font: { color: colour("--text") }, bordercolor: grid },
    }, { displayModeBar: false, responsive: true, scrollZoom: false });
  }

  const script = document.createElement("script");
  script.src = "/plotly.js";
  script.onload = () => { plotly = window.Plotly; for (const own of runs.values()) draw(own); };
  document.head.append(script);
  dark.addEventListener("change", () => { for (const own of runs.values()) draw(own); });
  addEventListener("online", connect);
  document.addEventListener("visibilitychange", () => { if (!document.hidden && Date.now() - heard > SILENCE) connect(); });
  setInterval(look, 1000);
  connect();
})();
