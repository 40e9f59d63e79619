// A browser client as people use it: isomorphic-git and WebSocket in a page from another origin.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { finalizeEvent, generateSecretKey, getPublicKey, nip19 } from "nostr-tools";
import type { Page } from "playwright-core";
import { startInProcess, type TestServer, until } from "../harness/server.js";
import { type Browser, openBrowser } from "./chromium.js";
import { servePage } from "./page-server.js";

type Json = Readonly<Record<string, unknown>>;

const secret = generateSecretKey();
const owner = getPublicKey(secret);
const identifier = "browser project";
let server: TestServer;
let browser: Browser;
let page: Page;
let pages: Awaited<ReturnType<typeof servePage>>;
let url = "";

before(async () => {
  server = await startInProcess({ backend: "memory", settings: { NGIT_PARTIAL_STATE_GRACE_SECS: "1" } });
  pages = await servePage();
  browser = await openBrowser();
  page = await browser.context.newPage();
  await page.goto(pages.url);
  url = `${server.origin}/${nip19.npubEncode(owner)}/${encodeURIComponent(identifier)}.git`;
});

after(async () => {
  await browser.close();
  pages.server.close();
  await server.stop();
});

const now = (): number => Math.floor(Date.now() / 1000);

const sign = (kind: number, tags: string[][], createdAt = now()): Json =>
  finalizeEvent({ kind, created_at: createdAt, content: "", tags }, secret) as unknown as Json;

/** Sends an event over the page's own WebSocket and answers the relay's OK. */
function publish(event: Json): Promise<[boolean, string]> {
  return page.evaluate(
    ([relay, sent]) =>
      new Promise<[boolean, string]>((resolve, reject) => {
        const socket = new WebSocket(relay as string);
        socket.onerror = () => reject(new Error("the socket failed"));
        socket.onopen = () => socket.send(JSON.stringify(["EVENT", sent]));
        socket.onmessage = ({ data }) => {
          const [type, , ok, message] = JSON.parse(data) as [string, string, boolean, string];
          if (type !== "OK") return;
          socket.close();
          resolve([ok, message]);
        };
      }),
    [server.origin.replace(/^http/, "ws"), event] as const,
  );
}

const advertisement = async (): Promise<string> => (await fetch(`${url}/info/refs?service=git-upload-pack`)).text();

test("a page on another origin announces, publishes a state of several branches, pushes one of them and clones it", async () => {
  const announced = await publish(
    sign(30617, [
      ["d", identifier],
      ["clone", url],
      ["relays", server.origin.replace(/^http/, "ws")],
    ]),
  );
  assert.deepEqual([announced[0], announced[1].startsWith("purgatory:")], [true, true]);

  const commits = await page.evaluate(commitInPage);
  const published = await publish(
    sign(30618, [
      ["d", identifier],
      ["refs/heads/main", commits.main],
      ["refs/heads/other", commits.other],
      ["HEAD", "ref: refs/heads/main"],
    ]),
  );
  assert.equal(published[0], true);

  const pushed = await page.evaluate(pushInPage, url);
  assert.deepEqual(pushed, { ok: true, refs: { "refs/heads/main": { ok: true, error: "" } } });

  // The other branch never comes: after its grace the state is released as partial, and HEAD names its branch.
  const advertisesHead = async () => /symref=HEAD:refs\/heads\/main/.test(await advertisement());
  assert.equal(await until(advertisesHead), true);
  const cloned = await page.evaluate(cloneInPage, url);
  assert.deepEqual(cloned, { main: commits.main, text: "hello from a page\n" });
});

test("a page reads what a refused push was told", async () => {
  const refusal = await page.evaluate(refusedPushInPage, url);
  assert.match(refusal, /no state by a maintainer lists refs\/heads\/rogue/);
});

test("every answer carries the headers a browser asks for, errors and preflights included", async () => {
  const answers = await page.evaluate(async (base) => {
    const preflight = await fetch(`${base}/git-upload-pack`, {
      method: "POST",
      headers: { "Git-Protocol": "version=2", "Content-Type": "application/x-git-upload-pack-request" },
      body: "0000",
    });
    const missing = await fetch(`${new URL(base).origin}/nowhere`);
    return [preflight.status, missing.status];
  }, url);
  assert.deepEqual(answers, [200, 404]);
});

// What runs in the page. Playwright sends the text of these functions, so they use nothing from this file.

async function commitInPage(): Promise<{ main: string; other: string }> {
  const { git, LightningFS } = globalThis as unknown as PageGlobals;
  const fs = new LightningFS("work", { wipe: true });
  const author = { name: "Page", email: "page@example.com" };
  await fs.promises.mkdir("/work");
  await git.init({ fs, dir: "/work", defaultBranch: "main" });
  await fs.promises.writeFile("/work/hello.txt", "hello from a page\n", "utf8");
  await git.add({ fs, dir: "/work", filepath: "hello.txt" });
  const main = await git.commit({ fs, dir: "/work", message: "first", author });
  await git.branch({ fs, dir: "/work", ref: "other", checkout: true });
  const other = await git.commit({ fs, dir: "/work", message: "second", author });
  await git.branch({ fs, dir: "/work", ref: "rogue" });
  return { main, other };
}

async function pushInPage(url: string): Promise<Json> {
  const { git, GitHttp, LightningFS } = globalThis as unknown as PageGlobals;
  const fs = new LightningFS("work");
  const result = await git.push({ fs, http: GitHttp, dir: "/work", url, ref: "main", remoteRef: "main" });
  return { ok: result.ok, refs: result.refs };
}

async function refusedPushInPage(url: string): Promise<string> {
  const { git, GitHttp, LightningFS } = globalThis as unknown as PageGlobals;
  const fs = new LightningFS("work");
  try {
    await git.push({ fs, http: GitHttp, dir: "/work", url, ref: "rogue", remoteRef: "rogue" });
    return "accepted";
  } catch (error) {
    return JSON.stringify([String(error), (error as { data?: unknown }).data]);
  }
}

async function cloneInPage(url: string): Promise<Json> {
  const { git, GitHttp, LightningFS } = globalThis as unknown as PageGlobals;
  const fs = new LightningFS("copy", { wipe: true });
  await git.clone({ fs, http: GitHttp, dir: "/copy", url, singleBranch: true });
  const main = await git.resolveRef({ fs, dir: "/copy", ref: "HEAD" });
  return { main, text: await fs.promises.readFile("/copy/hello.txt", "utf8") };
}

interface PageGlobals {
  readonly git: typeof import("isomorphic-git");
  readonly GitHttp: typeof import("isomorphic-git/http/web").default;
  readonly LightningFS: new (name: string, options?: { wipe: boolean }) => PageFileSystem;
}

interface PageFileSystem {
  readonly promises: {
    mkdir(path: string): Promise<void>;
    writeFile(path: string, text: string, encoding: "utf8"): Promise<void>;
    readFile(path: string, encoding: "utf8"): Promise<string>;
  } & import("isomorphic-git").PromiseFsClient["promises"];
}
