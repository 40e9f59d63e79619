// A key as people write it in clone URLs (NIP-19).

import { bech32 } from "@scure/base";
import type { Pubkey } from "../nostr/ids.js";

export const npubOf = (pubkey: Pubkey): string => bech32.encode("npub", bech32.toWords(Buffer.from(pubkey, "hex")));
