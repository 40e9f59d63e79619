// What forms of the admin pages may do: operations of the one table (operator/operations.ts), their fields as parameters,
// and one sentence about what came of it. Nothing else can be reached by a form.

import type { BanResult } from "../../operator/bans.js";
import type { Restored, Unhosted } from "../../operator/hosting.js";
import type { OperationName } from "../../operator/operations.js";
import type { CheckResult, HousekeepingResult } from "../../operator/repositories.js";
import { bytes, counted } from "../html.js";

export type Fields = Readonly<Record<string, string>>;

export interface Action {
  readonly operation: OperationName;
  readonly parameters: (fields: Fields) => object;
  readonly said: (result: unknown) => string;
}

const action = <Result>(
  operation: OperationName,
  names: readonly string[],
  said: (result: Result) => string,
  convert: (fields: Fields) => object = (fields) => fields,
): [OperationName, Action] => [
  operation,
  {
    operation,
    parameters: (fields) =>
      convert(Object.fromEntries(Object.entries(fields).filter(([name]) => names.includes(name)))),
    said: said as (result: unknown) => string,
  },
];

const actions: ReadonlyMap<string, Action> = new Map([
  action<{ repository: string }>(
    "purgatory.ask",
    ["repository"],
    ({ repository }) => `The git servers of ${repository} are asked again.`,
  ),
  action<{ event: string }>("purgatory.drop", ["event"], ({ event }) => `Event ${event} waits no more.`),
  action<{ relay: string }>("relays.reconnect", ["relay"], ({ relay }) => `${relay} is dialled now.`),
  action<{ relay: string }>("relays.ignore", ["relay", "reason"], ({ relay }) => `${relay} is left alone from now on.`),
  action<{ relay: string }>("relays.unignore", ["relay"], ({ relay }) => `${relay} is followed again.`),
  action<CheckResult>("repos.fsck", ["repository"], ({ unsound }) =>
    unsound.length === 0
      ? "Checked: the repository is sound."
      : `Checked: ${unsound.flatMap(({ problems }) => problems).join("; ")}.`,
  ),
  action<HousekeepingResult>("repos.gc", ["repository"], ({ done, bytesBefore, bytesAfter }) =>
    done === 0
      ? "Not tidied: the repository is busy. Try again soon."
      : `Tidied: ${bytes(bytesBefore)} before, ${bytes(bytesAfter)} now.`,
  ),
  action<Unhosted>("repos.delete", ["repository", "reason"], ({ repository, keptUntil }) =>
    keptUntil === null
      ? `${repository} is gone; it had no data.`
      : `${repository} is served no more; its data is kept until ${new Date(keptUntil * 1000).toISOString().slice(0, 10)}.`,
  ),
  action<Restored>(
    "repos.restore",
    ["repository"],
    ({ repository, status, note }) => `${repository} is ${status} again${note === "" ? "" : `: ${note}`}.`,
  ),
  action<BanResult>(
    "ban",
    ["type", "target", "reason"],
    ({ target, removedEvents }) =>
      `${target} is banned; ${counted(removedEvents, "event was", "events were")} removed.`,
  ),
  action<{ target: string }>("unban", ["type", "target"], ({ target }) => `The ban of ${target} is lifted.`),
  action<{ added: boolean; entry: string }>("lists.add", ["list", "entry", "reason"], ({ added, entry }) =>
    added ? `${entry} is on the list, in force now.` : `${entry} was on the list already.`,
  ),
  action<{ entry: string }>("lists.remove", ["list", "entry"], ({ entry }) => `${entry} is off the list.`),
  action<{ refusedKinds: readonly number[] }>(
    "kinds.set",
    ["kind", "taken", "reason"],
    ({ refusedKinds }) => `Kinds that are not taken: ${refusedKinds.length === 0 ? "none" : refusedKinds.join(", ")}.`,
    ({ kind = "", taken, ...rest }) => ({
      ...rest,
      kind: /^\d{1,5}$/.test(kind.trim()) ? Number(kind) : -1,
      taken: taken === "yes",
    }),
  ),
]);

export const actionNamed = (name: string): Action | undefined => actions.get(name);
