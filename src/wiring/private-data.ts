// Nobody else on the machine reads what the server keeps (threats row 55): what is made is the user's own whatever the
// umask was, and data directories that were open before are closed.

import { chmodSync } from "node:fs";

/** Also for git: its processes inherit it. */
export const keepPrivate = (): void => void process.umask(0o077);

export function closeFolders(folders: readonly string[]): void {
  for (const folder of folders) {
    try {
      chmodSync(folder, 0o700);
    } catch (error) {
      // The server does not close a volume that belongs to another user.
      if (!["EPERM", "EROFS", "ENOENT"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    }
  }
}
