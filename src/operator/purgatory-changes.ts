// `purgatory ask` and `purgatory drop`: git servers asked again at once for what is missing, and an event that waits
// taken out of the waiting room. A dropped event may come again; what is to stay away is banned.

import type { RepositoryName } from "../catalogue/repositories.js";
import { waitingEntry } from "../catalogue/waiting.js";
import { type Caller, noteChange } from "./audit.js";
import { eventNamed, repositoryText } from "./naming.js";
import { done, type Outcome, refusal } from "./outcome.js";
import type { AdminParts } from "./parts.js";
import { followInGit, withdraw } from "./withdrawing.js";

export async function askNow(
  { running, store, clock }: AdminParts,
  caller: Caller,
  name: RepositoryName,
): Promise<Outcome<{ readonly repository: string }>> {
  const target = repositoryText(name);
  if (!running) return refusal("not-possible", "no server runs that could ask");
  if (!running.askNow(name)) return refusal("unknown", `nothing of ${target} is looked for`);
  await store.transact((tx) => noteChange(tx, clock, caller, { what: "ask for git data", target }));
  return done({ repository: target });
}

export async function dropWaiting(
  parts: AdminParts,
  caller: Caller,
  text: string,
): Promise<Outcome<{ readonly event: string }>> {
  const id = eventNamed(text);
  if (!id) return refusal("bad-request", `${JSON.stringify(text)} is not an event id, note or nevent`);
  const withdrawn = await parts.store.transact(async (tx) => {
    const entry = await waitingEntry(tx, id);
    if (!entry) return undefined;
    await noteChange(tx, parts.clock, caller, { what: "drop waiting event", target: id });
    return withdraw(parts, tx, { stored: [], waiting: [entry] }, "operator");
  });
  if (!withdrawn) return refusal("unknown", `no event ${id} waits`);
  await followInGit(parts, withdrawn);
  return done({ event: id });
}
