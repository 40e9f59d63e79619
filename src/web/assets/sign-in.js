"use strict";
(() => {
  const login = document.getElementById("nip07");
  if (login) {
    const said = login.querySelector("[role=status]");
    const button = login.querySelector("button");
    const tell = (text) => { said.textContent = text; };
    const base64 = (text) => btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""));
    const missing =
      "No extension for Nostr (NIP-07) was found in this browser: install one (nos2x and Alby are known ones) and load this page again.";
    const offer = () => {
      login.hidden = false;
      if (!window.nostr) tell(missing);
    };
    button.addEventListener("click", async () => {
      if (!window.nostr) return tell(missing);
      button.disabled = true;
      try {
        tell("Waiting for your extension to sign…");
        const url = login.dataset.url;
        // Each is good once, and two within a second would be the same one.
        const nonce = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16)).join("");
        const event = await window.nostr.signEvent({
          kind: 27235,
          created_at: Math.floor(Date.now() / 1000),
          tags: [["u", url], ["method", "POST"], ["nonce", nonce]],
          content: "",
        });
        const answer = await fetch(login.dataset.path, {
          method: "POST",
          headers: { Authorization: "Nostr " + base64(JSON.stringify(event)) },
        });
        if (answer.ok) return location.reload();
        tell("Not let in: " + (await answer.text()).trim() + ".");
      } catch (error) {
        tell("The extension did not sign: " + (error && error.message ? error.message : "no reason was given") + ".");
      }
      button.disabled = false;
    });
    // Extensions may put window.nostr there a little later than this runs.
    setTimeout(offer, window.nostr ? 0 : 300);
  }
})();
