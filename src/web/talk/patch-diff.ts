// The changes a patch's mail carries, in the form that git's own are shown in: pure. A stranger wrote the text: it is bounded
// like a diff of git's, and nothing of it is believed.

import { type Diff, diffBounds, type FileChange, patchOf } from "../../git/reading/diff.js";

export function diffOfPatch(text: string): Diff {
  const sections = text.split(/^(?=diff --git )/m).filter((section) => section.startsWith("diff --git "));
  let linesLeft: number = diffBounds.lines;
  let isCut = sections.length > diffBounds.files;
  const files = sections.slice(0, diffBounds.files).map((section): FileChange => {
    const { lines, ...patch } = patchOf(Buffer.from(section), linesLeft);
    linesLeft -= lines;
    isCut ||= patch.isCut;
    return { ...fileOf(section.split("\n@@", 1)[0] ?? ""), ...patch };
  });
  return { files, isCut, isLate: false };
}

function fileOf(head: string): Pick<FileChange, "status" | "from" | "to" | "modes"> {
  const lines = head.split("\n");
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
