// More refs in one repository: advertisements, a state event, a push of one branch, pages. An event has at most 10,000 tags, so
// a state names fewer branches than that; all further refs are those of pull requests, as they pile up in a long life.

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { treeMs } from "../process-costs.js";
import { freePort, inFolder, startBenchServer } from "../processes.js";
import type { HostedRepository } from "../traffic.js";
import { Publisher, urlOf } from "../traffic-git.js";
import type { Curve, Values } from "./curve.js";
import { branchNames, mustGit, placedSettings, placeRepositories, type Template, templateIn } from "./placed.js";
import { atRest, costMs, pageMs, pause } from "./settled.js";

const mostBranches = 9_000;
const advertised = 10;
const pushes = 3;
const pagesAsked = 4;

interface Scene {
  readonly server: { readonly pid: number; readonly port: number };
  readonly repository: HostedRepository;
  readonly branches: number;
  readonly template: Template;
}

async function advertising({ server, repository }: Scene, service: string): Promise<number> {
  const address = `${urlOf(server.port, repository)}/info/refs?service=${service}`;
  const ask = async (): Promise<void> => void (await (await fetch(address)).arrayBuffer());
  await ask();
  const ms = await costMs(server, async () => {
    for (let asked = 0; asked < advertised; asked++) await ask();
  });
  return ms / advertised;
}

/** One branch moves: a state that names all of them, and a push of that one. */
async function pushing({ server, repository, branches, template }: Scene): Promise<Values> {
  const publisher = await Publisher.connect(server.port);
  const { work } = template;
  const names = branchNames(branches);
  let [stateMs, pushMs] = [0, 0];
  for (let count = 0; count < pushes; count++) {
    await mustGit(work, "commit", "-q", "--allow-empty", "-m", `push ${count}`);
    const tip = (await readFile(join(work, ".git/refs/heads/main"), "utf8")).trim();
    const tags = [
      ["d", repository.identifier],
      ...names.map((name) => [name, template.tip]),
      ["refs/heads/main", tip],
      ["HEAD", "ref: refs/heads/main"],
    ];
    stateMs += await costMs(server, async () => {
      const [ok, text] = await publisher.publish(repository.secretHex, 30_618, tags);
      if (!ok) throw new Error(text);
    });
    pushMs += await costMs(server, () => mustGit(work, "push", "-q", urlOf(server.port, repository), "main"), true);
  }
  publisher.client.close();
  return { "state event": stateMs / pushes, "push of one branch": pushMs / pushes };
}

const ms = "ms of processor time";

export const refsCurve: Curve = {
  name: "refs",
  of: "refs",
  sizes: [10, 1_000, 100_000],
  series: [
    { name: "start", unit: ms, work: "each" },
    { name: "info/refs, to fetch", unit: ms, work: "each" },
    { name: "info/refs, to push", unit: ms, work: "each" },
    { name: "state event", unit: ms, work: "each" },
    { name: "push of one branch", unit: ms, work: "each" },
    { name: "repository's page", unit: ms, work: "one" },
    { name: "branches' page", unit: ms, work: "one" },
  ],
  measure: (size, progress) =>
    inFolder(async (scratch) => {
      const template = await templateIn(scratch, (work) => writeFile(join(work, "README.md"), "# A repository\n"));
      const [folder, port, branches] = [join(scratch, "data"), await freePort(), Math.min(size, mostBranches) - 1];
      const pullRequests = size - branches - 1;
      const placing = { folder, port, count: 1, template, branches, pullRequests };
      const [repository] = await placeRepositories(placing, progress);
      if (!repository) throw new Error("nothing was placed");
      const server = await startBenchServer(folder, placedSettings(port), port);
      await pause(2_000);
      await atRest(server);
      const start = treeMs(server.pid);
      const scene: Scene = { server, repository, branches, template };
      progress("advertisements");
      const fetching = await advertising(scene, "git-upload-pack");
      const toPush = await advertising(scene, "git-receive-pack");
      progress("pages");
      const path = `/${repository.npub}/${repository.identifier}.git`;
      const page = await pageMs(server, path, pagesAsked);
      const branchesPage = await pageMs(server, `${path}/branches`, pagesAsked);
      progress("pushes");
      const pushed = await pushing(scene);
      await server.close();
      return {
        ...{ start, "info/refs, to fetch": fetching, "info/refs, to push": toPush },
        ...{ "repository's page": page, "branches' page": branchesPage, ...pushed },
      };
    }),
};
