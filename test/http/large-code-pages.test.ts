// Code pages of repositories made to be hard: a folder of 100,000 files, changes without end, deep paths, and readers who
// never stop asking. Everything is answered within its bounds, and others go on being served.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { isEveryFault } from "../faults/every-fault.js";
import { runProgram } from "../harness/git-server.js";
import { newKey, type PagesWorld, startPagesWorld } from "./pages-world.js";

/** `.ci/run` tries the whole size. */
const files = isEveryFault ? 100_000 : 3_000;
const lines = isEveryFault ? 200_000 : 130_000;
const number = (value: number): string => value.toLocaleString("en");
const depth = 150;
/** So long that a folder of 40,000 is larger than what is read of one. */
const wideName = (index: number): string => `${String(index).padStart(6, "0")}-${"n".repeat(200)}`;

const data = (content: string): string => `data ${Buffer.byteLength(content)}\n${content}\n`;
const seen = (page: string): string => page.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");

describe("large code pages", { timeout: 600_000 }, () => {
  let world: PagesWorld;
  let url: string;
  let tip = "";
  let readers = 0;
  const owner = newKey();
  const ask = (path: string, ip = `192.0.2.${readers++ % 250}`): Promise<Response> =>
    fetch(url + path, { redirect: "manual", headers: { Accept: "text/html", "X-Forwarded-For": ip } });
  const page = async (path: string): Promise<string> => {
    const answer = await ask(path);
    const text = await answer.text();
    assert.equal(answer.status, 200, `${path}: ${seen(text).slice(0, 300)}`);
    return text;
  };

  before(async () => {
    world = await startPagesWorld({ NGIT_TRUSTED_PROXIES: "loopback" });
    url = world.url(owner, "large");
    await world.announce(owner, "large");
    const { folder } = await world.workingCopy({ a: "1" });
    const head = (message: string): string =>
      `commit refs/heads/main\ncommitter A <a@b> 1700000000 +0000\n${data(message)}`;
    const names = Array.from({ length: files }, (_, index) => `M 100644 :1 many/f${index}\n`).join("");
    const wide = Array.from({ length: 40_000 }, (_, index) => `M 100644 :1 wide/${wideName(index)}\n`).join("");
    const deep = `${Array.from({ length: depth }, (_, index) => `d${index}`).join("/")}/end.txt`;
    const input = [
      `blob\nmark :1\n${data("same\n")}`,
      `blob\nmark :2\n${data("old line\n".repeat(lines))}`,
      `blob\nmark :3\n${data("new line\n".repeat(lines))}`,
      `${head("Begin")}M 100644 :1 a\nM 100644 :2 long.txt\nM 100644 :1 ${deep}\n\n`,
      `${head("Many files")}${names}\n`,
      `${head("Every line")}M 100644 :3 long.txt\n\n`,
      `${head("Wide").replace("main", "wide")}${wide}\n`,
    ].join("");
    const done = await runProgram("git", ["fast-import", "--quiet", "--force"], { cwd: folder, input });
    assert.equal(done.code, 0, done.stderr);
    tip = await world.git(folder, "rev-parse", "main");
    await world.publish(owner, 30618, [
      ["d", "large"],
      ["refs/heads/main", tip],
      ["refs/heads/wide", await world.git(folder, "rev-parse", "wide")],
      ["HEAD", "ref: refs/heads/main"],
    ]);
    await world.git(folder, "push", "--quiet", url, "main", "wide");
  });
  after(() => world.close());

  test("threat 33: a folder of very many files is shown a page at a time, and its files are found", async () => {
    const first = await page("/tree/main/many");
    assert.match(seen(first), new RegExp(`Entries 1 to 1,000 of ${number(files)}`));
    assert.ok(first.length < 2 ** 20, `${first.length}`);
    assert.match(seen(await page(`/tree/main/many?page=${files / 1_000}`)), new RegExp(`to ${number(files)} of`));
    await page("/blob/main/many/f2777");
    const found = await page("/find/main?q=many/f277");
    assert.ok(found.length < 100_000 && found.includes("/blob/main/many/f2771"));
    await page("");
  });

  test("threat 33: a folder too wide to be shown says so, and its files can be read", async () => {
    assert.match(seen(await page("/tree/wide/wide")), /more entries than a page can show/);
    for (const index of [0, 23_456, 39_999]) {
      assert.match(seen(await page(`/blob/wide/wide/${wideName(index)}`)), /same/);
      assert.equal(await page(`/raw/wide/wide/${wideName(index)}`), "same\n");
    }
    assert.equal((await ask(`/blob/wide/wide/${wideName(40_000)}`)).status, 404);
  });

  test("a change of very many files or lines is shown up to its bounds, and says so", async () => {
    const many = await page(`/commit/${(await commits())[1]}`);
    assert.match(seen(many), /300 files and more.*A page shows 300 files and 20,000 lines/);
    assert.ok(many.length < 2 ** 20, `${many.length}`);
    const every = await page(`/commit/${tip}?view=split`);
    assert.match(seen(every), /there is more/);
    assert.ok(every.length < 6 * 2 ** 20, `${every.length}`);
    assert.match(seen(await page("/blame/main/long.txt")), /larger than|lines/);
    assert.match(seen(await page("/blob/main/long.txt")), /larger than the 1 MiB/);
  });

  const commits = async (): Promise<string[]> =>
    [...(await page("/commits/main")).matchAll(/<a class="title" href="[^"]*\/commit\/([0-9a-f]{40})"/g)].map(
      ([, oid = ""]) => oid,
    );

  test("a deep path can be walked to its end", async () => {
    const path = Array.from({ length: depth }, (_, index) => `d${index}`).join("/");
    assert.match(await page(`/tree/main/${path}`), /end\.txt/);
    assert.match(seen(await page(`/blob/main/${path}/end.txt`)), /same/);
    assert.match(seen(await page(`/commits/main/${path}/end.txt`)), /Begin/);
  });

  test("threat 33: a crawler that asks without end is told to come back, and others are served meanwhile", async () => {
    const crawl = Array.from({ length: 300 }, async (_, index) => {
      const answer = await ask(`/blob/main/many/f${index}`, "198.51.100.9");
      await answer.arrayBuffer();
      return [answer.status, answer.headers.get("retry-after")] as const;
    });
    const others = await Promise.all(
      ["/tree/main", "/commits/main", "/blob/main/a"].map(async (path) => (await ask(path)).status),
    );
    assert.deepEqual(others, [200, 200, 200]);
    const answers = await Promise.all(crawl);
    const refused = answers.filter(([status]) => status === 429 || status === 503);
    assert.ok(refused.length >= 20, `${refused.length}`);
    assert.ok(refused.every(([, after]) => Number(after) > 0));
    assert.ok(answers.every(([status]) => [200, 429, 503].includes(status)));
  });

  test("threat 33: many who want the whole repository at once wait or are turned away; pages are made meanwhile", async () => {
    const flood = Array.from({ length: 40 }, async (_, index) => {
      const answer = await ask("/archive/main.zip", `203.0.113.${index}`);
      await answer.body?.cancel();
      return answer.status;
    });
    assert.equal((await ask("/tree/main")).status, 200);
    const answers = await Promise.all(flood);
    assert.ok(answers.includes(200), String(answers));
    assert.ok(
      answers.every((status) => status === 200 || status === 503),
      String(answers),
    );
  });
});
