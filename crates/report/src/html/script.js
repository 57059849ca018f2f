// Sorts and filters the tables. Everything is readable without it; what it adds to the page is a button in each
// heading and a field above each long table.
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

  const filterable = (table) => {
    const rows = [...table.tBodies[0].rows];
    const bar = document.createElement("div");
    const label = document.createElement("label");
    const input = document.createElement("input");
    const count = document.createElement("span");
    bar.className = "filter";
    label.textContent = "Rows with";
    label.htmlFor = input.id = `${table.id}-filter`;
    input.type = "search";
    input.autocomplete = "off";
    count.setAttribute("role", "status");
    const show = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
    };
    input.addEventListener("input", show);
    bar.append(label, input, count);
    table.closest(".scroll").before(bar);
  };

  document.querySelectorAll("table[data-sort]").forEach(sortable);
  document.querySelectorAll("table[data-filter]").forEach(filterable);
})();
