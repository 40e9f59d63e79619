// A server that kills itself (SIGKILL) when a named point is reached for the n-th time after SIGUSR2.
//   node grasp-killed-server.js serve <point>
// The product knows nothing of it: methods of its classes are wrapped here, before the server starts.

import { PushResponder } from "../../src/git/push-report.js";
import { QuarantineDirectory } from "../../src/git/quarantine.js";
import { GitRepository } from "../../src/git/repository.js";
import { Journal } from "../../src/purgatory/journal.js";
import { Purgatory } from "../../src/purgatory/purgatory.js";
import { Settling } from "../../src/purgatory/settle.js";
import { EngineStore } from "../../src/store/engine/engine.js";

type Method = (...args: never[]) => unknown;

interface Point {
  readonly of: object;
  readonly method: string;
  readonly when: "before" | "after";
  /** Which passing of it, counted from SIGUSR2; the first unless told. */
  readonly pass?: number;
}

export const armedText = "armed";

export const points: Readonly<Record<string, Point>> = {
  "a state is held, git has not followed": { of: Purgatory.prototype, method: "entered", when: "before" },
  "a quarantine is open": { of: GitRepository.prototype, method: "quarantine", when: "after" },
  "refs are locked, nothing is journaled": { of: Purgatory.prototype, method: "journal", when: "before" },
  "the refs are promised, the packs are in quarantine": { of: Purgatory.prototype, method: "journal", when: "after" },
  "the packs are in place, the refs are not": { of: QuarantineDirectory.prototype, method: "migrate", when: "after" },
  "the refs are written, nothing is released": { of: Purgatory.prototype, method: "pushed", when: "before" },
  "the release begins": { of: Settling.prototype, method: "settleLocked", when: "before", pass: 2 },
  "the siblings have objects, not refs": { of: GitRepository.prototype, method: "copyObjectsFrom", when: "after" },
  "every repository's refs are written, no event is stored": {
    of: Settling.prototype,
    method: "placePullRequests",
    when: "after",
    pass: 2,
  },
  "the events are stored, the refs are not shown": {
    of: Settling.prototype,
    method: "publish",
    when: "before",
    pass: 2,
  },
  "everything is released, the report is not sent": { of: PushResponder.prototype, method: "end", when: "before" },
  "refs are synced, their promises stand": { of: Journal.prototype, method: "kept", when: "before" },
  "a commit of the store is done": { of: EngineStore.prototype, method: "transact", when: "after", pass: 3 },
};

function killAt({ of, method, when, pass = 1 }: Point): void {
  const methods = of as Record<string, Method>;
  const original = methods[method];
  if (!original) throw new Error(`there is no ${method}`);
  let isArmed = false;
  process.once("SIGUSR2", () => {
    isArmed = true;
    process.stderr.write(`${armedText}\n`);
  });
  let calls = 0;
  const reached = (): void => {
    if (isArmed && ++calls === pass) process.kill(process.pid, "SIGKILL");
  };
  methods[method] = function (this: unknown, ...args: never[]): unknown {
    if (when === "before") reached();
    const result = original.apply(this, args);
    if (when === "after") return Promise.resolve(result).finally(reached);
    return result;
  };
}

const [, , verb, name = ""] = process.argv;
if (verb === "serve") {
  const point = points[name];
  if (!point) throw new Error(`there is no point "${name}"`);
  killAt(point);
  process.argv.splice(3);
  await import("../../src/main.js");
}
