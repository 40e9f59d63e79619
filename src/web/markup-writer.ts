// Markup of strangers written anew (threats row 14): the output of the Markdown parser, which holds whatever tags a README
// has, is read sign by sign, and only tags and attributes of a list are written, by `html` templates. Text never becomes a
// tag, because nothing of the input is copied: what the reader of the tags gets wrong changes the looks of a page and never
// what runs on it. Links lead to the web or into the repository, pictures come from this server only. Every tag that is
// opened is closed; one pass, however ugly the text.

import { nameToEmoji } from "gemoji";
import { Tokenizer } from "htmlparser2";
import { withoutTrailing } from "../net/url.js";
import { foreignLink, type Html, html, webUrl } from "./html.js";

/** Where relative addresses lead; undefined: nowhere. */
export interface MarkupPlace {
  readonly link: (relative: string, anchorPrefix: string) => string | undefined;
  readonly picture: (relative: string) => string | undefined;
}

/** `language`: the word after the fence. */
export type CodeOf = (code: string, language: string) => Html | undefined;

export interface WriterOptions {
  /** The heading under which the text stands: its own come below that, without gaps. */
  readonly outerLevel: number;
  /** Before every id and every link to one: a text cannot name parts of the page around it. */
  readonly idPrefix: string;
  readonly place?: MarkupPlace | undefined;
  /** What stands in a block of code, when more is known of it than its text. */
  readonly codeOf?: CodeOf | undefined;
}

/** Of the deepest; tags further in are left out, their text is not. */
const maxDepth = 60;
/** Tags of a text; its rest is text only. A page is not many times as long as what it is made of. */
const maxElements = 30_000;
const maxAnchors = 1_000;
const maxIdCharacters = 100;

const inline = ["strong", "em", "b", "i", "u", "s", "del", "ins", "code", "kbd", "samp", "var", "sub", "sup", "small"];
const blocks = ["p", "blockquote", "ul", "ol", "li", "div", "pre", "table", "dl", "dt", "dd", "details", "figure"];
const tableParts = ["caption", "thead", "tbody", "tfoot", "tr", "th", "td"];
const known = new Set([...inline, ...blocks, ...tableParts, "q", "cite", "abbr", "summary", "figcaption", "a"]);
/** Written under another name. */
const renamed: Readonly<Record<string, string>> = { strike: "s", tt: "code", center: "div", section: "div" };
/** A paragraph ends where one of these begins. */
const endsParagraph = new Set([...blocks, "hr", "section", "center"]);
/** Line breaks between their parts are no text. */
const holdsPartsOnly = new Set(["ul", "ol", "dl", "table", "thead", "tbody", "tfoot", "tr"]);
const aligned = new Set(["p", "div", "th", "td"]);

const isHeading = (name: string): boolean => /^h[1-6]$/.test(name);

// The reader of tags would take what follows these for raw text to their end. They are shown as text instead.
const rawText = /<(?=\/?(?:script|style|title|textarea|xmp|iframe|noembed|noframes|plaintext)(?![a-z0-9-]))/gi;

export function writeMarkup(markup: string, options: WriterOptions): Html {
  const text = markup.replace(rawText, "&lt;");
  const writer = new MarkupWriter(options);
  let name = "";
  let attribute = "";
  let value = "";
  let attributes = new Map<string, string>();
  const part = (start: number, end: number): string => text.slice(start, end);
  const endOfTag = (): void => writer.open(name, attributes);
  const tokenizer = new Tokenizer(
    { decodeEntities: true },
    {
      ontext: (start, end) => writer.say(part(start, end)),
      ontextentity: (point) => writer.say(String.fromCodePoint(point)),
      onopentagname: (start, end) => {
        name = part(start, end).toLowerCase();
        attributes = new Map();
      },
      onattribname: (start, end) => {
        attribute = part(start, end).toLowerCase();
        value = "";
      },
      onattribdata: (start, end) => {
        value += part(start, end);
      },
      onattribentity: (point) => {
        value += String.fromCodePoint(point);
      },
      onattribend: () => {
        if (attributes.size < 20 && !attributes.has(attribute)) attributes.set(attribute, value);
      },
      onopentagend: endOfTag,
      onselfclosingtag: endOfTag,
      onclosetag: (start, end) => writer.close(part(start, end).toLowerCase()),
      oncomment: () => undefined,
      oncdata: () => undefined,
      ondeclaration: () => undefined,
      onprocessinginstruction: () => undefined,
      onend: () => undefined,
    },
  );
  tokenizer.write(text);
  tokenizer.end();
  return writer.end();
}

interface Opened {
  readonly name: string;
  /** Of its opening tag, among the parts. */
  readonly at: number;
  readonly closing: Html;
  /** For headings: their level and what they say. For links: where they lead. */
  readonly level?: number;
  readonly look?: string;
  readonly url?: string;
}

class MarkupWriter {
  readonly #parts: Html[] = [];
  readonly #open: Opened[] = [];
  readonly #options: WriterOptions;
  /** Text that no tag has followed yet. */
  #text = "";
  /** What the heading that is open says. */
  #title = "";
  /** Of the block of code that is open. */
  #language = "";
  #lastLevel: number;
  #elements = 0;
  #anchors = 0;
  readonly #ids = new Map<string, number>();

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#lastLevel = options.outerLevel;
  }

  say(text: string): void {
    this.#text += text;
  }

  end(): Html {
    this.#writeText();
    while (this.#open.length > 0) this.#closeLast();
    return html`${this.#parts}`;
  }

  open(given: string, attributes: ReadonlyMap<string, string>): void {
    this.#writeText();
    const name = renamed[given] ?? given;
    if (endsParagraph.has(given) || isHeading(given)) this.#closeParagraph();
    if (++this.#elements > maxElements) return;
    if (given === "br" || given === "hr") this.#parts.push(given === "br" ? html`<br>` : html`<hr>`);
    else if (given === "img") this.#picture(attributes);
    else if (this.#open.length >= maxDepth) return;
    else if (isHeading(given)) this.#heading(given, attributes);
    else if (given === "a") this.#link(attributes);
    else if (given === "table") {
      const opening = html`<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>`;
      this.#push(name, opening, html`</table></div>`);
    } else if (given === "pre") {
      this.#push(name, html`<pre tabindex="0" role="group" aria-label="Code">`, html`</pre>`);
    } else if (known.has(name)) {
      if (name === "code") this.#language = /^language-(\S{1,30})/.exec(attributes.get("class") ?? "")?.[1] ?? "";
      this.#push(name, html`<${name}${this.#attributesOf(given, name, attributes)}>`, html`</${name}>`);
    }
  }

  #heading(name: string, attributes: ReadonlyMap<string, string>): void {
    const look = alignmentOf(attributes);
    this.#push(name, html``, html``, { level: Number(name[1]), ...(look && { look }) });
  }

  #attributesOf(given: string, name: string, attributes: ReadonlyMap<string, string>): Html {
    const has = (attribute: string, pattern: RegExp): string | undefined => {
      const value = attributes.get(attribute);
      return value !== undefined && pattern.test(value) ? value : undefined;
    };
    const side = given === "center" ? "center" : alignmentOf(attributes);
    const look = given === "section" ? "footnotes" : aligned.has(name) ? side : undefined;
    const start = name === "ol" ? has("start", /^\d{1,9}$/) : undefined;
    const isCell = name === "td" || name === "th";
    const [columns, rows] = [isCell && has("colspan", /^\d{1,2}$/), isCell && has("rowspan", /^\d{1,2}$/)];
    const id = attributes.get("id");
    return html`${id && html` id="${this.#idOf(id)}"`}${look && html` class="${look}"`}${name === "th" && html` scope="col"`}${start && html` start="${start}"`}${columns && html` colspan="${columns}"`}${rows && html` rowspan="${rows}"`}${name === "details" && attributes.has("open") && html` open`}`;
  }

  #idOf(id: string): string {
    return this.#options.idPrefix + id.slice(0, maxIdCharacters).toLowerCase();
  }

  #push(name: string, opening: Html, closing: Html, more: Pick<Opened, "level" | "look" | "url"> = {}): void {
    if (more.level !== undefined) this.#title = "";
    this.#open.push({ name, at: this.#parts.length, closing, ...more });
    this.#parts.push(opening);
  }

  close(given: string): void {
    this.#writeText();
    const name = renamed[given] ?? given;
    const index = this.#open.findLastIndex((opened) => opened.name === name);
    if (index < 0) return;
    while (this.#open.length > index) this.#closeLast();
  }

  #closeParagraph(): void {
    if (this.#open.at(-1)?.name === "p") this.#closeLast();
  }

  #closeLast(): void {
    const opened = this.#open.pop();
    if (!opened) return;
    const isEmpty = this.#parts.length === opened.at + 1;
    if (opened.url !== undefined && isEmpty) this.#parts.push(html`${opened.url.slice(0, 100)}`);
    if (isEmpty && (opened.name === "p" || opened.level !== undefined)) {
      this.#parts.pop();
      return;
    }
    if (opened.level === undefined) this.#parts.push(opened.closing);
    else this.#endHeading(opened.at, opened.level, opened.look);
  }

  #endHeading(at: number, level: number, look: string | undefined): void {
    const { outerLevel, idPrefix } = this.#options;
    this.#lastLevel = Math.min(6, outerLevel + level, this.#lastLevel + 1);
    const name = `h${this.#lastLevel}`;
    const slug = slugOf(this.#title);
    const side = look && html` class="${look}"`;
    if (slug === "" || ++this.#anchors > maxAnchors) this.#parts[at] = html`<${name}${side}>`;
    else {
      const used = this.#ids.get(slug) ?? 0;
      this.#ids.set(slug, used + 1);
      const id = `${idPrefix}${slug}${used === 0 ? "" : `-${used}`}`;
      this.#parts[at] =
        html`<${name} id="${id}"${side}><a class="anchor" href="#${id}" aria-hidden="true" tabindex="-1">#</a>`;
    }
    this.#parts.push(html`</${name}>`);
  }

  #isInside(name: string): boolean {
    return this.#open.some((opened) => opened.name === name);
  }

  #link(attributes: ReadonlyMap<string, string>): void {
    const [href, id] = [attributes.get("href")?.trim(), attributes.get("id") ?? attributes.get("name")];
    const mark = id && html` id="${this.#idOf(id)}"`;
    const url = href === undefined || this.#isInside("a") ? undefined : this.#addressOf(href);
    // A place to lead to, or a link that leads nowhere: what it says is text.
    if (url === undefined) this.#push("a", html`<span${mark}>`, html`</span>`);
    else {
      const rel = webUrl(url) && html` rel="nofollow noopener noreferrer ugc"`;
      this.#push("a", html`<a${mark} href="${url}"${rel}>`, html`</a>`, { url: href ?? "" });
    }
  }

  #addressOf(href: string): string | undefined {
    const { idPrefix, place } = this.#options;
    const web = webUrl(href);
    if (web !== undefined) return web;
    if (href.startsWith("#")) return href === "#" ? "#" : `#${this.#idOf(decoded(href.slice(1)))}`;
    return isRelative(href) ? place?.link(href, idPrefix) : undefined;
  }

  /** Pictures of other hosts are links: a reader's browser asks nobody but this server. */
  #picture(attributes: ReadonlyMap<string, string>): void {
    const source = (attributes.get("src") ?? "").trim();
    // Without a text at all, its file's name: a heading that is a picture says something.
    const said = (attributes.get("alt") ?? source.slice(source.lastIndexOf("/") + 1)).slice(0, 300);
    const own = isRelative(source) ? this.#options.place?.picture(source) : undefined;
    if (own !== undefined) {
      const size = (name: string): Html | undefined => {
        const value = attributes.get(name) ?? "";
        return /^\d{1,4}%?$/.test(value) ? html` ${name}="${value}"` : undefined;
      };
      const side = alignmentOf(attributes);
      this.#parts.push(
        html`<img src="${own}" alt="${said}" loading="lazy"${size("width")}${size("height")}${side && html` class="${side}"`}>`,
      );
      return;
    }
    const url = webUrl(source);
    const label = said || "picture";
    this.#title += said;
    this.#parts.push(url === undefined || this.#isInside("a") ? html`${label}` : foreignLink(url, label));
  }

  #writeText(): void {
    const text = this.#text;
    this.#text = "";
    const parent = this.#open.at(-1);
    if (text === "") return;
    const isFirst = parent?.at === this.#parts.length - 1;
    const isBlank = text.trim() === "";
    if (isBlank && this.#elements > maxElements) return;
    if (isBlank && (holdsPartsOnly.has(parent?.name ?? "") || (isFirst && parent?.name !== "pre"))) return;
    if (this.#isInside("pre")) {
      this.#parts.push(this.#options.codeOf?.(text, this.#language) ?? html`${text}`);
      return;
    }
    this.#title += text;
    if (parent?.name === "code") this.#parts.push(html`${text}`);
    else this.#parts.push(this.#withMarks(text, isFirst));
  }

  /** Boxes of tasks, the word above an alert; then addresses and emoji anywhere. */
  #withMarks(text: string, isFirst: boolean): Html {
    const parent = this.#open.at(-1);
    const above = parent?.name === "p" ? this.#open.at(-2) : parent;
    const isBeginning = isFirst && above !== undefined && above.at >= this.#parts.length - 2;
    const box = isBeginning && above.name === "li" ? /^\[([ xX])\]\s/.exec(text) : null;
    if (box && above) {
      this.#parts[above.at] = html`<li class="task">`;
      return html`${box[1] === " " ? "☐ " : "☑ "}${this.#withAddresses(text.slice(box[0].length))}`;
    }
    const alert = isBeginning && above.name === "blockquote" ? alertMark.exec(text) : null;
    if (!alert?.[1]) return this.#withAddresses(text);
    const word = alert[1].charAt(0) + alert[1].slice(1).toLowerCase();
    return html`<strong>${word}</strong><br>${this.#withAddresses(text.slice(alert[0].length))}`;
  }

  #withAddresses(text: string): Html {
    if (!text.includes("://") || this.#isInside("a")) return html`${withEmoji(text)}`;
    const out: (Html | string)[] = [];
    let end = 0;
    for (const { 0: found, index } of text.matchAll(bareAddress)) {
      const address = withoutTrailing(found, ".,:;!?'");
      const url = webUrl(address);
      if (url === undefined) continue;
      out.push(withEmoji(text.slice(end, index)), foreignLink(url, address));
      end = index + address.length;
    }
    return html`${out}${withEmoji(text.slice(end))}`;
  }
}

const alertMark = /^\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\s*/;
/** It begins anew only where one ended: no place is looked at twice. */
const bareAddress = /https?:\/\/[^\s<>"`|\\^{}[\]()*]{1,1000}/g;
const emojiMark = /:([a-z0-9_+-]{1,40}):/g;

const withEmoji = (text: string): string =>
  text.replace(emojiMark, (mark, name: string) =>
    Object.hasOwn(nameToEmoji, name) ? (nameToEmoji[name] ?? mark) : mark,
  );

const isRelative = (address: string): boolean =>
  address !== "" && address.length <= 2_000 && !/^(?:[a-z][a-z0-9+.-]*:|[/\\]{2})/i.test(address);

/** Inline styles are not allowed on our pages; what tables and old READMEs say with them is a class here. */
function alignmentOf(attributes: ReadonlyMap<string, string>): string | undefined {
  const style = attributes.get("style") ?? "";
  const side = attributes.get("align") ?? /^text-align:\s?(\w{4,6})$/.exec(style)?.[1] ?? "";
  return /^(?:left|right|center)$/i.test(side) ? side.toLowerCase() : undefined;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // Anybody can write a bad escape.
  }
}

/** As GitHub makes them: links in READMEs are written for those. */
const slugOf = (title: string): string =>
  title
    .slice(0, maxIdCharacters)
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M} _-]/gu, "")
    .replaceAll(" ", "-");
