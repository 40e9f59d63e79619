// READMEs and Markdown files as markup, made once for each content and place and not for each reader.

import { type Html, html } from "../html.js";
import { htmlOfLongText } from "../long-markup.js";
import { maxMarkdownCharacters } from "../markdown.js";
import type { Painter } from "./colours/painted.js";
import { codeUrl } from "./paths.js";

export const isMarkdown = (name: string): boolean => /\.(?:md|markdown|mdown|mkd)$/i.test(name);

const rendered = new WeakMap<Buffer, { readonly key: string; readonly made: Html }>();

export interface ReadmeText {
  /** What is kept of the file. */
  readonly content: Buffer;
  /** The part of it that is shown. */
  readonly text: string;
  readonly name: string;
  readonly root: string;
  /** As it stands in addresses. */
  readonly ref: string;
  /** Where the text's own file is. */
  readonly folder: readonly Buffer[];
}

export async function renderReadme(readme: ReadmeText, { thread }: Painter): Promise<Html> {
  const { content, text, name, root, ref, folder } = readme;
  const key = codeUrl(root, "tree", ref, folder);
  const known = rendered.get(content);
  if (known?.key === key) return known.made;
  const place = { root, ref, folder: folder.map((segment) => segment.toString("latin1")) };
  const markup = isMarkdown(name) ? await thread.markdown({ text, outerLevel: 2, place }) : undefined;
  if (!markup) {
    const plain = html`<pre class="plain">${await htmlOfLongText(text)}</pre>`;
    // What was plain for want of time is tried again.
    if (!isMarkdown(name)) rendered.set(content, { key, made: plain });
    return plain;
  }
  const made = html`${markup}${
    text.length > maxMarkdownCharacters &&
    html`<p class="note">It is longer than a page shows: its source has the rest.</p>`
  }`;
  rendered.set(content, { key, made });
  return made;
}
