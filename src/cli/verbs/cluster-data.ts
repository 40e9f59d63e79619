// `holdfast cluster join` and `leave`: a server's whole data on its way into a cluster, or out of it. The server does not run
// meanwhile. Rooms are loaded by the work, not by the help.

import { resolve } from "node:path";
import type { ClusterPlace } from "../../config/cluster-place.js";
import { type Config, problemText } from "../../config/config.js";
import type { PackStore } from "../../packs/port.js";
import type { ClusterStore } from "../../store/postgres/open.js";
import { type Abilities, CommandFailure } from "../abilities.js";
import type { Answer } from "../flags.js";
import { dataInUse, mustHaveData, underLock, withGit } from "../operate.js";
import { progressBar } from "../progress.js";

export async function joining(abilities: Abilities, config: Config, place: ClusterPlace): Promise<Answer> {
  mustHaveData(config);
  const { clock } = abilities;
  const [{ joinCluster }, { askDatabase }] = await Promise.all([
    import("../../store/postgres/join.js"),
    import("../../store/postgres/status.js"),
  ]);
  const serverKey = await serverKeyOf(config);
  const folder = config.relayDataPath;
  const moved = await underLock(folder, dataInUse(config), () =>
    withPacks(place, (packs) =>
      askDatabase(place, clock, (session, where) =>
        joinCluster({
          ...{ session, folder, packs, serverKey, clock },
          place: where,
          share: () => share(abilities, config, packs),
        }),
      ),
    ),
  );
  const text = `this server's data is the beginning of cluster ${moved.cluster}: ${moved.events} events. Start it with NGIT_DATABASE_BACKEND=postgres; then start other machines with the same settings, the same server key and empty data directories. The file events-before-joining.mdb is what it was before: remove it when all is well`;
  return { json: { ok: true, ...moved }, text };
}

/** Everything git has goes into the pack store, and rows of a store that is alone still say what. */
async function share(abilities: Abilities, config: Config, packs: PackStore): Promise<void> {
  const { clock } = abilities;
  const [{ openLmdbStore }, { forgetPacks }, { shareDirectories }] = await Promise.all([
    import("../../store/lmdb/open.js"),
    import("../../catalogue/packs.js"),
    import("../../git/pack-copies.js"),
  ]);
  const bar = progressBar(abilities);
  const store = await openLmdbStore(config.relayDataPath, { clock });
  try {
    // What an attempt that was interrupted left.
    await forgetPacks(store);
    await withGit((git) =>
      shareDirectories({ ...{ git, packs, store, clock }, gitDataPath: resolve(config.gitDataPath) }, (done) =>
        bar.report(done, undefined, "putting repositories into the pack store"),
      ),
    );
  } finally {
    await store.close();
    bar.done();
  }
}

export async function leaving(abilities: Abilities, config: Config, place: ClusterPlace): Promise<Answer> {
  mustHaveData(config);
  const { clock } = abilities;
  const [{ forgetNode, leaveCluster }, { askDatabase }, { openClusterStore }] = await Promise.all([
    import("../../store/postgres/join.js"),
    import("../../store/postgres/status.js"),
    import("../../store/postgres/open.js"),
  ]);
  const serverKey = await serverKeyOf(config);
  const folder = config.relayDataPath;
  const left = await underLock(folder, dataInUse(config), () =>
    withPacks(place, async (packs) => {
      const machine = await openClusterStore({
        ...{ ...place, packs, folder, serverKey, clock, mayLead: false },
        version: abilities.build.version,
        tell: (sentence) => abilities.terminal.error(`${sentence}\n`),
        fault: () => undefined,
      });
      const complete = await bringAll(abilities, config, packs, machine).finally(() => machine.close());
      if (machine.facts.applied !== complete.applied) {
        throw new CommandFailure("the cluster changed while this machine was about to leave: run the command again");
      }
      await leaveCluster(folder);
      await askDatabase(place, clock, (session, where) => forgetNode(session, where, machine.node));
      return { events: complete.events, node: machine.node };
    }),
  );
  const text = `this machine has left the cluster with ${left.events} events and every repository. Start it with NGIT_DATABASE_BACKEND=lmdb, and without the settings of the cluster. It has the cluster's key: if the cluster goes on, give it another domain and key first`;
  return { json: { ok: true, ...left }, text };
}

const mostRounds = 20;

/** All packs of the view as it is at one change; others may go on pushing meanwhile. */
async function bringAll(
  abilities: Abilities,
  config: Config,
  packs: PackStore,
  machine: ClusterStore,
): Promise<{ readonly applied: number; readonly events: number }> {
  const { openGitHost } = await import("../../git/git-host.js");
  const bar = progressBar(abilities);
  const sharing = { packs, leads: () => false };
  const host = await openGitHost(config, abilities.clock, machine.store, () => undefined, sharing);
  try {
    for (let round = 0; round < mostRounds; round++) {
      const { applied } = machine.facts;
      await host.repositories.shared?.bringAllHere((done) => bar.report(done, undefined, "fetching repositories"));
      if (machine.facts.applied === applied) return { applied, events: machine.store.stats.events };
    }
    throw new CommandFailure("the cluster changes faster than this machine can follow: leave when it is quieter");
  } finally {
    await host.close();
    bar.done();
  }
}

async function withPacks<T>(place: ClusterPlace, work: (packs: PackStore) => Promise<T>): Promise<T> {
  const { openPackStore } = await import("../../packs/open-pack-store.js");
  const packs = await openPackStore(place.packs);
  try {
    return await work(packs);
  } finally {
    await packs.close();
  }
}

async function serverKeyOf(config: Config): Promise<string> {
  const [{ loadServerKey }, { SecretKey }] = await Promise.all([
    import("../../config/server-key.js"),
    import("../../nostr/keys.js"),
  ]);
  const key = loadServerKey(config);
  const secret = key.ok ? SecretKey.fromHex(key.secretHex) : undefined;
  if (!secret) throw new CommandFailure(key.ok ? "the server's key cannot be used" : problemText(key.problem));
  return secret.pubkey;
}
