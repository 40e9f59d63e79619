// READMEs and Markdown files as markup, made once for each content and place and not for each reader; and where the
// relative links and pictures in them lead: into the repository, at the ref that is looked at.

import { type Html, html } from "../html.js";
import { maxMarkdownCharacters, renderMarkdown } from "../markdown.js";
import type { CodeOf, MarkupPlace } from "../markup-writer.js";
import { languageNamed } from "./colours/languages.js";
import { type Painter, paintedLines } from "./colours/painted.js";
import { codeUrl } from "./frame.js";
import { decodeSegment } from "./paths.js";

export const isMarkdown = (name: string): boolean => /\.(?:md|markdown|mdown|mkd)$/i.test(name);

/** `ref` as it stands in addresses; `folder`: where the text's own file is. */
export function placeInRepository(root: string, ref: string, folder: readonly Buffer[]): MarkupPlace {
  const pathOf = (relative: string): Buffer[] | undefined => {
    const path = relative.startsWith("/") ? [] : [...folder];
    for (const segment of relative.split("/")) {
      if (segment === "" || segment === ".") continue;
      if (segment === "..") {
        if (path.pop() === undefined) return undefined;
        continue;
      }
      const name = decodeSegment(Buffer.from(segment).toString("latin1"));
      if (name === undefined) return undefined;
      path.push(name);
    }
    return path;
  };
  return {
    link(relative, anchorPrefix) {
      const [, address = "", , fragment = ""] = /^([^#?]*)(\?[^#]*)?#?(.*)$/s.exec(relative) ?? [];
      const path = pathOf(address);
      if (!path) return undefined;
      // Either leads on to the other when it is not what it looks like.
      const isFile = /\.[^./]{1,15}$/.test(address);
      const isLine = /^L\d/.test(fragment);
      const anchor = fragment === "" ? "" : `#${isLine ? fragment : anchorPrefix + fragment.toLowerCase()}`;
      return codeUrl(root, isFile ? "blob" : "tree", ref, path) + anchor;
    },
    picture(relative) {
      const path = pathOf(relative.replace(/[#?].*$/s, ""));
      return path && path.length > 0 ? codeUrl(root, "raw", ref, path) : undefined;
    },
  };
}

const rendered = new WeakMap<Buffer, { readonly key: string; readonly made: Html }>();

export interface ReadmeText {
  /** What is kept of the file. */
  readonly content: Buffer;
  /** The part of it that is shown. */
  readonly text: string;
  readonly name: string;
  readonly root: string;
  readonly ref: string;
  readonly folder: readonly Buffer[];
}

/** More blocks of code than this, or longer ones, stay plain. */
const maxPainted = { blocks: 40, characters: 64 * 1024 };

/** Blocks of code in their colours: found by a first rendering, told apart by the thread, put into the second. */
async function paintedBlocks(text: string, painter: Painter): Promise<CodeOf | undefined> {
  const blocks = new Map<string, { readonly code: string; readonly language: string }>();
  let characters = 0;
  const find: CodeOf = (code, word) => {
    const language = languageNamed(word);
    characters += code.length;
    const isRoom = blocks.size < maxPainted.blocks && characters <= maxPainted.characters;
    if (language !== undefined && isRoom) blocks.set(`${word} ${code}`, { code, language });
    return undefined;
  };
  renderMarkdown(text, { outerLevel: 2, codeOf: find });
  if (blocks.size === 0) return undefined;
  const painted = new Map<string, Html>();
  for (const [key, { code, language }] of blocks) {
    const stretches = await painter.thread.scan(code, language);
    if (!stretches) continue;
    painted.set(key, html`${paintedLines(code, stretches).map((line) => html`${line}\n`)}`);
  }
  return (code, word) => painted.get(`${word} ${code}`);
}

export async function renderReadme(readme: ReadmeText, painter: Painter): Promise<Html> {
  const { content, text, name, root, ref, folder } = readme;
  const place = placeInRepository(root, ref, folder);
  const key = codeUrl(root, "tree", ref, folder);
  const known = rendered.get(content);
  if (known?.key === key) return known.made;
  const made = isMarkdown(name)
    ? html`${renderMarkdown(text, { outerLevel: 2, place, codeOf: await paintedBlocks(text, painter) })}${
        text.length > maxMarkdownCharacters &&
        html`<p class="note">It is longer than a page shows: its source has the rest.</p>`
      }`
    : html`<pre class="plain">${text}</pre>`;
  rendered.set(content, { key, made });
  return made;
}
