// Where a test's cluster has its packs: a directory, or a bucket of an S3 server of its own. Both can be taken away.

import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { newFolder, removeFolder } from "../harness/server.js";
import { noS3, TestS3 } from "./s3-server.js";

export interface Outage {
  readonly what: string;
  begin(): Promise<void>;
  end(): Promise<void>;
}

export interface PackPlace {
  /** Settings of every machine. */
  readonly settings: Readonly<Record<string, string>>;
  /** The files themselves, for a test that damages them. */
  readonly folder: string;
  readonly outages: readonly Outage[];
  dispose(): Promise<void>;
}

export type PackKind = "a directory" | "a bucket of S3";
export const packKinds: readonly PackKind[] = ["a directory", "a bucket of S3"];

/** Ways to be away, in the order of `outages`: known before there is a store. */
export const outagesOf: Readonly<Record<PackKind, readonly string[]>> = {
  "a directory": ["the pack store is away"],
  "a bucket of S3": ["the pack store is killed and started again", "the pack store stands still"],
};

/** Why tests with that kind do not run; false when they do. */
export const cannotHave = (kind: PackKind): string | false => (kind === "a bucket of S3" ? noS3 : false);

export const newPackPlace = (kind: PackKind): Promise<PackPlace> =>
  kind === "a directory" ? newDirectory() : newBucket();

const named = (kind: PackKind, ...ways: Omit<Outage, "what">[]): Outage[] =>
  ways.map((way, index) => ({ ...way, what: outagesOf[kind][index] as string }));

async function newDirectory(): Promise<PackPlace> {
  const above = await newFolder();
  const folder = join(above, "packs");
  const aside = `${folder}-aside`;
  await mkdir(folder);
  return {
    folder,
    settings: { NGIT_PACK_STORE: `directory:${folder}` },
    outages: named("a directory", {
      begin: () => rename(folder, aside),
      async end() {
        await rm(folder, { recursive: true, force: true });
        await rename(aside, folder);
      },
    }),
    dispose: () => removeFolder(above),
  };
}

async function newBucket(): Promise<PackPlace> {
  const server = await TestS3.start();
  const bucket = "packs";
  return {
    settings: server.settings(bucket),
    folder: server.folderOf(bucket),
    outages: named(
      "a bucket of S3",
      { begin: () => server.stop(), end: () => server.run() },
      { begin: async () => server.pause(), end: async () => server.goOn() },
    ),
    dispose: () => server.dispose(),
  };
}
