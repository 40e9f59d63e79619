// What stands inside one block of a README: code, links, emphasis, bare addresses (markdown.ts says what is safe in it).

import { withoutTrailing } from "../base/text.js";
import { foreignLink, type Html, html, webUrl } from "./html.js";

const maxDepth = 4;
/** Of one block; what comes after them is text. */
const maxTokens = 1_000;

// Each begins with a different sign and looks at most a few hundred characters ahead. Spaces before a line's end are
// looked for from the first of them only: from each of them would be the square of their number.
const tokens =
  /\\([!-/:-@[-`{-~])|(`{1,3})([^`]{1,300})\2|(!?)\[((?:[^[\]]|!\[[^[\]]{0,200}\]\([^()\s]{0,300}\)){0,300})\]\(<?([^\s()<>]{0,400}(?:\([^\s()]{0,100}\)[^\s()<>]{0,100})?)>?(?: {1,20}"[^"\n]{0,200}")?\)|\*\*(?=\S)([^*]{1,300})\*\*|__(?=\S)([^_]{1,300})__|([*_])(?=\S)([^*_\n]{1,300})\9(?![\p{L}\p{N}])|~~([^~\n]{1,300})~~|<(https?:\/\/[^\s<>]{1,400})>|<\/?[A-Za-z][^<>]{0,600}>|(https?:\/\/[^\s<>"'`|\\^{}[\]()*]{1,400})|((?<! ) {2,}\n|\\\n)/gu;

export function inline(text: string, depth = 0): Html {
  if (depth > maxDepth) return html`${text}`;
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
      : inline(label.replace(/!\[([^\]]{0,200})\]\([^)]{0,300}\)/g, "$1"), maxDepth);
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
