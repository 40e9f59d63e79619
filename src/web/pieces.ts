// Pieces of markup that pages share: sections, lists, tables, tags, and how a time, key or object id is marked.

import { count, Html, type HtmlValue, html, shortNpub, time } from "./html.js";

export const quiet = (text: HtmlValue): Html => html`<p class="quiet">${text}</p>`;
export const faint = (text: HtmlValue): Html => html`<span class="quiet">${text}</span>`;

export const tag = (text: HtmlValue, look?: "good" | "warn" | "bad"): Html =>
  html`<span class="tag${look && ` ${look}`}">${text}</span>`;

/** Where no address is known there is only the label. */
export const linked = (url: string | undefined, label: Html): Html =>
  url === undefined ? label : html`<a href="${url}">${label}</a>`;

/** A part of a page under its own heading: section("id", "Title")`content`. */
export const section =
  (id: string, title: HtmlValue) =>
  (parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html =>
    html`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>\n${Html.of(parts, values)}</section>`;

/** One line of a list: a title, marks beside it, and what is said below it in small print. */
export const listLine = (title: HtmlValue, marks: HtmlValue, below: HtmlValue): Html =>
  html`<li><span class="title">${title}</span>${marks}\n<span class="meta">${below}</span></li>`;

export const list = (lines: readonly Html[]): Html => html`<ul class="list">${lines}</ul>`;

export const andMore = (length: number, shown: number): Html | false =>
  length > shown && quiet(`and ${count(length - shown)} more.`);

/** Of a table with rows of that type: its head, what stands in it, and whether that is a form (no text may hold a form). */
export type Column<Row> = readonly [head: string, cell: (row: Row) => HtmlValue, content?: "form"];

/** On narrow screens each row is a stack of lines, each with its column's name. The first column names the row. */
export function stackTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): Html {
  const [[, nameOf], ...others] = columns as readonly [Column<Row>, ...Column<Row>[]];
  const cells = (row: Row): Html[] =>
    others.map(([head, cell, content]) => {
      const inside = content === "form" ? cell(row) : html`<span>${cell(row)}</span>`;
      return html`<td data-label="${head}">${inside}</td>`;
    });
  return html`<table class="stack"><thead><tr>${columns.map(([head]) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr><th scope="row">${nameOf(row)}</th>${cells(row)}</tr>\n`)}</tbody></table>`;
}

export const timeOr = (seconds: number | null | undefined, otherwise: HtmlValue): Html =>
  typeof seconds === "number" ? time(seconds) : faint(otherwise);

export const npubMark = (npub: string): Html => html`<span class="mono" title="${npub}">${shortNpub(npub)}</span>`;

export const oidMark = (oid: string): Html => html`<code title="${oid.slice(0, 64)}">${oid.slice(0, 8)}</code>`;
