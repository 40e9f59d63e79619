import assert from "node:assert/strict";
import { test } from "node:test";
import { patchMailOf, patchTitleOf } from "./patch-mail.js";

const mail = (subject: string, message = "Why it is so.") =>
  `From 1234567890123456789012345678901234567890 Mon Sep 17 00:00:00 2001
From: Ada <ada@example.com>
Date: Mon, 16 Nov 2026 10:00:00 +0000
Subject: ${subject}
MIME-Version: 1.0

${message}
---
 a.txt | 2 +-
 1 file changed, 1 insertion(+), 1 deletion(-)

diff --git a/a.txt b/a.txt
index 1..2 100644
--- a/a.txt
+++ b/a.txt
@@ -1 +1 @@
-one
+two
-- 
2.47.0
`;

test("a patch's title is its whole subject in one line, without what git puts before it", () => {
  for (const [subject, title] of [
    ["[PATCH] Fix the lamp", "Fix the lamp"],
    ["[PATCH v2 3/12] Fix the lamp", "Fix the lamp"],
    ["[RFC PATCH 0/3] A tower", "A tower"],
    ["[PATCH 1/2] [PATCH] Twice", "Twice"],
    ["[lamp] is no such prefix", "[lamp] is no such prefix"],
    [
      "[PATCH] A long subject that git has\n folded into a second\n\tand a third line",
      "A long subject that git has folded into a second and a third line",
    ],
    ["=?UTF-8?q?[PATCH]_Gr=C3=BC=C3=9Fe_an_alle?=", "Grüße an alle"],
    ["[PATCH] =?UTF-8?q?Gr=C3?=\n =?UTF-8?q?=BC=C3=9Fe?=", "Grüße"],
    ["[PATCH] =?utf-8?b?R3LDvMOfZQ==?= und mehr", "Grüße und mehr"],
    ["[PATCH] =?bad?q", "=?bad?q"],
  ] as const) {
    assert.equal(patchTitleOf(mail(subject)), title, subject);
  }
});

test("a patch has a message and changes; a cover letter and a text that is no mail have what they have", () => {
  const whole = patchMailOf(mail("[PATCH] Fix", "Because.\n\nSubject: not this one"));
  assert.equal(whole.message, "Because.\n\nSubject: not this one");
  assert.match(whole.diff, /^diff --git a\/a\.txt b\/a\.txt\n[\s\S]*\+two\n$/);
  const letter = patchMailOf("Subject: [PATCH 0/2] Two things\n\nThe first and the second.\n\n-- \n2.47.0\n");
  assert.deepEqual(letter, { title: "Two things", message: "The first and the second.", diff: "" });
  assert.deepEqual(patchMailOf("\nJust words\nand more"), { title: "Just words", message: "and more", diff: "" });
  assert.deepEqual(patchMailOf(""), { title: "", message: "", diff: "" });
  assert.equal(patchMailOf("diff --git a/x b/x\n").diff, "diff --git a/x b/x\n");
});

test("a patch made to be slow is taken apart in linear time", () => {
  const cost = (length: number): number => {
    const begun = process.cpuUsage();
    for (const text of [
      "=?utf-8?q?".repeat(length / 10),
      `Subject: ${"[PATCH ".repeat(length / 7)}`,
      "\n -- \n---".repeat(length / 9),
    ])
      patchMailOf(`Subject: x\n${text}`);
    return process.cpuUsage(begun).user;
  };
  cost(100_000);
  const [small, large] = [cost(200_000), cost(800_000)];
  assert.ok(large < Math.max(small * 12, 200_000), `${small} µs, then ${large} µs for four times as much`);
});
