"use strict";
(() => {
  const form = document.querySelector("form[data-write]");
  if (!form) return;
  const { relay, drafts, may } = JSON.parse(form.dataset.write);
  const said = form.querySelector("[role=status]");
  const tell = (text) => { said.textContent = text; };
  const base = document.body.dataset.base || "";

  // One socket for one event. A relay that wants to know who writes says so, and the extension signs that too.
  const send = (event) => new Promise((resolve, reject) => {
    const socket = new WebSocket(location.origin.replace(/^http/, "ws") + base + "/");
    let challenge;
    let isKnown = false;
    const end = (settle, value) => { clearTimeout(late); settle(value); socket.close(); };
    const late = setTimeout(() => end(reject, new Error("the relay did not answer in time")), 60000);
    socket.onopen = () => socket.send(JSON.stringify(["EVENT", event]));
    socket.onerror = () => end(reject, new Error("the relay could not be reached"));
    socket.onmessage = async ({ data }) => {
      const [verb, first, isOk, reason] = JSON.parse(data);
      if (verb === "AUTH") challenge = first;
      if (verb !== "OK") return;
      if (first !== event.id) return isOk ? socket.send(JSON.stringify(["EVENT", event])) : end(reject, new Error(reason));
      if (isOk) return end(resolve);
      if (isKnown || !challenge || !/^(auth-required|restricted)/.test(reason)) return end(reject, new Error(reason));
      isKnown = true;
      const tags = [["relay", relay], ["challenge", challenge]];
      try {
        socket.send(JSON.stringify(["AUTH", await window.nostr.signEvent({ kind: 22242, created_at: now(), tags, content: "" })]));
      } catch (error) { end(reject, error); }
    };
  });

  const now = () => Math.floor(Date.now() / 1000);
  // Of two statuses the later second counts, and within one second the id: a new one must not tie with the newest there is.
  const afterLastStatus = () => {
    const state = document.getElementById("state");
    return Math.max(now(), Number((state && state.dataset.statusAt) || 0) + 1);
  };
  /** Whether the page is about to be left. */
  const publish = async (name) => {
    const draft = drafts[name];
    const text = form.elements.text.value.trim();
    const isStatus = draft.kind >= 1630 && draft.kind <= 1633;
    if (draft.kind === 1111 && text === "") return tell("Write something first.");
    if (isStatus && !may.includes(await window.nostr.getPublicKey())) {
      return tell("Only its author and the maintainers may do that: nobody else's word counts.");
    }
    tell("Waiting for your extension to sign…");
    const subject = form.elements.subject;
    const tags = subject ? [...draft.tags, ["subject", subject.value.trim()]] : draft.tags;
    const event = await window.nostr.signEvent({ kind: draft.kind, created_at: isStatus ? afterLastStatus() : now(), tags, content: text });
    tell("Sending…");
    await send(event);
    tell("Published.");
    if (draft.kind === 1621) { location.assign(location.pathname + "/" + event.id); return true; }
    form.elements.text.value = "";
    // A status changes which buttons there are.
    if (isStatus) { location.reload(); return true; }
    document.dispatchEvent(new Event("holdfast:changed"));
  };

  let isBusy = false;
  const setBusy = (busy) => {
    isBusy = busy;
    for (const button of form.querySelectorAll("button")) button.disabled = busy;
  };
  form.addEventListener("submit", async (submitted) => {
    submitted.preventDefault();
    // Buttons may have been renewed since they were disabled.
    if (isBusy) return;
    setBusy(true);
    let isLeaving = false;
    try { isLeaving = await publish(submitted.submitter ? submitted.submitter.value : Object.keys(drafts)[0]); }
    catch (error) { tell("Not published: " + (error && error.message ? error.message : "no reason was given") + "."); }
    if (!isLeaving) setBusy(false);
  });

  const offer = () => {
    if (!window.nostr) return;
    form.hidden = false;
    for (const other of document.querySelectorAll("[data-without-extension]")) other.hidden = true;
  };
  // Extensions may put window.nostr there a little later than this runs.
  setTimeout(offer, window.nostr ? 0 : 300);
})();
