// What moves on a report: pictures in the colours of the theme, choices, and copying.
(() => {
  "use strict";
  const root = document.documentElement;
  const find = (id) => document.getElementById(id);
  const parsed = (id) => (find(id) ? JSON.parse(find(id).textContent) : {});
  const pictures = parsed("memfit-pictures");
  const state = {};

  // Colours that figures only name are those of the page.
  const colours = () => {
    const style = getComputedStyle(root);
    return (name) => style.getPropertyValue(`--${name}`).trim() || name;
  };
  const coloured = (value, colour) => {
    if (typeof value === "string") {
      return /^@[a-z]+$/.test(value) ? colour(value.slice(1)) : value;
    }
    if (Array.isArray(value)) return value.map((item) => coloured(item, colour));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, coloured(v, colour)]));
    }
    return value;
  };

  const narrow = () => window.innerWidth < 560;

  // A phone has room for three amounts below a picture, and for short names beside it.
  function fewer(axis) {
    if (!axis.tickvals || axis.tickvals.length < 5) return axis;
    const every = Math.floor((axis.tickvals.length - 1) / 2);
    const kept = (_, at) => at % every === 0;
    return { ...axis, tickvals: axis.tickvals.filter(kept), ticktext: axis.ticktext.filter(kept) };
  }
  function short(words) {
    const signs = [...words];
    // A name with an entity or a mark in it is left as it is: it could be cut in the middle of one.
    return signs.length > 22 && !/[&<]/.test(words) ? signs.slice(0, 21).join("") + "\u2026" : words;
  }
  const view = (key) => pictures[key].views.find((one) => one.key === state[key].shown);

  function figure(key) {
    const picture = pictures[key];
    const colour = colours();
    const ink = colour("ink");
    const axis = { gridcolor: colour("line"), linecolor: colour("line"), color: colour("muted") };
    const layout = coloured(picture.layout, colour);
    for (const name of ["xaxis", "yaxis"]) {
      if (layout[name]) layout[name] = { ...axis, ...layout[name] };
    }
    for (const name of ["xaxis", "yaxis"]) {
      if (layout[name] && layout[name].title) layout[name].title.font = { size: narrow() ? 11 : 13, color: colour("muted") };
    }
    if (layout.xaxis && narrow()) layout.xaxis = fewer({ nticks: 4, tickangle: 0, ...layout.xaxis });
    if (layout.yaxis && narrow() && layout.yaxis.ticktext) {
      layout.yaxis.ticktext = layout.yaxis.ticktext.map(short);
    }
    const traces = picture.views.length
      ? [coloured(view(key).trace, colour)]
      : picture.traces.map((trace, at) => {
          const drawn = coloured(trace, colour);
          if (narrow() && drawn.textposition === "outside") drawn.textposition = "none";
          const layer = Object.entries(picture.layers).find(([, some]) => some.includes(at));
          return layer ? { ...drawn, visible: layer[0] === state[key].layer } : drawn;
        });
    return {
      traces,
      layout: {
        margin: { l: 8, r: 16, t: layout.annotations ? 26 : 10, b: 8 },
        paper_bgcolor: "rgba(0,0,0,0)",
        plot_bgcolor: "rgba(0,0,0,0)",
        font: { color: ink, family: "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif", size: narrow() ? 11 : 13 },
        hoverlabel: { bgcolor: colour("paper"), bordercolor: colour("muted"), font: { color: ink }, align: "left" },
        bargap: 0.3,
        ...layout,
        dragmode: picture.leads && matchMedia("(pointer: fine)").matches ? layout.dragmode || "zoom" : false,
      },
    };
  }

  const settings = { displayModeBar: false, responsive: true, doubleClick: "reset", showTips: false };

  function draw(key) {
    const place = document.querySelector(`[data-picture="${CSS.escape(key)}"]`);
    const { traces, layout } = figure(key);
    // On a phone the legend has a line for each of its names.
    const named = new Set(traces.filter((t) => t.name && t.showlegend !== false).map((t) => t.name));
    const below = narrow() && layout.legend && named.size > 1 ? 21 * named.size - 30 : 0;
    place.style.height = `${pictures[key].height + Math.max(0, below)}px`;
    return Plotly.react(place, traces, layout, settings);
  }

  function choose(key, shown) {
    if (!pictures[key].views.some((one) => one.key === shown)) return;
    state[key].shown = shown;
    press(key, shown);
    draw(key);
  }

  function press(key, chosen) {
    for (const button of document.querySelectorAll(`[data-for="${CSS.escape(key)}"] button`)) {
      const pressed = button.dataset.key === chosen;
      button.setAttribute("aria-pressed", String(pressed));
      const row = button.parentElement;
      if (pressed && row.classList.contains("many")) row.scrollLeft = button.offsetLeft - row.offsetLeft - 80;
    }
  }

  // The picture of what it consists of follows the moment that is chosen elsewhere.
  function follow(point) {
    for (const [key, picture] of Object.entries(pictures)) {
      if (picture.views.length < 2) continue;
      const timed = picture.views.filter((one) => one.at !== null);
      if (timed.length) {
        const before = timed.filter((one) => one.at <= point.x);
        choose(key, (before[before.length - 1] || timed[0]).key);
      } else {
        choose(key, String(point.y));
      }
    }
  }

  function buttons(key, names, chosen, act) {
    const row = document.querySelector(`[data-for="${CSS.escape(key)}"]`);
    for (const [name, words] of names) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = words;
      button.dataset.key = name;
      button.addEventListener("click", () => act(name));
      row.append(button);
    }
    row.classList.toggle("many", names.length > 12);
    press(key, chosen);
  }

  function begin(key) {
    const picture = pictures[key];
    const layers = Object.keys(picture.layers);
    state[key] = { shown: picture.shown, layer: layers[0] };
    if (picture.views.length > 1) {
      buttons(key, picture.views.map((one) => [one.key, one.label]), picture.shown, (name) => choose(key, name));
    }
    if (layers.length > 1) {
      buttons(key, layers.map((name) => [name, name]), layers[0], (name) => {
        state[key].layer = name;
        press(key, name);
        draw(key);
      });
    }
    return draw(key).then((place) => {
      if (picture.leads) place.on("plotly_click", (event) => follow(event.points[0]));
    });
  }

  function theme() {
    const button = find("theme");
    const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    const say = () => { button.textContent = dark() ? "Light" : "Dark"; };
    const redraw = () => { say(); if (window.Plotly) Object.keys(state).forEach(draw); };
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      redraw();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    say();
    // Paper is white, and narrower than a screen.
    let before;
    addEventListener("beforeprint", () => {
      before = root.dataset.theme;
      root.dataset.theme = "light";
      if (!window.Plotly) return;
      for (const key of Object.keys(state)) {
        const place = document.querySelector(`[data-picture="${CSS.escape(key)}"]`);
        draw(key);
        Plotly.relayout(place, { width: 660 });
      }
    });
    addEventListener("afterprint", () => {
      if (before) root.dataset.theme = before; else delete root.dataset.theme;
      redraw();
    });
  }

  function copying() {
    for (const place of document.querySelectorAll(".copied")) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        const text = place.querySelector("code, pre").textContent;
        try {
          await navigator.clipboard.writeText(text);
        } catch {
          const area = document.createElement("textarea");
          area.value = text;
          place.append(area);
          area.select();
          document.execCommand("copy");
          area.remove();
        }
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
      place.append(button);
    }
  }

  async function unpacked(packed) {
    const bytes = Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  // A phone that is turned, a window that is made narrow.
  function turning() {
    let was = narrow();
    addEventListener("resize", () => {
      if (narrow() === was) return;
      was = narrow();
      if (window.Plotly) Object.keys(state).forEach(draw);
    });
  }

  async function start() {
    theme();
    turning();
    copying();
    if (!find("memfit-plotly")) return;
    try {
      const script = document.createElement("script");
      script.textContent = await unpacked(find("memfit-plotly").textContent);
      document.head.append(script);
      root.classList.add("js");
      await Promise.all(Object.keys(pictures).map(begin));
      root.dataset.drawn = "yes";
    } catch (error) {
      root.classList.remove("js");
      for (const table of document.querySelectorAll(".picture details")) table.open = true;
      console.error(error);
    }
  }

  start();
})();
