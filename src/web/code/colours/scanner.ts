// Tells comments, strings, numbers and words of a source text apart, in one walk from its beginning to its end: every sign
// is looked at a bounded number of times, whatever the text (threats row 32). Answers numbers only: where a stretch begins,
// where it ends, which look it has.

import { type Grammar, type Look, lookNames, type StringRule } from "./grammar.js";

const lookIndex = new Map(lookNames.map((name, index) => [name, index]));

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;
const isLetter = (code: number): boolean =>
  (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || code === 0x5f || code > 0x7f;
const isSpace = (code: number): boolean => code === 0x20 || code === 0x09 || code === 0x0d;
const newline = 0x0a;
const backslash = 0x5c;

/** How far is looked ahead for what decides between two looks. */
const lookAhead = 40;

/** Stretches one after the other: begin, end, index in `lookNames`. */
export function scan(text: string, grammar: Grammar): number[] {
  const scanner = new Scanner(text);
  scanner.scan(grammar, 0, text.length);
  return scanner.stretches;
}

class Scanner {
  readonly stretches: number[] = [];
  #lower: string | undefined;

  constructor(readonly text: string) {}

  mark(from: number, to: number, look: Look): void {
    if (to > from) this.stretches.push(from, to, lookIndex.get(look) ?? 0);
  }

  scan(grammar: Grammar, from: number, to: number): void {
    if (grammar.kind === "markup") this.#markup(grammar, from, to);
    else if (grammar.kind === "markdown") this.#lines(from, to, markdownLines());
    else if (grammar.kind === "diff") this.#lines(from, to, diffLine);
    else this.#code(grammar, from, to);
  }

  #lines(from: number, to: number, lookOf: (line: string) => Look | undefined): void {
    for (let at = from; at < to; ) {
      const end = this.#lineEnd(at, to);
      const look = lookOf(this.text.slice(at, Math.min(end, at + 200)));
      if (look) this.mark(at, end, look);
      at = end + 1;
    }
  }

  #lineEnd(at: number, to: number): number {
    const end = this.text.indexOf("\n", at);
    return end < 0 || end > to ? to : end;
  }

  #code(grammar: Grammar, from: number, to: number): void {
    const { text } = this;
    const rules = rulesOf(grammar);
    const templates: { readonly rule: StringRule; depth: number }[] = [];
    let isLineStart = true;
    // Where a value may stand, `/` begins a pattern; after a value it divides.
    let isValueNext = true;
    let noPatternBefore = 0;
    let isAfterBracket = false;
    let at = from;
    while (at < to) {
      const code = text.charCodeAt(at);
      if (code === newline) {
        isLineStart = true;
        isValueNext = true;
        at += 1;
        continue;
      }
      if (isSpace(code)) {
        at += 1;
        continue;
      }
      const wasLineStart = isLineStart;
      const wasAfterBracket = isAfterBracket;
      isLineStart = false;
      isAfterBracket = code === 0x28;
      if (wasLineStart && grammar.hasSections && code === 0x5b) {
        const end = this.#lineEnd(at, to);
        this.mark(at, end, "tag");
        at = end;
        continue;
      }
      const comment = this.#commentEnd(rules, at, from, to, code);
      if (comment !== undefined) {
        this.mark(at, comment, "comment");
        at = comment;
        continue;
      }
      const rule = rules.strings.get(code)?.find(({ open }) => text.startsWith(open, at));
      if (rule && !(rule.isOneSign && !this.#isOneSign(rule, at, to))) {
        const end = this.#stringEnd(rule, at + rule.open.length, to);
        const isKey = grammar.keySign !== undefined && this.#isKey(grammar, end, to, wasLineStart);
        this.mark(at, end, isKey ? "name" : "string");
        if (rule.hasCode && text.startsWith("${", end - 2)) templates.push({ rule, depth: 0 });
        at = end;
        isValueNext = false;
        continue;
      }
      const template = templates.at(-1);
      if (template && code === 0x7b) template.depth += 1;
      if (template && code === 0x7d && template.depth-- === 0) {
        templates.pop();
        const end = this.#stringEnd(template.rule, at + 1, to);
        this.mark(at, end, "string");
        if (text.startsWith("${", end - 2)) templates.push({ rule: template.rule, depth: 0 });
        at = end;
        isValueNext = false;
        continue;
      }
      if (isDigit(code)) {
        at = this.#number(at, to);
        isValueNext = false;
        continue;
      }
      if (rules.isWordStart(code) || this.#isSigned(grammar, at, code, rules)) {
        at = this.#word(grammar, rules, at, to, wasLineStart, wasAfterBracket);
        isValueNext = false;
        const last = this.stretches;
        if (last.at(-2) === at && last.at(-1) === lookIndex.get("keyword")) isValueNext = true;
        continue;
      }
      if (grammar.hasPatterns && code === 0x2f && isValueNext && at >= noPatternBefore) {
        const end = this.#patternEnd(at, to);
        if (end !== undefined) {
          this.mark(at, end, "string");
          at = end;
          isValueNext = false;
          continue;
        }
        // It did not end in this line: neither will one that begins later in it be looked for.
        noPatternBefore = this.#lineEnd(at, to);
      }
      isValueNext = code !== 0x29 && code !== 0x5d;
      at += 1;
    }
  }

  /** Where the comment that begins here ends. */
  #commentEnd(rules: Rules, at: number, from: number, to: number, code: number): number | undefined {
    const { text } = this;
    for (const [open, close] of rules.blockComments.get(code) ?? []) {
      if (!text.startsWith(open, at)) continue;
      const end = text.indexOf(close, at + open.length);
      return end < 0 ? to : Math.min(to, end + close.length);
    }
    for (const open of rules.lineComments.get(code) ?? []) {
      if (!text.startsWith(open, at)) continue;
      const before = at > from ? text.charCodeAt(at - 1) : newline;
      if (rules.isCommentApart && !isSpace(before) && before !== newline && before !== 0x3b) continue;
      return this.#lineEnd(at, to);
    }
    return undefined;
  }

  /** After the end of a string whose content begins at `at`; after `${` when code comes. */
  #stringEnd(rule: StringRule, at: number, to: number): number {
    const { text } = this;
    const { close, isLong, hasCode } = rule;
    const first = close.charCodeAt(0);
    for (let here = at; here < to; here++) {
      const code = text.charCodeAt(here);
      if (code === newline && !isLong) return here;
      if (code === backslash && (rule.escape ?? "backslash") === "backslash") here += 1;
      else if (hasCode && code === 0x24 && text.charCodeAt(here + 1) === 0x7b) return Math.min(to, here + 2);
      else if (code === first && text.startsWith(close, here)) {
        if (rule.escape === "doubled" && text.startsWith(close, here + close.length)) here += 2 * close.length - 1;
        else return Math.min(to, here + close.length);
      }
    }
    return to;
  }

  #isOneSign({ close }: StringRule, at: number, to: number): boolean {
    const { text } = this;
    const isEscaped = text.charCodeAt(at + 1) === backslash;
    const end = text.indexOf(close, at + (isEscaped ? 3 : 2));
    if (end < 0 || end >= to) return false;
    const length = end - at - 1;
    // A sign outside the first plane is two units.
    return isEscaped ? length <= 12 : length === 1 || (length === 2 && text.charCodeAt(at + 1) >= 0xd800);
  }

  #number(from: number, to: number): number {
    const { text } = this;
    let at = from + 1;
    for (; at < to; at++) {
      const code = text.charCodeAt(at);
      if (isDigit(code) || isLetter(code)) continue;
      // `1..2` is two numbers.
      if (code === 0x2e && isDigit(text.charCodeAt(at + 1))) continue;
      const before = text.charCodeAt(at - 1) | 0x20;
      if ((code === 0x2b || code === 0x2d) && before === 0x65 && isDigit(text.charCodeAt(at + 1))) continue;
      break;
    }
    this.mark(from, at, "number");
    return at;
  }

  /** `@decorator`, `#define`, `$variable`: a sign and a word. */
  #isSigned({ variableSign, metaSign }: Grammar, at: number, code: number, rules: Rules): boolean {
    const sign = String.fromCharCode(code);
    if (sign !== variableSign && sign !== metaSign) return false;
    const next = this.text.charCodeAt(at + 1);
    return rules.isWordStart(next) || (sign === variableSign && (next === 0x7b || next === 0x28 || isDigit(next)));
  }

  #word(grammar: Grammar, rules: Rules, from: number, to: number, isLineStart: boolean, isFirst: boolean): number {
    const { text } = this;
    const first = text[from];
    const isSigned = first === grammar.metaSign || first === grammar.variableSign;
    let at = from + 1;
    if (first === grammar.variableSign && /[{(]/.test(text[at] ?? "")) at += 1;
    while (at < to && rules.isWordPart(text.charCodeAt(at))) at += 1;
    if (first === grammar.variableSign && isSigned) {
      this.mark(from, at, "name");
      return at;
    }
    if (first === grammar.metaSign && isSigned) {
      this.mark(from, at, "meta");
      return at;
    }
    const written = at - from <= 60 ? text.slice(from, at) : "";
    const word = grammar.isCaseless ? written.toLowerCase() : written;
    const next = text.charCodeAt(at);
    // `r"…"`, `f'…'`: letters that belong to the string after them.
    if (at - from <= 2 && (next === 0x22 || next === 0x27) && rules.strings.has(next)) this.mark(from, at, "string");
    else if (this.#isKey(grammar, at, to, isLineStart)) this.mark(from, at, "name");
    else if (grammar.keywords?.has(word)) this.mark(from, at, "keyword");
    else if (grammar.constants?.has(word)) this.mark(from, at, "number");
    else if (grammar.types?.has(word)) this.mark(from, at, "type");
    else if (grammar.isLisp ? isFirst : next === 0x28) this.mark(from, at, "call");
    else if (grammar.hasCapitalTypes && /^\p{Lu}/u.test(written) && text[from - 1] !== ".") this.mark(from, at, "type");
    return at;
  }

  #isKey({ keySign, keysBeginLines }: Grammar, end: number, to: number, isLineStart: boolean): boolean {
    if (keySign === undefined || (keysBeginLines && !isLineStart)) return false;
    let at = end;
    while (at < to && at < end + lookAhead && isSpace(this.text.charCodeAt(at))) at += 1;
    return at < to && keySign.includes(this.text[at] ?? "\n");
  }

  #patternEnd(from: number, to: number): number | undefined {
    const { text } = this;
    let isInClass = false;
    for (let at = from + 1; at < to; at++) {
      const code = text.charCodeAt(at);
      if (code === newline) return undefined;
      if (code === backslash) at += 1;
      else if (code === 0x5b) isInClass = true;
      else if (code === 0x5d) isInClass = false;
      else if (code === 0x2f && !isInClass) {
        if (at === from + 1) return undefined;
        let end = at + 1;
        while (end < to && isLetter(text.charCodeAt(end))) end += 1;
        return end;
      }
    }
    return undefined;
  }

  #markup(grammar: Grammar, from: number, to: number): void {
    const { text } = this;
    for (let at = from; at < to; ) {
      const begin = text.indexOf("<", at);
      if (begin < 0 || begin >= to) return;
      if (text.startsWith("<!--", begin)) {
        at = this.#upTo("-->", begin + 4, to);
        this.mark(begin, at, "comment");
      } else if (grammar.processing && text.startsWith("<?", begin)) {
        const end = this.#upTo("?>", begin + 2, to);
        const head = Math.min(end, begin + (text.startsWith("<?php", begin) ? 5 : 2));
        this.mark(begin, head, "meta");
        // In `<?>` the end would share a sign with the beginning: it is none.
        const inner = text.endsWith("?>", end) && end - 2 >= head ? end - 2 : end;
        this.scan(grammar.processing(), head, inner);
        this.mark(inner, end, "meta");
        at = end;
      } else if (/[!?]/.test(text[begin + 1] ?? "")) {
        at = this.#upTo(">", begin, to);
        this.mark(begin, at, "meta");
      } else if (isLetter(text.charCodeAt(begin + 1)) || text[begin + 1] === "/") at = this.#tag(grammar, begin, to);
      else at = begin + 1;
    }
  }

  #upTo(mark: string, from: number, to: number): number {
    const end = this.text.indexOf(mark, from);
    return end < 0 ? to : Math.min(to, end + mark.length);
  }

  #tag(grammar: Grammar, begin: number, to: number): number {
    const { text } = this;
    let at = begin + (text[begin + 1] === "/" ? 2 : 1);
    const nameAt = at;
    while (at < to && !/[\s/>]/.test(text[at] ?? "")) at += 1;
    this.mark(begin, at, "tag");
    const name = text.slice(nameAt, Math.min(at, nameAt + 20)).toLowerCase();
    while (at < to) {
      const code = text.charCodeAt(at);
      if (code === 0x3e || code === 0x3c) break;
      if (code === 0x22 || code === 0x27) {
        const end = this.#upTo(String.fromCharCode(code), at + 1, to);
        this.mark(at, end, "string");
        at = end;
      } else if (isLetter(code) || code === 0x3a || code === 0x40) {
        const start = at;
        while (at < to && !/[\s=/>"'<]/.test(text[at] ?? "")) at += 1;
        this.mark(start, at, "name");
      } else at += 1;
    }
    const isEnded = text[at] === ">";
    if (isEnded) this.mark(at, at + 1, "tag");
    const end = Math.min(to, isEnded ? at + 1 : at);
    const inner = name === "script" ? grammar.script : name === "style" ? grammar.style : undefined;
    if (!inner || text[begin + 1] === "/" || !isEnded || text[at - 1] === "/") return end;
    this.#lower ??= text.toLowerCase();
    // Lower case may be longer than the text: then places do not fit, and nothing is told apart.
    const close = this.#lower.length === text.length ? this.#lower.indexOf(`</${name}`, end) : -1;
    const innerEnd = close < 0 ? to : Math.min(close, to);
    this.scan(inner(), end, innerEnd);
    return innerEnd;
  }
}

interface Rules {
  readonly lineComments: ReadonlyMap<number, readonly string[]>;
  readonly blockComments: ReadonlyMap<number, readonly (readonly [string, string])[]>;
  readonly strings: ReadonlyMap<number, readonly StringRule[]>;
  readonly isCommentApart: boolean;
  readonly isWordStart: (code: number) => boolean;
  readonly isWordPart: (code: number) => boolean;
}

const knownRules = new WeakMap<Grammar, Rules>();

/** By the first sign; the longest first, so that `"""` is not taken for an empty string. */
function rulesOf(grammar: Grammar): Rules {
  const known = knownRules.get(grammar);
  if (known) return known;
  const byFirst = <Item>(items: readonly Item[], open: (item: Item) => string): Map<number, Item[]> => {
    const map = new Map<number, Item[]>();
    for (const item of [...items].sort((a, b) => open(b).length - open(a).length)) {
      const code = open(item).charCodeAt(0);
      map.set(code, [...(map.get(code) ?? []), item]);
    }
    return map;
  };
  const signs = new Set(Array.from(grammar.wordSigns ?? "", (sign) => sign.charCodeAt(0)));
  const rules: Rules = {
    lineComments: byFirst(grammar.lineComments ?? [], (open) => open),
    blockComments: byFirst(grammar.blockComments ?? [], ([open]) => open),
    strings: byFirst(grammar.strings ?? [], ({ open }) => open),
    isCommentApart: grammar.isCommentApart ?? false,
    isWordStart: (code) => isLetter(code) || signs.has(code),
    isWordPart: (code) => isLetter(code) || isDigit(code) || signs.has(code),
  };
  knownRules.set(grammar, rules);
  return rules;
}

function diffLine(line: string): Look | undefined {
  if (/^(?:diff |index |--- |\+\+\+ |[A-Za-z-]+: )/.test(line)) return "meta";
  if (line.startsWith("@@")) return "keyword";
  return line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : undefined;
}

function markdownLines(): (line: string) => Look | undefined {
  let fence: string | undefined;
  return (line) => {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence !== undefined) {
      if (mark?.startsWith(fence)) fence = undefined;
      return "string";
    }
    if (mark !== undefined) {
      fence = mark;
      return "string";
    }
    if (/^ {0,3}#{1,6}(?: |$)/.test(line)) return "tag";
    return /^ {0,3}>/.test(line) ? "comment" : undefined;
  };
}
