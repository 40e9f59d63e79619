import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type ObjectFormat, type Oid, oidDigits } from "../nostr/nip34.js";
import { absentObjects, arePresent } from "./objects.js";
import { surveySmallPack } from "./receive-pack.js";

const env = {
  PATH: process.env.PATH ?? "/usr/bin:/bin",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "a",
  GIT_AUTHOR_EMAIL: "a",
  GIT_COMMITTER_NAME: "a",
  GIT_COMMITTER_EMAIL: "a",
};

interface Listed {
  readonly oid: Oid;
  readonly type: string;
  readonly bytes: number;
}

describe("the files of a pack", () => {
  let folder = "";
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "pack-files-test-"));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  /** A repository with three versions of a long file, an annotated tag, and all of it in one pack. */
  function packed(name: string, format: ObjectFormat, ...packing: string[]) {
    const cwd = join(folder, name);
    mkdirSync(cwd);
    const git = (args: readonly string[], input = ""): string =>
      execFileSync("git", args, { cwd, env, input, encoding: "utf8", stdio: ["pipe", "pipe", "ignore"] });
    git(["init", "-q", `--object-format=${format}`]);
    const lines = Array.from({ length: 400 }, (_, at) => `line ${at} ${at * 7919}`);
    for (const version of [1, 2, 3]) {
      writeFileSync(join(cwd, "file"), [...lines.slice(version), `version ${version}`].join("\n"));
      git(["add", "-A"]);
      git(["commit", "-q", "-m", `version ${version}`]);
    }
    git(["tag", "-a", "-m", "first", "v1"]);
    const listing = git(["cat-file", "--batch-all-objects", "--batch-check"]);
    const objects = listing
      .trim()
      .split("\n")
      .map((line): Listed => {
        const [oid = "", type = "", bytes] = line.split(" ");
        return { oid: oid as Oid, type, bytes: Number(bytes) };
      });
    git(["pack-objects", "-q", ...packing, "pack"], objects.map(({ oid }) => `${oid}\n`).join(""));
    const into = join(cwd, "packs");
    mkdirSync(into);
    for (const file of readdirSync(cwd).filter((one) => one.startsWith("pack-"))) {
      renameSync(join(cwd, file), join(into, file));
    }
    const survey = (interesting: readonly Oid[], maxObjectBytes: number) =>
      surveySmallPack(into, oidDigits[format] / 2, new Set(interesting), maxObjectBytes);
    return { objects, survey, into };
  }

  for (const [format, packing] of [
    ["sha1", ["--delta-base-offset"]],
    ["sha1", []],
    ["sha256", ["--delta-base-offset"]],
  ] as const) {
    it(`tell the types of objects, also of those made from others (${format} ${packing})`, () => {
      const { objects, survey } = packed(`types-${format}${packing}`, format, ...packing);
      const absent = "9".repeat(oidDigits[format]) as Oid;
      const types = survey([...objects.map(({ oid }) => oid), absent], 2 ** 40);
      assert.deepEqual(types, new Map(objects.map(({ oid, type }) => [oid, type])));
    });
  }

  it("tell that no object is larger than is allowed, or leave it to git", () => {
    const { objects, survey } = packed("sizes", "sha1", "--delta-base-offset");
    const largest = Math.max(...objects.map(({ bytes }) => bytes));
    assert.equal(survey([], largest - 1), undefined, "one is larger");
    assert.notEqual(survey([], largest * 1_000), undefined, "what deltas could make of the largest is still allowed");
  });

  it("tell what is here and what is not, of indexes too large to be read whole only for a few ids", () => {
    const { objects, into } = packed("here", "sha1");
    const place = join(folder, "here-objects");
    mkdirSync(place);
    renameSync(into, join(place, "pack"));
    const oids = objects.map(({ oid }) => oid);
    const absent = Array.from({ length: 300 }, (_, at) => at.toString(16).padStart(4, "0").repeat(10) as Oid);
    for (const size of ["small", "large"]) {
      assert.deepEqual(absentObjects(place, [...oids, ...absent.slice(0, 5)]), new Set(absent.slice(0, 5)), size);
      assert.equal(arePresent(place, oids), true, size);
      assert.equal(arePresent(place, [...oids.slice(0, 2), absent[0] as Oid]), false, size);
      assert.equal(
        absentObjects(place, absent).size,
        size === "small" ? 300 : 0,
        "many in a large one are git's to answer",
      );
      for (const name of readdirSync(join(place, "pack"))) {
        const path = join(place, "pack", name);
        chmodSync(path, 0o600);
        // What follows the names is read by nobody here.
        appendFileSync(path, Buffer.alloc(2 ** 20));
      }
    }
    writeFileSync(join(place, "pack/pack-cut.idx"), Buffer.from("ff744f6300000002", "hex"));
    assert.equal(arePresent(place, oids.slice(0, 1)), false, "one of them is cut off");
    assert.equal(absentObjects(place, absent.slice(0, 1)).size, 0, "one of them is cut off");
  });

  it("are left to git when they are not one small, whole pack", () => {
    const { into, survey } = packed("odd", "sha1", "--delta-base-offset");
    assert.equal(surveySmallPack(join(folder, "nowhere"), 20, new Set(), 2 ** 40), undefined);
    const [index = ""] = readdirSync(into).filter((name) => name.endsWith(".idx"));
    assert.notEqual(survey([], 2 ** 40), undefined);
    writeFileSync(join(into, "pack-two.idx"), "");
    assert.equal(survey([], 2 ** 40), undefined, "two of them");
    rmSync(join(into, "pack-two.idx"));
    const pack = join(into, index.replace(/idx$/, "pack"));
    rmSync(pack);
    writeFileSync(pack, "PACK");
    assert.equal(survey([], 2 ** 40), undefined, "it ends before its objects");
    rmSync(pack);
    writeFileSync(pack, Buffer.alloc(2 ** 20 + 1));
    assert.equal(survey([], 2 ** 40), undefined, "too large to be read here");
  });
});
