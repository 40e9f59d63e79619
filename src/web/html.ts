// Markup that cannot be made unsafe by accident: every value put into an `html` template is escaped, unless it is
// itself made of such a template (threats row 14). Nothing else makes an Html. And how pages write numbers, times, keys
// and ids: the same for every reader, so that a page has one ETag.

import { counted as countedPlain, sizeText } from "../base/text.js";

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Safe in text and in quoted attributes. */
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (sign) => entities[sign] ?? "");

export class Html {
  readonly #text: string;

  private constructor(text: string) {
    this.#text = text;
  }

  static of(parts: TemplateStringsArray, values: readonly HtmlValue[]): Html {
    let text = parts[0] ?? "";
    values.forEach((value, index) => {
      text += textOf(value) + (parts[index + 1] ?? "");
    });
    return new Html(text);
  }

  /** What this class made in the thread of texts, which only sends text. Nothing else may come this way. */
  static madeInThread(markup: string): Html {
    return new Html(markup);
  }

  toString(): string {
    return this.#text;
  }
}

export type HtmlValue = Html | string | number | undefined | false | readonly HtmlValue[];

function textOf(value: HtmlValue): string {
  if (value === undefined || value === false) return "";
  if (value instanceof Html) return value.toString();
  if (typeof value === "object") return value.map(textOf).join("");
  return escapeHtml(String(value));
}

export const html = (parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html => Html.of(parts, values);

/** Text by strangers: its direction must not turn around what stands beside it, its length not fill the page. */
export function foreign(text: string, maxCharacters = 200): Html {
  const characters = [...text.slice(0, maxCharacters * 2)];
  const isLong = text.length > maxCharacters * 2 || characters.length > maxCharacters;
  return html`<bdi>${isLong ? `${characters.slice(0, maxCharacters).join("")}…` : text}</bdi>`;
}

/** An address a reader may be sent to; anything but plain http and https (`javascript:`, `data:`) is none. */
export function webUrl(text: string): string | undefined {
  if (text.length > 2_000 || !/^https?:\/\/[^\s]+$/i.test(text)) return undefined;
  try {
    return new URL(text).href;
  } catch {
    return undefined;
  }
}

/** A link that strangers chose: it gains nothing from standing here and is told nothing about the reader. */
export const foreignLink = (url: string, label: HtmlValue): Html =>
  html`<a href="${url}" rel="nofollow noopener noreferrer ugc">${label}</a>`;

export const count = (value: number): string => value.toLocaleString("en");

export const counted = (value: number, one: string, many: string): string =>
  countedPlain(value, one, many, count(value));

export { sizeText as bytes };

/** Beyond these a Date has no ISO text; commits may claim any time. */
const maxSeconds = 253_402_300_799;

/** The script rewrites it as "3 hours ago" where it runs. */
export function time(seconds: number): Html {
  if (!Number.isFinite(seconds) || seconds < 0 || seconds > maxSeconds) return html`<span>some time</span>`;
  const iso = new Date(seconds * 1000).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC</time>`;
}

export const shortNpub = (npub: string): string => `${npub.slice(0, 12)}…${npub.slice(-6)}`;
