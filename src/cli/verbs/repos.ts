// `holdfast repos list|show|fsck|gc|delete|restore|import`: the repositories of this server.

import { Option } from "commander";
import { sizeText } from "../../base/text.js";
import type { Restored, Unhosted } from "../../operator/hosting.js";
import { differenceText } from "../../operator/naming.js";
import type {
  CheckResult,
  HousekeepingResult,
  RepositoryDetails,
  RepositoryLines,
} from "../../operator/repositories.js";
import type { Verb } from "../abilities.js";
import { wholeNumberOption } from "../flags.js";
import { operatorCommand } from "../operate.js";
import { lineText, pairsText, tableText, timeText } from "../table.js";
import { addImport } from "./repos-import.js";

const statuses = ["waiting", "soft", "served", "archived", "leaving", "deleted"];

export const repos: Verb = (program, abilities) => {
  const parent = program
    .command("repos")
    .description("list, inspect, check, tidy, delete, restore and import repositories");

  operatorCommand<RepositoryLines>(parent, abilities, {
    name: "list",
    description: "list repositories with their status and governing state",
    examples: ["holdfast repos list", "holdfast repos list --status leaving --json"],
    operation: "repos.list",
    parameters: (_, { status, owner, limit }) => ({ status, owner, limit }),
    text: repositoriesText,
  })
    .addOption(new Option("--status <status>", "only repositories in this status").choices(statuses))
    .option("--owner <npub>", "only repositories of this key")
    .addOption(wholeNumberOption("--limit <count>", "at most so many; 1000 if left out"));

  operatorCommand<RepositoryDetails>(parent, abilities, {
    name: "show",
    description: "show one repository: status, mark, governing state, size, and its refs beside what was signed",
    examples: ["holdfast repos show npub1…/my-project", "holdfast repos show naddr1… --json"],
    operation: "repos.show",
    parameters: ([repository]) => ({ repository }),
    text: repositoryText,
  }).argument("<repository>", "npub/identifier or naddr");

  operatorCommand<CheckResult>(parent, abilities, {
    name: "fsck",
    description: "check objects, config, hooks, alternates, and refs against the governing state; exit 1 if unsound",
    examples: ["holdfast repos fsck", "holdfast repos fsck npub1…/my-project --json"],
    operation: "repos.fsck",
    parameters: ([repository]) => ({ repository }),
    text: checkText,
    failsOn: ({ unsound }) => unsound.length > 0,
  }).argument("[repository]", "npub/identifier, naddr or prs/npub/identifier; all if left out");

  operatorCommand<HousekeepingResult>(parent, abilities, {
    name: "gc",
    description: "repack now instead of in the background",
    examples: ["holdfast repos gc", "holdfast repos gc npub1…/my-project --cruft"],
    operation: "repos.gc",
    parameters: ([repository], { cruft }) => ({ repository, cruft }),
    text: ({ done, busy, failed, bytesBefore, bytesAfter }) =>
      [
        `${done} repositories repacked; ${sizeText(bytesBefore)} before, ${sizeText(bytesAfter)} after`,
        ...busy.map((name) => `busy, left alone: ${lineText(name)}`),
        ...failed.map((name) => `failed, see the log: ${lineText(name)}`),
      ].join("\n"),
    failsOn: ({ failed }) => failed.length > 0,
  })
    .argument("[repository]", "npub/identifier, naddr or prs/npub/identifier; all if left out")
    .option("--cruft", "also drop garbage older than two weeks");

  operatorCommand<Unhosted>(parent, abilities, {
    name: "delete",
    description: "stop serving a repository; its data is kept for the grace period and can be restored",
    examples: [
      'holdfast repos delete npub1…/my-project --reason "asked by its owner"',
      "holdfast ban repository npub1…/my-project     to keep it out for good",
    ],
    operation: "repos.delete",
    parameters: ([repository], { reason }) => ({ repository, reason }),
    text: ({ repository, keptUntil }) =>
      keptUntil === null
        ? `${repository} waited and had no data: it is gone`
        : `${repository} is not served any more; its data is kept until ${timeText(keptUntil)} UTC`,
  })
    .argument("<repository>", "npub/identifier or naddr")
    .option("--reason <text>", "why, for the audit log");

  operatorCommand<Restored>(parent, abilities, {
    name: "restore",
    description: "serve a leaving or deleted repository again while its data is kept",
    examples: ["holdfast repos restore npub1…/my-project"],
    operation: "repos.restore",
    parameters: ([repository]) => ({ repository }),
    text: ({ repository, status, note }) => `${repository} is ${status}${note === "" ? "" : ` (${note})`}`,
  }).argument("<repository>", "npub/identifier or naddr");

  addImport(parent, abilities);
};

function checkText({ checked, unsound, strays }: CheckResult): string {
  const found = unsound.flatMap(({ repository, problems }) => [
    lineText(repository),
    ...problems.map((problem) => `  ${lineText(problem)}`),
  ]);
  const unknown = strays.map((name) => `not in the catalogue, not served: ${lineText(name)}`);
  return [...found, ...unknown, `${checked} checked, ${unsound.length} unsound`].join("\n");
}

function repositoriesText({ repositories, more }: RepositoryLines): string {
  if (repositories.length === 0) return "no repository matches";
  const rows = repositories.map((line) => [
    line.status,
    timeText(line.since),
    String(line.pushes),
    line.governing?.slice(0, 12) ?? "-",
    line.partial ? `${line.partial.missingRefs.length} missing` : "",
    line.repository,
  ]);
  const table = tableText(["STATUS", "SINCE (UTC)", "PUSHES", "STATE", "PARTIAL", "REPOSITORY"], rows);
  return more ? `${table}\nnot all are shown: raise --limit` : table;
}

function repositoryText(details: RepositoryDetails): string {
  const { disk, mark, partial, differences } = details;
  const pairs: [string, string][] = [
    ["repository", details.repository],
    ["status", `${details.status} since ${timeText(details.since)} UTC${details.isArchive ? ", a mirror" : ""}`],
    ["announcement", details.announcement ?? "none served"],
    ["governing", details.governing ?? "none"],
    ["mark", mark ? `${mark.id} (${timeText(mark.created_at)} UTC)` : "none"],
    ["partial", partial ? `${partial.missingRefs.length} refs missing: ${partial.missingRefs.join(" ")}` : "no"],
    ["maintainers", details.maintainers.join(" ")],
    ["waiting", `${details.waitingEvents} events`],
    ["pushes", `${details.pushes}, ${sizeText(details.receivedBytes)} received`],
    ["on disk", disk ? `${sizeText(disk.bytes)}, ${disk.refs} refs, HEAD ${disk.head}` : "nothing"],
    ["unclaimed", disk ? `${disk.unclaimedPushes} pushes` : "-"],
    ["refs", refsText(differences)],
    ...details.latestDecisions.map((record): [string, string] => [
      "decision",
      `${timeText(record.at)} ${record.outcome} by rule ${record.rule}, kind ${record.kind}, ${record.id}`,
    ]),
  ];
  return pairsText(pairs);
}

function refsText(differences: RepositoryDetails["differences"]): string {
  if (differences === null) return "nothing to compare";
  return differences.length === 0 ? "as the governing state says" : differences.map(differenceText).join("; ");
}
