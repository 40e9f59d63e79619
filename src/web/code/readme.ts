// A README as markup, made once for each content and not for each reader.

import { type Html, html } from "../html.js";
import { renderMarkdown } from "../markdown.js";

const rendered = new WeakMap<Buffer, Html>();

export const isMarkdown = (name: string): boolean => /\.(?:md|markdown|mdown|mkd)$/i.test(name);

/** `content` is what is kept of the file; `text` the part of it that is shown. */
export function renderReadme(content: Buffer, name: string, text: string): Html {
  const known = rendered.get(content);
  if (known) return known;
  const made = isMarkdown(name) ? renderMarkdown(text, 2) : html`<pre class="plain">${text}</pre>`;
  rendered.set(content, made);
  return made;
}
