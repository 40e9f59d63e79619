// Where relative links and pictures of a Markdown text lead: into the repository, at the ref that is looked at.

import type { MarkupPlace } from "../markup-writer.js";
import { codeUrl, decodeSegment } from "./paths.js";

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
