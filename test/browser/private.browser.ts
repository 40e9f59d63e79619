// A private service (GRASP-08) in Chromium: strangers see the sign-in page and nothing else, a member signs in with an
// extension, and isomorphic-git in a page of another origin clones and pushes with a signed header and with a machine token.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import type { Page } from "playwright-core";
import type { Person } from "../harness/grasp-people.js";
import { basic, type PrivateService, signedHeader, startPrivate } from "../harness/private-service.js";
import { checkInPage } from "./accessibility.js";
import { type Browser, openBrowser } from "./chromium.js";
import { servePage } from "./page-server.js";

const pictures = "artifacts";

describe("a private service in a browser", { timeout: 300_000 }, () => {
  let service: PrivateService;
  let browser: Browser;
  let pages: Awaited<ReturnType<typeof servePage>>;
  let signer: Person;
  let url = "";

  before(async () => {
    mkdirSync(pictures, { recursive: true });
    service = await startPrivate();
    const { alice, story } = service;
    signer = alice;
    url = story.url(alice, "plans");
    await story.announce(alice, "plans");
    const work = await story.workingCopy();
    await story.state(alice, "plans", { "refs/heads/main": await work.commit("plans of the team", "plan.txt") });
    await work.must("-c", `http.extraHeader=Authorization: ${signedHeader(alice, url)}`, "push", "-q", url, "main");
    pages = await servePage();
    browser = await openBrowser();
    await browser.context.exposeFunction(
      "signInTest",
      (draft: { kind: number; tags: string[][]; content: string; created_at: number }) =>
        signer.sign(draft.kind, draft.tags, draft.content, draft.created_at),
    );
    await browser.context.exposeFunction("keyInTest", () => signer.pubkey);
    await browser.context.addInitScript(
      "window.nostr = { signEvent: (draft) => window.signInTest(draft), getPublicKey: () => window.keyInTest() }",
    );
  });

  after(async () => {
    await browser?.close();
    pages?.server.close();
    await service?.story.end();
  });

  const open = async (path: string, width = 1_280, isDark = false): Promise<Page> => {
    const page = await browser.context.newPage();
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme: isDark ? "dark" : "light" });
    await page.goto(`${service.server.origin}${path}`);
    return page;
  };

  test("a stranger sees the sign-in page at every address, readable by everybody", async () => {
    for (const [look, width, isDark] of [
      ["light", 1_280, false],
      ["dark", 1_280, true],
      ["phone", 360, false],
      ["phone-dark", 360, true],
    ] as const) {
      const page = await open(new URL(url).pathname, width, isDark);
      await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor();
      await page.getByRole("button", { name: "Sign in with Nostr" }).waitFor();
      assert.deepEqual(await page.evaluate(checkInPage), [], look);
      assert.ok(!(await page.content()).includes("plans of the team"));
      await page.screenshot({ path: `${pictures}/sign-in-${look}.png`, fullPage: true });
      await page.close();
    }
  });

  test("a stranger's extension is not let in, a member's is and stays at the address, and signing out ends it", async () => {
    signer = service.stranger;
    const page = await open(new URL(url).pathname);
    await page.getByRole("button", { name: "Sign in with Nostr" }).click();
    await page.getByText(/^Not let in: this key is not a member's/).waitFor();
    signer = service.alice;
    await page.getByRole("button", { name: "Sign in with Nostr" }).click();
    await page
      .getByText("refs/heads/main")
      .or(page.getByText("main", { exact: true }))
      .first()
      .waitFor();
    assert.equal(page.url(), url);
    const [cookie] = await browser.context.cookies();
    assert.deepEqual([cookie?.httpOnly, cookie?.sameSite], [true, "Strict"]);
    assert.deepEqual(await page.evaluate(checkInPage), []);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor();
    await page.goto(url);
    await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor();
    await page.close();
  });

  test("a member who is signed in reads and writes issues on the page, and the relay learns who writes", async () => {
    signer = service.alice;
    const page = await open(`${new URL(url).pathname}/issues`);
    // Whoever signs out and in again within a second is let in too.
    await page.clock.setFixedTime(Date.now());
    await page.getByRole("button", { name: "Sign in with Nostr" }).click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.goto(`${url}/issues`);
    await page.getByRole("button", { name: "Sign in with Nostr" }).click();
    await page.getByRole("heading", { level: 2, name: "New issue" }).waitFor();
    await page.getByLabel("Title", { exact: true }).fill("Between members");
    await page.getByLabel("Text, in Markdown").fill("Nobody else reads this.");
    await page.getByRole("button", { name: "Publish the issue" }).click();
    await page.waitForURL(/\/issues\/[0-9a-f]{64}$/);
    await page.getByText("Nobody else reads this.").waitFor();
    assert.equal(await page.locator("a[href*='gitworkshop.dev/nevent']").count(), 0, "nobody else is told of it");
    assert.deepEqual(await page.evaluate(checkInPage), []);
    const address = page.url();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.goto(address);
    await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor();
    assert.ok(!(await page.content()).includes("Between members"));
    await page.close();
  });

  test("isomorphic-git on another origin clones and pushes with a signed header, and clones with a machine token", async () => {
    const { alice, story, operate } = service;
    const page = await browser.context.newPage();
    await page.goto(pages.url);
    const signed = signedHeader(alice, url);
    const cloned = await page.evaluate(cloneInPage, [url, signed] as const);
    assert.equal(cloned.text, "plans of the team\n");
    const commit = await page.evaluate(commitInPage);
    await story.state(alice, "plans", { "refs/heads/main": commit });
    assert.equal(await page.evaluate(pushInPage, [url, signedHeader(alice, url)] as const), true);
    const { token } = await operate("tokens.add", { member: alice.npub });
    const again = await page.evaluate(cloneInPage, [url, basic("ci", token)] as const);
    assert.deepEqual(again, { head: commit, text: "plans of the team\n" });
    const refused = await page.evaluate(cloneInPage, [url, signedHeader(service.stranger, url)] as const).catch(String);
    assert.match(String(refused), /HTTP Error: 401/);
    // The two challenges can be read by the page, as the preflight allows.
    const seen = await page.evaluate(async (where) => {
      const answer = await fetch(`${where}/info/refs?service=git-upload-pack`);
      return [answer.status, answer.headers.get("WWW-Authenticate")];
    }, url);
    assert.deepEqual(seen, [401, 'Nostr method="GET", Basic realm="holdfast"']);
    await page.close();
  });
});

// What runs in the page. Playwright sends the text of these functions, so they use nothing from this file.

async function cloneInPage([url, authorization]: readonly [string, string]): Promise<{ head: string; text: string }> {
  const { git, GitHttp, LightningFS } = globalThis as unknown as PageGlobals;
  const fs = new LightningFS("private", { wipe: true });
  const headers = { Authorization: authorization };
  await git.clone({ fs, http: GitHttp, dir: "/copy", url, singleBranch: true, headers });
  const head = await git.resolveRef({ fs, dir: "/copy", ref: "HEAD" });
  return { head, text: await fs.promises.readFile("/copy/plan.txt", "utf8") };
}

async function commitInPage(): Promise<string> {
  const { git, LightningFS } = globalThis as unknown as PageGlobals;
  const fs = new LightningFS("private");
  const author = { name: "Page", email: "page@example.com" };
  return git.commit({ fs, dir: "/copy", message: "from a page", author });
}

async function pushInPage([url, authorization]: readonly [string, string]): Promise<boolean> {
  const { git, GitHttp, LightningFS } = globalThis as unknown as PageGlobals;
  const fs = new LightningFS("private");
  const headers = { Authorization: authorization };
  const pushed = await git.push({ fs, http: GitHttp, dir: "/copy", url, ref: "main", remoteRef: "main", headers });
  return pushed.ok;
}

interface PageGlobals {
  readonly git: typeof import("isomorphic-git");
  readonly GitHttp: typeof import("isomorphic-git/http/web").default;
  readonly LightningFS: new (
    name: string,
    options?: { wipe: boolean },
  ) => {
    readonly promises: {
      readFile(path: string, encoding: "utf8"): Promise<string>;
    } & import("isomorphic-git").PromiseFsClient["promises"];
  };
}
