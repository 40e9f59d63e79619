import assert from "node:assert/strict";
import { test } from "node:test";
import { maxSearchWords, searchableWords, searchWords } from "./search.js";

const event = (kind: number, content: string, tags: string[][] = []) => ({ kind, content, tags });

test("a repository is found by name, identifier and description", () => {
  const tags = [
    ["d", "hold-fast"],
    ["name", "Ｈoldfast"],
    ["description", "keeps, holds"],
  ];
  assert.deepEqual(searchableWords(event(30_617, "not this", tags)), ["holdfast", "hold", "fast", "keeps", "holds"]);
});

test("an issue is found by its subject, else by its first line that says something", () => {
  assert.deepEqual(searchableWords(event(1_621, "body", [["subject", "It breaks"]])), ["it", "breaks"]);
  assert.deepEqual(searchableWords(event(1_621, "\n  \r\nFirst line\nsecond")), ["first", "line"]);
});

test("a patch is found by the subject of its mail", () => {
  const mail = "From 0000 Mon Sep 17\nFrom: A\nSubject: [PATCH] fix it\n\nbody";
  assert.deepEqual(searchableWords(event(1_617, mail)), ["patch", "fix", "it"]);
});

test("other kinds are not searchable, and one event has a bounded number of words", () => {
  assert.deepEqual(searchableWords(event(1, "hello")), []);
  const many = Array.from({ length: 500 }, (_, index) => `w${index}`).join(" ");
  assert.equal(searchableWords(event(30_617, "", [["name", many]])).length, maxSearchWords);
});

test("extensions of a search are not words", () => {
  assert.deepEqual(searchWords("Best  apps language:en sort:top"), ["best", "apps"]);
});
