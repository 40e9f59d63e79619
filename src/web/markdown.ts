// A README as safe markup (threats row 14): a small part of Markdown, line by line. Everything is put together by
// `html` templates, so there is no way for text to become a tag; links are http and https only; pictures become
// links, so that a reader's browser asks nobody but this server. Raw markup in the text is left out, never passed on.
// What is not known here stays readable text. Linear in the length of the text: no pattern can look far ahead.

import { withoutTrailing } from "../net/url.js";
import { foreignLink, type Html, html, webUrl } from "./html.js";

export const maxReadmeCharacters = 64 * 1024;
/** What comes after them is shown as it is. */
const maxLines = 4_000;
/** Lists in quotations in lists: deeper ones are read as text. */
const maxDepth = 4;

/** `outerLevel`: the heading under which the text stands; its own headings come below that, without gaps. */
export function renderMarkdown(text: string, outerLevel: number): Html {
  const cut = text
    .slice(0, maxReadmeCharacters)
    .replace(/\r\n?/g, "\n")
    .replace(/\t/g, "    ")
    .slice(0, maxReadmeCharacters);
  const lines = withoutComments(cut).split("\n");
  const rest = lines.splice(maxLines);
  const rendered = blocks(lines, { outerLevel, lastLevel: outerLevel }, 0);
  return rest.length === 0 ? rendered : html`${rendered}${codeBlock(rest)}`;
}

interface Headings {
  readonly outerLevel: number;
  lastLevel: number;
}

function withoutComments(text: string): string {
  const kept: string[] = [];
  for (let at = 0; ; ) {
    const start = text.indexOf("<!--", at);
    const end = start < 0 ? -1 : text.indexOf("-->", start);
    kept.push(text.slice(at, end < 0 ? undefined : start));
    if (end < 0) return kept.join("");
    at = end + "-->".length;
  }
}

const fence = /^ {0,3}(`{3,}|~{3,})/;
const heading = /^ {0,3}(#{1,6})(?: (.*))?$/s;
const rule = /^ {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$/;
const item = /^( {0,3})([-*+]|\d{1,9}[.)])( {1,4}|$)/;
/** `[x]` at the beginning of an item: a box, ticked or not. */
const task = /^\[([ xX])\] /;
const quote = /^ {0,3}> ?/;
const tableRule = /^\|?(?: *:?-+:? *\|)+ *(?::?-+)?$/;

const isBlank = (line: string | undefined): boolean => line === undefined || line.trim() === "";
const startsBlock = (line: string): boolean =>
  fence.test(line) || heading.test(line) || rule.test(line) || item.test(line) || quote.test(line);

function blocks(lines: readonly string[], headings: Headings, depth: number): Html {
  const out: Html[] = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] ?? "";
    const next = lines[at + 1] ?? "";
    if (isBlank(line)) {
      at += 1;
      continue;
    }
    const fenced = fence.exec(line)?.[1];
    const titled = heading.exec(line);
    const begun = at;
    if (fenced !== undefined) {
      for (at += 1; at < lines.length && !isFenceEnd(lines[at] ?? "", fenced); ) at += 1;
      out.push(codeBlock(lines.slice(begun + 1, at)));
      at += 1;
    } else if (titled) {
      out.push(headingAt(headings, titled[1]?.length ?? 1, (titled[2] ?? "").replace(/ #+ *$/, "")));
      at += 1;
    } else if (rule.test(line)) {
      out.push(html`<hr>`);
      at += 1;
    } else if (quote.test(line) && depth < maxDepth) {
      while (at < lines.length && quote.test(lines[at] ?? "")) at += 1;
      const inner = lines.slice(begun, at).map((quoted) => quoted.replace(quote, ""));
      out.push(html`<blockquote>${blocks(inner, headings, depth + 1)}</blockquote>`);
    } else if (item.test(line) && depth < maxDepth) {
      const list = listFrom(lines, at, headings, depth);
      out.push(list.html);
      at = list.end;
    } else if (line.startsWith("    ")) {
      while (
        at < lines.length &&
        (lines[at]?.startsWith("    ") || (isBlank(lines[at]) && lines[at + 1]?.startsWith("    ")))
      )
        at += 1;
      out.push(codeBlock(lines.slice(begun, at).map((code) => code.slice(4))));
    } else if (line.includes("|") && next.includes("-") && next.length < 1_000 && tableRule.test(next.trim())) {
      for (at += 2; at < lines.length && (lines[at] ?? "").includes("|"); ) at += 1;
      out.push(table(line, lines.slice(begun + 2, at)));
    } else {
      at += 1;
      while (at < lines.length && !isBlank(lines[at]) && !startsBlock(lines[at] ?? "") && !isUnderline(lines[at]))
        at += 1;
      const text = lines.slice(begun, at).join("\n");
      if (isUnderline(lines[at])) {
        out.push(headingAt(headings, lines[at]?.trim().startsWith("=") ? 1 : 2, text));
        at += 1;
      } else {
        const content = inline(text);
        if (content.toString().trim() !== "") out.push(html`<p>${content}</p>`);
      }
    }
  }
  return html`${out}`;
}

const isUnderline = (line: string | undefined): boolean => line !== undefined && /^ {0,3}(?:=+|--+) *$/.test(line);
const isFenceEnd = (line: string, opened: string): boolean =>
  line.trimStart().startsWith(opened) && /^[`~]+$/.test(line.trim());

/** Long lines scroll inside the block; the block can be reached by keyboard to do so. */
const codeBlock = (lines: readonly string[]): Html =>
  html`<pre tabindex="0" role="group" aria-label="Code"><code>${lines.join("\n")}</code></pre>`;

function headingAt(headings: Headings, level: number, text: string): Html {
  const title = inline(text.trim());
  if (title.toString().trim() === "") return html``;
  const wanted = Math.min(6, headings.outerLevel + level, headings.lastLevel + 1);
  headings.lastLevel = wanted;
  switch (wanted) {
    case 2:
      return html`<h2>${title}</h2>`;
    case 3:
      return html`<h3>${title}</h3>`;
    case 4:
      return html`<h4>${title}</h4>`;
    case 5:
      return html`<h5>${title}</h5>`;
    default:
      return html`<h6>${title}</h6>`;
  }
}

function listFrom(lines: readonly string[], start: number, headings: Headings, depth: number) {
  const isOrdered = /^ *\d/.test(lines[start] ?? "");
  const items: Html[] = [];
  let at = start;
  for (let begun = item.exec(lines[at] ?? ""); begun; begun = item.exec(lines[at] ?? "")) {
    if (/^ *\d/.test(lines[at] ?? "") !== isOrdered || rule.test(lines[at] ?? "")) break;
    const indent = begun[0].length;
    const inner = [(lines[at] ?? "").slice(indent).replace(task, (_, mark) => (mark === " " ? "☐ " : "☑ "))];
    for (at += 1; at < lines.length; at += 1) {
      const line = lines[at] ?? "";
      const isInside = line.search(/\S/) >= 2 && line.search(/\S/) > (begun[1]?.length ?? 0);
      if (isBlank(line) ? isBlank(lines[at + 1]) || !/^ {2}/.test(lines[at + 1] ?? "") : !isInside && startsBlock(line))
        break;
      if (!isInside && !isBlank(line) && isBlank(lines[at - 1])) break;
      inner.push(line.slice(Math.min(indent, Math.max(0, line.search(/\S/)))));
    }
    const isSimple =
      inner.length === 1 || !inner.some((line, index) => index > 0 && (isBlank(line) || startsBlock(line)));
    items.push(html`<li>${isSimple ? inline(inner.join("\n")) : blocks(inner, headings, depth + 1)}</li>`);
    if (isBlank(lines[at]) && item.test(lines[at + 1] ?? "")) at += 1;
  }
  return { html: isOrdered ? html`<ol>${items}</ol>` : html`<ul>${items}</ul>`, end: at };
}

function table(head: string, rows: readonly string[]): Html {
  const cells = (line: string): string[] =>
    line
      .trim()
      .replace(/^\||\|$/g, "")
      .split("|")
      .slice(0, 50);
  const columns = cells(head);
  const row = (line: string): Html => {
    // As many cells as the row has: filling short rows up would make a small text a large page.
    const values = cells(line).slice(0, columns.length);
    return html`<tr>${values.map((value) => html`<td>${inline(value.trim())}</td>`)}</tr>`;
  };
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Table"><table><thead><tr>${columns.map(
    (cell) => html`<th scope="col">${inline(cell.trim())}</th>`,
  )}</tr></thead><tbody>${rows.slice(0, 500).map(row)}</tbody></table></div>`;
}

// What stands inside one block of a README: code, links, emphasis, bare addresses.

const maxInlineDepth = 4;
/** Of one block; what comes after them is text. */
const maxTokens = 1_000;

// Each begins with a different sign and looks at most a few hundred characters ahead. Spaces before a line's end are
// looked for from the first of them only: from each of them would be the square of their number.
const tokens =
  /\\([!-/:-@[-`{-~])|(`{1,3})([^`]{1,300})\2|(!?)\[((?:[^[\]]|!\[[^[\]]{0,200}\]\([^()\s]{0,300}\)){0,300})\]\(<?([^\s()<>]{0,400}(?:\([^\s()]{0,100}\)[^\s()<>]{0,100})?)>?(?: {1,20}"[^"\n]{0,200}")?\)|\*\*(?=\S)([^*]{1,300})\*\*|__(?=\S)([^_]{1,300})__|([*_])(?=\S)([^*_\n]{1,300})\9(?![\p{L}\p{N}])|~~([^~\n]{1,300})~~|<(https?:\/\/[^\s<>]{1,400})>|<\/?[A-Za-z][^<>]{0,600}>|(https?:\/\/[^\s<>"'`|\\^{}[\]()*]{1,400})|((?<! ) {2,}\n|\\\n)/gu;

function inline(text: string, depth = 0): Html {
  if (depth > maxInlineDepth) return html`${text}`;
  const out: (Html | string)[] = [];
  let end = 0;
  let found = 0;
  for (const match of text.matchAll(tokens)) {
    if (++found > maxTokens) break;
    out.push(text.slice(end, match.index), token(match, text, depth));
    end = match.index + match[0].length;
  }
  return html`${[...out, text.slice(end)]}`;
}

function token(match: RegExpExecArray, text: string, depth: number): Html | string {
  const [whole, escaped, , code, picture, label, target, stars, lines, sign, emphasis, struck, angle, bare, broken] =
    match;
  if (escaped !== undefined) return escaped;
  if (code !== undefined) return html`<code>${code.trim()}</code>`;
  if (label !== undefined) {
    const url = webUrl(target ?? "");
    // A link may hold a picture: what is said in its place is the label of the link.
    const said = picture
      ? html`${label || "picture"}`
      : inline(label.replace(/!\[([^\]]{0,200})\]\([^)]{0,300}\)/g, "$1"), maxInlineDepth);
    return url === undefined ? said : foreignLink(url, said.toString() === "" ? url : said);
  }
  const strong = stars ?? lines;
  if (strong !== undefined) return html`<strong>${inline(strong, depth + 1)}</strong>`;
  if (emphasis !== undefined) {
    // snake_case_names are words.
    if (sign === "_" && /[\p{L}\p{N}]/u.test(text[match.index - 1] ?? "")) return whole;
    return html`<em>${inline(emphasis, depth + 1)}</em>`;
  }
  if (struck !== undefined) return html`<s>${struck}</s>`;
  if (broken !== undefined) return html`<br>`;
  const found = angle ?? bare;
  if (found === undefined) return "";
  const address = angle ?? withoutTrailing(found, ".,:;!?");
  const url = webUrl(address);
  return url === undefined ? whole : html`${foreignLink(url, address)}${found.slice(address.length)}`;
}
