// The changes a patch's mail carries, in the form that git's own are shown in: pure. A stranger wrote the text: it is bounded
// like a diff of git's, and nothing of it is believed.

import { othersFirst } from "../../base/others-first.js";
import { type Diff, diffBounds, type FileChange, patchOf } from "../../git/reading/diff.js";

const mark = "diff --git ";

export async function diffOfPatch(text: string): Promise<Diff> {
  let linesLeft: number = diffBounds.lines;
  let isCut = false;
  const files: FileChange[] = [];
  let at = text.startsWith(mark) ? 0 : text.indexOf(`\n${mark}`) + 1;
  const hasAny = at > 0 || text.startsWith(mark);
  for (let end = hasAny ? at : -1; end >= 0; at = end + 1) {
    if (files.length === diffBounds.files) return { files, isCut: true, isLate: false };
    await othersFirst();
    end = text.indexOf(`\n${mark}`, at);
    const section = text.slice(at, end < 0 ? undefined : end + 1);
    const { lines, ...patch } = await patchOf(Buffer.from(section), linesLeft);
    linesLeft -= lines;
    isCut ||= patch.isCut;
    const headEnd = section.indexOf("\n@@");
    files.push({ ...fileOf(section.slice(0, headEnd < 0 ? maxHeadCharacters : headEnd)), ...patch });
  }
  return { files, isCut, isLate: false };
}

/** What stands before the first changed line. */
const maxHeadCharacters = 16_000;

function fileOf(head: string): Pick<FileChange, "status" | "from" | "to" | "modes"> {
  const lines = head.slice(0, maxHeadCharacters).split("\n");
  const value = (start: string): string | undefined =>
    lines
      .find((line) => line.startsWith(start))
      ?.slice(start.length)
      .trim();
  const [from = "", to = ""] = namesIn(lines[0] ?? "");
  const before = value("rename from ") ?? value("copy from ") ?? from;
  const after = value("rename to ") ?? value("copy to ") ?? to;
  const added = value("new file mode ");
  const deleted = value("deleted file mode ");
  const mode = value("old mode ") ?? "100644";
  const status: FileChange["status"] = added
    ? "added"
    : deleted
      ? "deleted"
      : value("rename from ") !== undefined
        ? "renamed"
        : value("copy from ") !== undefined
          ? "copied"
          : "changed";
  return { status, from: Buffer.from(before), to: Buffer.from(after), modes: [mode, value("new mode ") ?? mode] };
}

/** `diff --git a/x b/x`: both are the same, unless it was renamed. Names in quotes are left as they are. */
function namesIn(line: string): readonly [string, string] {
  const names = line.slice("diff --git ".length);
  const half = (names.length - 1) / 2;
  const [one, other] = [names.slice(0, half), names.slice(half + 1)];
  if (one.slice(2) === other.slice(2)) return [one.slice(2), other.slice(2)];
  const at = names.indexOf(" b/");
  return at < 0 ? [names, names] : [names.slice(0, at).replace(/^a\//, ""), names.slice(at + 3)];
}
