/** Given to a server's Node with `--import`: puts `doomed-store.ts` where the server opens its store. */
import { replaceOpenStore } from "../../../store/replace-open-store.ts";

replaceOpenStore(new URL("./doomed-store.ts", import.meta.url).href);
