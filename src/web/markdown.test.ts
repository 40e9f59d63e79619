import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { maxMarkdownCharacters, renderMarkdown } from "./markdown.js";

const place = {
  link: (relative: string, prefix: string): string => `/r/blob/main/${relative.replace("#", `#${prefix}`)}`,
  picture: (relative: string): string => `/r/raw/main/${relative}`,
};
const rendered = (text: string): string => renderMarkdown(text, { outerLevel: 2, place }).toString();

const rel = 'rel="nofollow noopener noreferrer ugc"';
const table = '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>';
const code = '<pre tabindex="0" role="group" aria-label="Code"><code>';
const heading = (level: number, id: string, text: string): string =>
  `<h${level} id="md-${id}"><a class="anchor" href="#md-${id}" aria-hidden="true" tabindex="-1">#</a>${text}</h${level}>`;

/** Line breaks between tags are of no interest here. */
const compact = (text: string): string => text.replace(/(?<=>)\n+|\n+(?=<)/g, "");

const rows: [name: string, text: string, expected: string][] = [
  ["headings come below the page's own", "# A\n## B ##\n", heading(3, "a", "A") + heading(4, "b", "B")],
  ["headings leave no gap", "#### deep\n# top", heading(3, "deep", "deep") + heading(3, "top", "top")],
  ["underlined headings", "A\n===\nB\n---\n", heading(3, "a", "A") + heading(4, "b", "B")],
  [
    "headings of raw markup have their place among the others",
    "<h1>A b!</h1>\n\n## C",
    heading(3, "a-b", "A b!") + heading(4, "c", "C"),
  ],
  ["equal headings have different anchors", "# A\n# A", heading(3, "a", "A") + heading(3, "a-1", "A")],
  ["a link to a heading of the text", "[x](#The-End)", '<p><a href="#md-the-end">x</a></p>'],
  ["paragraphs", "one\ntwo\n\nthree", "<p>one\ntwo</p><p>three</p>"],
  ["emphasis", "**a** *b* _c_ ~~d~~ `e*`", "<p><strong>a</strong> <em>b</em> <em>c</em> <s>d</s> <code>e*</code></p>"],
  ["names with underscores are words", "a_long_name", "<p>a_long_name</p>"],
  ["escaped signs are signs", "\\*a\\*", "<p>*a*</p>"],
  ["a list", "- a\n- b\n  c\n", "<ul><li>a</li><li>b\nc</li></ul>"],
  ["a list that begins later", "3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'],
  [
    "a list of tasks",
    "- [x] a\n- [ ] b\n- [y] c",
    '<ul><li class="task">☑ a</li><li class="task">☐ b</li><li>[y] c</li></ul>',
  ],
  [
    "tasks with space between them",
    "- [ ] a\n\n- [x] b",
    '<ul><li class="task"><p>☐ a</p></li><li class="task"><p>☑ b</p></li></ul>',
  ],
  ["a list in a list", "1. a\n   - b\n2. c", "<ol><li>a<ul><li>b</li></ul></li><li>c</li></ol>"],
  ["a quotation", "> a\n> b", "<blockquote><p>a\nb</p></blockquote>"],
  ["an alert", "> [!WARNING]\n> Hot", "<blockquote><p><strong>Warning</strong><br>Hot</p></blockquote>"],
  ["a rule", "a\n\n***\n", "<p>a</p><hr>"],
  [
    "a table with alignment",
    "| a | b | c |\n|---|--:|:-:|\n| 1 | **2** | 3 |",
    `${table}<thead><tr><th scope="col">a</th><th class="right" scope="col">b</th><th class="center" scope="col">c</th></tr></thead><tbody><tr><td>1</td><td class="right"><strong>2</strong></td><td class="center">3</td></tr></tbody></table></div>`,
  ],
  ["a link", "[a](https://example.com/x)", `<p><a href="https://example.com/x" ${rel}>a</a></p>`],
  [
    "a bare address without the full stop after it",
    "see https://example.com/x?a=1&b=2.",
    `<p>see <a href="https://example.com/x?a=1&amp;b=2" ${rel}>https://example.com/x?a=1&amp;b=2</a>.</p>`,
  ],
  ["a link within the repository", "[a](docs/a.md#b)", '<p><a href="/r/blob/main/docs/a.md#md-b">a</a></p>'],
  [
    "a picture of the repository",
    "![chart](img/c.png)",
    '<p><img src="/r/raw/main/img/c.png" alt="chart" loading="lazy"></p>',
  ],
  [
    "a picture of another host is a link, so that nobody else is asked",
    "![chart](https://example.com/c.png)",
    `<p><a href="https://example.com/c.png" ${rel}>chart</a></p>`,
  ],
  [
    "a linked picture is one link",
    "[![build](https://example.com/b.svg)](https://example.com/b)",
    `<p><a href="https://example.com/b" ${rel}>build</a></p>`,
  ],
  [
    "a link without a text says where it leads",
    "[](https://example.com/b)",
    `<p><a href="https://example.com/b" ${rel}>https://example.com/b</a></p>`,
  ],
  [
    "the markup that READMEs begin with",
    '<p align="center">\n  <img src="logo.svg" width="120" alt="Logo" onload="x">\n</p>\n\nText<br>',
    '<p class="center"><img src="/r/raw/main/logo.svg" alt="Logo" loading="lazy" width="120"></p><p>Text<br></p>',
  ],
  [
    "Markdown within details",
    "<details open><summary>More</summary>\n\n**a**\n\n</details>\n\nb",
    "<details open><summary>More</summary><p><strong>a</strong></p></details><p>b</p>",
  ],
  [
    "keys and small letters",
    "<kbd>Ctrl</kbd> H<sub>2</sub>O<sup>x</sup>",
    "<p><kbd>Ctrl</kbd> H<sub>2</sub>O<sup>x</sup></p>",
  ],
  ["tags that were left open are closed, those never opened are not", "<b>a\n\n</i></div>b", "<p><b>a</b></p><p>b</p>"],
  ["unknown tags are left out, their text is not", "<blink>a</blink> <Vec>", "<p>a </p>"],
  ["comments are left out", "a<!-- <b> -->b", "<p>ab</p>"],
  [
    "emoji by their names",
    ":rocket: :no_such: `:rocket:` 10:30:00",
    "<p>🚀 :no_such: <code>:rocket:</code> 10:30:00</p>",
  ],
  ["code is shown as it is", "```html\n<b>&amp;</b>\n```", `${code}&lt;b&gt;&amp;amp;&lt;/b&gt;\n</code></pre>`],
];

for (const [name, text, expected] of rows) {
  test(`Markdown: ${name}`, () => assert.equal(compact(rendered(text)), compact(expected)));
}

test("Markdown: footnotes lead to their text and back", () => {
  const page = rendered("a[^x] b[^x]\n\n[^x]: Why");
  assert.match(page, /<sup><a id="md-fnref1" href="#md-fn1">\[1\]<\/a><\/sup>/);
  assert.match(page, /<div class="footnotes"><ol><li id="md-fn1"><p>Why <a href="#md-fnref1">/);
});

test("Markdown: without a place, what is relative is text; other schemes never lead anywhere", () => {
  const alone = (text: string): string => renderMarkdown(text, { outerLevel: 2, idPrefix: "c1-" }).toString();
  assert.equal(compact(alone("[a](docs/a.md) ![b](b.png)")), "<p><span>a</span> b</p>");
  assert.match(alone("# T"), /id="c1-t"/);
  for (const url of ["javascript:alert(1)", "data:text/html,x", "vbscript:x", "//evil.example/x", "file:///etc"]) {
    assert.doesNotMatch(rendered(`[a](<${url}>) <a href="${url}">b</a> <img src="${url}">`), /href|src/, url);
  }
});

test("a text longer than is rendered, or of more tags than anybody needs, does not become a page many times its length", () => {
  for (const part of ["#a\n", "# a\n", "- [ ] a\n", "<b>", "|a", "[^1]", "a\n\n", ":+1:", "<h1>a", "<table>", "> "]) {
    const text = part.repeat(Math.ceil((2 * maxMarkdownCharacters) / part.length));
    assert.ok(rendered(text).length < 16 * maxMarkdownCharacters, JSON.stringify(part));
  }
});

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
  '<a href="java\nscript:alert(1)">x</a>',
  '<a href="&#106;avascript:alert(1)">x</a>',
  '<a href="  javascript:alert(1)">x</a>',
  '<img src="data:image/svg+xml,<svg onload=alert(1)>">',
  '<img src=x" onerror="alert(1)">',
  '<img alt="\'><script>alert(1)</script>" src=x.png>',
  "<details open ontoggle=alert(1)>",
  '<p align="center" onclick="alert(1)">x</p>',
  '<td style="background:url(https://evil.example)">x</td>',
  '<a id="x" onclick="alert(1)" name=y>x</a>',
  "<math><mtext></p><style><!--</style><img title=--&gt;&lt;img src=1 onerror=alert(1)&gt;>",
  "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
  "<svg><style><img src=x onerror=alert(1)></style></svg>",
  "<title><img src=x onerror=alert(1)></title>",
  "<template><script>alert(1)</script></template>",
  "<base href=https://evil.example><link rel=stylesheet href=https://evil.example><meta http-equiv=refresh content=0>",
  "<![CDATA[<script>alert(1)</script>]]>",
  "<?php <script>alert(1)</script> ?>",
  "[^1]\n\n[^1]: <script>alert(1)</script>",
  '[^"><script>]\n\n[^"><script>]: x',
  'https://example.com/"onmouseover=alert(1)',
];

/** Exactly the tags and attributes the writer knows; a `<` anywhere else is a fault. */
const plainTags =
  "p|h[2-6]|ul|ol|li|blockquote|hr|br|strong|em|b|i|u|s|del|ins|code|kbd|samp|var|sub|sup|small|q|cite|abbr|table|caption|thead|tbody|tfoot|tr|td|th|pre|div|a|span|dl|dt|dd|figure|figcaption|details|summary";
const side = 'class="(?:left|right|center)"';
const knownTag = new RegExp(
  `<(?:${[
    `/?(?:${plainTags})`,
    'a class="anchor" href="#md-[^"<>]*" aria-hidden="true" tabindex="-1"',
    `(?:${plainTags})(?: id="md-[^"<>]*")?(?: ${side}| class="footnotes")?(?: scope="col")?(?: start="\\d+")?(?: open)?`,
    'li class="task"',
    'pre tabindex="0" role="group" aria-label="Code"',
    'div class="scroll" tabindex="0" role="group" aria-label="Table"',
    'a(?: id="md-[^"<>]*")? href="(?:#|#md-[^"<>]*|/r/blob/main/[^"<>]*|https?://[^"<>\\s]*" rel="nofollow noopener noreferrer ugc)"',
    `img src="/r/raw/main/[^"<>]*" alt="[^"<>]*" loading="lazy"(?: (?:width|height)="\\d+%?")*(?: ${side})?`,
  ].join("|")})>`,
  "g",
);

function assertOnlyKnownTags(text: string): void {
  const rest = rendered(text).replace(knownTag, "");
  assert.doesNotMatch(rest, /[<>"']/, `${text}: ${rest}`);
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
    "<b>",
    "</b>",
    "<p align=center>",
    "<a href=",
    "<img src=",
    "[^1]",
    "[^1]: ",
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
    "[^",
    "[^1]",
    "<b>",
    "</b>",
    "<b></i>",
    "*a **b",
    "a://",
    ":a",
    "*a* http://b ",
    "&",
    "<table><tr>",
    "[a]: b\n",
    "[a]",
  ];
  for (const part of slow) {
    const text = part.repeat(Math.ceil(maxMarkdownCharacters / part.length));
    // What it worked, not what it waited for: a busy machine does not move that.
    const begun = process.cpuUsage();
    rendered(text);
    const { user, system } = process.cpuUsage(begun);
    const tookMs = (user + system) / 1_000;
    assert.ok(tookMs < 3_000, `${JSON.stringify(part)} took ${Math.round(tookMs)} ms`);
  }
});
