// All readers' pages in Chromium, of a repository with a long history, real sources (CODE_COMMITS, 300) and people around it:
// light and dark, on a desk and on a phone, checked for what readers need; the keys, chosen lines and finding files. Pictures
// go to artifacts/ (or PICTURES). Run: CHROMIUM_PATH=/usr/bin/chromium node --test dist/test/browser/code.browser.js

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { deflateSync } from "node:zlib";
import type { Page } from "playwright-core";
import { runProgram } from "../harness/git-server.js";
import { longHistory, sourceTree } from "../harness/long-history.js";
import { newKey, type PagesWorld, startPagesWorld } from "../http/pages-world.js";
import { checkInPage, focusInPage } from "./accessibility.js";
import { type Browser, openBrowser } from "./chromium.js";
import { setLargeTalk } from "./large-talk.js";

const pictures = process.env.PICTURES ?? "artifacts";
const commits = Number(process.env.CODE_COMMITS ?? 300);
const phone = { width: 360, height: 740 };
const desk = { width: 1280, height: 800 };

const readme = `<p align="center"><img src="docs/logo.svg" width="96" alt="Logo"></p>
<h1 align="center">Long</h1>

[![build](https://ci.example.com/b.svg)](https://ci.example.com) A library with a [long history](docs/guide.md), TypeScript
first. :rocket:

> [!NOTE]
> Read [the guide](docs/guide.md#install) before you begin.

## What it does

| Part | Lines | State |
|:-----|------:|:-----:|
| core | 1,200 | done |
| locales | 12,400 | done |
| mini | 300 | begun |

- [x] Parse, don't validate
- [ ] Rest a little[^1]

\`\`\`ts
const name = z.string().min(1);
\`\`\`

<details><summary>Keys</summary>

Press <kbd>t</kbd> to find a file. H<sub>2</sub>O.

</details>

![A picture of another host](https://example.com/p.png)

[^1]: Not before the next release.
`;

/** A picture of one colour, so that nothing has to be stored. */
function png(size: number): Buffer {
  const chunk = (type: string, data: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
    const [length, crc] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    let sum = 0xffffffff;
    for (const byte of body) {
      sum ^= byte;
      for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
    }
    crc.writeUInt32BE((sum ^ 0xffffffff) >>> 0);
    return Buffer.concat([length, body, crc]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(size, 0);
  head.writeUInt32BE(size, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(size * 3, 0x7a)]);
  const pixels = deflateSync(Buffer.concat(Array.from({ length: size }, () => row)));
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([signature, chunk("IHDR", head), chunk("IDAT", pixels), chunk("IEND", Buffer.alloc(0))]);
}

describe("the pages of a large repository in a browser", { timeout: 600_000 }, () => {
  let world: PagesWorld;
  let browser: Browser;
  let plainBrowser: Browser;
  let url: string;
  let urls: [string, string][];
  const owner = newKey();
  let readers = 0;

  before(async () => {
    await mkdir(pictures, { recursive: true });
    world = await startPagesWorld({ NGIT_TRUSTED_PROXIES: "loopback", NGIT_RELAY_NAME: "harbour.example" });
    url = world.url(owner, "long");
    await world.announce(owner, "long", [
      ["name", "Long"],
      ["description", "A library with a long history."],
      ["t", "typescript"],
    ]);
    const { folder } = await world.workingCopy({ a: "1" });
    const files = await sourceTree(fileURLToPath(new URL("../../../node_modules/zod/src", import.meta.url)));
    const extra = {
      "README.md": readme,
      "docs/guide.md": "# Guide\n\n## Install\n\n`npm i long`\n\n[Back](../README.md#what-it-does)\n",
      "docs/logo.svg": `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10" onload="document.title='owned'"><circle cx="5" cy="5" r="4" fill="#1d6b3f"/></svg>`,
      "docs/picture.png": png(64),
      "docs/page.html": "<script>document.title='owned'</script>\n<h1>Never run</h1>\n",
      "docs/notes.ipynb": '{"cells": [{"cell_type": "code", "source": ["print(1)"], "outputs": []}]}\n',
      "data.bin": Buffer.from([0, 1, 2]),
    };
    const input = Buffer.concat([...longHistory(files, commits, extra)]);
    const done = await runProgram("git", ["fast-import", "--quiet", "--force"], { cwd: folder, input });
    assert.equal(done.code, 0, done.stderr);
    const listed = (await world.git(folder, "for-each-ref", "--format=%(refname) %(objectname)")).split("\n");
    const refs = listed.map((line) => line.split(" ") as [string, string]);
    await world.publish(owner, 30618, [["d", "long"], ...refs, ["HEAD", "ref: refs/heads/main"]]);
    await world.git(folder, "push", "--quiet", url, ...refs.map(([name]) => `${name}:${name}`));
    const tip = await world.git(folder, "rev-parse", "main");
    const merge = await world.git(folder, "rev-list", "--merges", "-1", "main");
    browser = await openBrowser();
    plainBrowser = await openBrowser({ javaScriptEnabled: false });
    urls = [
      ["first", url],
      ["tree", `${url}/tree/main/v4`],
      ["blob", `${url}/blob/main/v4/core/parse.ts`],
      ["blob-long", `${url}/blob/main/v4/locales/index.ts`],
      ["markdown", `${url}/blob/main/README.md`],
      ["markdown-source", `${url}/blob/main/README.md?source`],
      ["picture", `${url}/blob/main/docs/picture.png`],
      ["html", `${url}/blob/main/docs/page.html`],
      ["notebook", `${url}/blob/main/docs/notes.ipynb`],
      ["binary", `${url}/blob/main/data.bin`],
      ["blame", `${url}/blame/main/v4/locales/index.ts`],
      ["commits", `${url}/commits/main`],
      ["commits-of-file", `${url}/commits/main/v4/locales/index.ts`],
      ["commit", `${url}/commit/${tip}`],
      ["commit-split", `${url}/commit/${merge}?view=split`],
      ["compare", `${url}/compare/topic-8...topic-9`],
      ["branches", `${url}/branches`],
      ["copies", `${url}/copies`],
      ["find", `${url}/find/main?q=core`],
      ["nothing", `${url}/tree/main/nothing`],
      ...(await setLargeTalk(world, owner, folder)).urls,
    ];
  });

  after(async () => {
    await browser?.close();
    await plainBrowser?.close();
    await world?.close();
  });

  async function open(
    address: string,
    options: { dark?: boolean; size?: typeof phone; from?: Browser } = {},
  ): Promise<Page> {
    const page = await (options.from ?? browser).context.newPage();
    // Another reader each time: one alone is given fewer pages than these tests look at.
    await page.setExtraHTTPHeaders({ "X-Forwarded-For": `192.0.2.${readers++ % 250}` });
    await page.setViewportSize(options.size ?? desk);
    await page.emulateMedia({ colorScheme: options.dark ? "dark" : "light" });
    await page.goto(address);
    return page;
  }

  for (const [look, options] of [
    ["1280-light", {}],
    ["1280-dark", { dark: true }],
    ["360-light", { size: phone }],
    ["360-dark", { size: phone, dark: true }],
  ] as const) {
    test(`every page can be read and used by everybody: ${look}`, async () => {
      const wrong: string[] = [];
      for (const [name, address] of urls) {
        const page = await open(address, options);
        for (const fault of await page.evaluate(checkInPage)) wrong.push(`${name}: ${fault}`);
        await page.screenshot({ path: `${pictures}/code-${name}-${look}.png`, fullPage: name !== "compare" });
        await page.close();
      }
      assert.deepEqual(wrong, []);
    });
  }

  test("what a repository holds neither runs nor asks other servers", async () => {
    const page = await browser.context.newPage();
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    for (const [, address] of urls.slice(0, 10)) {
      await page.setExtraHTTPHeaders({ "X-Forwarded-For": `198.51.100.${readers++ % 250}` });
      await page.goto(address);
      assert.notEqual(await page.title(), "owned", address);
    }
    assert.deepEqual(
      asked.filter((one) => !one.startsWith(world.origin)),
      [],
    );
    const logo = page.locator(".readme img");
    await page.goto(`${url}/blob/main/README.md`);
    await logo.first().waitFor();
    assert.ok(await page.evaluate("document.querySelector('.readme img').decode().then(() => true)"));
    await page.close();
  });

  test("lines are chosen by click and shift, named in the address, and found again by it", async () => {
    const page = await open(`${url}/blob/main/v4/locales/index.ts`);
    await page.locator("#L3").click();
    await page.locator("#L6").click({ modifiers: ["Shift"] });
    await page.waitForURL(/#L3-L6$/);
    assert.equal(await page.locator(".gutter .chosen").count(), 4);
    assert.equal(await page.locator(".picked").count(), 1);
    const again = await open(page.url());
    assert.equal(await again.locator(".gutter .chosen").count(), 4);
    await again.close();
    await page.keyboard.press("y");
    await page.waitForURL(/\/blob\/[0-9a-f]{40}\/v4\/locales\/index\.ts#L3-L6$/);
    await page.keyboard.press("t");
    await page.waitForURL(/\/find\//);
    // The page is loaded a moment before the field has the focus.
    await page.locator("#q:focus").waitFor();
    await page.keyboard.type("versions");
    await page.locator("#found a").filter({ hasText: "versions.ts" }).first().waitFor();
    await page.waitForURL(/q=versions/);
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/blob\/.*versions\.ts$/);
    // Who types faster than the list follows gets what was typed, not the first of the list so far.
    await page.keyboard.press("t");
    await page.waitForURL(/\/find\//);
    await page.locator("#q:focus").waitFor();
    await page.keyboard.type("versions");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/blob\/.*versions\.ts$/);
    await page.close();
  });

  test("without script files are found, changes are folded, and a heading's name in an address leads to it", async () => {
    const plain = await open(`${url}/find/main`, { from: plainBrowser });
    await plain.locator("#q").fill("versions");
    await plain.getByRole("button", { name: "Find" }).click();
    await plain
      .getByRole("link", { name: /versions\.ts/ })
      .first()
      .click();
    await plain.locator(".code .lines").waitFor();
    await plain.close();
    const page = await open(`${url}/blob/main/docs/guide.md#install`);
    await page.locator("#md-install").waitFor();
    await page.getByRole("link", { name: "Back" }).click();
    await page.waitForURL(/README\.md#md-what-it-does$/);
    await page.close();
  });

  test("the keyboard reaches every part of a file's page, and the focus is seen", async () => {
    const page = await open(`${url}/blob/main/v4/core/versions.ts`);
    const stops: string[] = [];
    for (let press = 0; press < 40; press++) {
      await page.keyboard.press("Tab");
      const { stop, isVisible } = await page.evaluate(focusInPage);
      if (stop.startsWith("BODY")) break;
      assert.ok(isVisible, `the focus is not seen at ${stop}`);
      stops.push(stop);
    }
    const all = stops.join("\n");
    for (const part of ["Code", "Commits", "Branches", "Copies", "Raw", "Blame", "History", "Permanent link"]) {
      assert.ok(all.includes(part), `${part} is not among ${all}`);
    }
    await page.close();
  });
});
