// Long lists and long texts as markup, made in small pieces: a page of megabytes must not hold up an event or a push.

import { othersFirst } from "../base/others-first.js";
import { type Html, type HtmlValue, html } from "./html.js";

const itemsATime = 50;
const charactersATime = 8 * 1024;

/** What `html` would make of the whole list. */
export async function htmlOfMany<Item>(
  items: readonly Item[],
  make: (item: Item, index: number) => HtmlValue,
): Promise<Html> {
  const parts: Html[] = [];
  for (let at = 0; at < items.length; at += itemsATime) {
    await othersFirst();
    parts.push(html`${items.slice(at, at + itemsATime).map((item, index) => make(item, at + index))}`);
  }
  return html`${parts}`;
}

/** What `html` would make of the whole text. */
export function htmlOfLongText(text: string): Promise<Html> {
  const pieces = Array.from({ length: Math.ceil(text.length / charactersATime) }, (_, index) => index);
  return htmlOfMany(pieces, (index) => text.slice(index * charactersATime, (index + 1) * charactersATime));
}
