// How to get the fast signature check on a machine that has only WebAssembly: the right package for its distribution.

import { readFileSync } from "node:fs";
import { platform } from "node:os";

const debianPackages: readonly (readonly [since: number, name: string])[] = [
  [13, "libsecp256k1-2"],
  [12, "libsecp256k1-1"],
  [0, "libsecp256k1-0"],
];
const ubuntuPackages: readonly (readonly [since: number, name: string])[] = [
  [25, "libsecp256k1-2"],
  [23, "libsecp256k1-1"],
  [0, "libsecp256k1-0"],
];

/** A command to type; `osRelease` is the text of /etc/os-release. */
export function nativeLibraryCommand(system: string, osRelease: string): string {
  if (system === "darwin") return "brew install secp256k1";
  if (system === "freebsd") return "pkg install secp256k1";
  const field = (name: string): string => new RegExp(`^${name}="?([^"\n]*)"?$`, "m").exec(osRelease)?.[1] ?? "";
  const names = [field("ID"), ...field("ID_LIKE").split(" ")];
  const version = Number.parseInt(field("VERSION_ID"), 10) || Number.POSITIVE_INFINITY;
  const of = (packages: typeof debianPackages): string => packages.find(([since]) => version >= since)?.[1] ?? "";
  for (const name of names) {
    if (name === "ubuntu") return `apt install ${of(ubuntuPackages)}`;
    if (name === "debian") return `apt install ${of(debianPackages)}`;
    if (name === "fedora" || name === "rhel") return "dnf install libsecp256k1";
    if (name === "arch") return "pacman -S libsecp256k1";
    if (name === "alpine") return "apk add libsecp256k1";
  }
  return "install libsecp256k1 with the system's package manager";
}

/** Undefined where signatures are checked by native code already. */
export function verificationAdvice(engine: string): string | undefined {
  if (engine !== "wasm") return undefined;
  return `signatures are checked in WebAssembly, at about a sixth of the speed: ${nativeLibraryCommand(platform(), osReleaseText())}, then start again`;
}

function osReleaseText(): string {
  try {
    return readFileSync("/etc/os-release", "utf8");
  } catch {
    return "";
  }
}
