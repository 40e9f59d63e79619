// Puts into a folder what `npm pack` packs and the packages of this checkout that a server needs. Nothing is downloaded.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

export const runHere = (command, args) =>
  execFileSync(command, args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });

export function stageProgram(folder) {
  mkdirSync(folder, { recursive: true });
  runHere("npm", ["pack", "--silent", "--pack-destination", folder]);
  const packed = join(
    folder,
    readdirSync(folder).find((name) => name.endsWith(".tgz")),
  );
  runHere("tar", ["-xzf", packed, "--strip-components=1", "-C", folder]);
  rmSync(packed);
  const listed = runHere("npm", ["ls", "--omit=dev", "--all", "--parseable"]).trim().split("\n").slice(1);
  for (const path of listed) {
    const at = relative(root, path);
    // A package inside another's folder comes along with that.
    if (at.split(`${sep}node_modules${sep}`).length === 1) cpSync(path, join(folder, at), { recursive: true });
  }
}
