"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const number = (value) => Math.round(value).toLocaleString("en-GB");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const unpack = (text, Type) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new Type(bytes.buffer);
  };
  const name = (i) => data.names[i];
  const added = data.adds ? " added" : " would follow";
  // Text always goes in as text nodes, so that no name is ever read as markup.
  const say = (element, ...parts) => {
    element.replaceChildren(...parts.map((part) => {
      if (typeof part === "string") return document.createTextNode(part);
      const bold = document.createElement("b");
      bold.textContent = part[0];
      return bold;
    }));
  };
  const sharpen = (canvas, width, height) => {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return context;
  };
  const pairAt = new Map(data.pairs.map((pair, place) => [pair.i + "," + pair.j, place]));
  const findPair = (i, j) => pairAt.get(Math.min(i, j) + "," + Math.max(i, j));

  /* ---------------------------------------------------------------- match matrix */

  const bounds = data.matrix.bounds, n = bounds.length - 1;
  const counts = {};
  for (const kind of ["before", "removed", "added"]) counts[kind] = unpack(data.matrix[kind], Uint32Array);
  counts.after = counts.before.map((value, c) => value - counts.removed[c] + (data.adds ? counts.added[c] : 0));
  const largest = (kinds) => Math.max(1, ...kinds.map((kind) => counts[kind].reduce((a, b) => Math.max(a, b), 0)));
  const top = { before: largest(["before", "after"]), after: largest(["before", "after"]), removed: largest(["removed"]) };
  const maps = [...document.querySelectorAll(".map")];
  let cell = null;

  const rgb = (text) => {
    const value = text.length === 4 ? text.replace(/[0-9a-f]/gi, "$&$&") : text;
    return [1, 3, 5].map((s) => parseInt(value.slice(s, s + 2), 16));
  };
  const mix = (from, to, share) => "rgb(" + from.map((v, c) => Math.round(v + (to[c] - v) * share)).join(" ") + ")";

  const drawMap = (canvas) => {
    const side = canvas.clientWidth, kind = canvas.dataset.kind, context = sharpen(canvas, side, side);
    const [low, high] = (kind === "removed" ? ["--map-lost-low", "--map-lost"] : ["--map-low", "--map-high"]).map((v) => rgb(colour(v)));
    const none = colour("--map-none"), step = side / Math.max(n, 1), gap = step > 9 ? 1 : 0;
    for (let r = 0; r < n; r++) for (let s = 0; s < n; s++) {
      const count = counts[kind][r * n + s];
      context.fillStyle = count ? mix(low, high, count / top[kind]) : none;
      const x = Math.round(s * step), y = Math.round(r * step);
      context.fillRect(x, y, Math.round((s + 1) * step) - x - gap, Math.round((r + 1) * step) - y - gap);
    }
    if (cell && n) {
      context.strokeStyle = colour("--ink");
      context.lineWidth = 2.5;
      context.strokeRect(cell[1] * step, cell[0] * step, Math.max(step, 3), Math.max(step, 3));
    }
  };
  const groupName = (g) => {
    const first = bounds[g], last = bounds[g + 1] - 1;
    return first === last ? name(first) : name(first) + " … " + name(last);
  };
  // A cell of one object and itself has nothing to tell.
  const empty = ([r, s]) => r === s && bounds[r + 1] - bounds[r] === 1;
  const showCell = (where) => {
    if (cell && cell[0] === where[0] && cell[1] === where[1]) return;
    cell = where;
    maps.forEach(drawMap);
    const [r, s] = cell, c = r * n + s;
    say(byId("matrix-status"), [groupName(r)], " × ", [groupName(s)], ": ",
      number(counts.before[c]) + " before → " + number(counts.after[c]) + " after (" +
      number(counts.removed[c]) + " removed, " + number(counts.added[c]) + added + ")");
  };
  const openCell = () => {
    if (!cell) return;
    const place = bounds[cell[0] + 1] - bounds[cell[0]] === 1 && bounds[cell[1] + 1] - bounds[cell[1]] === 1
      ? findPair(bounds[cell[0]], bounds[cell[1]]) : undefined;
    if (place === undefined) {
      byId("matrix-status").append(" — not in the viewer below");
    } else {
      showPair(place);
      byId("viewer").scrollIntoView();
    }
  };
  const setUpMaps = () => {
    for (const canvas of maps) {
      const at = (event) => {
        const box = canvas.getBoundingClientRect();
        const along = (position, start, length) => clamp(Math.floor((position - start) / length * n), 0, n - 1);
        return [along(event.clientY, box.top, box.height), along(event.clientX, box.left, box.width)];
      };
      if (!n) continue;
      const point = (event) => { const where = at(event); if (!empty(where)) showCell(where); return !empty(where); };
      canvas.addEventListener("pointermove", point);
      canvas.addEventListener("click", (event) => { if (point(event)) openCell(); });
      canvas.addEventListener("focus", () => { if (!cell && n > 1) showCell([0, 1]); });
      canvas.addEventListener("keydown", (event) => {
        const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
        const from = (steps) => move.map((step, c) => clamp(cell[c] + steps * step, 0, n - 1));
        if (move && cell) showCell([1, 2, 0].map(from).find((where) => !empty(where)));
        else if (event.key === "Enter") openCell();
        else return;
        event.preventDefault();
      });
    }
    for (const kind of Object.keys(top)) {
      document.querySelector(`[data-low="${kind}"]`).textContent = "0";
      document.querySelector(`[data-high="${kind}"]`).textContent = number(top[kind]);
    }
  };

  /* ---------------------------------------------------------------- pair viewer */

  const canvas = byId("pair"), first = byId("first"), second = byId("second"), threshold = byId("threshold");
  const status = byId("pair-status"), photographs = new Map(), unpacked = new Map();
  let current = 0, order = [0, 1], shown = [], marked = -1, places = null;

  const objectOf = (i) => {
    if (!unpacked.has(i)) {
      const packed = data.objects[i];
      unpacked.set(i, { points: unpack(packed.points, Uint32Array), xy: packed.xy && unpack(packed.xy, Uint16Array),
        frame: packed.frame, size: packed.size, photograph: data.photographs[i] });
    }
    return unpacked.get(i);
  };
  const matchesOf = (place) => {
    const pair = data.pairs[place];
    if (!pair.ends) {
      pair.ends = [unpack(pair.a, Uint32Array), unpack(pair.b, Uint32Array)];
      pair.confidence = unpack(pair.support, Uint8Array);
    }
    return pair;
  };
  const kindOf = (pair, t) => t < pair.kept ? "kept" : t < pair.kept + pair.removed ? "removed" : "added";
  const mode = () => document.querySelector('input[name="mode"]:checked').value;
  const within = { before: ["kept", "removed"], after: data.adds ? ["kept", "added"] : ["kept"], removed: ["removed"], added: ["added"] };

  const photographOf = (i) => {
    const source = objectOf(i).photograph;
    if (!source) return null;
    if (!photographs.has(i)) {
      const image = new Image();
      image.addEventListener("load", drawPair);
      image.src = source;
      photographs.set(i, image);
    }
    const image = photographs.get(i);
    return image.complete && image.naturalWidth ? image : null;
  };

  // Where the two frames lie: side by side, or one above the other when the page is narrow.
  const layout = (i, j, width) => {
    const objects = [objectOf(i), objectOf(j)], frames = objects.map((o) => o.frame), gap = 28, stacked = width < 560;
    if (!objects[0].xy) {
      const column = Math.min(150, width / 3), height = clamp(Math.max(...objects.map((o) => o.size)) * 16 + 40, 220, 560);
      return { height, boxes: [[0, 0, column, height], [width - column, 0, column, height]] };
    }
    if (stacked) {
      const heights = frames.map((f) => Math.min(width * f[1] / f[0], 420));
      const widths = frames.map((f, c) => heights[c] * f[0] / f[1]);
      return { height: heights[0] + gap + heights[1], boxes: [[0, 0, widths[0], heights[0]], [0, heights[0] + gap, widths[1], heights[1]]] };
    }
    const ratios = frames.map((f) => f[0] / f[1]);
    const height = Math.min((width - gap) / (ratios[0] + ratios[1]), 620);
    const widths = ratios.map((r) => r * height);
    return { height, boxes: [[0, 0, widths[0], height], [width - widths[1], 0, widths[1], height]] };
  };
  const position = (object, place, box, side) => {
    if (object.xy) {
      return [box[0] + object.xy[2 * place] / 65535 * box[2], box[1] + object.xy[2 * place + 1] / 65535 * box[3]];
    }
    const share = (object.points[place] + 0.5) / object.size;
    return [box[0] + (side ? 16 : box[2] - 16), box[1] + 36 + share * (box[3] - 44)];
  };

  // The matches of each kind with enough confidence; those that have none (255) are there at 0 % only.
  const sort = (pair) => {
    const least = Number(threshold.value), groups = { kept: [], removed: [], added: [] };
    for (let t = 0; t < pair.ends[0].length; t++) {
      const confidence = pair.confidence[t];
      if (!least || (confidence !== 255 && confidence >= least)) groups[kindOf(pair, t)].push(t);
    }
    return groups;
  };
  // The matches to draw: removed ones first, added ones in at most half of the room, kept ones in the rest.
  const choose = (sorted) => {
    const wanted = within[mode()], limit = Number(byId("lines").value), groups = {};
    for (const kind in sorted) groups[kind] = wanted.includes(kind) ? sorted[kind] : [];
    const thin = (list, room) => list.length <= room ? list
      : Array.from({ length: Math.max(room, 0) }, (_, c) => list[Math.floor(c * list.length / room)]);
    const removed = thin(groups.removed, limit);
    const room = groups.kept.length ? Math.max((limit - removed.length) / 2, limit - removed.length - groups.kept.length) : limit;
    const changed = [...removed, ...thin(groups.added, Math.floor(room))];
    return { drawn: [...thin(groups.kept, limit - changed.length), ...changed],
      total: groups.kept.length + groups.removed.length + groups.added.length };
  };

  const strokes = (photograph) => photograph
    ? { kept: "#5cb8ff", removed: "#ff9f2e", added: "#ff9de2" }
    : { kept: colour("--blue"), removed: colour("--orange"), added: colour("--purple") };
  const dashes = { kept: [], removed: [7, 4], added: [2, 3] };

  const line = (context, t, pair, style, width, alpha) => {
    const kind = kindOf(pair, t), [from, to] = places.get(t);
    context.globalAlpha = alpha;
    context.setLineDash(dashes[kind]);
    context.strokeStyle = style[kind];
    context.fillStyle = style[kind];
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.stroke();
    context.globalAlpha = Math.min(1, alpha * 1.6);
    for (const [x, y] of [from, to]) {
      context.beginPath();
      context.arc(x, y, width + 1.2, 0, 7);
      context.fill();
    }
  };

  // Where there is no photograph the other points give an idea of the object.
  const drawPoints = (context, object, box, side) => {
    const count = object.points.length, numbered = !object.xy && object.size <= 40;
    context.fillStyle = colour("--plain");
    context.font = "11px Inter, system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = side ? "left" : "right";
    for (let p = 0; p < Math.min(count, 20000); p++) {
      const [x, y] = position(object, p, box, side);
      context.fillRect(x - 1, y - 1, 2, 2);
      if (numbered) context.fillText(object.points[p], x + (side ? 12 : -12), y);
    }
    context.textAlign = "left";
  };

  function drawPair() {
    if (!data.pairs.length) return;
    const pair = matchesOf(current), ends = order.map((c) => [pair.i, pair.j][c]), width = canvas.clientWidth;
    const plan = layout(...ends, width);
    canvas.style.aspectRatio = width + " / " + plan.height;
    const context = sharpen(canvas, width, plan.height);
    const pictures = ends.map(photographOf);
    ends.forEach((i, side) => {
      const box = plan.boxes[side];
      context.fillStyle = colour("--sunk");
      context.fillRect(...box);
      if (pictures[side]) {
        context.drawImage(pictures[side], ...box);
        context.fillStyle = "rgb(0 0 0 / 30%)";
        context.fillRect(...box);
      } else {
        drawPoints(context, objectOf(i), box, side);
      }
    });
    const sorted = sort(pair), { drawn, total } = choose(sorted);
    const objects = ends.map(objectOf);
    places = new Map(drawn.map((t) => [t, objects.map((o, side) => position(o, pair.ends[order[side]][t], plan.boxes[side], side))]));
    shown = drawn;
    if (!drawn.includes(marked)) marked = -1;
    const style = strokes(ends.some((i) => objectOf(i).photograph));
    const alpha = clamp(6 / Math.sqrt(drawn.length + 1), 0.22, 0.95) * (marked >= 0 ? 0.35 : 1);
    for (const t of drawn) line(context, t, pair, style, 1.3, kindOf(pair, t) === "kept" ? alpha : Math.max(alpha, marked >= 0 ? 0.3 : 0.85));
    if (marked >= 0) line(context, marked, pair, style, 3, 1);
    context.globalAlpha = 1;
    context.setLineDash([]);
    context.font = "600 12px Inter, system-ui, sans-serif";
    context.textBaseline = "middle";
    ends.forEach((i, side) => {
      const [x, y, w] = plan.boxes[side], text = name(i), length = Math.min(context.measureText(text).width, w - 32);
      context.fillStyle = "rgb(10 16 24 / 72%)";
      context.fillRect(x + 8, y + 8, length + 16, 24);
      context.fillStyle = "#fff";
      context.fillText(text, x + 16, y + 20.5, length);
    });
    for (const element of document.querySelectorAll("[data-count]")) {
      element.textContent = number(within[element.dataset.count].reduce((sum, kind) => sum + sorted[kind].length, 0));
    }
    canvas.dataset.drawn = drawn.length;
    canvas.dataset.total = total;
    describe(pair, drawn.length, total);
  }

  const describe = (pair, drawn, total) => {
    if (marked >= 0) {
      const [a, b] = [pair.i, pair.j].map((i, side) => objectOf(i).points[pair.ends[side][marked]]);
      const confidence = pair.confidence[marked];
      const kind = kindOf(pair, marked);
      say(status, [kind === "added" ? added.trim() : kind], ": point " + a + " of ", [name(pair.i)], " – point " + b + " of ", [name(pair.j)],
        confidence === 255 ? "" : ", confidence " + confidence + " %");
      return;
    }
    if (mode() === "added" && pair.added && Number(threshold.value)) {
      say(status, data.adds ? "Added matches" : "Matches that would follow", " have no confidence: set it to 0 % to see them.");
      return;
    }
    const share = drawn < total ? number(drawn) + " of " + number(total) + " lines drawn; choose more under Lines" : number(total) + (total === 1 ? " line" : " lines");
    say(status, [number(pair.kept) + " kept"], ", ", [number(pair.removed) + " removed"], ", ", [number(pair.added) + added],
      " — " + share + ". Point at a keypoint, or use the arrow keys, to follow one match.");
  };

  const fill = (select, options, value) => {
    select.replaceChildren(...options.map(([i, text]) => new Option(text, i, false, i === value)));
  };
  const partners = (i) => data.pairs.filter((p) => p.i === i || p.j === i).map((p) => p.i === i ? p.j : p.i).sort((a, b) => a - b);
  function showPair(place, left) {
    const pair = data.pairs[place];
    order = left === pair.j ? [1, 0] : [0, 1];
    const [a, b] = order.map((c) => [pair.i, pair.j][c]);
    current = place;
    marked = -1;
    first.value = a;
    fill(second, partners(a).map((i) => [i, name(i)]), b);
    second.value = b;
    drawPair();
  }
  const setUpViewer = () => {
    if (!data.pairs.length) {
      for (const control of byId("controls").elements) control.disabled = true;
      canvas.hidden = true;
      say(status, "There is no pair to show.");
      return;
    }
    const listed = [...new Set(data.pairs.flatMap((p) => [p.i, p.j]))].sort((a, b) => a - b);
    fill(first, listed.map((i) => [i, name(i)]), data.pairs[0].i);
    first.addEventListener("change", () => {
      const a = Number(first.value), others = partners(a), b = Number(second.value);
      showPair(findPair(a, others.includes(b) ? b : others[0]), a);
    });
    second.addEventListener("change", () => showPair(findPair(Number(first.value), Number(second.value)), Number(first.value)));
    byId("previous").addEventListener("click", () => showPair((current + data.pairs.length - 1) % data.pairs.length));
    byId("next").addEventListener("click", () => showPair((current + 1) % data.pairs.length));
    byId("controls").addEventListener("submit", (event) => event.preventDefault());
    for (const radio of document.querySelectorAll('input[name="mode"]')) radio.addEventListener("change", drawPair);
    byId("lines").addEventListener("change", drawPair);
    threshold.addEventListener("input", () => {
      byId("threshold-value").textContent = threshold.value + " %";
      drawPair();
    });
    const mark = (t) => { if (t !== marked) { marked = t; drawPair(); } };
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
      let best = -1, nearest = 16;
      for (const t of shown) for (const [u, v] of places.get(t)) {
        const distance = Math.hypot(u - x, v - y);
        if (distance < nearest) [best, nearest] = [t, distance];
      }
      mark(best);
    });
    canvas.addEventListener("pointerleave", () => mark(-1));
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step && shown.length) mark(shown[(shown.indexOf(marked) + step + shown.length) % shown.length]);
      else if (event.key === "Escape") mark(-1);
      else return;
      event.preventDefault();
    });
    showPair(0);
  };

  /* ---------------------------------------------------------------- sortable table */

  const setUpTable = () => {
    const table = document.querySelector(".sortable"), body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.querySelector("button")?.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "descending" || (column === 0 && head.getAttribute("aria-sort") !== "ascending");
      heads.forEach((other) => other.hasAttribute("aria-sort") && other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => Number(row.cells[column].dataset.value);
      body.append(...[...body.rows].sort((a, b) => (up ? 1 : -1) * (value(a) - value(b))));
    }));
  };

  const redraw = () => { maps.forEach(drawMap); drawPair(); };
  setUpMaps();
  setUpViewer();
  setUpTable();
  redraw();
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; redraw(); } });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  window.addEventListener("beforeprint", () => { document.documentElement.dataset.theme = "light"; redraw(); });
  window.addEventListener("afterprint", () => { delete document.documentElement.dataset.theme; redraw(); });
})();
