import assert from "node:assert/strict";
import { test } from "node:test";
import { foreign, html, webUrl } from "./html.js";

test("threat 14: values are escaped in text and in attributes, however deep they are nested", () => {
  const bad = `<script>'"&</script>`;
  const safe = "&lt;script&gt;&#39;&quot;&amp;&lt;/script&gt;";
  assert.equal(html`<p title="${bad}">${bad}</p>`.toString(), `<p title="${safe}">${safe}</p>`);
  assert.equal(html`${[html`<i>${bad}</i>`, bad]}`.toString(), `<i>${safe}</i>${safe}`);
});

test("nothing is written for what is not there", () => {
  assert.equal(html`a${undefined}${false}${0}b`.toString(), "a0b");
});

test("strangers' text keeps its direction to itself and is cut between characters", () => {
  assert.equal(foreign("abc", 3).toString(), "<bdi>abc</bdi>");
  assert.equal(foreign("😀😀😀", 2).toString(), "<bdi>😀😀…</bdi>");
  assert.ok(foreign("x".repeat(1e6)).toString().length < 300);
});

test("only http and https are addresses a reader may be sent to", () => {
  const rows: [string, string | undefined][] = [
    ["https://example.com/a?b#c", "https://example.com/a?b#c"],
    ["HTTP://EXAMPLE.COM", "http://example.com/"],
    ["javascript:alert(1)", undefined],
    [" javascript:alert(1)", undefined],
    ["java\nscript:alert(1)", undefined],
    ["data:text/html,<script>", undefined],
    ["vbscript:x", undefined],
    ["//example.com", undefined],
    ["https://", undefined],
    ["https://exa mple.com", undefined],
    [`https://example.com/${"a".repeat(3_000)}`, undefined],
  ];
  for (const [text, expected] of rows) assert.equal(webUrl(text), expected, text);
});
