// How long one page holds up the event loop, and with it every event and push: pages as large as pages get, cold and then
// known, of a repository made for it. Processor time of the loop's thread, so that other programs do not count.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { SecretKey } from "../src/nostr/keys.js";
import { npubOf } from "../src/nostr/nip19.js";
import type { BenchServer } from "./processes.js";
import { type BenchRow, milliseconds } from "./rows.js";
import { git, Publisher } from "./traffic-git.js";

const files = 100_000;
const branches = 4_000;
const issues = 2_000;
const comments = 40;
/** A page may hold up others for a frame of a picture and no longer; what collects garbage stands in it as well. */
const goalMs = 10;

const data = (content: string): string => `data ${Buffer.byteLength(content)}\n${content}\n`;
const file = (path: string, content: string): string => `M 100644 inline ${path}\n${data(content)}`;

/** Sources of this many characters, with something of everything that has a look. */
function source(characters: number, lineEnd: string): string {
  const line = (index: number): string =>
    `export const name${index} = (a: number, b = "text <${index}>"): string => \`\${a} \${b}\`; // says ${index}${lineEnd}`;
  let text = "";
  for (let index = 0; text.length < characters; index++) text += line(index);
  return text.slice(0, characters);
}

const uglyMarkdown = "**a *b _c `d [e](f \n> 1. x\n\n| a | b |\n|--|--|\n| c | d |\n\n"
  .repeat(2_500)
  .slice(0, 128 * 1024);

/** fast-import takes the longer for each file the more there are in its folder: the large one is made by mktree. */
async function folderOfMany(ran: (input: string, ...args: string[]) => Promise<string>): Promise<string> {
  const blob = await ran("the same\n", "hash-object", "-w", "--stdin");
  const entries = Array.from(
    { length: files },
    (_, index) => `100644 blob ${blob}\tf${String(index).padStart(6, "0")}.txt\n`,
  );
  return ran(entries.join(""), "mktree");
}

function* history(folder: string): Generator<string> {
  const commit = (mark: number, subject: string): string =>
    `commit refs/heads/main\nmark :${mark}\ncommitter Ada <ada@example.com> ${1_700_000_000 + mark} +0000\n${data(subject)}`;
  yield commit(1, "Begin");
  yield `${commit(2, "A hundred thousand files")}from :1\nM 040000 ${folder} many\n`;
  yield `${commit(3, "Large ones")}from :2\n`;
  yield file("README.md", uglyMarkdown);
  yield file("large.ts", source(2 ** 20, "\n"));
  yield file("one-line.js", source(2 ** 20, " "));
  yield file("lines.txt", "line <of> text\n".repeat(20_000));
  yield `${commit(4, "Twenty thousand lines")}from :3\n`;
  yield file("lines.txt", "line <or> text\n".repeat(20_000));
  for (let index = 0; index < branches; index++)
    yield `reset refs/heads/topic/number-${index}\nfrom :${(index % 4) + 1}\n\n`;
}

interface Wide {
  readonly url: string;
  readonly tip: string;
  readonly issue: string;
}

async function hostWide(folder: string, port: number): Promise<Wide> {
  await mkdir(folder);
  const ran = async (...args: string[]): Promise<string> => {
    const { ok, text } = await git(folder, ...args);
    if (!ok) throw new Error(`git ${args[0]}: ${text}`);
    return text.trim();
  };
  await ran("init", "-q", "-b", "main");
  const many = await folderOfMany(async (input, ...args) => {
    const running = spawn("git", args, { cwd: folder, stdio: ["pipe", "pipe", "inherit"] });
    running.stdin.end(input);
    let text = "";
    for await (const piece of running.stdout) text += String(piece);
    return text.trim();
  });
  const importing = spawn("git", ["fast-import", "--quiet"], { cwd: folder, stdio: ["pipe", "ignore", "inherit"] });
  for (const piece of history(many)) if (!importing.stdin.write(piece)) await once(importing.stdin, "drain");
  importing.stdin.end();
  await once(importing, "exit");
  const secretHex = randomBytes(32).toString("hex");
  const key = SecretKey.fromHex(secretHex);
  if (!key) throw new Error("not a key");
  const url = `http://127.0.0.1:${port}/${npubOf(key.pubkey)}/wide.git`;
  const publisher = await Publisher.connect(port);
  const publish = async (kind: number, tags: readonly (readonly string[])[], content = ""): Promise<string> => {
    const [ok, text, id] = await publisher.publish(secretHex, kind, tags, content);
    if (!ok) throw new Error(text);
    return id;
  };
  const refs = (await ran("for-each-ref", "--format=%(refname) %(objectname)"))
    .split("\n")
    .map((line) => line.split(" "));
  const about = ["a", `30617:${key.pubkey}:wide`];
  await publish(30_617, [
    ["d", "wide"],
    ["clone", url],
    ["relays", `ws://127.0.0.1:${port}`],
  ]);
  await publish(30_618, [["d", "wide"], ...refs, ["HEAD", "ref: refs/heads/main"]]);
  await ran("push", "-q", url, "refs/heads/*:refs/heads/*");
  for (let index = 0; index < issues; index++) await publish(1_621, [about, ["subject", `Issue ${index} of many`]]);
  const issue = await publish(1_621, [about, ["subject", "Much was said"]], uglyMarkdown.slice(0, 16_000));
  for (let index = 0; index < comments; index++) {
    const tags = [
      ["E", issue],
      ["K", "1621"],
      ["e", issue],
      ["k", "1621"],
    ];
    await publish(1_111, tags, `${index} ${uglyMarkdown.slice(0, 4_000)}`);
  }
  publisher.client.socket.destroy();
  return { url, tip: await ran("rev-parse", "main"), issue };
}

export async function holdRows(
  server: BenchServer,
  folder: string,
  get: (url: string) => Promise<{ readonly status: number; readonly body: Buffer }>,
): Promise<BenchRow[]> {
  const { url, tip, issue } = await hostWide(folder, server.port);
  const rows: BenchRow[] = [];
  for (const [work, path] of [
    ["a folder of 100,000 files", "/tree/main/many"],
    ["find a file among 100,000", "/find/main?q=f0999"],
    ["a file of 1 MiB in colours", "/blob/main/large.ts"],
    ["a file of 1 MiB in one line", "/blob/main/one-line.js"],
    ["a change of 20,000 lines", `/commit/${tip}`],
    ["the same side by side", `/commit/${tip}?view=split`],
    ["blame of 20,000 lines", "/blame/main/lines.txt"],
    ["first page, its README 128 kB of ugly Markdown", ""],
    [`an issue with ${comments} texts of 4 kB of ugly Markdown`, `/issues/${issue}`],
    [`${issues.toLocaleString("en")} issues, searched`, "/issues?q=1999"],
    [`${branches.toLocaleString("en")} branches`, "/branches?page=50"],
  ] as const) {
    const bytes: number[] = [];
    const ask = async (): Promise<void> => {
      const { status, body } = await get(url + path);
      if (status !== 200) throw new Error(`${path}: ${status}`);
      bytes.push(body.length);
    };
    const [cold, known] = [await server.holdDuring(ask), await server.holdDuring(ask)];
    const [first, second] = [cold.cpuMs ?? cold.wallMs, known.cpuMs ?? known.wallMs];
    rows.push({
      goal: "pages",
      work: `event loop held at a time by ${work}`,
      measured: `${milliseconds(first)}, again ${milliseconds(second)} (${Math.round((bytes[0] ?? 0) / 1_000)} kB)`,
      target: `< ${goalMs} ms`,
      met: Math.max(first, second) < goalMs,
    });
  }
  return rows;
}
