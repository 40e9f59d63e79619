// The texts of issues, proposals and comments as markup: Markdown, made once for each event and kept for a while. What one
// text, and what all texts of a page may cost is bounded: strangers write them (threats row 33).

import { KeptValues } from "../../base/kept-values.js";
import type { EventId } from "../../nostr/event.js";
import { beginningOf } from "../../store/event-beginning.js";
import type { Reader } from "../../store/port.js";
import type { TextThread } from "../code/colours/text-thread.js";
import { bytes, type Html, html } from "../html.js";
import { htmlOfLongText } from "../long-markup.js";
import { ownText } from "../read-within.js";

/** Of one text. */
const maxCharacters = 32 * 1024;
/** Of all texts of a page; what comes after is shown with its first lines. */
const pageCharacters = 160 * 1024;
const shortCharacters = 2_000;

export interface Body {
  readonly text: string;
  readonly size: number;
  /** There is more than this. */
  readonly isCut: boolean;
}

const rendered = new KeptValues<Html>(8 * 2 ** 20);

/** The texts of some events; `take` makes text of a beginning. */
export async function bodiesOf(
  reader: Reader,
  ids: readonly EventId[],
  signal: AbortSignal,
): Promise<ReadonlyMap<EventId, Body>> {
  const bodies = new Map<EventId, Body>();
  if (ids.length === 0) return bodies;
  for await (const page of reader.query([{ ids }], { pageRows: 20, passingRows: true, signal })) {
    for (const row of page) {
      const event = beginningOf(row);
      if (!event) continue;
      const text = event.content.slice(0, maxCharacters);
      // A text that was read to its end is not longer than its event.
      const isCut = event.content.length > maxCharacters || (event.size > 2 * maxCharacters && text.length > 0);
      bodies.set(row.id, { text: ownText(text), size: event.size, isCut });
    }
  }
  return bodies;
}

/** Texts of a page one after the other. */
export class PageTexts {
  #left = pageCharacters;
  /** The thread had no time for one of them: a page does not wait for that a second time. */
  #isLate = false;

  constructor(
    readonly root: string,
    readonly thread: TextThread,
  ) {}

  /** `whole`: where all of it can be read. */
  async markup(id: EventId, body: Body | undefined, whole: string): Promise<Html> {
    if (!body || body.text.trim() === "") return html`<p class="quiet">No text.</p>`;
    const most = body.text.length <= this.#left ? body.text.length : Math.min(shortCharacters, body.text.length);
    this.#left = Math.max(0, this.#left - most);
    const key = `${id} ${most} ${this.root}`;
    let markup = rendered.get(key);
    if (!markup) {
      const text = body.text.slice(0, most);
      // Relative links lead to the default branch.
      const place = { root: this.root, ref: "HEAD", folder: [] };
      markup = this.#isLate
        ? undefined
        : await this.thread.markdown({ text, outerLevel: 2, idPrefix: `t${id.slice(0, 12)}-`, place });
      this.#isLate ||= markup === undefined;
      if (markup) rendered.set(key, markup, markup.toString().length * 2 + 200);
      // There was no time, or too many ask: the next reader may have more luck.
      else markup = html`<pre class="plain">${await htmlOfLongText(text)}</pre>`;
    }
    const isCut = body.isCut || most < body.text.length;
    return html`${markup}${isCut && html`<p class="note">It goes on: <a href="${whole}">the whole text</a>, ${bytes(body.size)}.</p>`}`;
  }
}
