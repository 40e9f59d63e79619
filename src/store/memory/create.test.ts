import { storeContract } from "../testing/contract.js";
import { createMemoryStore } from "./create.js";

storeContract("memory", async (options) => ({ store: createMemoryStore(options), dispose: async () => {} }));
