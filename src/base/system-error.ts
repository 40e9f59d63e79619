// What the operating system refused, as one sentence that names the thing and the cure. Every verb and every start ends
// with such a sentence instead of a stack. It keeps the system's code in parentheses, for search engines.

import { lstatSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** The parts of Node's error that say what happened. */
interface SystemError {
  readonly code: string;
  readonly syscall?: string;
  /** A file, or the file of a Unix socket. */
  readonly path?: string;
  readonly address?: string;
  readonly port?: number;
}

/** What the sentences need to know about this machine. */
export interface Machine {
  readonly uid: number;
  /** Undefined: it is not there, or this user may not look. */
  look(path: string): { readonly uid: number; readonly isFolder: boolean } | undefined;
  userName(uid: number): string;
  /** What was typed after the program's name. */
  readonly typed: readonly string[];
}

export const thisMachine = (typed: readonly string[]): Machine => ({
  uid: process.geteuid?.() ?? -1,
  look(path) {
    try {
      const found = lstatSync(path);
      return { uid: found.uid, isFolder: found.isDirectory() || found.isSymbolicLink() };
    } catch {
      return undefined;
    }
  },
  userName,
  typed,
});

function userName(uid: number): string {
  try {
    const line = new RegExp(`^([^:]+):[^:]*:${uid}:`, "m").exec(readFileSync("/etc/passwd", "utf8"));
    return line?.[1] ?? `#${uid}`;
  } catch {
    return `#${uid}`;
  }
}

/** The code of the system's refusal, also when another error was made of it. */
export const systemCode = (error: unknown): string | undefined => systemErrorIn(error)?.code;

/** Undefined: the operating system had nothing to do with it. */
export function systemErrorSentence(error: unknown, machine: Machine): string | undefined {
  const found = systemErrorIn(error);
  if (!found) return undefined;
  const about = found.path === undefined ? undefined : aboutFile(found, found.path, machine);
  const sentence = about ?? withoutFile(found, machine);
  return sentence && `${sentence[0]} (${found.code}): ${sentence[1]}`;
}

/** What is wrong, and what to do about it. */
type Told = readonly [wrong: string, cure: string];

const maxCauses = 5;

function systemErrorIn(error: unknown): SystemError | undefined {
  let inner = error;
  for (let depth = 0; depth < maxCauses && inner instanceof Error; depth++) {
    const { code, syscall, path, address, port } = inner as NodeJS.ErrnoException & {
      address?: unknown;
      port?: unknown;
    };
    if (typeof code === "string" && /^E[A-Z0-9]+$/.test(code)) {
      // A Unix socket's file comes as the address, without a port.
      const isSocketFile = typeof address === "string" && address.startsWith("/") && typeof port !== "number";
      const file = path ?? (isSocketFile ? (address as string) : undefined);
      return {
        code,
        ...(syscall && { syscall }),
        ...(file && { path: file }),
        ...(typeof address === "string" && { address }),
        ...(typeof port === "number" && { port }),
      };
    }
    const fromLmdb = lmdbCode(inner);
    if (fromLmdb) return { code: fromLmdb };
    inner = inner.cause;
  }
  return undefined;
}

/** The event database says the system's words, with the number as its code or with none. */
const lmdbWords: Readonly<Record<string, string>> = {
  "Permission denied": "EACCES",
  "No such file or directory": "ENOENT",
  "Not a directory": "ENOTDIR",
  "Read-only file system": "EROFS",
  "No space left on device": "ENOSPC",
  "Disk quota exceeded": "EDQUOT",
  "Input/output error": "EIO",
};

const lmdbCode = ({ message }: Error): string | undefined =>
  Object.entries(lmdbWords).find(([words]) => message.startsWith(words))?.[1];

function aboutFile({ code, syscall }: SystemError, path: string, machine: Machine): Told | undefined {
  switch (code) {
    case "EACCES":
    case "EPERM":
      return notAllowed(path, machine);
    case "ENOENT":
      return [`${path} is not there`, "check the name"];
    case "ENOTDIR":
    case "EEXIST":
      return code === "EEXIST" && syscall !== "mkdir"
        ? [`${path} is there already`, "name another, or remove it"]
        : [`${fileOnTheWay(path, machine)} is a file, and a folder is needed there`, "name another path"];
    case "EISDIR":
      return [`${path} is a folder, and a file is needed there`, "name a file"];
    case "EROFS":
      return [`the file system of ${path} is read-only`, "name a folder on another one, or mount it for writing"];
    case "ENOSPC":
      return [`the disk of ${path} is full`, "make room, or name a folder on another disk"];
    case "EDQUOT":
      return [`this user's disk quota is used up at ${path}`, "make room, or have it raised"];
    case "EIO":
      return [`the disk of ${path} reports a fault`, "look at the system's log, and have a backup at hand"];
    case "EMFILE":
    case "ENFILE":
      return [`too many files are open to open ${path}`, "raise the limit (ulimit -n, or LimitNOFILE of the service)"];
    case "ENAMETOOLONG":
      return [`${path} is too long for a path`, "name a shorter one"];
    case "ELOOP":
      return [`${path} leads through too many symbolic links`, "name the real folder"];
    case "EBUSY":
    case "ETXTBSY":
      return [`${path} is in use by another program`, "try again when that has ended"];
    case "ENOTEMPTY":
      return [`${path} is not empty`, "name an empty folder"];
    case "EXDEV":
      return [`${path} is on another file system`, "name a folder on the same one"];
    default:
      return undefined;
  }
}

/** The file that stands where a folder should be. */
function fileOnTheWay(path: string, { look }: Machine): string {
  for (const part of [resolve(path), ...foldersAbove(path)]) if (look(part)?.isFolder === false) return part;
  return path;
}

function* foldersAbove(path: string): Generator<string> {
  for (let above = dirname(resolve(path)); ; above = dirname(above)) {
    yield above;
    if (above === dirname(above)) return;
  }
}

function notAllowed(path: string, machine: Machine): Told {
  const { uid, look, userName: nameOf } = machine;
  const subject = `this user (${nameOf(uid)}) may not use ${path}`;
  // The nearest thing this user can see is what keeps it out.
  const barrier = [resolve(path), ...foldersAbove(path)].find((part) => look(part) !== undefined);
  const owner = barrier === undefined ? undefined : look(barrier)?.uid;
  if (owner === undefined || barrier === undefined) return [subject, "run it as the user that owns it"];
  if (owner === uid) return [subject, `its mode forbids it; \`chmod u+rwX ${barrier}\` allows it`];
  const asOwner = owner === 0 ? "sudo" : `sudo -u ${nameOf(owner)}`;
  const command = ["holdfast", ...machine.typed].map(shellWord).join(" ");
  return [subject, `run it as the user that owns ${barrier} (${asOwner} ${command}), or name another path`];
}

const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

function withoutFile({ code, syscall, address = "", port }: SystemError, machine: Machine): Told | undefined {
  const place = port === undefined ? address : `${address.includes(":") ? `[${address}]` : address}:${port}`;
  const user = `this user (${machine.userName(machine.uid)})`;
  switch (code) {
    case "EADDRINUSE":
      return [`${place} is in use by another process`, `stop that, or choose another address with ${addressSettings}`];
    case "EADDRNOTAVAIL":
      return [`this machine has no address ${place}`, `choose one of its own with ${addressSettings}`];
    case "EACCES":
    case "EPERM":
      return syscall === "listen" || syscall === "bind"
        ? [
            `${user} may not listen on ${place}`,
            `choose a port from 1024 with ${addressSettings} and put a proxy before it`,
          ]
        : [`${user} may not use a file of the data directory`, "run it as the user that owns it"];
    case "ENOENT":
      return syscall?.startsWith("spawn")
        ? ["a program is not installed", "`holdfast doctor` tells which"]
        : ["a file is not there", "check the names"];
    case "ENOTDIR":
      return ["a file stands where a folder is needed", "name another path"];
    case "EROFS":
      return ["the file system is read-only", "name a folder on another one, or mount it for writing"];
    case "ENOSPC":
      return ["the disk is full", "make room, or name a folder on another disk"];
    case "EDQUOT":
      return ["this user's disk quota is used up", "make room, or have it raised"];
    case "EIO":
      return ["the disk reports a fault", "look at the system's log, and have a backup at hand"];
    case "EMFILE":
    case "ENFILE":
      return ["too many files are open", "raise the limit (ulimit -n, or LimitNOFILE of the service)"];
    case "ENOMEM":
      return ["the machine has no memory left", "end other programs, or add some"];
    case "ECONNREFUSED":
      return [`nobody listens at ${place}`, "check the address, and that the server runs"];
    case "ECONNRESET":
    case "EPIPE":
      return ["the other side closed the connection", "try again"];
    case "ETIMEDOUT":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
      return [`${place === "" ? "the other side" : place} cannot be reached`, "check the address and the network"];
    case "ENOTFOUND":
      return ["the host's name does not resolve", "check its spelling and the DNS"];
    default:
      return undefined;
  }
}

const addressSettings = "NGIT_BIND_ADDRESS (for metrics alone: NGIT_METRICS_BIND_ADDRESS)";
