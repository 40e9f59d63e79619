// Branches and tags: what the maintainers signed beside what is held, how old each is, and how far it is from the default
// branch.

import type { Apart } from "../../git/reading/history.js";
import type { Refused } from "../../git/reading/visitor.js";
import { isOid, type Oid, type RefName } from "../../nostr/nip34.js";
import { count, counted, foreign, type Html, type HtmlValue, html, time } from "../html.js";
import { faint, section, stackTable, tag } from "../pieces.js";
import type { ComparedRef, Comparison, Standing } from "../repository-facts.js";
import { overallTags } from "../repository-page.js";
import { repositoryFrame } from "./frame.js";
import { type Looking, oidLink, pageNumber, pager, type Shown } from "./looking.js";
import { codeUrl, refInAddress, startPlace } from "./paths.js";

const refsPerPage = 30;

const standingTags: Readonly<Record<Standing, Html>> = {
  equal: tag("as signed", "good"),
  differs: tag("differs", "bad"),
  missing: tag("missing here", "warn"),
  unsigned: tag("not signed", "bad"),
};

interface Line extends ComparedRef {
  /** The commit it leads to; a tag may be an object of its own. */
  readonly tip: Oid | undefined;
  readonly time: number | undefined;
  readonly apart: Apart | undefined;
  readonly isDefault: boolean;
}

/** `signedBy`: who signed the newest state, and when. */
export async function branchesPage(
  looking: Looking,
  comparison: Comparison,
  signedBy: Html | undefined,
): Promise<Shown> {
  const { site, found, root, query } = looking;
  const pages = Math.max(1, Math.ceil(comparison.refs.length / refsPerPage));
  const page = pageNumber(query, pages);
  const shown = comparison.refs.slice((page - 1) * refsPerPage, page * refsPerPage);
  const lines = await linesOf(looking, shown);
  if (!Array.isArray(lines)) return lines;
  const branches = comparison.refs.filter(({ kind }) => kind === "branch").length;
  const said = signedBy
    ? html`What is signed stands beside what this server holds. Newest signature: ${signedBy}.`
    : "No branch has been signed yet.";
  return repositoryFrame(site, found, {
    tab: "branches",
    title: "Branches and tags",
    marks: overallTags[comparison.overall],
    main: html`<div id="branches" data-live>${section("refs", "Branches and tags")`
<p class="quiet">${counted(branches, "branch", "branches")}, ${counted(comparison.refs.length - branches, "tag", "tags")}. ${said}</p>
${lines.length > 0 && tableOf(looking, lines)}
${pages > 1 && html`<p class="quiet">Page ${count(page)} of ${count(pages)}.</p>`}${pager(`${root}/branches`, page, page < pages, ["Before", "More"])}`}</div>`,
  });
}

async function linesOf({ room, found, visitor }: Looking, refs: readonly ComparedRef[]): Promise<Line[] | Refused> {
  const { repository, table } = found;
  const start = startPlace(table);
  const tips = refs.map(({ name, kind, held }) => {
    const value = table.refs.get(`refs/${kind === "branch" ? "heads" : "tags"}/${name}` as RefName);
    return value ? (value.peeled ?? value.oid) : isOid(held) ? held : undefined;
  });
  const compared = refs.flatMap(({ kind }, index) => {
    const tip = tips[index];
    return kind === "branch" && tip && tip !== start?.commit ? [tip] : [];
  });
  const apart = new Map<Oid, Apart | undefined>();
  if (start && compared.length > 0) {
    const counted = await room.countApart(repository, start.commit, compared, visitor);
    if (!counted.ok) return counted.code;
    compared.forEach((oid, index) => {
      apart.set(oid, counted.value[index]);
    });
  }
  const lines: Line[] = [];
  for (const [index, ref] of refs.entries()) {
    const tip = tips[index];
    const commit = tip && (await room.commit(repository, tip));
    const isDefault = ref.kind === "branch" && `refs/heads/${ref.name}` === table.head;
    lines.push({ ...ref, tip, time: commit?.committer.time, apart: tip && apart.get(tip), isDefault });
  }
  return lines;
}

function tableOf({ root, found: { table } }: Looking, lines: readonly Line[]): Html {
  const start = startPlace(table);
  const oid = (value: string | undefined): HtmlValue =>
    value === undefined ? faint("none") : html`<code title="${value.slice(0, 64)}">${value.slice(0, 8)}</code>`;
  const full = ({ kind, name }: Line): RefName => `refs/${kind === "branch" ? "heads" : "tags"}/${name}` as RefName;
  const address = (line: Line): string | undefined =>
    table.refs.has(full(line)) ? refInAddress(table, full(line)) : undefined;
  return stackTable(lines, [
    [
      "Name",
      (line) => {
        const at = address(line);
        const label = foreign(line.name, 100);
        return [
          at === undefined ? label : html`<a href="${codeUrl(root, "tree", at)}">${label}</a>`,
          line.kind === "tag" && html` ${tag("tag")}`,
          line.isDefault && html` ${tag("default")}`,
        ];
      },
    ],
    ["Signed", ({ signed }) => oid(signed)],
    ["Held here", ({ held, tip }) => (held !== undefined && tip ? oidLink(root, tip) : oid(held))],
    ["State", ({ standing }) => standingTags[standing]],
    ["Last commit", (line) => (line.time === undefined ? faint("unknown") : time(line.time))],
    [
      "Against default",
      (line) => {
        if (!line.apart || !start) return faint("–");
        const { ahead, behind } = line.apart;
        const text = `${count(ahead)} ahead, ${count(behind)} behind`;
        const at = address(line);
        return at === undefined ? text : html`<a href="${root}/compare/${start.inAddress}...${at}">${text}</a>`;
      },
    ],
  ]);
}
