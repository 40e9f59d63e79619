// A byte of a pack changes on disk. The check must tell, readers must never get what does not hash to its name, and
// the repository must be whole again from the peer without anybody's help.

import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { CheckResult } from "../../src/operator/repositories.js";
import { until } from "../harness/server.js";
import type { Scene, Struck } from "./scene.js";

const headerBytes = 12;
const trailerBytes = 20;

export async function flipByte({ world, victim, random }: Scene): Promise<Struck> {
  const { shared } = world;
  if (!shared) return { what: "no pack is there", isDone: false };
  const [owner] = shared.owners;
  const folder = join(world.directory(owner, shared), "objects/pack");
  const packs = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith(".pack"));
  if (packs.length === 0) return { what: "no pack is there", isDone: false };
  const path = join(folder, random.pick(packs));
  const { size } = await stat(path);
  const file = await open(path, "r+");
  const position = headerBytes + random.below(size - headerBytes - trailerBytes);
  const byte = Buffer.alloc(1);
  await file.read(byte, 0, 1, position);
  byte[0] = (byte[0] ?? 0) ^ (1 << random.below(8));
  await file.write(byte, 0, 1, position);
  await file.close();
  const repository = `${owner.npub}/${shared.identifier}`;
  const unsound = async (): Promise<boolean> =>
    (await victim.operate<CheckResult>("repos.fsck", { repository })).unsound.length > 0;
  const violations: string[] = [];
  if (!(await unsound())) violations.push("repos fsck did not report a flipped byte");
  if (!(await until(async () => !(await unsound()), 30_000))) {
    violations.push("a repository with a flipped byte was not repaired from the peer");
  }
  return { what: `byte ${position} of ${size}`, isDone: true, violations };
}
