// A credential helper of git (`git help git-credential`, 2.46 or newer) that speaks Nostr: asked for a URL, it answers an
// Authorization header of kind 27235 for the repository's root, signed with the key in HELPER_SECRET. It stores nothing.

import { randomBytes } from "node:crypto";
import { repositoryAuthorization } from "../../src/access/signed-request.js";
import { systemClock } from "../../src/base/clock.js";
import { SecretKey } from "../../src/nostr/keys.js";

const chunks: Buffer[] = [];
for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
const lines = Buffer.concat(chunks).toString("utf8").split("\n");
const values = (name: string): string[] =>
  lines.filter((line) => line.startsWith(`${name}=`)).map((line) => line.slice(name.length + 1));

const secret = SecretKey.fromHex(process.env.HELPER_SECRET ?? "");
const isAsked = process.argv[2] === "get" && values("capability[]").includes("authtype");
const speaksNostr = values("wwwauth[]").some((challenge) => /^Nostr\b/i.test(challenge));
if (isAsked && speaksNostr && secret) {
  const [protocol = "", host = "", path = ""] = ["protocol", "host", "path"].map((name) => values(name)[0]);
  const root = `${protocol}://${host}/${path.replace(/\/(?:info\/.*|git-[a-z]+-pack)$/, "")}`;
  const credential = repositoryAuthorization(secret, root, systemClock, randomBytes).replace(/^Nostr /, "");
  process.stdout.write(`capability[]=authtype\nauthtype=Nostr\ncredential=${credential}\nephemeral=1\n`);
}
