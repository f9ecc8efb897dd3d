"use strict";
(() => {
  const list = document.getElementById("checked");
  if (!list) return;
  const byId = (id) => document.getElementById(id);
  const status = byId("check-status"), undo = byId("undo"), redo = byId("redo"), save = byId("save");

  /* Points are the buttons of the page as it came; a state says which card holds which of them, what was said of a
     card, and which points were told apart. States are never changed, so that undoing is going back to an earlier one. */
  const buttons = [...list.querySelectorAll(".spot button")];
  const points = buttons.map((button) => ({ object: button.dataset.object, point: button.dataset.point, owner: button.dataset.owner }));
  const number = new Map(buttons.map((button, p) => [button, p]));
  const elements = new Map();
  for (const card of list.querySelectorAll(".check")) elements.set(Number(card.dataset.card), card);
  const kinds = new Map([...elements].map(([id, card]) => [id, card.querySelector("h3").firstChild.textContent.trim()]));
  const details = new Map([...elements].map(([id, card]) => [id, card.querySelector("small").textContent]));
  const pattern = elements.values().next().value;
  const first = {
    cards: [...elements].map(([id, card]) => ({ id, points: [...card.querySelectorAll(".spot button")].map((b) => number.get(b)), mark: "" })),
    apart: [],
  };
  let states = [first], now = 0, next = elements.size + 1, merging = 0, saved = 0;
  const state = () => states[now];
  const cardOf = (id) => state().cards.find((card) => card.id === id);
  const nameOf = (id) => kinds.get(id);
  const counted = (n, noun) => n + " " + noun + (n === 1 ? "" : "s");

  /* ---------------------------------------------------------------- what follows from a state */

  const links = () => {
    const found = [], { cards, apart } = state(), home = new Map();
    for (const card of cards) for (const p of card.points) home.set(p, card.id);
    for (const { points: held, mark } of cards) {
      if (mark === "rejected") held.forEach((p, c) => held.slice(c + 1).forEach((q) => found.push(["cannot", p, q])));
      else if (mark) held.slice(1).forEach((q, c) => found.push(["must", held[c], q]));
    }
    for (const [p, q] of apart) if (home.get(p) !== home.get(q)) found.push(["cannot", p, q]);
    return found;
  };
  const field = (text) => /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  const table = () => {
    const rows = links().map(([kind, p, q]) => [kind, points[p].object, points[p].point, points[q].object, points[q].point]);
    return [["kind", "object_a", "point_a", "object_b", "point_b"], ...rows].map((row) => row.map(field).join(",") + "\n").join("");
  };

  /* ---------------------------------------------------------------- the page follows the state */

  const made = (id) => {
    const card = pattern.cloneNode(true);
    card.dataset.card = id;
    card.querySelector("h3").id = "name-" + id;
    card.setAttribute("aria-labelledby", "name-" + id);
    card.querySelector("ul").replaceChildren();
    elements.set(id, card);
    return card;
  };
  const said = { accepted: "accepted", rejected: "rejected", made: "changed", "": "" };
  const show = () => {
    const { cards } = state(), focused = document.activeElement, shown = cards.map((card) => elements.get(card.id) || made(card.id));
    cards.forEach((card, c) => {
      const element = shown[c], heading = element.querySelector("h3");
      heading.firstChild.textContent = nameOf(card.id) + " ";
      const size = counted(card.points.length, "point");
      heading.querySelector("small").textContent = details.has(card.id) ? details.get(card.id) : size;
      heading.querySelector(".mark").textContent = said[card.mark];
      element.dataset.mark = card.mark;
      element.querySelector("ul").replaceChildren(...card.points.map((p) => buttons[p].parentElement));
      for (const button of element.querySelectorAll("[data-deed]")) {
        const deed = button.dataset.deed;
        if (deed === "accept" || deed === "reject") {
          button.setAttribute("aria-pressed", card.mark === deed + "ed");
          button.disabled = card.points.length < 2;
        }
        if (deed === "merge") {
          button.setAttribute("aria-pressed", card.id === merging);
          button.textContent = merging && merging !== card.id ? "Merge with " + nameOf(merging) : "Merge";
        }
        if (deed === "split") button.disabled = card.points.length < 2;
      }
    });
    list.replaceChildren(...shown);
    if (list.contains(focused)) focused.focus({ preventScroll: true });  // which moving it in the page took
    undo.disabled = !now;
    redo.disabled = now === states.length - 1;
    save.disabled = !links().length;
  };
  const say = (text) => { status.textContent = text; };
  const total = () => now ? " " + counted(now, "correction") + ", " + counted(links().length, "link") + "." : " Nothing is corrected.";
  const become = (changed, text, focus) => {
    states = [...states.slice(0, now + 1), changed];
    now += 1;
    if (saved > now - 1) saved = -1;
    merging = 0;
    for (const button of buttons) button.setAttribute("aria-pressed", "false");
    show();
    say(text + "." + total());
    elements.get(focus).focus();
  };
  const go = (step) => {
    if (now + step < 0 || now + step >= states.length) return;
    const at = document.activeElement?.closest(".check"), held = at && cardOf(Number(at.dataset.card)).points[0];
    now += step;
    merging = 0;
    show();
    // Who was on a card that is gone goes on with the one that holds its first point.
    if (at) elements.get(state().cards.find((card) => card.points.includes(held)).id).focus();
    say((step < 0 ? "Undone." : "Done again.") + total());
  };

  /* ---------------------------------------------------------------- deeds */

  const replaced = (gone, ...come) => state().cards.flatMap((card) => card.id === gone ? come : [card]);
  const mark = (id, wanted) => {
    const card = cardOf(id), same = card.mark === wanted;
    if (card.points.length < 2) return say(nameOf(id) + " is a single point; there is nothing to " + wanted.replace("ed", "") + ".");
    become({ ...state(), cards: replaced(id, { ...card, mark: same ? "" : wanted }) },
      nameOf(id) + (same ? " is open again" : " is " + wanted), id);
  };
  const split = (id) => {
    const card = cardOf(id);
    const chosen = card.points.filter((p) => buttons[p].getAttribute("aria-pressed") === "true");
    if (!chosen.length) return say("Choose the points of " + nameOf(id) + " that leave, then split.");
    if (chosen.length === card.points.length) return say("All points are chosen; leave those that stay.");
    const rest = card.points.filter((p) => !chosen.includes(p)), [one, two] = [next++, next++];
    kinds.set(one, nameOf(id) + " a");
    kinds.set(two, nameOf(id) + " b");
    become({ cards: replaced(id, { id: one, points: rest, mark: "made" }, { id: two, points: chosen, mark: "made" }),
      apart: [...state().apart, [rest[0], chosen[0]]] },
    nameOf(id) + " is split into " + rest.length + " and " + counted(chosen.length, "point"), one);
  };
  const merge = (id) => {
    if (!merging) {
      merging = id;
      show();
      return say("Choose what " + nameOf(id) + " is merged with: press Merge there, or Escape.");
    }
    const [one, two] = [cardOf(merging), cardOf(id)], from = merging;
    merging = 0;
    if (from === id) { show(); return say("Nothing is merged."); }
    const owners = new Set(one.points.map((p) => points[p].owner));
    const both = two.points.find((p) => owners.has(points[p].owner));
    if (both !== undefined) {
      show();
      return say("Both have a point of " + points[both].object + ", so they cannot be one; split one of them first.");
    }
    const made = next++;
    kinds.set(made, nameOf(one.id) + " + " + nameOf(two.id));
    const cards = state().cards.filter((card) => card.id !== two.id)
      .flatMap((card) => card.id === one.id ? [{ id: made, points: [...one.points, ...two.points], mark: "made" }] : [card]);
    become({ ...state(), cards }, nameOf(one.id) + " and " + nameOf(two.id) + " are one now", made);
  };
  const deeds = { accept: (id) => mark(id, "accepted"), reject: (id) => mark(id, "rejected"), split, merge };
  const keys = { a: "accept", r: "reject", s: "split", m: "merge" };

  list.addEventListener("click", (event) => {
    const button = event.target.closest("button"), card = event.target.closest(".check");
    if (!button) return;
    if (button.dataset.deed) return deeds[button.dataset.deed](Number(card.dataset.card));
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", on);
    const many = card.querySelectorAll('.spot [aria-pressed="true"]').length;
    say(counted(many, "point") + " of " + nameOf(Number(card.dataset.card)) + " chosen.");
  });
  list.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const card = event.target.closest(".check"), key = event.key.toLowerCase();
    if (keys[key]) deeds[keys[key]](Number(card.dataset.card));
    else if (key === "u") go(-1);
    else if (key === "j") card.nextElementSibling?.focus();
    else if (key === "k") card.previousElementSibling?.focus();
    else if (event.key === "Escape" && merging) { merging = 0; show(); say("Nothing is merged."); }
    else return;
    event.preventDefault();
  });
  undo.addEventListener("click", () => go(-1));
  redo.addEventListener("click", () => go(1));
  byId("check").addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    go(event.shiftKey ? 1 : -1);
    event.preventDefault();
  });
  save.addEventListener("click", () => {
    const link = document.createElement("a"), address = URL.createObjectURL(new Blob([table()], { type: "text/csv" }));
    link.href = address;
    link.download = save.dataset.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
    saved = now;
    say("Saved as " + save.dataset.name + ":" + total());
  });
  window.addEventListener("beforeunload", (event) => { if (now && saved !== now) event.preventDefault(); });
  show();
})();
