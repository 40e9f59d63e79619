// What forms of the admin pages may do: the operations that have a sentence here, asked with the form's fields as the
// table of operations (operator/operations.ts) describes them. Nothing else can be reached by a form.

import { stillKeptWords } from "../../operator/ban-words.js";
import { growthSentences } from "../../operator/naming.js";
import type { OperationName } from "../../operator/operations.js";
import { type Parameter, parametersOf } from "../../operator/parameters.js";
import type { ResultOf } from "../../operator/run.js";
import { bytes, counted } from "../html.js";

export type Fields = Readonly<Record<string, string>>;

/** What is said when it was done. */
const sentences = {
  "purgatory.ask": ({ repository }) => `The git servers of ${repository} are asked again.`,
  "purgatory.drop": ({ event }) => `Event ${event} waits no more.`,
  "relays.reconnect": ({ relay }) => `${relay} is dialled now.`,
  "relays.ignore": ({ relay }) => `${relay} is left alone from now on.`,
  "relays.unignore": ({ relay }) => `${relay} is followed again.`,
  "repos.fsck": ({ unsound }) =>
    unsound.length === 0
      ? "Checked: the repository is sound."
      : `Checked: ${unsound.flatMap(({ problems }) => problems).join("; ")}.`,
  "repos.gc": (tidied) =>
    tidied.done === 0
      ? "Not tidied: the repository is busy. Try again soon."
      : `${[`Tidied: ${bytes(tidied.bytesBefore)} before, ${bytes(tidied.bytesAfter)} now`, ...growthSentences(tidied)].join(". ")}.`,
  "repos.delete": ({ repository, keptUntil }) =>
    keptUntil === null
      ? `${repository} is gone; it had no data.`
      : `${repository} is served no more; its data is kept until ${new Date(keptUntil * 1000).toISOString().slice(0, 10)}.`,
  "repos.restore": ({ repository, status, note }) =>
    `${repository} is ${status} again${note === "" ? "" : `: ${note}`}.`,
  ban: ({ target, removedEvents }) =>
    `${target} is banned; ${counted(removedEvents, "event was", "events were")} removed.`,
  unban: ({ target, restored }) => {
    if (!restored) return `The ban of ${target} is lifted.`;
    const { events, repositories, kept } = restored;
    const back = `${counted(events, "event", "events")} and ${counted(repositories.length, "repository", "repositories")} came back`;
    return `The ban of ${target} is lifted; ${back}${kept > 0 ? `; ${stillKeptWords(kept)}` : ""}.`;
  },
  "lists.add": ({ added, entry }) =>
    added ? `${entry} is on the list, in force now.` : `${entry} was on the list already.`,
  "lists.remove": ({ entry }) => `${entry} is off the list.`,
  "tokens.add": ({ token, member }) => `The token, shown this once, for ${member}: ${token}`,
  "tokens.revoke": ({ id }) => `Token ${id} opens nothing any more.`,
  "kinds.set": ({ refusedKinds }) =>
    `Kinds that are not taken: ${refusedKinds.length === 0 ? "none" : refusedKinds.join(", ")}.`,
} satisfies { readonly [Name in OperationName]?: (result: ResultOf<Name>) => string };

/** What a form may ask for. */
export type FormOperation = keyof typeof sentences;

export interface Action {
  readonly operation: FormOperation;
  readonly parameters: (fields: Fields) => object;
  readonly said: (result: unknown) => string;
}

export function actionNamed(name: string): Action | undefined {
  if (!Object.hasOwn(sentences, name)) return undefined;
  const operation = name as FormOperation;
  return {
    operation,
    said: sentences[operation] as (result: unknown) => string,
    parameters: (fields) =>
      Object.fromEntries(
        parametersOf(operation).flatMap(({ name: field, type, isOptional }) =>
          isOptional && type !== "switch" && (fields[field]?.trim() ?? "") === ""
            ? []
            : [[field, read(fields[field], type)]],
        ),
      ),
  };
}

/** What a field's text means. */
function read(text: string | undefined, type: Parameter["type"]): unknown {
  if (type === "switch") return text === "yes";
  // No operation takes -1: its refusal says what it wants.
  if (type === "number") return /^\d{1,9}$/.test(text?.trim() ?? "") ? Number(text) : -1;
  return text;
}
