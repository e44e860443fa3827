import { defineConfig } from "vite";

/** Names of assets carry a hash of their content, so that the server may let browsers keep them forever. */
export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2023",
    outDir: "dist",
    emptyOutDir: true,
    // Inlined as data: addresses, small files would need a wider policy for scripts and styles.
    assetsInlineLimit: 0,
    // Each part that is loaded later is one file: see src/ui/fetch-part.ts.
    modulePreload: false,
    cssCodeSplit: false,
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "shared", minShareCount: 2 }] } } },
  },
  // `npm run dev -w @sandboxer/console` beside a server on its usual port.
  server: { proxy: { "/v1": { target: "http://127.0.0.1:8080", ws: true } } },
});
