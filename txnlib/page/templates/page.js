// Sorts, searches and copies, and opens what is folded for print and for links. The page says the same without it.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const said = document.getElementById("said");
  const make = (name, properties = {}, ...content) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...content);
    return element;
  };
  for (const each of all(".tools, .detail")) each.hidden = false;
  for (const each of all(".without-script")) each.hidden = true;
  // What a link leads to is not below the navigation, however many lines that has.
  const bar = document.querySelector("nav");
  new ResizeObserver(() => { document.documentElement.style.scrollPaddingTop = `${bar.offsetHeight + 8}px`; }).observe(bar);

  // ---- Commands
  const bootstrap = document.getElementById("bootstrap");
  // The typed address as one word of bash; null if it has characters that cannot be seen.
  const word = (typed) => {
    if (/[\p{C}\p{Zl}\p{Zp}]/u.test(typed)) return null;
    return /^[\w@%+=:,./-]+$/.test(typed) ? typed : `'${typed.replaceAll("'", `'"'"'`)}'`;
  };
  bootstrap?.addEventListener("input", () => {
    const typed = bootstrap.value.trim();
    const value = typed === "" ? "$BOOTSTRAP" : word(typed);
    bootstrap.setAttribute("aria-invalid", String(value === null));
    document.getElementById("bootstrap-refused").hidden = value !== null;
    for (const each of all(".bootstrap")) each.textContent = value ?? "$BOOTSTRAP";
  });
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = make("textarea", { value: text });
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      if (!done) throw new Error("not copied");
    }
  };
  const copies = (button, text) => {
    const label = button.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      const result = await copy(text()).then(() => "Copied", () => "Not copied");
      button.textContent = result;
      said.textContent = result;
      setTimeout(() => { button.textContent = label; said.textContent = ""; }, 2000);
    });
  };
  for (const button of all("button.copy")) copies(button, () => button.previousElementSibling.textContent);
  // The script checks before each step. It reads the address from the environment.
  const script = document.getElementById("abort-script");
  for (const button of all("button.copy-script")) copies(button, () => script.content.textContent);

  // ---- Tables: the folded rows join the first ones, and columns sort
  const number = (cell) => Number(cell.dataset.value ?? (/^-?\d+$/.test(cell.textContent) ? cell.textContent : NaN));
  const compare = (index, isNumber) => (one, other) => {
    const [a, b] = [one.cells[index], other.cells[index]];
    if (!isNumber) return a.textContent.localeCompare(b.textContent, "en", { numeric: true });
    const [x, y] = [number(a), number(b)];
    return Number.isNaN(x) || Number.isNaN(y) ? Number.isNaN(x) - Number.isNaN(y) : x - y;
  };
  const prepare = (table) => {
    const body = table.tBodies[0];
    const scroll = table.closest(".scroll");
    const rest = scroll.nextElementSibling?.matches("details.rest") ? scroll.nextElementSibling : null;
    const inView = body.rows.length;
    if (rest) {
      body.append(...rest.querySelector("tbody").rows);
      const words = rest.querySelector("summary").textContent;
      const unfold = make("button", { type: "button", className: "unfold", textContent: `Show ${words}` });
      unfold.setAttribute("aria-expanded", "false");
      unfold.addEventListener("click", () => fold(!table.classList.contains("unfolded")));
      const fold = (isOpen) => {
        table.classList.toggle("unfolded", isOpen);
        unfold.setAttribute("aria-expanded", String(isOpen));
        unfold.textContent = isOpen ? "Show fewer" : `Show ${words}`;
      };
      table.unfold = () => fold(true);
      rest.replaceWith(make("p", {}, unfold));
    }
    const original = [...body.rows];
    if (original.length < 2) return;
    const filters = [];
    const show = () => {
      let seen = 0;
      for (const row of body.rows) {
        const isOut = filters.some(({ index, select }) => select.value !== "" && row.cells[index].textContent !== select.value);
        row.classList.toggle("filtered", isOut);
        row.classList.toggle("beyond", !isOut && ++seen > inView);
      }
      const left = [...body.rows].filter((row) => !row.matches(".filtered")).length;
      if (filters.some(({ select }) => select.value !== "")) said.textContent = `${left} of ${original.length} rows`;
    };
    const heads = [...table.tHead.rows[0].cells];
    const tools = make("div", { className: "tools" });
    heads.forEach((head, index) => {
      if (head.matches(".plain") || head.querySelector(".hidden")) return;
      const name = head.textContent;
      const button = make("button", { type: "button", className: "sort" }, name);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const order = { ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")] ?? "ascending";
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        if (order !== "none") head.setAttribute("aria-sort", order);
        const sorted = order === "none" ? original : [...original].sort(compare(index, head.matches(".number")));
        body.append(...(order === "descending" ? sorted.reverse() : sorted));
        show();
        said.textContent = order === "none" ? "In the original order" : `Sorted by ${name}, ${order}`;
      });
      const values = "filter" in head.dataset ? [...new Set(original.map((row) => row.cells[index].textContent))].sort() : [];
      if (values.length < 2 || values.length > 50) return;
      const select = make("select", {}, make("option", { value: "", textContent: "all" }), ...values.map((each) => make("option", { value: each, textContent: each })));
      filters.push({ index, select });
      select.addEventListener("change", show);
      tools.append(make("label", {}, `${name} `, select));
    });
    if (filters.length) scroll.before(tools);
    show();
  };
  all("table.rows").forEach(prepare);

  // ---- Links: what they lead to may be folded
  const reveal = (element) => {
    for (let each = element; each; each = each.parentElement) {
      if (each.matches("details")) each.open = true;
      each.unfold?.();
    }
    if (element.matches(".card")) all(":scope > .folded", element).forEach((each) => { each.open = true; });
  };
  const follow = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    reveal(target);
    target.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (link?.getAttribute("href") === location.hash) follow();
  });
  follow();

  // ---- Search: over every row and every card
  const search = document.getElementById("search");
  const matches = document.getElementById("matches");
  const rows = all("table.rows tbody tr, article.card");
  const texts = new Map();
  const opened = new Map();
  const find = () => {
    const words = search.value.toLowerCase().split(/[\s@]+/).filter(Boolean);
    document.body.classList.toggle("searching", words.length > 0);
    for (const [each, wasOpen] of opened) each.open = wasOpen;
    opened.clear();
    let count = 0;
    for (const row of rows) {
      if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase());
      const isFound = words.every((each) => texts.get(row).includes(each));
      row.classList.toggle("out", !isFound);
      if (!isFound || !words.length) continue;
      count += 1;
      for (let each = row.parentElement.closest("details"); each; each = each.parentElement.closest("details")) {
        if (!opened.has(each)) opened.set(each, each.open);
        each.open = true;
      }
    }
    // A card stays if a row in it is found.
    if (words.length) all("article.card:has(tr:not(.out))").filter((each) => each.querySelector("table.rows tr:not(.out) > td")).forEach((each) => each.classList.remove("out"));
    // What has rows, and none that is found, would be a heading over nothing.
    for (const each of all("main > section:not(#answer), .group, .fold, main .scroll:has(table.rows)")) {
      each.classList.toggle("out", words.length > 0 && !each.querySelector("table.rows tbody tr:not(.out), article.card:not(.out)"));
    }
    matches.textContent = words.length ? `${count} of ${rows.length} match` : "";
  };
  let waiting;
  search?.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(find, 120); });

  // ---- Timelines: details on hover and focus, one stop of the Tab key for each
  for (const figure of all(".timeline")) {
    const detail = figure.querySelector(".detail");
    for (const plot of all(".plot", figure)) {
      const items = all(".item", plot);
      const place = (item) => Number(item.querySelector("rect")?.getAttribute("x") ?? item.querySelector("text").getAttribute("x"));
      items.sort((one, other) => place(one) - place(other));
      const tell = (event) => { detail.textContent = event.currentTarget.querySelector("title").textContent; };
      items.forEach((item, index) => {
        item.setAttribute("tabindex", index ? "-1" : "0");
        item.addEventListener("pointerenter", tell);
        item.addEventListener("focus", tell);
        item.addEventListener("keydown", (event) => {
          const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
          const next = step && items[index + step];
          if (step) event.preventDefault();
          if (!next) return;
          item.setAttribute("tabindex", "-1");
          next.setAttribute("tabindex", "0");
          next.focus();
        });
      });
    }
  }

  // ---- Times: local on hover
  document.addEventListener("pointerover", (event) => {
    const time = event.target.closest?.("time");
    if (!time || time.title) return;
    time.title = `${new Date(time.dateTime).toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" })} (your time)`;
  });

  addEventListener("beforeprint", () => all("#plan .rest, #lag .rest").forEach((each) => { each.open = true; }));
})();
