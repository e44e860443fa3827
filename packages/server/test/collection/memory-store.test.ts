import { testStore } from "../store/store-contract.ts";
import { MemoryStore } from "./memory-store.ts";

testStore("memory", async () => ({ store: new MemoryStore(), close: async () => {} }));
