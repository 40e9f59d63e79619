// `holdfast init` and `holdfast publish`: a person's own repository, announced, stated and pushed to a GRASP server. They
// are clients like any other and touch no server's data; their rooms are loaded when they run.

import { basename, join, resolve } from "node:path";
import type { Command } from "commander";
import { percentDecoded } from "../../base/text.js";
import type { Place, Refs } from "../../publish/drafts.js";
import type { Published } from "../../publish/publish.js";
import type { WorkTree } from "../../publish/work-tree.js";
import { type Abilities, CommandFailure, type Verb } from "../abilities.js";
import { progressBar } from "../progress.js";
import { lineText, pairsText } from "../table.js";

const usualServer = "localhost:7334";

export const init: Verb = (program, abilities) => {
  const command = program
    .command("init")
    .description("publish a first repository: make or take a key, announce, state, push, print the addresses")
    .argument("[folder]", "a repository, or a new or empty folder that becomes one; the current one if left out")
    .option("--server <address>", "the GRASP server: host[:port], or a URL", usualServer)
    .option("--identifier <name>", "how the repository is called in its address; the folder's name if left out")
    .option("--name <text>", "its name for people")
    .option("--description <text>", "what it is");
  const options = commonOptions(command);
  command.action(async (folder = ".") => {
    const { server: address, identifier: wanted, name, description } = command.opts();
    const [{ identifierFrom, serverAddresses }, { npubOf }] = await Promise.all([
      import("../../publish/drafts.js"),
      import("../../nostr/nip19.js"),
    ]);
    const server = serverAddresses(address);
    if (!server) throw new CommandFailure(`${JSON.stringify(address)} is no server: write host[:port] or a URL`, 2);
    const identifier = identifierFrom(wanted ?? basename(resolve(folder)));
    if (identifier === undefined || (wanted !== undefined && wanted !== identifier)) {
      throw new CommandFailure("give the repository a name with --identifier: letters, digits, `.`, `_` and `-`", 2);
    }
    const own = await options.key(abilities);
    await withTree(abilities, folder, async (tree) => {
      if (!(await tree.isRepository())) {
        const npub = npubOf(own.key.pubkey);
        if (!(await tree.begin(name ?? identifier, npub.slice(0, 12), `${npub}@localhost`))) {
          throw new CommandFailure(
            `${tree.folder} holds files and is no repository yet: run \`git init\`, add and commit what is to be published, then try again`,
          );
        }
      }
      const place: Place = { server, owner: own.key.pubkey, identifier };
      const about = { ...(name !== undefined && { name }), ...(description !== undefined && { description }) };
      const { cloneUrlOf } = await import("../../publish/drafts.js");
      const url = cloneUrlOf(place);
      const published = await publish(abilities, tree, place, own, options, about);
      const remotes = await tree.remotes();
      const known = [...remotes].find(([, there]) => there === url)?.[0];
      const remote = known ?? (["origin", "holdfast"].find((free) => !remotes.has(free)) || `holdfast-${identifier}`);
      if (known === undefined && !remotes.has(remote)) await tree.addRemote(remote, url);
      await say(abilities, command, { place, published, own, remote });
    });
  });
  command.addHelpText(
    "after",
    `
The branch that is checked out is published, with --all every branch and tag. An announcement that is there already keeps
its other servers, relays and maintainers. The repository's remote is called origin, or holdfast where that is taken.

Examples:
  holdfast init hello
  holdfast init . --server git.example.com --description "What it is"
  holdfast init . --all --key ~/my.nsec --json`,
  );
};

export const publishing: Verb = (program, abilities) => {
  const command = program
    .command("publish")
    .description("state where the branches are and push them, after `holdfast init`")
    .argument("[folder]", "the repository; the current folder if left out")
    .option("--remote <name>", "which remote, if several are on GRASP servers");
  const options = commonOptions(command);
  command.action(async (folder = ".") => {
    const own = await options.key(abilities);
    await withTree(abilities, folder, async (tree) => {
      if (!(await tree.isRepository())) throw new CommandFailure(`${tree.folder} is no git repository`);
      const { remote, place } = await remoteOf(tree, command.getOptionValue("remote") as string | undefined);
      const published = await publish(abilities, tree, place, own, options);
      await say(abilities, command, { place, published, own, remote });
    });
  });
  command.addHelpText(
    "after",
    `
Branches that are published already and the one that is checked out are brought up to date; with --all every branch and
tag. What is published and not in this clone stays.

Examples:
  holdfast publish
  holdfast publish ~/hello --all
  holdfast publish --remote holdfast --json`,
  );
};

interface Own {
  readonly key: import("../../nostr/keys.js").SecretKey;
  readonly file: string;
  readonly isNew: boolean;
}

interface CommonOptions {
  key(abilities: Abilities): Promise<Own>;
  readonly all: boolean;
  readonly force: boolean;
}

function commonOptions(command: Command): CommonOptions {
  command
    .option("--key <file>", "file with your nsec, made if it is not there; ~/.config/holdfast/nostr.key if left out")
    .option("--all", "every branch and tag, not only the branch that is checked out")
    .option("--force", "also when the server has commits that are not here")
    .option("--json", "answer as JSON");
  const isSet = (name: string): boolean => command.getOptionValue(name) === true;
  return {
    get all() {
      return isSet("all");
    },
    get force() {
      return isSet("force");
    },
    async key({ environment, terminal }) {
      const [{ keyIn }, { randomBytes }] = await Promise.all([
        import("../../publish/key-file.js"),
        import("node:crypto"),
      ]);
      const file = (command.getOptionValue("key") as string | undefined) ?? usualKeyFile(environment);
      const own = keyIn(file, randomBytes);
      if (!own.ok) throw new CommandFailure(own.message);
      if (own.othersMayRead) {
        terminal.error(`warning: others on this machine may read ${lineText(file)}: chmod 600 closes it\n`);
      }
      return { key: own.key, isNew: own.isNew, file };
    },
  };
}

function usualKeyFile({ XDG_CONFIG_HOME: config, HOME: home }: Abilities["environment"]): string {
  const folder = config || (home && join(home, ".config"));
  if (!folder) throw new CommandFailure("name a file for your key with --key: HOME is not set", 2);
  return join(folder, "holdfast", "nostr.key");
}

async function withTree(abilities: Abilities, folder: string, work: (tree: WorkTree) => Promise<void>): Promise<void> {
  const [{ Launcher }, { WorkTree }] = await Promise.all([
    import("../../git/launcher.js"),
    import("../../publish/work-tree.js"),
  ]);
  const environment = Object.entries(abilities.environment).filter(
    // A variable of git's own that names another repository would lead it astray.
    (entry): entry is [string, string] =>
      entry[1] !== undefined && !/^GIT_(?:DIR|WORK_TREE|INDEX_FILE)$/.test(entry[0]),
  );
  // The folder and all that git writes into it are the person's own, not the server's data. Git has the umask of the moment
  // in which its launcher begins.
  const closed = process.umask(abilities.umask);
  const launcher = new Launcher();
  try {
    await work(new WorkTree(launcher, resolve(folder), Object.fromEntries(environment)));
  } finally {
    process.umask(closed);
    await launcher.close();
  }
}

async function publish(
  abilities: Abilities,
  tree: WorkTree,
  place: Place,
  { key }: Own,
  { all, force }: CommonOptions,
  about?: { readonly name?: string; readonly description?: string },
): Promise<Published> {
  const { publishRepository } = await import("../../publish/publish.js");
  const { clock, build } = abilities;
  const userAgent = `holdfast/${build.version}`;
  const bar = progressBar(abilities);
  const parts = { place, key, tree, clock, userAgent, all, force, progress: bar.report };
  try {
    return await publishRepository({ ...parts, ...(about && { about }) });
  } finally {
    bar.done();
  }
}

/** The remote on a GRASP server: the named one, or the only one, or the one `holdfast init` made. */
async function remoteOf(
  tree: WorkTree,
  wanted: string | undefined,
): Promise<{ readonly remote: string; readonly place: Place }> {
  const [{ serverAddresses }, { parseNpub }] = await Promise.all([
    import("../../publish/drafts.js"),
    import("../../nostr/nip19.js"),
  ]);
  const found = [...(await tree.remotes())].flatMap(([remote, url]) => {
    const [, base = "", npub = "", name = ""] = /^(https?:\/\/.+)\/(npub1[0-9a-z]+)\/([^/]+)\.git$/.exec(url) ?? [];
    const [server, owner, identifier] = [serverAddresses(base), parseNpub(npub), percentDecoded(name)];
    return server && owner && identifier !== undefined ? [{ remote, place: { server, owner, identifier } }] : [];
  });
  const named = (name: string | undefined) => found.find(({ remote }) => remote === name);
  const chosen = wanted === undefined ? (named("holdfast") ?? named("origin") ?? found[0]) : named(wanted);
  if (chosen) return chosen;
  const which = wanted === undefined ? "no remote" : `no remote ${JSON.stringify(wanted)}`;
  throw new CommandFailure(`${tree.folder} has ${which} on a GRASP server: \`holdfast init\` makes one`);
}

const shortRef = (name: string): string => name.replace(/^refs\/(?:heads|tags)\//, "");

async function say(
  { terminal }: Abilities,
  command: Command,
  {
    place,
    published,
    own,
    remote,
  }: { readonly place: Place; readonly published: Published; readonly own: Own; readonly remote: string },
): Promise<void> {
  const [{ cloneUrlOf }, { naddrOf, npubOf }, { kinds }] = await Promise.all([
    import("../../publish/drafts.js"),
    import("../../nostr/nip19.js"),
    import("../../nostr/event.js"),
  ]);
  const url = cloneUrlOf(place);
  const { owner: pubkey, identifier, server } = place;
  const naddr = naddrOf({ address: { kind: kinds.announcement, pubkey, identifier }, relays: [server.relay] }) ?? "";
  const { announced, stated, isPrivate, moved, pushed, refs } = published;
  if (command.getOptionValue("json")) {
    const key = { file: own.file, isNew: own.isNew, npub: npubOf(own.key.pubkey) };
    const answer = {
      ok: true,
      key,
      url,
      naddr,
      remote,
      announced,
      stated,
      isPrivate,
      moved,
      pushed,
      refs: Object.fromEntries(refs),
    };
    return terminal.out(`${JSON.stringify(answer)}\n`);
  }
  const text = pairsText([
    ["key", `${own.file}${own.isNew ? " (made now: keep it, it is you)" : ""}`],
    ["author", npubOf(own.key.pubkey)],
    ["announced", announced ? "yes" : "already"],
    ["stated", stated ? statedText(refs) : "already"],
    ["pushed", pushedText(published)],
    ["remote", remote],
    ["page", url],
    ["clone", `git clone ${url}`],
    ["naddr", naddr],
    ...(isPrivate
      ? [["private", "git asks for a token as password: its operator makes one with `holdfast tokens add`"] as const]
      : []),
  ]);
  return terminal.out(`${text}\n`);
}

function pushedText({ moved, pushed }: Published): string {
  if (pushed.length > 0) return pushed.map(shortRef).join(", ");
  return moved.length > 0 ? `nothing: the server had the commits of ${moved.map(shortRef).join(", ")}` : "nothing new";
}

const shownRefs = 5;

function statedText(refs: Refs): string {
  const shown = [...refs].slice(0, shownRefs).map(([name, oid]) => `${shortRef(name)} at ${oid.slice(0, 12)}`);
  return refs.size > shownRefs ? `${shown.join(", ")} and ${refs.size - shownRefs} more` : shown.join(", ");
}
