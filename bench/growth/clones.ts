// More clones of one large repository at the same moment: processor time of the server and its gits, memory, and bytes on disk.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { anonymousBytes, treeMs } from "../process-costs.js";
import { freePort, inFolder, startBenchServer } from "../processes.js";
import { urlOf } from "../traffic-git.js";
import type { Curve } from "./curve.js";
import { placedSettings, placeRepositories, templateIn } from "./placed.js";
import { atRest, pause } from "./settled.js";

const files = 60;
const fileBytes = 2 ** 20;
const pkt = (text: string): string => (text.length + 4).toString(16).padStart(4, "0") + text;

/** Clients are processes of their own. Answers how many bytes each got. */
function download(url: string, body: string, clients: number): Promise<number[]> {
  const curl = 'curl -s -w "%{size_download}\\n" -o /dev/null --data-binary "$2" "$1"';
  const script = `for i in $(seq ${clients}); do ${curl} & done; wait`;
  return new Promise((resolve, reject) => {
    const child = spawn("sh", ["-c", script, "sh", url, body], { stdio: ["ignore", "pipe", "ignore"] });
    let text = "";
    child.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    child.once("error", reject);
    child.once("close", () => resolve(text.trim().split("\n").map(Number)));
  });
}

export const clonesCurve: Curve = {
  name: "clones",
  of: "clones at once",
  sizes: [1, 10, 100],
  series: [
    { name: "all of them", unit: "ms of processor time", work: "each" },
    { name: "all of them, answer kept", unit: "ms of processor time", work: "each" },
    { name: "most memory", unit: "MiB", work: "each" },
  ],
  measure: (size, progress) =>
    inFolder(async (scratch) => {
      const template = await templateIn(scratch, async (work) => {
        for (let at = 0; at < files; at++) await writeFile(join(work, `file-${at}`), randomBytes(fileBytes));
      });
      const [folder, port] = [join(scratch, "data"), await freePort()];
      const [repository] = await placeRepositories({ folder, port, count: 1, template }, progress);
      if (!repository) throw new Error("nothing was placed");
      const wide = { NGIT_GIT_PACK_CONCURRENT_PER_IP: "200", NGIT_GIT_PACK_QUEUE: "200" };
      const server = await startBenchServer(folder, { ...placedSettings(port), ...wide }, port);
      await atRest(server);
      const ask = `${pkt(`want ${template.tip} side-band-64k ofs-delta agent=bench\n`)}0000${pkt("done\n")}`;
      let most = 0;
      let isOver = false;
      const watching = (async () => {
        while (!isOver) {
          most = Math.max(most, anonymousBytes(server.pid));
          await pause(20);
        }
      })();
      const clone = async (): Promise<number> => {
        const beforeMs = treeMs(server.pid);
        const got = await download(`${urlOf(port, repository)}/git-upload-pack`, ask, size);
        if (got.length !== size || got.some((bytes) => bytes < files * fileBytes)) {
          throw new Error(`not everybody got everything: ${[...new Set(got)].join(", ")}`);
        }
        await pause(200);
        return treeMs(server.pid) - beforeMs;
      };
      progress("not kept yet");
      const first = await clone();
      progress("kept");
      const kept = await clone();
      isOver = true;
      await watching;
      await server.close();
      return { "all of them": first, "all of them, answer kept": kept, "most memory": most / 2 ** 20 };
    }),
};
