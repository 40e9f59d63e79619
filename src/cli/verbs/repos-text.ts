// How `repos list` and `repos show` look on a terminal.

import { sizeText } from "../../base/text.js";
import { differenceText } from "../../operator/naming.js";
import type { RepositoryDetails, RepositoryLines } from "../../operator/repositories.js";
import { pairsText, tableText, timeText } from "../table.js";

export function repositoriesText({ repositories, more }: RepositoryLines): string {
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

export function repositoryText(details: RepositoryDetails): string {
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
