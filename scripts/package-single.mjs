// npm run package:single — the server as one executable file for this platform, in artifacts/: Node's single executable
// with the packed program inside, which it unpacks into the user's cache folder at its first start. `postject`, which puts
// the one into the other, comes from the npm registry.
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { argumentsOf, calledWrongly } from "./program.mjs";
import { runHere, stageProgram } from "./stage-program.mjs";

const { values } = argumentsOf(
  "npm run package:single [-- --output <folder>]   the server as one executable file, for Linux",
  {
    output: { type: "string" },
  },
);
if (process.platform !== "linux")
  calledWrongly("A single file is built on Linux: others want executables to be signed");
const root = fileURLToPath(new URL("..", import.meta.url));
const output = values.output ?? join(root, "artifacts");
const place = mkdtempSync(join(tmpdir(), "holdfast-single-"));
try {
  const tree = join(place, "tree");
  stageProgram(tree);
  runHere("tar", ["-czf", join(place, "tree.tgz"), "-C", tree, "."]);
  const config = {
    main: join(root, "scripts/single-file-entry.cjs"),
    output: join(place, "blob"),
    disableExperimentalSEAWarning: true,
    assets: { tree: join(place, "tree.tgz") },
  };
  writeFileSync(join(place, "sea.json"), JSON.stringify(config));
  runHere(process.execPath, ["--experimental-sea-config", join(place, "sea.json")]);
  mkdirSync(output, { recursive: true });
  const file = join(output, `holdfast-${process.platform}-${process.arch}`);
  cpSync(process.execPath, file);
  chmodSync(file, 0o755);
  const fuse = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";
  runHere("npx", ["--yes", "postject@1.0.0-alpha.6", file, "NODE_SEA_BLOB", config.output, "--sentinel-fuse", fuse]);
  process.stdout.write(`${file} ${statSync(file).size} bytes\n`);
} finally {
  rmSync(place, { recursive: true, force: true });
}
