// `holdfast cluster …`: several machines as one. `status` asks the database and works wherever that can be reached; `join`
// makes a server that is alone the beginning of a cluster, `leave` the other way round (cluster-data.ts); `forget` takes a
// machine that is gone off the list; `upgrade` ends a rolling upgrade.

import type { Command } from "commander";
import { sizeText } from "../../base/text.js";
import { type ClusterPlace, clusterPlace } from "../../config/cluster-place.js";
import { type Config, problemText } from "../../config/config.js";
import type { ClusterStatus, NodeStatus } from "../../store/postgres/status.js";
import { type Abilities, CommandFailure, type Verb } from "../abilities.js";
import { type Answer, answering } from "../flags.js";
import { pairsText, tableText } from "../table.js";
import { joining, leaving } from "./cluster-data.js";

export const cluster: Verb = (program, abilities) => {
  const family = program
    .command("cluster")
    .description("several machines as one: who takes part, join, leave, forget, upgrade");
  family.addHelpText(
    "after",
    `
Settings say which cluster is meant: NGIT_DATABASE_BACKEND=postgres, NGIT_DATABASE_URL and NGIT_PACK_STORE.
A machine with an empty data directory needs no command: it takes part when its server is started.

Examples:
  holdfast cluster status --json
  holdfast cluster join        a server that is alone becomes the first machine of a new cluster
  holdfast cluster leave       this machine becomes a server that is alone, with everything the cluster has
  holdfast cluster forget two  a machine that was taken away is no longer missed
  holdfast cluster upgrade     when every machine runs the new version`,
  );
  verb(family, abilities, "status", "which machines take part, who leads, how far each has come", status);
  verb(family, abilities, "join", "bring a single server's events, rules and repositories into a new cluster", joining);
  verb(
    family,
    abilities,
    "leave",
    "make this machine a server that is alone, with everything the cluster has",
    leaving,
  );
  forgetVerb(family, abilities);
  verb(family, abilities, "upgrade", "let all machines write the newest form, once each runs the new version", upgrade);
};

type Work = (abilities: Abilities, config: Config, place: ClusterPlace) => Promise<Answer>;

function verb(family: Command, abilities: Abilities, name: string, help: string, work: Work): void {
  const command = family.command(name).description(help);
  command.addHelpText("after", `\nExamples:\n  holdfast cluster ${name}\n  holdfast cluster ${name} --json`);
  answering(command, abilities, (config) => work(abilities, config, placeOf(config)));
}

function placeOf(config: Config): ClusterPlace {
  if (config.databaseBackend !== "postgres") {
    throw new CommandFailure(
      "no cluster is named: set NGIT_DATABASE_BACKEND=postgres, NGIT_DATABASE_URL and NGIT_PACK_STORE",
      2,
    );
  }
  const place = clusterPlace(config);
  if (!place.ok) throw new CommandFailure(problemText(place.problem), 2);
  return place.value;
}

function forgetVerb(family: Command, abilities: Abilities): void {
  const command = family
    .command("forget")
    .description("take a machine that is gone off the list; the leader does so by itself after a day")
    .argument("<machine>", "its name, or the beginning of its identity as `status` shows it");
  command.addHelpText("after", "\nExamples:\n  holdfast cluster forget two\n  holdfast cluster forget 0f3a9c21 --json");
  answering(command, abilities, (config) => forget(abilities, placeOf(config), String(command.args[0])));
}

async function status({ clock }: Abilities, _config: Config, place: ClusterPlace): Promise<Answer> {
  const { askDatabase, readStatus } = await import("../../store/postgres/status.js");
  const found = await askDatabase(place, clock, readStatus);
  if (!found) throw new CommandFailure(`there is no cluster in schema ${place.schema} of that database yet`);
  const isGood = found.nodes.some(({ isAlive }) => isAlive);
  return { json: found, isIndented: true, text: statusText(found), isGood };
}

/** Pure. */
export function statusText(found: ClusterStatus): string {
  const alive = found.nodes.filter(({ isAlive }) => isAlive);
  const facts = pairsText([
    ["cluster", found.cluster],
    ["database", found.database],
    ["server key", found.serverKey],
    ["log", `changes ${found.oldest} to ${found.newest}, ${sizeText(found.logBytes)}, format ${found.format}`],
    ["machines", `${alive.length} of ${found.nodes.length} alive`],
  ]);
  const rows = found.nodes.map((node) => [
    node.name,
    node.node.slice(0, 8),
    stateOf(node),
    String(Math.max(0, found.newest - node.applied)),
    node.version,
    `${node.format}`,
  ]);
  return `${facts}\n\n${tableText(["name", "node", "state", "behind", "version", "reads"], rows, "No machine has taken part yet.")}`;
}

const stateOf = ({ isAlive, leads, silentSeconds }: NodeStatus): string => {
  if (!isAlive) return `silent for ${silentSeconds} s`;
  return leads ? "alive, leads" : "alive";
};

async function forget({ clock }: Abilities, place: ClusterPlace, wanted: string): Promise<Answer> {
  const [{ askDatabase, readStatus }, { forgetIfSilent, whomToForget }] = await Promise.all([
    import("../../store/postgres/status.js"),
    import("../../store/postgres/forgetting.js"),
  ]);
  return await askDatabase(place, clock, async (session, where) => {
    const found = whomToForget((await readStatus(session, where))?.nodes ?? [], wanted);
    if (!found.ok) throw new CommandFailure(found.message);
    const forgotten: NodeStatus[] = [];
    for (const node of found.nodes) if (await forgetIfSilent(session, where, node.node)) forgotten.push(node);
    const names = forgotten.map(({ name, node }) => `${name} (${node.slice(0, 8)})`).join(", ");
    if (names === "") throw new CommandFailure(`${wanted} is alive again: stop it first`);
    const text = `${names}: forgotten. If the machine is started again, it takes part again`;
    return { json: { ok: true, forgotten: forgotten.map(({ node, name }) => ({ node, name })) }, text };
  });
}

async function upgrade({ clock }: Abilities, _config: Config, place: ClusterPlace): Promise<Answer> {
  const { askDatabase, raiseFormat, readStatus } = await import("../../store/postgres/status.js");
  const { newestFormat } = await import("../../store/postgres/body.js");
  return await askDatabase(place, clock, async (session, where) => {
    const before = await readStatus(session, where);
    if (!before) throw new CommandFailure(`there is no cluster in schema ${place.schema} of that database yet`);
    if (before.format > newestFormat) {
      const text = `the cluster writes format ${before.format} and this program knows ${newestFormat}: install the newer version here`;
      throw new CommandFailure(text, 1, { format: before.format });
    }
    if (before.format === newestFormat) {
      const text = `the cluster writes format ${before.format}, the newest this version knows: nothing to do`;
      return { json: { ok: true, format: before.format, raised: false }, text };
    }
    const hindrance = await raiseFormat(session, where, newestFormat);
    if (hindrance !== undefined) throw new CommandFailure(hindrance, 1, { format: before.format });
    const text = `all machines write format ${newestFormat} within two seconds; older versions can no longer take part`;
    return { json: { ok: true, format: newestFormat, raised: true }, text };
  });
}
