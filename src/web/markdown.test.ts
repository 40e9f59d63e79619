import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { maxReadmeCharacters, renderMarkdown } from "./markdown.js";

const rendered = (text: string): string => renderMarkdown(text, 2).toString();

const rows: [name: string, text: string, expected: string][] = [
  ["headings come below the page's own", "# A\n## B ##\n", "<h3>A</h3><h4>B</h4>"],
  ["headings leave no gap", "#### deep\n# top", "<h3>deep</h3><h3>top</h3>"],
  ["underlined headings", "A\n===\nB\n---\n", "<h3>A</h3><h4>B</h4>"],
  ["paragraphs", "one\ntwo\n\nthree", "<p>one\ntwo</p><p>three</p>"],
  ["emphasis", "**a** *b* _c_ ~~d~~ `e*`", "<p><strong>a</strong> <em>b</em> <em>c</em> <s>d</s> <code>e*</code></p>"],
  ["names with underscores are words", "a_long_name", "<p>a_long_name</p>"],
  ["escaped signs are signs", "\\*a\\*", "<p>*a*</p>"],
  ["a list", "- a\n- b\n  c\n", "<ul><li>a</li><li>b\nc</li></ul>"],
  ["a list of tasks", "- [x] a\n- [ ] b\n- [y] c", "<ul><li>☑ a</li><li>☐ b</li><li>[y] c</li></ul>"],
  ["a list in a list", "1. a\n   - b\n2. c", "<ol><li><p>a</p><ul><li>b</li></ul></li><li>c</li></ol>"],
  ["a quotation", "> a\n> b", "<blockquote><p>a\nb</p></blockquote>"],
  ["a rule", "a\n\n***\n", "<p>a</p><hr>"],
  [
    "a table",
    "| a | b |\n|---|--:|\n| 1 | **2** |",
    '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table><thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead><tbody><tr><td>1</td><td><strong>2</strong></td></tr></tbody></table></div>',
  ],
  [
    "a link",
    "[a](https://example.com/x)",
    '<p><a href="https://example.com/x" rel="nofollow noopener noreferrer ugc">a</a></p>',
  ],
  [
    "a bare address without the full stop after it",
    "see https://example.com/x.",
    '<p>see <a href="https://example.com/x" rel="nofollow noopener noreferrer ugc">https://example.com/x</a>.</p>',
  ],
  ["a link within the repository is its text", "[a](docs/a.md)", "<p>a</p>"],
  [
    "a picture is a link, so that nobody else is asked",
    "![chart](https://example.com/c.png)",
    '<p><a href="https://example.com/c.png" rel="nofollow noopener noreferrer ugc">chart</a></p>',
  ],
  [
    "a linked picture is one link",
    "[![build](https://example.com/b.svg)](https://example.com/b)",
    '<p><a href="https://example.com/b" rel="nofollow noopener noreferrer ugc">build</a></p>',
  ],
  ["markup in the text is left out", '<p align="center"><img src="x"></p>\n\nText<br>', "<p>Text</p>"],
  ["comments are left out", "a<!-- <b> -->b", "<p>ab</p>"],
  [
    "code is shown as it is",
    "```html\n<b>&amp;</b>\n```",
    '<pre tabindex="0" role="group" aria-label="Code"><code>&lt;b&gt;&amp;amp;&lt;/b&gt;</code></pre>',
  ],
];

for (const [name, text, expected] of rows) {
  test(`README: ${name}`, () => assert.equal(rendered(text), expected));
}

const attacks = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "<svg/onload=alert(1)>",
  "<scr<script>ipt>alert(1)</scr</script>ipt>",
  "<<script>alert(1)//<</script>",
  "<a href='javascript:alert(1)'>x</a>",
  "[x](javascript:alert(1))",
  "[x](JaVaScRiPt:alert(1))",
  "[x](  javascript:alert(1))",
  "[x](java&#115;cript:alert(1))",
  "[x](data:text/html;base64,PHNjcmlwdD4=)",
  '[x](https://example.com/"onmouseover="alert(1))',
  "[x](https://example.com/'onmouseover='alert(1))",
  '![x" onerror="alert(1)](https://example.com/x.png)',
  '[x](https://example.com "title" onclick="alert(1)")',
  '<https://example.com/"><script>alert(1)</script>>',
  "<javascript:alert(1)>",
  "`<script>alert(1)</script>`",
  "```\n</code></pre><script>alert(1)</script>\n```",
  "# <img src=x onerror=alert(1)>",
  "- <iframe srcdoc='<script>alert(1)</script>'>",
  "| <b onclick=alert(1)> | x |\n|---|---|\n| <style>*{display:none}</style> | y |",
  "<!--><script>alert(1)</script>-->",
  "**<img src=x onerror=alert(1)>**",
  "[<img src=x onerror=alert(1)>](https://example.com)",
  "\\<script>alert(1)</script>",
  "<form action=https://evil.example><input>",
  'https://example.com/"onmouseover=alert(1)',
];

/** Exactly the tags and attributes the renderer knows; a `<` anywhere else is a fault. */
const knownTag =
  /<(?:\/?(?:p|h[2-6]|ul|ol|li|blockquote|hr|br|strong|em|s|code|table|thead|tbody|tr|td|th|pre|div|a)|th scope="col"|pre tabindex="0" role="group" aria-label="Code"|div class="scroll" tabindex="0" role="group" aria-label="Table"|a href="https?:\/\/[^"<>\s']*" rel="nofollow noopener noreferrer ugc")>/g;

function assertOnlyKnownTags(text: string): void {
  const rest = rendered(text).replace(knownTag, "");
  assert.doesNotMatch(rest, /[<>"']/, text);
}

test("threat 14: tricks in a README become no tag, no attribute and no address", () => {
  for (const attack of attacks) assertOnlyKnownTags(attack);
});

test("threat 14: no text whatever becomes a tag that is not known here", () => {
  const signs = [
    "<",
    ">",
    "[",
    "]",
    "(",
    ")",
    "!",
    "*",
    "_",
    "`",
    "#",
    "-",
    "|",
    "\n",
    " ",
    '"',
    "'",
    "&",
    "\\",
    "~",
    "javascript:",
    "https://e.x/",
    "script",
    "<!--",
    "-->",
    "1. ",
    "    ",
    "> ",
  ];
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.constantFrom(...signs), fc.string({ maxLength: 3 })), { maxLength: 60 }),
      (parts) => {
        assertOnlyKnownTags(parts.join(""));
      },
    ),
    { numRuns: 2_000 },
  );
});

test("a README made to be slow is rendered in a moment", () => {
  const slow = [
    "[",
    "![",
    "*",
    "**a",
    "_a",
    "`",
    "<",
    "<a ",
    "~~",
    "[a](",
    "- ",
    "> ",
    "|-",
    "a|\n-|",
    "https://",
    "\\",
    "<!--",
    "    ",
    "1. a\n  ",
  ];
  for (const part of slow) {
    const text = part.repeat(Math.ceil(maxReadmeCharacters / part.length));
    // What it worked, not what it waited for: a busy machine does not move that.
    const begun = process.cpuUsage();
    rendered(text);
    const { user, system } = process.cpuUsage(begun);
    const tookMs = (user + system) / 1_000;
    assert.ok(tookMs < 3_000, `${JSON.stringify(part)} took ${Math.round(tookMs)} ms`);
  }
});
