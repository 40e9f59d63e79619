// What a backup says of itself: `manifest.json`, written last, so that a folder without one is no backup. Read from disks
// that may have rotted and from other machines: checked before anything in it is believed.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";

export const manifestFile = "manifest.json";
export const formatVersion = 1;

/** Below `relay/` or `git/`, and nowhere else: a path of a manifest decides where restore writes. */
const isInside = (path: string): boolean =>
  /^(relay|git)\//.test(path) &&
  !/[\0\\]/.test(path) &&
  path.split("/").every((part) => !["", ".", ".."].includes(part));
const insidePath = z.string().max(4_096).refine(isInside, "a path leaves the backup");

const schema = z.object({
  format: z.literal(formatVersion),
  program: z.string(),
  domain: z.string(),
  takenAt: z.string(),
  events: z.number().int().min(0),
  /** Folders below `git/`; their empty directories are made again at a restore. */
  repositories: z.array(insidePath),
  files: z.array(
    z.object({ path: insidePath, bytes: z.number().int().min(0), sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
  ),
});

export type Manifest = z.infer<typeof schema>;
export type FileEntry = Manifest["files"][number];

export const serverKeyPath = "relay/server.key";
export const eventsPath = "relay/events-1.mdb";

export const hasServerKey = ({ files }: Manifest): boolean => files.some(({ path }) => path === serverKeyPath);
export const bytesIn = (files: readonly { readonly bytes: number }[]): number =>
  files.reduce((sum, { bytes }) => sum + bytes, 0);

/** Something an operator can mend, in a sentence. */
export class BackupRefusal extends Error {
  override readonly name = "BackupRefusal";
}

export async function readManifest(folder: string): Promise<Manifest> {
  const path = join(folder, manifestFile);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new BackupRefusal(`${folder} is no complete backup: ${manifestFile} cannot be read (${code})`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new BackupRefusal(`${path} is damaged: it is no JSON`);
  }
  const format = (value as { format?: unknown } | null)?.format;
  if (typeof format === "number" && format !== formatVersion) {
    throw new BackupRefusal(`${path} has format ${format}; this program reads format ${formatVersion}`);
  }
  const checked = schema.safeParse(value);
  if (checked.success) return checked.data;
  const issue = checked.error.issues[0];
  throw new BackupRefusal(`${path} is damaged: ${issue?.path.join(".") ?? ""} ${issue?.message ?? ""}`.trim());
}
