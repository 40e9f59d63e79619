import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { systemClock } from "../../../base/clock.js";
import { assertLinear, uglyShapes } from "../../../base/testing/linear-time.js";
import { ManualClock } from "../../../base/testing/manual-clock.js";
import { lookNames } from "./grammar.js";
import { grammarOf, languageCount, languageNamed, languageOf } from "./languages.js";
import { markedLine, paintingLines } from "./painted-lines.js";
import { scan } from "./scanner.js";
import { TextThread } from "./text-thread.js";
import { changedWords } from "./word-diff.js";

const grammar = (language: string) => grammarOf(language) ?? assert.fail(`no ${language}`);

/** Each stretch as `look:text`. */
function told(language: string, text: string): string[] {
  const stretches = scan(text, grammar(language));
  const out: string[] = [];
  for (let at = 0; at < stretches.length; at += 3) {
    out.push(`${lookNames[stretches[at + 2] ?? 0]}:${text.slice(stretches[at], stretches[at + 1])}`);
  }
  return out;
}

const rows: readonly (readonly [language: string, text: string, ...expected: string[]])[] = [
  [
    "typescript",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text that is told apart
    "const a = `x${b(1)}y`; // c",
    "keyword:const",
    "string:`x${",
    "call:b",
    "number:1",
    "string:}y`",
    "comment:// c",
  ],
  ["javascript", "a = /[/]'/g; b = c / d / 'e'", "string:/[/]'/g", "string:'e'"],
  [
    "python",
    'def f():\n  """a\nb"""\n  return r"x"',
    "keyword:def",
    "call:f",
    'string:"""a\nb"""',
    "keyword:return",
    "string:r",
    'string:"x"',
  ],
  ["rust", "fn f<'a>(c: &'a str) { 'x' }", "keyword:fn", "type:str", "string:'x'"],
  ["go", "x := `a\\`\n/* b */", "string:`a\\`", "comment:/* b */"],
  ["shell", 'echo "$a" a#b # c', "keyword:echo", 'string:"$a"', "comment:# c"],
  ["sql", "SELECT 'it''s' -- c", "keyword:SELECT", "string:'it''s'", "comment:-- c"],
  ["json", '{"a": "b", "c": [1, true]}', 'name:"a"', 'string:"b"', 'name:"c"', "number:1", "number:true"],
  ["yaml", "a: 'b' # c\nd: 1", "name:a", "string:'b'", "comment:# c", "name:d", "number:1"],
  ["toml", "[a]\nb = 1", "tag:[a]", "name:b", "number:1"],
  [
    "html",
    '<!-- c --><a href="x">y</a><script>let z</script>',
    "comment:<!-- c -->",
    "tag:<a",
    "name:href",
    'string:"x"',
    "tag:>",
    "tag:</a",
    "tag:>",
    "tag:<script",
    "tag:>",
    "keyword:let",
    "tag:</script",
    "tag:>",
  ],
  ["phtml", "<b><?php echo $a; ?>", "tag:<b", "tag:>", "meta:<?php", "keyword:echo", "name:$a", "meta:?>"],
  ["css", "a {\n  color: red;\n} /* c */", "name:color", "comment:/* c */"],
  ["markdown", "# T\n```\n# x\n```\n> q", "tag:# T", "string:```", "string:# x", "string:```", "comment:> q"],
  ["diff", "@@ -1 +1 @@\n-a\n+b", "keyword:@@ -1 +1 @@", "removed:-a", "added:+b"],
  ["lisp", "(defun f (x) ; c", "keyword:defun", "call:x", "comment:; c"],
  [
    "c",
    "#include <a>\nint main() { return 0x1f; }",
    "meta:#include",
    "type:int",
    "call:main",
    "keyword:return",
    "number:0x1f",
  ],
];

for (const [language, text, ...expected] of rows) {
  test(`colours: ${language} is told apart`, () => assert.deepEqual(told(language, text), expected));
}

test("colours: forty languages and more are known, by name, suffix and first line", () => {
  assert.ok(languageCount >= 40, `${languageCount}`);
  assert.deepEqual(
    [
      languageOf("a.TS"),
      languageOf("Makefile"),
      languageOf("Dockerfile.dev"),
      languageOf("x", "#!/usr/bin/env python3\n"),
      languageOf("x", "#!/bin/sh\n"),
      languageOf("x"),
      languageOf("__proto__"),
      languageOf("a.constructor"),
      languageNamed("js"),
      languageNamed("toString"),
    ],
    [
      "typescript",
      "makefile",
      "dockerfile",
      "python",
      "shell",
      undefined,
      undefined,
      undefined,
      "javascript",
      undefined,
    ],
  );
});

test("colours: painted lines hold exactly the text, whatever it is and whatever language it is taken for", () => {
  const languages = [
    "typescript",
    "python",
    "html",
    "phtml",
    "markdown",
    "rust",
    "yaml",
    "sql",
    "perl",
    "lisp",
    "latex",
  ];
  const signs = [
    "`",
    "${",
    "}",
    "'",
    '"',
    "/",
    "\\",
    "\n",
    "\r\n",
    "<",
    ">",
    "<script>",
    "</script",
    "<!--",
    "#",
    "/*",
    "*/",
    '"""',
    "a",
    "1",
    " ",
    "<?",
    "?>",
    "𝒳",
    "İ",
  ];
  fc.assert(
    fc.property(
      fc.constantFrom(...languages),
      fc.array(fc.constantFrom(...signs), { maxLength: 60 }),
      (language, parts) => {
        const text = parts.join("");
        const stretches = scan(text, grammar(language));
        let end = 0;
        for (let at = 0; at < stretches.length; at += 3) {
          const [from = 0, to = 0] = [stretches[at], stretches[at + 1]];
          assert.ok(from >= end && to > from && to <= text.length, JSON.stringify({ text, stretches }));
          end = to;
        }
        const lines = [...paintingLines(text, Uint32Array.from(stretches))].map((line) =>
          String(line)
            .replace(/<\/?span[^>]*>/g, "")
            .replace(/&(lt|gt|quot|#39|amp);/g, (entity) => entities[entity] ?? ""),
        );
        const expected = text
          .replace(/\r?\n$/, "")
          .split("\n")
          .map((line) => line.replace(/\r$/, ""));
        assert.deepEqual(lines, expected);
      },
    ),
    {
      numRuns: 1_500,
      // An end that would share a sign with its beginning.
      examples: [
        ["phtml", ["<?", ">"]],
        ["phtml", ["<", "?>"]],
        ["phtml", ["<?", "php", "?>"]],
      ],
    },
  );
});
const entities: Readonly<Record<string, string>> = {
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
  "&amp;": "&",
};

test("threat 32: no shape of a text makes the colours take more than time in proportion to its length", () => {
  const bombs: readonly (readonly [string, (chars: number) => string])[] = [
    "/[",
    "'",
    "`${",
    "<a<",
    "<script>",
    "'a ",
    "{",
    "a: ",
    "\\",
    "/*",
    'r"',
    "<?",
    "@a",
    "((((",
    "1e+",
    "\n=pod",
  ].map((piece) => [piece, (chars) => piece.repeat(Math.ceil(chars / piece.length))] as const);
  const shapes = [...uglyShapes.filter((_, index) => index % 2 === 1), ...bombs];
  for (const language of ["typescript", "phtml", "rust", "yaml"]) {
    const known = grammar(language);
    for (const [name, shape] of shapes) {
      assertLinear(`${language} of ${name}`, shape, (text) => scan(text, known), { maxChars: 2 ** 16 });
    }
  }
});

test("words: what was changed within a line is told by word, and lines that share little are two lines", () => {
  assert.deepEqual(changedWords("const b = 2;", "const b = 3;"), { old: [10, 11], new: [10, 11] });
  assert.deepEqual(changedWords("f(a, b)", "f(a, new, b)"), { old: [], new: [5, 10] });
  assert.equal(changedWords("nothing alike", "f(x) => {};"), undefined);
  assert.equal(changedWords("a".repeat(2_000), "a"), undefined);
  const html = markedLine("a<b>c", [1, 4]);
  assert.equal(String(html), "a<b>&lt;b&gt;</b>c");
});

test("words: a line of many words is compared within bounds", () => {
  const line = (word: string): string =>
    Array.from({ length: 300 }, (_, index) => `${word}${index}`)
      .join(" ")
      .slice(0, 1_000);
  assert.equal(changedWords(line("a"), line("b")), undefined);
});

test("the thread of texts is started when needed, ends one that takes too long, and ends when nobody asks", async () => {
  const clock = new ManualClock();
  const thread = new TextThread(clock);
  try {
    assert.equal(await thread.scan("x", "no such language"), undefined);
    assert.equal(thread.isRunning, false);
    const first = await thread.scan("let a", "javascript");
    assert.deepEqual([...(first ?? [])], [0, 3, lookNames.indexOf("keyword")]);
    const slow = thread.scan("/* a */ ".repeat(100_000), "javascript");
    const behind = thread.scan("let b", "javascript");
    // Its time is over before it can have answered: this thread has not been back at its loop since.
    clock.advance(1_000);
    assert.equal(await slow, undefined);
    assert.equal((await behind)?.length, 3);
    assert.deepEqual(
      [
        ...((await thread.words([
          ["a b", "a c"],
          ["x", "yyyy"],
        ])) ?? []),
      ],
      [2, 2, 3, 2, 2, 3, -1],
    );
    clock.advance(120_000);
    assert.equal(thread.isRunning, false);
    assert.equal((await thread.scan("let c", "javascript"))?.length, 3);
  } finally {
    await thread.close();
  }
  assert.equal(await thread.scan("let d", "javascript"), undefined);
});

test("the thread of texts holds only so many questions", async () => {
  const thread = new TextThread(systemClock);
  try {
    const answers = await Promise.all(Array.from({ length: 60 }, () => thread.scan("let a", "javascript")));
    assert.ok(answers.filter((answer) => answer === undefined).length >= 20);
    assert.ok(answers.some((answer) => answer !== undefined));
  } finally {
    await thread.close();
  }
});
