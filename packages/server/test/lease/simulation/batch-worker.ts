import { parentPort, workerData } from "node:worker_threads";
import { type Batch, runBatch } from "./batch.ts";

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- it goes to a thread, not to a window
parentPort?.postMessage(runBatch(workerData as Batch));
