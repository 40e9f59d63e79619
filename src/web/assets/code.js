"use strict";
(() => {
  const gutter = document.querySelector(".code .gutter");
  const lines = document.querySelector(".code .lines");
  const numbers = gutter ? gutter.children : [];
  let picked;

  const rangeIn = (hash) => {
    const found = /^#L(\d{1,7})(?:-L?(\d{1,7}))?$/.exec(hash);
    if (!found) return undefined;
    const [one, other] = [Number(found[1]), Number(found[2] || found[1])];
    return [Math.max(1, Math.min(one, other)), Math.min(numbers.length, Math.max(one, other))];
  };
  const pick = (shallScroll) => {
    if (!gutter || !lines) return;
    for (const one of gutter.querySelectorAll(".chosen")) one.classList.remove("chosen");
    if (picked) picked.remove();
    picked = undefined;
    const range = rangeIn(location.hash);
    if (!range || !numbers[range[0] - 1] || !numbers[range[1] - 1]) return;
    for (let line = range[0]; line <= range[1]; line++) numbers[line - 1].classList.add("chosen");
    const [first, last] = [numbers[range[0] - 1].getBoundingClientRect(), numbers[range[1] - 1].getBoundingClientRect()];
    picked = document.createElement("div");
    picked.className = "picked";
    picked.style.top = first.top - lines.getBoundingClientRect().top + "px";
    picked.style.height = last.bottom - first.top + "px";
    lines.prepend(picked);
    if (shallScroll && range[0] !== range[1]) numbers[range[0] - 1].scrollIntoView({ block: "center" });
  };
  if (gutter) {
    gutter.addEventListener("click", (event) => {
      const number = event.target.closest("a");
      if (!number) return;
      const line = Number(number.id.slice(1));
      const before = event.shiftKey && rangeIn(location.hash);
      if (!before) return;
      event.preventDefault();
      const [from, to] = line < before[0] ? [line, before[1]] : [before[0], line];
      history.replaceState(null, "", "#L" + from + "-L" + to);
      pick(false);
    });
    addEventListener("hashchange", () => pick(true));
    pick(true);
  }

  // Links from elsewhere name headings as they are called in the text.
  const toHeading = () => {
    const name = decodeURIComponent(location.hash.slice(1)).toLowerCase();
    if (!name || document.getElementById(location.hash.slice(1))) return;
    const heading = document.getElementById("md-" + name);
    if (heading) heading.scrollIntoView();
  };
  try { toHeading(); } catch { /* Not a name that can be decoded. */ }

  const form = document.querySelector("form[data-find]");
  if (form) {
    let [asked, listed, isChosen] = [0, 0, false];
    const choose = () => {
      const first = document.querySelector("#found a");
      if (first) first.click();
    };
    const follow = (turn, waitMs) => setTimeout(async () => {
      if (turn !== asked) return;
      const address = location.pathname + "?" + new URLSearchParams(new FormData(form));
      const answer = await fetch(address, { headers: { Accept: "text/html" } }).catch(() => undefined);
      // Too many questions, or the server is away: the list must not stay that of other words.
      if (!answer || !answer.ok) return follow(turn, 10000);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("found");
      if (!fresh || turn !== asked) return;
      document.getElementById("found").replaceWith(document.adoptNode(fresh));
      history.replaceState(null, "", address);
      listed = turn;
      if (isChosen) choose();
    }, waitMs);
    form.addEventListener("input", () => {
      isChosen = false;
      follow(++asked, 200);
    });
    // What was typed before this script was here.
    const words = form.elements.namedItem("q");
    if (words.value !== words.defaultValue) follow(++asked, 0);
    form.addEventListener("keydown", (event) => {
      const first = document.querySelector("#found a");
      if (event.key === "Enter" && asked > 0) {
        event.preventDefault();
        // The list may still be that of fewer letters.
        isChosen = listed !== asked;
        if (!isChosen) choose();
      } else if (event.key === "ArrowDown" && first) { event.preventDefault(); first.focus(); }
    });
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, [contenteditable]")) return;
    const permanent = document.querySelector("a[data-permanent]");
    if (event.key === "y" && permanent) history.replaceState(null, "", permanent.href + location.hash);
    const { find } = document.body.dataset;
    if (event.key === "t" && find) { event.preventDefault(); location.assign(find); }
  });
})();
