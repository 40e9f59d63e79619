// The whole server in this process with people, repositories and threads on it, for the tests of its pages.

import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Tag } from "../../src/nostr/event.js";
import { SecretKey, signEvent } from "../../src/nostr/keys.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { freePort } from "../harness/free-port.js";
import { emptyRepository, headOf, runProgram } from "../harness/git-server.js";
import { RelayClient } from "../harness/relay-client.js";
import { until as isSoWithin, startInProcess } from "../harness/server.js";

export const newKey = (): SecretKey => SecretKey.generate(randomBytes);

export async function until(isSo: () => Promise<boolean>): Promise<void> {
  if (!(await isSoWithin(isSo))) throw new Error("waited in vain");
}

export interface PublishedEvent {
  readonly id: string;
  readonly kind: number;
  readonly created_at: number;
}

export interface PagesWorld {
  readonly origin: string;
  readonly domain: string;
  readonly basePath: string;
  /** The address of a repository, page and git alike. */
  url(owner: SecretKey, identifier: string): string;
  publish(
    key: SecretKey,
    kind: number,
    tags: readonly Tag[],
    content?: string,
    ageSeconds?: number,
  ): Promise<PublishedEvent>;
  /** A comment in the thread of `root`, in answer to `parent`, which may be the root itself. */
  comment(
    key: SecretKey,
    root: Pick<PublishedEvent, "id" | "kind">,
    parent: string,
    text: string,
    ageSeconds: number,
  ): Promise<PublishedEvent>;
  /** Announces and leaves it at that. */
  announce(owner: SecretKey, identifier: string, more?: readonly Tag[]): Promise<PublishedEvent>;
  /** A working copy with one commit for each set of files; answers its folder and the newest commit. */
  workingCopy(...commits: Readonly<Record<string, string>>[]): Promise<{ folder: string; tip: string }>;
  git(folder: string, ...args: string[]): Promise<string>;
  /** Announce, state, push: afterwards it is served. */
  host(
    owner: SecretKey,
    identifier: string,
    files: Readonly<Record<string, string>>[],
    more?: readonly Tag[],
  ): Promise<{ folder: string; tip: string }>;
  close(): Promise<void>;
}

export async function startPagesWorld(
  settings: Readonly<Record<string, string>> = {},
  basePath = "",
): Promise<PagesWorld> {
  const port = await freePort();
  const domain = `127.0.0.1:${port}${basePath}`;
  const server = await startInProcess({
    hasDefaultLimits: true,
    port,
    settings: { NGIT_TEST: "false", NGIT_DOMAIN: domain, ...settings },
  });
  const { origin, folder: root } = server;
  const relay = await RelayClient.connect(`${server.url}${basePath}/`);

  const world: PagesWorld = {
    origin,
    domain,
    basePath,
    url: (owner, identifier) => `${origin}${basePath}/${npubOf(owner.pubkey)}/${encodeURIComponent(identifier)}.git`,
    async publish(key, kind, tags, content = "", ageSeconds = 0) {
      const created_at = Math.floor(Date.now() / 1000) - ageSeconds;
      const { raw } = signEvent(key, { kind, created_at, tags, content }, randomBytes);
      const event = JSON.parse(raw) as PublishedEvent;
      const [, , ok, message] = await relay.publish(event);
      if (ok !== true) throw new Error(`kind ${kind} was refused: ${message}`);
      return event;
    },
    comment: (key, root, parent, text, ageSeconds) => {
      const inThread: Tag[] = [
        ["E", root.id],
        ["K", String(root.kind)],
        ["e", parent],
        ["k", parent === root.id ? String(root.kind) : "1111"],
      ];
      return world.publish(key, 1111, inThread, text, ageSeconds);
    },
    announce: (owner, identifier, more = []) =>
      world.publish(owner, 30617, [
        ["d", identifier],
        ["clone", world.url(owner, identifier)],
        ["relays", `ws://${domain}`],
        ...more,
      ]),
    async workingCopy(...commits) {
      const folder = await mkdtemp(join(root, "work-"));
      await emptyRepository(join(folder, ".git"), false);
      for (const [index, files] of commits.entries()) {
        for (const [path, text] of Object.entries(files)) {
          await mkdir(dirname(join(folder, path)), { recursive: true });
          await writeFile(join(folder, path), text);
        }
        await world.git(folder, "add", "--all");
        await world.git(folder, "commit", "--quiet", "--allow-empty", "-m", files[".message"] ?? `Change ${index + 1}`);
      }
      return { folder, tip: await headOf(folder) };
    },
    async git(folder, ...args) {
      const result = await runProgram("git", args, { cwd: folder });
      if (result.code !== 0) throw new Error(`git ${args.join(" ")}: ${result.stderr}`);
      return result.stdout.trim();
    },
    async host(owner, identifier, files, more = []) {
      await world.announce(owner, identifier, more);
      const copy = await world.workingCopy(...files);
      await world.publish(owner, 30618, [
        ["d", identifier],
        ["refs/heads/main", copy.tip],
        ["HEAD", "ref: refs/heads/main"],
      ]);
      await world.git(copy.folder, "push", "--quiet", world.url(owner, identifier), "main");
      return copy;
    },
    async close() {
      relay.socket.close();
      await server.end();
    },
  };
  return world;
}
