// What the parameters of operations may be, each with how it is typed on the command line. The table (operations.ts) puts
// them together.

import { z } from "zod";
import { placeNamedBy, repositoryNamedBy } from "./naming.js";
import { banTypes, listNames } from "./rules.js";

/** How the command line takes a parameter: `<name>` and `[name]` are arguments, `--name <value>` is an option. */
export const typed = <Schema extends z.ZodType>(
  schema: Schema,
  flags: string,
  help: string,
  standard?: string,
): Schema => schema.meta({ flags, help, standard });

export const name = z.string().max(5_000);
export const reason = z.string().max(500).default("");
export const because = (help = "why, shown in the list") => typed(reason, "--reason <text>", help);
const limit = z.number().int().min(1).max(10_000);
export const atMost = (count: number, help = `at most so many; ${count} if left out`) =>
  typed(limit.default(count), "--limit <count>", help);
export const named = <T>(read: (text: string) => T | undefined, what: string) =>
  name.transform((text, context) => {
    const found = read(text);
    if (found === undefined) context.addIssue({ code: "custom", message: `${JSON.stringify(text)} is not ${what}` });
    return found ?? z.NEVER;
  });
const nameOrNaddr = "npub/identifier or naddr";
export const repository = named(repositoryNamedBy, nameOrNaddr);
export const oneRepository = typed(repository, "<repository>", nameOrNaddr);
export const nameAnywhere = "npub/identifier, naddr or prs/npub/identifier";
export const oneOrAll = typed(
  named(placeNamedBy, nameAnywhere).optional(),
  "[repository]",
  `${nameAnywhere}; all if left out`,
);
export const relay = typed(name, "<relay>", "its URL");
export const repositoryStatuses = ["waiting", "soft", "served", "archived", "leaving", "deleted"] as const;
export const list = z.enum(listNames);
export const oneList = typed(list, "<list>", "which list");
export const entry = typed(
  name,
  "<entry>",
  "npub, npub/identifier or identifier (event-blacklist, private-members: npub only; archive-grasp-services: host[:port])",
);
export const banType = z.enum(banTypes);
export const oneBanType = typed(banType, "<type>", "what is named");
export const banTarget = typed(name, "<target>", "npub; event id; npub/identifier; IP address or CIDR network");
export const filters = typed(
  z.array(z.unknown()).max(100),
  "--filter <json>",
  "a NIP-01 filter; may be given several times",
);
