// A repository with a long history, made quickly: a source tree that is there anyway (the packages the server uses), changed
// a little by each of thousands of commits, with side branches that are merged. The same each time.

import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";

interface SourceFile {
  readonly path: string;
  text: string;
}

/** What is changed must be small: each change writes the whole file. */
const maxFileBytes = 16 * 1024;

export async function sourceTree(folder: string): Promise<SourceFile[]> {
  const files: SourceFile[] = [];
  const walk = async (at: string, inside: string): Promise<void> => {
    for (const name of (await readdir(at)).sort()) {
      const whole = join(at, name);
      const facts = await stat(whole);
      if (facts.isDirectory()) await walk(whole, `${inside}${name}/`);
      else if (facts.size <= maxFileBytes) files.push({ path: inside + name, text: await readFile(whole, "utf8") });
    }
  };
  await walk(folder, "");
  return files;
}

const authors = ["Ada Lovelace", "Grace Hopper", "Edsger Dijkstra", "Barbara Liskov", "Niklaus Wirth", "Radia Perlman"];
const verbs = ["Fix", "Simplify", "Test", "Speed up", "Explain", "Rename parts of", "Check input of", "Move"];

/** Small, the same on every machine, and good enough to spread changes. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Of `git fast-import`: `refs/heads/main`, ten branches and ten tags. `extra`: files of the first commit beside the tree's. */
export function* longHistory(
  files: SourceFile[],
  commits: number,
  extra: Readonly<Record<string, string | Buffer>> = {},
): Generator<Buffer> {
  const random = randomFrom(17);
  const begun = 1_500_000_000;
  const data = (content: string | Buffer): Buffer =>
    Buffer.concat([Buffer.from(`data ${Buffer.byteLength(content)}\n`), Buffer.from(content), Buffer.from("\n")]);
  const head = (mark: number, branch: string, subject: string): Buffer =>
    Buffer.concat([
      Buffer.from(`commit refs/heads/${branch}\nmark :${mark}\n`),
      Buffer.from(
        `committer ${authors[random(authors.length)]} <someone@example.com> ${begun + mark * 21_000} +0000\n`,
      ),
      data(subject),
    ]);
  yield head(1, "main", "Begin\n\nThe whole tree as it was.");
  for (const { path, text } of files) yield Buffer.concat([Buffer.from(`M 100644 inline ${path}\n`), data(text)]);
  for (const [path, content] of Object.entries(extra)) {
    yield Buffer.concat([Buffer.from(`M 100644 inline ${path}\n`), data(content)]);
  }
  let tip = 1;
  let side: number | undefined;
  for (let mark = 2; mark <= commits; mark++) {
    const place = mark % 40;
    // Three commits beside the others, then a merge.
    const isBeside = place >= 20 && place < 23;
    const isMerge = place === 25 && side !== undefined;
    const file = files[random(files.length)] ?? files[0];
    if (!file) return;
    const lines = file.text.split("\n");
    const at = random(lines.length);
    if (lines.length < 400 && random(3) === 0)
      lines.splice(at, 0, `// Note ${mark}: ${verbs[random(verbs.length)]?.toLowerCase()} this some day.`);
    else lines[at] = `${(lines[at] ?? "").replace(/ \/\/ #\d+$/, "")} // #${mark}`;
    file.text = lines.join("\n");
    const subject = isMerge ? "Merge the side branch" : `${verbs[random(verbs.length)]} ${file.path}`;
    yield head(mark, isBeside ? "side" : "main", subject);
    yield Buffer.from(
      `from :${isBeside ? (place === 20 ? tip : (side ?? tip)) : tip}\n${isMerge ? `merge :${side}\n` : ""}`,
    );
    yield Buffer.concat([Buffer.from(`M 100644 inline ${file.path}\n`), data(file.text), Buffer.from("\n")]);
    if (isBeside) side = mark;
    else tip = mark;
    if (isMerge) side = undefined;
  }
  for (let index = 0; index < 10; index++) {
    const at = 1 + Math.floor((tip * (index + 1)) / 11);
    yield Buffer.from(`reset refs/heads/topic-${index}\nfrom :${at}\n\nreset refs/tags/v1.${index}.0\nfrom :${at}\n\n`);
  }
}
