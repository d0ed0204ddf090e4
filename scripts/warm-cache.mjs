/**
 * Loads all of kubeling once, so that its compiled code is in Node's cache for the next process.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const source = fileURLToPath(new URL('../src', import.meta.url));
const isLoaded = (path) => path.endsWith('.ts') && !path.endsWith('.test.ts') && path !== 'main.ts';
const load = (path) => import(pathToFileURL(join(source, path)).href);

for (const path of await readdir(source, { recursive: true })) if (isLoaded(path)) await load(path);
// main.ts runs a command when it is loaded; `version` is used here because it has no side effects.
process.argv.splice(2, Number.POSITIVE_INFINITY, 'version');
await load('main.ts');
