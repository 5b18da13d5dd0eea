// Verifies a chain with the npm package halo-record: node halo_verify.mjs MODULES CHAIN.jsonl
// Exit status: 0 valid, 1 broken, 3 no records.
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";

const [modules, chain] = process.argv.slice(2);
const { verifyLog } = await import(pathToFileURL(resolve(modules, "halo-record/dist/index.js")));

function verdict() {
  try {
    return verifyLog(chain);
  } catch (error) {
    return { ok: false, empty: false, problems: [String(error)] };
  }
}

const { ok, empty, count, problems } = verdict();
problems.forEach((problem) => console.log(problem));
if (ok && !empty) console.log(`OK: ${count} records`);
process.exit(empty ? 3 : ok ? 0 : 1);
