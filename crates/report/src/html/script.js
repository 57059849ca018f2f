// Sorts and filters the tables, and finds and enlarges boxes of flame graphs. Everything is readable without
// it; what it adds to the page is a button in each heading, and a field above each long table and each flame
// graph.
"use strict";
(() => {
  // Numbers carry their raw value; words sort as people count: n2 before n10. Empty cells come last either way.
  const key = (row, at) => {
    const cell = row.cells[at];
    if (!cell) return null;
    if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
    const word = cell.textContent.trim();
    return word === "-" || word === "" ? null : word;
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === "number") return -1;
    if (typeof b === "number") return 1;
    return a.localeCompare(b, "en", { numeric: true });
  };

  const sortable = (table) => {
    const body = table.tBodies[0];
    const original = [...body.rows];
    const blocks = original.map((row) => row.classList.contains("block"));
    const heads = [...table.tHead.rows[0].cells];
    const order = (at, direction) => {
      const rows = [...original];
      if (direction !== "none") {
        const sign = direction === "ascending" ? 1 : -1;
        rows.sort((x, y) => {
          const a = key(x, at), b = key(y, at);
          if (a === null || b === null) return (a === null) - (b === null);
          return sign * compare(a, b);
        });
      }
      // Blocks are those of the original order only.
      original.forEach((row, i) => row.classList.toggle("block", direction === "none" && blocks[i]));
      body.append(...rows);
    };
    heads.forEach((head, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" };
        const direction = next[head.getAttribute("aria-sort")];
        heads.forEach((each) => each.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", direction);
        order(at, direction);
      });
    });
  };

  // A field with a label before it, and a place for what it found behind it.
  const field = (id, name) => {
    const bar = document.createElement("div");
    const label = document.createElement("label");
    const input = document.createElement("input");
    const count = document.createElement("span");
    bar.className = "filter";
    label.textContent = name;
    label.htmlFor = input.id = id;
    input.type = "search";
    input.autocomplete = "off";
    count.setAttribute("role", "status");
    bar.append(label, input, count);
    return { bar, input, count };
  };
  const words = (input) => input.value.toLowerCase().split(/\s+/).filter(Boolean);

  const filterable = (table) => {
    const rows = [...table.tBodies[0].rows];
    const { bar, input, count } = field(`${table.id}-filter`, "Rows with");
    const show = () => {
      const wanted = words(input);
      let shown = 0;
      for (const row of rows) {
        const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
        row.hidden = !wanted.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = wanted.length ? `${shown} of ${rows.length} rows` : "";
    };
    input.addEventListener("input", show);
    table.closest(".scroll").before(bar);
  };

  // The boxes of a flame graph, each directly before those that it calls.
  const boxesOf = (picture) => [...picture.querySelectorAll(".box")].map((rect) => {
    const [x, y, width] = ["x", "y", "width"].map((name) => Number(rect.getAttribute(name)));
    const text = rect.nextElementSibling?.tagName === "text" ? rect.nextElementSibling : null;
    const [name] = rect.querySelector("title").textContent.split("\n", 1);
    return { rect, x, y, width, name, text, label: text?.textContent };
  });

  // Boxes with all words in their names are found. One below another is part of it.
  const find = (picture, boxes, wanted) => {
    let found = 0, share = 0, under = Infinity;
    for (const box of boxes) {
      const name = box.name.toLowerCase();
      const matches = wanted.length > 0 && wanted.every((word) => name.includes(word));
      box.rect.classList.toggle("found", matches);
      if (box.y <= under) under = Infinity;
      if (!matches) continue;
      found += 1;
      if (under < Infinity) continue;
      under = box.y;
      share += box.width / boxes[0].width;
    }
    picture.classList.toggle("searching", wanted.length > 0);
    return { found, share };
  };

  // The numbers are those of svg/flame.rs.
  const fitted = (name, width) => {
    const room = Math.floor((width - 6) / 6.7);
    if (room < 5) return "";
    const columns = [...name].flatMap((c) => (c > "\u007f" ? [c, ""] : [c]));
    if (columns.length <= room) return name;
    const atEnd = name.includes("::") || name.includes("/");
    const kept = (atEnd ? columns.slice(1 - room) : columns.slice(0, room - 1)).join("");
    return atEnd ? `\u2026${kept}` : `${kept}\u2026`;
  };

  const enlarge = (picture, boxes, { x, width }) => {
    const all = boxes[0], scale = all.width / width, whole = scale === 1;
    for (const box of boxes) {
      const from = Math.min(Math.max((box.x - x) * scale, 0), all.width);
      const to = Math.min(Math.max((box.x + box.width - x) * scale, 0), all.width);
      box.rect.setAttribute("x", from);
      box.rect.setAttribute("width", to - from);
      box.rect.classList.toggle("thin", to - from < 3);
      if (!box.text) {
        box.text = document.createElementNS("http://www.w3.org/2000/svg", "text");
        box.text.setAttribute("class", "on-bright");
        box.text.setAttribute("y", box.y + 12);
        box.rect.after(box.text);
      }
      box.text.setAttribute("x", from + 3);
      box.text.textContent = whole ? (box.label ?? "") : fitted(box.name, to - from);
    }
  };

  const flame = (figure) => {
    const pictures = [...figure.querySelectorAll("g.flame")].map((picture) => [picture, boxesOf(picture)]);
    const { bar, input, count } = field(`${figure.id}-find`, "Functions with");
    const help = "Click on a box to enlarge it, and on the top box to see all.";
    const show = () => {
      const wanted = words(input);
      const [{ found, share }] = pictures.map(([picture, boxes]) => find(picture, boxes, wanted));
      const part = `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
      count.textContent = wanted.length ? `${found} boxes, ${part} of the time` : help;
    };
    for (const [picture, boxes] of pictures) {
      for (const box of boxes) box.rect.addEventListener("click", () => enlarge(picture, boxes, box));
    }
    input.addEventListener("input", show);
    figure.querySelector("svg").before(bar);
    show();
  };

  document.querySelectorAll("table[data-sort]").forEach(sortable);
  document.querySelectorAll("table[data-filter]").forEach(filterable);
  const pictures = [...document.querySelectorAll("g.flame")];
  new Set(pictures.map((picture) => picture.closest("figure"))).forEach(flame);
})();
