import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { Plugin } from "vite";

const SMALLEST = 1024; // bytes; compressing smaller files saves nothing

/** Write scripts, styles and images also as .gz and .br, which the server sends. */
export function compress(): Plugin {
  let folder = "";
  return {
    name: "compress",
    apply: "build",
    configResolved: ({ root, build }) => void (folder = join(root, build.outDir, build.assetsDir)),
    closeBundle() {
      for (const name of readdirSync(folder).filter((each) => /\.(js|css|svg)$/.test(each))) {
        const content = readFileSync(join(folder, name));
        if (content.length < SMALLEST) continue;
        writeFileSync(join(folder, `${name}.gz`), gzipSync(content, { level: 9 }));
        const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
        writeFileSync(join(folder, `${name}.br`), brotliCompressSync(content, { params }));
      }
    },
  };
}
