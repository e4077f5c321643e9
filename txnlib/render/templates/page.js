// Copies commands, and unfolds everything for print. The page says the same without it.
(() => {
  const said = document.getElementById("said");
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      if (!done) throw new Error("not copied");
    }
  };
  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const word = await copy(button.previousElementSibling.textContent).then(() => "Copied", () => "Not copied");
      button.textContent = word;
      said.textContent = word;
      setTimeout(() => { button.textContent = "Copy"; said.textContent = ""; }, 2000);
    });
  }
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
})();
