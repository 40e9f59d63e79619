"use strict";
(() => {
  const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  const steps = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60]];
  const inWords = (seconds) => {
    for (const [unit, length] of steps) {
      if (Math.abs(seconds) >= length) return words.format(Math.trunc(seconds / length), unit);
    }
    return seconds > 1 ? "in less than a minute" : "just now";
  };
  const tellTimes = () => {
    for (const element of document.querySelectorAll("time[datetime]")) {
      if (!element.title) element.title = element.textContent;
      element.textContent = inWords((Date.parse(element.dateTime) - Date.now()) / 1000);
    }
  };

  const said = document.getElementById("said");
  const copyFrom = async (button, text) => {
    let done = true;
    try { await navigator.clipboard.writeText(text); } catch { done = false; }
    const before = button.dataset.label;
    button.textContent = done ? "Copied" : "Press Ctrl+C";
    if (said) said.textContent = done ? "Copied to the clipboard" : "Copying is not allowed here";
    setTimeout(() => { button.textContent = before; if (said) said.textContent = ""; }, 2000);
  };
  const addCopyButtons = () => {
    for (const box of document.querySelectorAll(".copy")) {
      const text = box.querySelector("code");
      if (!text || box.querySelector("button")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = button.dataset.label = "Copy";
      button.setAttribute("aria-label", "Copy: " + (box.dataset.what || "text"));
      button.addEventListener("click", () => copyFrom(button, text.textContent));
      box.append(button);
    }
  };

  const renew = async () => {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = fresh.getElementById(part.id);
      // What the page was about has changed altogether: a repository that waited is there.
      if (!other) return location.reload();
      if (!part.contains(document.activeElement)) part.replaceWith(document.adoptNode(other));
    }
    tellTimes();
    addCopyButtons();
  };
  // One after the other: an older answer must not come last.
  let isRenewing = false;
  let isOutdated = false;
  const refresh = async () => {
    isOutdated = true;
    if (isRenewing) return;
    isRenewing = true;
    while (isOutdated) {
      isOutdated = false;
      await renew().catch(() => undefined);
    }
    isRenewing = false;
  };

  let isWaiting = false;
  let isMissed = false;
  const refreshSoon = () => {
    isMissed = document.hidden;
    if (isWaiting || isMissed) return;
    isWaiting = true;
    setTimeout(() => { isWaiting = false; refresh(); }, 3000);
  };
  document.addEventListener("visibilitychange", () => {
    if (isMissed && !document.hidden) refreshSoon();
  });
  const listen = (filters, base, isAgain) => {
    const socket = new WebSocket(location.origin.replace(/^http/, "ws") + base + "/");
    let isLive = false;
    socket.onopen = () => socket.send(JSON.stringify(["REQ", "page", ...filters]));
    socket.onmessage = ({ data }) => {
      const [verb] = JSON.parse(data);
      if (verb === "EOSE") {
        isLive = true;
        // Something may have happened while nobody listened.
        if (isAgain) refreshSoon();
      } else if (verb === "EVENT" && isLive) refreshSoon();
    };
    socket.onclose = () => setTimeout(() => listen(filters, base, true), 60000);
  };

  tellTimes();
  addCopyButtons();
  setInterval(tellTimes, 60000);
  const { listenFor, base = "", everySeconds } = document.body.dataset;
  // Without a beginning: a push is served later than its state was signed.
  if (listenFor) listen(JSON.parse(listenFor).map((filter) => ({ ...filter, limit: 1 })), base);
  document.addEventListener("holdfast:changed", refresh);
  if (everySeconds) setInterval(() => document.hidden || refresh(), Number(everySeconds) * 1000);
})();
