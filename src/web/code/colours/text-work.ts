// What the thread of texts is asked and answers: sources into stretches of one look, changed lines into words, Markdown into
// markup. Pure, one question at a time, linear in the length of the text.

import { html } from "../../html.js";
import { renderMarkdown } from "../../markdown.js";
import type { CodeOf } from "../../markup-writer.js";
import { placeInRepository } from "../relative-links.js";
import { grammarOf, languageNamed } from "./languages.js";
import { paintingLines } from "./painted-lines.js";
import { scan } from "./scanner.js";
import { changedWords } from "./word-diff.js";

export interface MarkdownQuestion {
  readonly text: string;
  readonly outerLevel: number;
  readonly idPrefix?: string;
  /** Where relative links and pictures lead; the segments of `folder` as latin1. */
  readonly place: { readonly root: string; readonly ref: string; readonly folder: readonly string[] };
}

export type Question =
  | { readonly type: "scan"; readonly text: string; readonly language: string }
  | { readonly type: "words"; readonly pairs: readonly (readonly [old: string, fresh: string])[] }
  | ({ readonly type: "markdown" } & MarkdownQuestion);

/** Of `words`: for each pair the number of figures for the old line, these, the same for the new one; -1: nothing to say. */
export type Answer = Uint32Array | Int32Array | string;

export function answerTo(question: Question): Answer {
  switch (question.type) {
    case "scan":
      return Uint32Array.from(scan(question.text, grammarOf(question.language) ?? {}));
    case "words":
      return Int32Array.from(wordFigures(question.pairs));
    case "markdown": {
      const { text, outerLevel, idPrefix, place } = question;
      const folder = place.folder.map((segment) => Buffer.from(segment, "latin1"));
      return renderMarkdown(text, {
        outerLevel,
        ...(idPrefix !== undefined && { idPrefix }),
        place: placeInRepository(place.root, place.ref, folder),
        codeOf: paintedBlocks(),
      }).toString();
    }
  }
}

/** Of each pair, as `words` answers them. */
export function wordFigures(pairs: readonly (readonly [string, string])[]): number[] {
  return pairs.flatMap(([old, fresh]) => {
    const changed = changedWords(old, fresh);
    return changed ? [changed.old.length, ...changed.old, changed.new.length, ...changed.new] : [-1];
  });
}

/** More blocks of code than this, or longer ones, stay plain. */
const maxPainted = { blocks: 40, characters: 64 * 1024 };

/** The blocks of code of one text in their colours. */
function paintedBlocks(): CodeOf {
  let blocks = 0;
  let characters = 0;
  return (code, word) => {
    const language = languageNamed(word);
    const grammar = language === undefined ? undefined : grammarOf(language);
    characters += code.length;
    if (!grammar || ++blocks > maxPainted.blocks || characters > maxPainted.characters) return undefined;
    const lines = [...paintingLines(code, Uint32Array.from(scan(code, grammar)))];
    return html`${lines.flatMap((line) => (line ? [line, "\n"] : []))}`;
  };
}
