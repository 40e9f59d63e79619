// What the harness may ask of the faulty server (program.ts), and the named points at which it strikes.

import { PushResponder } from "../../src/git/http-push.js";
import { QuarantineDirectory } from "../../src/git/quarantine.js";
import { RefAlignment } from "../../src/git/ref-tables.js";
import { Repositories } from "../../src/git/repositories.js";
import { GitRepository } from "../../src/git/repository.js";
import { CarryOut } from "../../src/intake/carry-out.js";
import { Placeholders } from "../../src/purgatory/placeholders.js";
import { PullRequestRefs } from "../../src/purgatory/pull-requests.js";
import { Purgatory } from "../../src/purgatory/purgatory.js";
import { PurgatoryPush } from "../../src/purgatory/pushes.js";
import { Releaser } from "../../src/purgatory/release.js";
import { EngineStore } from "../../src/store/engine/engine.js";
import { LmdbBackend } from "../../src/store/lmdb/lmdb-backend.js";

/** Whom a signal goes to: the server itself, the launcher, or the git processes that run at that moment. */
export type Target = "server" | "launcher" | "git";

export type Order =
  /** At the `pass`-th time from now that the point is reached. */
  | {
      readonly type: "strike";
      readonly point: string;
      readonly pass: number;
      readonly target: Target;
      readonly signal: "SIGKILL" | "SIGSTOP";
    }
  /** What has not struck by now does not: it must not come into the time after the fault. */
  | { readonly type: "disarm" }
  /** Every git process started from now on has at most this long. */
  | { readonly type: "hurry"; readonly wallClockMs: number }
  | { readonly type: "store"; readonly stallMs: number; readonly failing: number }
  | { readonly type: "clock"; readonly jumpMs: number }
  | { readonly type: "crash worker" }
  | { readonly type: "reject" };

/** A method of one of the product's classes. */
export interface MethodPoint {
  readonly of: object;
  readonly method: string;
  readonly when: "before" | "after";
}

const before = (of: object, method: string): MethodPoint => ({ of, method, when: "before" });
const after = (of: object, method: string): MethodPoint => ({ of, method, when: "after" });

export const methodPoints: Readonly<Record<string, MethodPoint>> = {
  "an event commit begins": before(LmdbBackend.prototype, "commit"),
  "an event commit is on disk, nobody is answered": after(LmdbBackend.prototype, "commit"),
  "a commit of the store is done": after(EngineStore.prototype, "transact"),
  "a repository is about to be made": before(Repositories.prototype, "create"),
  "a repository is made": after(Repositories.prototype, "create"),
  "a state is held, git has not followed": before(CarryOut.prototype, "follow"),
  "a quarantine is open": after(GitRepository.prototype, "quarantine"),
  "a push is about to take its locks": before(PurgatoryPush.prototype, "locked"),
  "a push has its locks, its packs are in quarantine": before(QuarantineDirectory.prototype, "migrate"),
  "the packs are in place, the refs are not": after(QuarantineDirectory.prototype, "migrate"),
  "a push is about to be written": before(PurgatoryPush.prototype, "release"),
  "the release begins": before(Releaser.prototype, "releaseLocked"),
  "the siblings have objects, not refs": after(GitRepository.prototype, "copyObjectsFrom"),
  "every repository is planned, nothing is committed": after(PullRequestRefs.prototype, "place"),
  "refs and events are about to be committed": before(Repositories.prototype, "changeRefs"),
  "refs and events are committed, git's refs are not in line": before(GitRepository.prototype, "project"),
  "git's refs are in line, they are not synced": after(GitRepository.prototype, "project"),
  "refs and events are written everywhere": after(Repositories.prototype, "changeRefs"),
  "a push is written, what follows is not done": before(PurgatoryPush.prototype, "follow"),
  "everything is released, the report is not sent": before(PushResponder.prototype, "end"),
  "git's refs are about to be synced": before(GitRepository.prototype, "syncRefs"),
  "git's refs are synced, their version is not recorded": before(RefAlignment.prototype, "record"),
  "the version of git's refs is recorded": after(RefAlignment.prototype, "record"),
  "unclaimed data is kept, its row is not written": before(Placeholders.prototype, "keptAside"),
  "unclaimed data is about to be claimed": before(GitRepository.prototype, "claim"),
  "unclaimed data is claimed, its row stands": after(GitRepository.prototype, "claim"),
  "a hunt's objects are here, nothing is released": before(Purgatory.prototype, "fetched"),
  "a repository's row is gone, its directory is not": before(Repositories.prototype, "delete"),
};

/** Points between two steps inside one function: a file got its new name. */
export const renamePoints: Readonly<Record<string, RegExp>> = {
  "a pack is in place, its index is not": /\/objects\/pack\/[^/]*\.pack$/,
  "a branch is in one repository's files, not yet in the others'": /\.git\/refs\/heads\/[^/]+$/,
  "a new HEAD is in place": /\.git\/HEAD$/,
  "unclaimed data has its tip": /\/unclaimed\/[^/]*\/tip$/,
};

/** Points at which a git process of that name has just been started. */
export const gitVerbs = [
  "index-pack",
  "update-ref",
  "rev-list",
  "cat-file",
  "pack-objects",
  "upload-pack",
  "fetch",
  "repack",
  "commit-graph",
  "pack-refs",
] as const;

export const verbPoint = (verb: string): string => `git ${verb} runs`;

export const armedText = "a fault is armed";
export const struckText = "a fault has struck";
