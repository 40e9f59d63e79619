// One verifier, with its real thread, for all servers that tests start in this process: a thread for each would load the
// same modules again and again. It ends a moment after the last server did, so that the process can end.

import { createVerifierPool, type VerifierPool } from "../../src/nostr/verify/pool.js";

const keptMs = 200;

let pool: Promise<VerifierPool> | undefined;
let borrowers = 0;

/** To be given back once. */
export async function borrowVerifier(): Promise<{ readonly verifier: VerifierPool; giveBack(): void }> {
  borrowers++;
  pool ??= createVerifierPool({ workers: 1 });
  const verifier = await pool;
  return {
    verifier,
    giveBack() {
      borrowers--;
      if (borrowers === 0) setTimeout(endUnused, keptMs).unref();
    },
  };
}

function endUnused(): void {
  if (borrowers > 0 || !pool) return;
  const unused = pool;
  pool = undefined;
  void unused.then((verifier) => verifier.close());
}
