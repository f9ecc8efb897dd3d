"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const RAYS = 16, STEP = 0.25, DOUBT = data.doubt, PAGE = 30, SIDE = 76;
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  // Golden steps around the circle of hues: neighbours in the list never look alike.
  const hue = (cell) => (cell * 137.508) % 360;
  const colour = (cell, alpha) => `hsl(${hue(cell).toFixed(1)} 90% 60% / ${alpha})`;
  const text = (tag, content, kind) => {
    const made = document.createElement(tag);
    if (content !== undefined) made.textContent = content;
    if (kind) made.className = kind;
    return made;
  };
  const decimals = (value) => (value === null ? "–" : value.toFixed(2));

  for (const plane of data.planes) {
    if (!plane) continue;
    for (const session of plane.sessions) {
      session.centres = new Float32Array(bytes(session.centres).buffer);
      session.rays = bytes(session.rays);
      const [a, b, c, d, e, f] = session.matrix, det = a * e - b * d;
      session.back = [e / det, -b / det, (b * f - c * e) / det, -d / det, a / det, (c * d - a * f) / det];
      session.picture = new Image();
      session.picture.src = session.image;
    }
  }
  const at = (m, x, y) => [m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5]];
  const order = data.planes.map((plane) => (plane ? plane.number : 0));
  const planeOf = (row) => data.planes[order.indexOf(row.p)] || data.planes[0];
  const within = (row, s) => row.i[s] - (data.starts[Math.max(order.indexOf(row.p), 0)] || [])[s];
  const seen = (row) => row.i.reduce((n, i) => n + (i >= 0), 0);
  const followed = data.rows.map((row, cell) => ({ ...row, cell })).filter((row) => seen(row) > 1);
  // By the worst place of each: one wrong day in a long row is what has to be looked at.
  const least = (row) => Math.min(...row.t.filter((t) => t !== null));
  const worst = [...followed].sort((a, b) => least(a) - least(b) || a.cell - b.cell);

  // Where a cell is in the common frame: the mean over the days on which it was seen.
  for (const row of data.rows) {
    const plane = planeOf(row);
    if (!plane) continue;
    let x = 0, y = 0, n = 0;
    row.i.forEach((index, s) => {
      if (index < 0) return;
      const session = plane.sessions[s], k = within(row, s);
      const p = at(session.matrix, session.centres[2 * k], session.centres[2 * k + 1]);
      x += p[0]; y += p[1]; n += 1;
    });
    row.at = [x / n, y / n];
  }
  for (const row of followed) row.at = data.rows[row.cell].at;

  const state = { least: 0, chosen: null, plane: data.planes.find((p) => p) || null, shown: PAGE };

  function outline(context, session, k) {
    const x = session.centres[2 * k] + 0.5, y = session.centres[2 * k + 1] + 0.5;
    context.beginPath();
    for (let r = 0; r < RAYS; r++) {
      const angle = (r / RAYS) * 2 * Math.PI, far = session.rays[k * RAYS + r] * STEP;
      context.lineTo(x + far * Math.cos(angle), y + far * Math.sin(angle));
    }
    context.closePath();
  }
  function cross(context, x, y, size) {
    context.beginPath();
    context.moveTo(x - size, y - size); context.lineTo(x + size, y + size);
    context.moveTo(x - size, y + size); context.lineTo(x + size, y - size);
    context.stroke();
  }
  // A cell is lost on a day if it was seen both before and after.
  const lost = (row, s) => row.i[s] < 0 && row.i.slice(0, s).some((i) => i >= 0) && row.i.slice(s + 1).some((i) => i >= 0);

  function style(context, row, s, unit) {
    const doubtful = row.t[s] !== null && row.t[s] < DOUBT;
    context.setLineDash(doubtful ? [3 * unit, 2 * unit] : []);
    context.lineWidth = (row.cell === state.chosen ? 3 : 1.4) * unit;
    context.strokeStyle = row.cell === state.chosen ? "#fff" : doubtful ? "#ffb000" : colour(row.cell, 1);
    context.fillStyle = doubtful ? "transparent" : colour(row.cell, row.cell === state.chosen ? 0.75 : 0.4);
  }

  const grid = document.getElementById("field-grid");
  function fields() {
    if (!grid || !state.plane) return;
    grid.replaceChildren();
    state.plane.sessions.forEach((session, s) => {
      const figure = document.createElement("figure"), canvas = document.createElement("canvas");
      const scale = Math.max(1, Math.min(2, 900 / session.width));
      canvas.width = Math.round(session.width * scale);
      canvas.height = Math.round(session.height * scale);
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", `Field of view of ${data.names[s]}`);
      canvas.addEventListener("click", (event) => {
        const box = canvas.getBoundingClientRect();
        pick(s, ((event.clientX - box.left) / box.width) * session.width, ((event.clientY - box.top) / box.height) * session.height);
      });
      const caption = document.createElement("figcaption");
      caption.append(text("b", data.names[s]), text("span"));
      figure.append(canvas, caption);
      grid.append(figure);
      session.canvas = canvas; session.scale = scale; session.caption = caption.lastChild;
    });
    draw();
  }
  function draw() {
    if (!state.plane) return;
    state.plane.sessions.forEach((session, s) => {
      if (!session.canvas) return;
      const context = session.canvas.getContext("2d"), unit = 1;
      context.setTransform(session.scale, 0, 0, session.scale, 0, 0);
      context.fillStyle = "#000";
      context.fillRect(0, 0, session.width, session.height);
      if (session.picture.complete && session.picture.naturalWidth) {
        context.globalAlpha = 0.85;
        context.drawImage(session.picture, 0, 0, session.width, session.height);
        context.globalAlpha = 1;
      }
      let here = 0, gone = 0;
      data.rows.forEach((row, cell) => {
        if (planeOf(row) !== state.plane || seen(row) !== 1 || row.i[s] < 0) return;
        context.setLineDash([]); context.lineWidth = 0.8; context.strokeStyle = "#9aa5b1";
        outline(context, session, within(row, s));
        context.stroke();
      });
      for (const row of followed) {
        if (planeOf(row) !== state.plane || row.c < state.least) continue;
        if (row.i[s] >= 0) {
          here += 1;
          style(context, row, s, unit);
          outline(context, session, within(row, s));
          context.fill(); context.stroke();
        } else if (lost(row, s)) {
          gone += 1;
          const [x, y] = at(session.back, row.at[0], row.at[1]);
          context.setLineDash([]);
          context.lineWidth = row.cell === state.chosen ? 3 : 1.3;
          context.strokeStyle = row.cell === state.chosen ? "#fff" : "#e5484d";
          cross(context, x + 0.5, y + 0.5, 3);
        }
      }
      session.caption.textContent = `${here} followed, ${gone} lost`;
    });
  }
  function pick(s, x, y) {
    let best = null, nearest = Infinity;
    const session = state.plane.sessions[s];
    for (const row of followed) {
      if (planeOf(row) !== state.plane || row.c < state.least) continue;
      const k = within(row, s);
      const [cx, cy] = row.i[s] >= 0 ? [session.centres[2 * k], session.centres[2 * k + 1]] : at(session.back, row.at[0], row.at[1]);
      const far = Math.hypot(cx + 0.5 - x, cy + 0.5 - y);
      if (far < nearest) { nearest = far; best = row; }
    }
    choose(best && nearest < 2 * state.plane.diameter ? best.cell : null, true);
  }
  function choose(cell, scroll) {
    state.chosen = state.chosen === cell ? null : cell;
    if (state.chosen !== null) {
      const plane = planeOf(data.rows[state.chosen]);
      if (plane && plane !== state.plane) {
        state.plane = plane;
        document.getElementById("plane").value = `${plane.number}`;
        fields();
      }
      const place = listed().findIndex((row) => row.cell === state.chosen);
      if (place >= state.shown) { state.shown = place + 1; rows(); }
    }
    for (const element of document.querySelectorAll(".cell")) element.classList.toggle("chosen", Number(element.dataset.cell) === state.chosen);
    draw();
    if (scroll && state.chosen !== null) {
      const element = document.querySelector(`.cell[data-cell="${state.chosen}"]`);
      if (element) element.querySelector("button").focus({ preventScroll: true });
    }
  }

  const listed = () => worst.filter((row) => row.c >= state.least);
  const space = document.getElementById("rows"), more = document.getElementById("more");
  function thumbnail(canvas, row, s) {
    const plane = planeOf(row), session = plane.sessions[s], reach = Math.max(2.2 * plane.diameter, 12);
    const zoom = canvas.width / (2 * reach), context = canvas.getContext("2d");
    const m = session.matrix;
    // The session's pixels into the common frame, and the common frame around the cell onto the thumbnail.
    context.setTransform(zoom, 0, 0, zoom, canvas.width / 2 - zoom * (row.at[0] + 0.5), canvas.height / 2 - zoom * (row.at[1] + 0.5));
    context.transform(m[0], m[3], m[1], m[4], m[2], m[5]);
    if (session.picture.complete && session.picture.naturalWidth) context.drawImage(session.picture, 0, 0, session.width, session.height);
    const [cx, cy] = at(session.back, row.at[0], row.at[1]);
    const unit = 1.2 / zoom * (canvas.width / SIDE);
    for (const other of data.rows) {
      if (planeOf(other) !== plane || other.i[s] < 0 || other.i === row.i) continue;
      const k = within(other, s);
      if (Math.hypot(session.centres[2 * k] - cx, session.centres[2 * k + 1] - cy) > 2 * reach) continue;
      context.setLineDash([]); context.lineWidth = unit; context.strokeStyle = "rgb(255 255 255 / 55%)";
      outline(context, session, k);
      context.stroke();
    }
    if (row.i[s] >= 0) {
      context.setLineDash(row.t[s] < DOUBT ? [3 * unit, 2 * unit] : []);
      context.lineWidth = 2 * unit;
      context.strokeStyle = row.t[s] < DOUBT ? "#ffb000" : colour(row.cell, 1);
      outline(context, session, within(row, s));
      context.stroke();
    } else {
      context.setLineDash([]); context.lineWidth = 1.5 * unit; context.strokeStyle = "#e5484d";
      cross(context, cx + 0.5, cy + 0.5, 4 * unit);
    }
  }
  function line(row) {
    const plane = planeOf(row), element = text("article", undefined, plane ? "cell" : "cell plain");
    element.dataset.cell = row.cell;
    element.classList.toggle("chosen", row.cell === state.chosen);
    const head = document.createElement("header"), title = document.createElement("h3"), dot = document.createElement("button");
    dot.type = "button"; dot.style.background = colour(row.cell, 1);
    dot.setAttribute("aria-label", `Find ${data.noun} ${row.cell} in all fields of view`);
    dot.addEventListener("click", () => choose(row.cell, false));
    title.append(dot, `${data.noun} ${row.cell}`);
    head.append(title, text("p", `confidence ${decimals(row.c)}`, "about"), text("p", `${seen(row)} of ${data.names.length} sessions`, "about"));
    const strip = text("ul", undefined, "strip");
    data.names.forEach((name, s) => {
      const item = document.createElement("li"), day = text("span", name, "day");
      day.title = name;
      if (plane) {
        const canvas = document.createElement("canvas");
        canvas.width = canvas.height = 2 * SIDE;
        thumbnail(canvas, row, s);
        item.append(canvas);
      }
      if (row.i[s] < 0) item.classList.add("none");
      item.append(day, row.i[s] < 0 ? text("span", "not seen", "absent") : text("span", `${row.n[s]}`, "no"));
      if (row.i[s] >= 0) item.append(" ", text("span", decimals(row.t[s]), row.t[s] !== null && row.t[s] < DOUBT ? "weak" : ""));
      strip.append(item);
    });
    element.append(head, strip);
    return element;
  }
  function rows() {
    const chosen = listed();
    space.replaceChildren(...chosen.slice(0, state.shown).map(line));
    if (!chosen.length) space.append(text("p", `No ${data.noun} has such a confidence.`, "empty"));
    more.hidden = chosen.length <= state.shown;
    more.textContent = `Show ${Math.min(PAGE, chosen.length - state.shown)} more of ${chosen.length - state.shown}`;
  }
  more.addEventListener("click", () => { state.shown += PAGE; rows(); });

  const slider = document.getElementById("least"), value = document.getElementById("least-value"), told = document.getElementById("counted");
  function told_() {
    const chosen = listed();
    const right = chosen.reduce((sum, row) => sum + row.c, 0) / Math.max(chosen.length, 1);
    value.textContent = state.least.toFixed(2);
    told.textContent = `${chosen.length} of ${followed.length} ${data.noun}s` + (chosen.length ? `; ${(100 * right).toFixed(1)} % of their places should be right` : "");
  }
  let waiting = 0;
  slider.addEventListener("input", () => {
    state.least = Number(slider.value);
    state.shown = PAGE;
    told_();
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => { draw(); rows(); });
  });

  const pictured = data.planes.filter((plane) => plane);
  if (pictured.length > 1) {
    const box = document.getElementById("plane-choice"), list = document.getElementById("plane");
    box.hidden = false;
    pictured.forEach((plane) => list.append(new Option(`plane ${plane.number}`, plane.number)));
    list.addEventListener("change", () => { state.plane = pictured.find((plane) => `${plane.number}` === list.value); fields(); });
  }
  const images = pictured.flatMap((plane) => plane.sessions.map((session) => session.picture.decode().catch(() => null)));
  told_();
  Promise.all(images).then(() => { fields(); rows(); document.documentElement.dataset.ready = "yes"; });
})();
