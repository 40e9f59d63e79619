// A patch (kind 1617) is a mail as `git format-patch` writes it: its title, its message and its changes, taken apart.
// Pure, and linear in the length of the text. A text that is no mail has its first line as title.

export interface PatchMail {
  /** Without `[PATCH n/m]`, in one line. */
  readonly title: string;
  /** What the commit says below its title. */
  readonly message: string;
  /** From the first `diff --git` on; empty for a cover letter. */
  readonly diff: string;
}

const maxHeadCharacters = 16_000;
const maxTitleCharacters = 1_000;

export function patchMailOf(content: string): PatchMail {
  const text = content.replace(/\r\n/g, "\n");
  const headEnd = text.slice(0, maxHeadCharacters).search(/\n[ \t]*\n/);
  const head = headEnd < 0 ? text.slice(0, maxHeadCharacters) : text.slice(0, headEnd);
  const subject = subjectIn(head);
  const diffAt = text.startsWith("diff --git ") ? 0 : text.indexOf("\ndiff --git ") + 1;
  const hasDiff = diffAt > 0 || text.startsWith("diff --git ");
  const diff = hasDiff ? withoutSignature(text.slice(diffAt)) : "";
  const before = hasDiff ? text.slice(0, diffAt) : text;
  if (subject === undefined) {
    const [title = "", ...rest] = before.trimStart().split("\n");
    return { title: plainTitle(title), message: messageIn(rest.join("\n")), diff };
  }
  return { title: plainTitle(subject), message: messageIn(headEnd < 0 ? "" : before.slice(headEnd + 1)), diff };
}

/** Of the beginning of a patch: enough for a list. */
export const patchTitleOf = (content: string): string => patchMailOf(content.slice(0, maxHeadCharacters)).title;

/** Mail folds long lines: what goes on begins with white space. */
function subjectIn(head: string): string | undefined {
  const lines = head.split("\n");
  const at = lines.findIndex((line) => /^Subject:/i.test(line));
  if (at < 0) return undefined;
  const folded = [(lines[at] ?? "").slice("Subject:".length)];
  for (let next = at + 1; /^[ \t]/.test(lines[next] ?? ""); next++) folded.push(lines[next] ?? "");
  const unfolded = folded.map((line) => line.trim()).join(" ");
  return decodeWords(unfolded.slice(0, maxTitleCharacters));
}

/** RFC 2047: how git writes a title that is not ASCII. Words beside each other are one text. */
const decodeWords = (text: string): string =>
  text
    .replace(/\?=\s+=\?/g, "?==?")
    .replace(/=\?utf-8\?([qb])\?([^?\s]*)\?=/gi, (_, coding: string, word: string) => `\u0000${coding}${word}\u0001`)
    // Bytes of one character may stand in two words.
    .replace(/(?:\u0000[^\u0001]*\u0001)+/g, (words) =>
      Buffer.concat(
        words
          .split("\u0001")
          .filter((word) => word !== "")
          .map((word) => bytesOf(word[1] ?? "q", word.slice(2))),
      ).toString("utf8"),
    );

function bytesOf(coding: string, word: string): Buffer {
  if (coding.toLowerCase() === "b") return Buffer.from(word, "base64");
  const plain = word.replace(/_/g, " ");
  return Buffer.from(
    plain.replace(/=([0-9A-Fa-f]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16))),
    "latin1",
  );
}

const plainTitle = (subject: string): string =>
  subject
    .trim()
    .replace(/^(?:\[[^\]]{0,80}\bPATCH\b[^\]]{0,80}\]\s*)+/i, "")
    .trim();

/** Up to the line that separates it from the list of changed files. */
function messageIn(text: string): string {
  const end = /^---\s*$/m.exec(text);
  return (end ? text.slice(0, end.index) : text).replace(/^-- \n[\d.]+.*$/ms, "").trim();
}

/** `git format-patch` signs with a line of two dashes and its version. */
function withoutSignature(diff: string): string {
  const at = diff.lastIndexOf("\n-- \n");
  return at >= 0 && diff.length - at < 200 ? diff.slice(0, at + 1) : diff;
}
