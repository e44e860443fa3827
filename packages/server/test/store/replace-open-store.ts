import { registerHooks } from "node:module";

/** Puts the module at `url`, with an `openStore` of its own, where this process would load the server's. */
export function replaceOpenStore(url: string): void {
  registerHooks({
    resolve: (specifier, context, nextResolve) => {
      const resolved = nextResolve(specifier, context);
      const isOpenStore = resolved.url.endsWith("/src/store/open-store.ts") && context.parentURL !== url;
      return isOpenStore ? { ...resolved, url } : resolved;
    },
  });
}
