import { storeContract } from "../testing/contract.js";
import { createMemoryStore } from "./memory-store.js";

storeContract("memory", async (options) => ({ store: createMemoryStore(options), dispose: async () => {} }));
