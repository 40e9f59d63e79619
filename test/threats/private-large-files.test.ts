// A private server fetches large files that it lacks from the hosts of the announcement, with its own signature (kind 27235).
// A host that is announced may send it on to others in three ways; none of them carries the signature there.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, type TestContext, test } from "node:test";
import { type LargeFile, largeFileOf, pointerTo } from "../harness/lfs-client.js";
import { type PrivateService, signedHeader, startPrivate } from "../harness/private-service.js";
import { until } from "../harness/server.js";

interface Host {
  readonly origin: string;
  readonly heard: { readonly path: string; readonly authorization: string | undefined }[];
}

type Answer = (path: string, response: ServerResponse) => void;

async function hostWith(t: TestContext, answer: Answer): Promise<Host> {
  const heard: Host["heard"] = [];
  const server = createServer((request: IncomingMessage, response) => {
    const path = request.url ?? "";
    heard.push({ path, authorization: request.headers.authorization });
    request.resume().on("end", () => answer(path, response));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, heard };
}

const batchPath = "/team/films.git/info/lfs/objects/batch";
/** A path that looks like a repository's, so that a careless client would sign for it. */
const filePath = "/team/films.git/info/lfs/objects/file";

function offer(response: ServerResponse, { oid, size }: LargeFile, href: string): void {
  const objects = [{ oid, size, actions: { download: { href } } }];
  response.writeHead(200, { "Content-Type": "application/vnd.git-lfs+json" });
  response.end(JSON.stringify({ transfer: "basic", objects }));
}

function redirect(response: ServerResponse, to: string): void {
  response.writeHead(307, { Location: to });
  response.end();
}

/** The address for which a header is signed. */
const signedFor = (authorization: string | undefined): string | undefined => {
  if (authorization === undefined) return undefined;
  const event = JSON.parse(Buffer.from(authorization.replace("Nostr ", ""), "base64").toString("utf8"));
  assert.equal(event.kind, 27_235);
  return event.tags.find(([name]: string[]) => name === "u")[1];
};

describe("a private server's hunt for large files shows its signature to the announced host alone", {
  timeout: 120_000,
}, () => {
  let service: PrivateService;
  before(async () => {
    service = await startPrivate();
  });
  after(() => service.story.end());

  /** Elsewhere offers and has the file, whoever asks; `answers` is what the announced host does. */
  async function hunted(
    t: TestContext,
    identifier: string,
    answers: (file: LargeFile, elsewhere: Host) => Answer,
  ): Promise<{ readonly listed: Host; readonly elsewhere: Host }> {
    const { alice, story } = service;
    const file = largeFileOf(`the film of ${identifier}`);
    const elsewhere: Host = await hostWith(t, (path, response) => {
      if (path === batchPath) offer(response, file, filePath);
      else response.end(file.content);
    });
    const listed = await hostWith(t, answers(file, elsewhere));
    const root = story.url(alice, identifier);
    await story.accepted(
      alice.sign(30617, [
        ["d", identifier],
        ["clone", root, `${listed.origin}/team/films.git`],
        ["relays", service.server.url],
      ]),
    );
    const work = await story.workingCopy();
    writeFileSync(join(work.folder, "film.bin"), `${pointerTo(file)}\n`);
    await story.state(alice, identifier, { "refs/heads/main": await work.commit("one") });
    await work.must("-c", `http.extraHeader=Authorization: ${signedHeader(alice, root)}`, "push", "-q", root, "main");
    assert.ok(await until(() => elsewhere.heard.some(({ path }) => path === filePath), 60_000), "the file was fetched");
    return { listed, elsewhere };
  }

  const ways: readonly [name: string, answers: (file: LargeFile, elsewhere: Host) => Answer][] = [
    [
      "redirects the batch",
      (_, { origin }) =>
        (path, response) =>
          redirect(response, `${origin}${path}`),
    ],
    [
      "offers a download",
      (file, { origin }) =>
        (_, response) =>
          offer(response, file, `${origin}${filePath}`),
    ],
    [
      "redirects the download",
      (file, { origin }) =>
        (path, response) =>
          path === batchPath ? offer(response, file, filePath) : redirect(response, `${origin}${filePath}`),
    ],
  ];
  for (const [index, [name, answers]] of ways.entries()) {
    test(`also where that host ${name} elsewhere`, async (t) => {
      const { listed, elsewhere } = await hunted(t, `films${index}`, answers);
      const asked = listed.heard.filter(({ path }) => path.includes("/info/lfs/"));
      assert.ok(asked.length > 0);
      for (const { path, authorization } of asked) {
        assert.equal(signedFor(authorization), `${listed.origin}/team/films.git`, path);
      }
      assert.ok(elsewhere.heard.length > 0);
      for (const { path, authorization } of elsewhere.heard) assert.equal(authorization, undefined, path);
    });
  }
});
