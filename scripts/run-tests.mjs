/**
 * Runs test files, each in a separate process, and names the slowest of them at the end.
 *
 *   node scripts/run-tests.mjs [pattern...]
 *
 * Slow files start first, so that they do not prolong the end of the run. One more file than there
 * are cores runs concurrently, because many tests wait for containers. The compile cache is shared
 * between the processes, because most files take longer to load than to run.
 */
import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';

const home = fileURLToPath(new URL('..', import.meta.url));
const everything = ['src/**/*.test.ts', 'test/**/*.test.ts'];
/** Directories of the slow tests. */
const longFirst = ['test/simulation/', 'test/integration/', 'test/', ''];
/**
 * The time limit of a test file, far more than any needs: a test that hangs is stopped and named.
 */
const fileLimitMs = 12 * 60_000;
const shown = 20;

function filesOf(patterns) {
  const files = globSync(patterns, { cwd: home }).toSorted();
  if (files.length === 0) throw new Error(`Cannot run tests as no file matches ${patterns.join(' ')}`);
  const rank = (file) => longFirst.findIndex((folder) => file.startsWith(folder));
  return files.toSorted((a, b) => rank(a) - rank(b)).map((file) => join(home, file));
}

function showSlowest(tookMs) {
  console.log('\nThe slowest files, in seconds:');
  for (const [file, ms] of [...tookMs].sort(([, a], [, b]) => b - a).slice(0, shown))
    console.log(`${(ms / 1_000).toFixed(1).padStart(7)}  ${relative(home, file)}`);
}

function runTests(patterns) {
  process.env.NODE_COMPILE_CACHE ??= join(home, 'node_modules/.cache/kubeling');
  const files = filesOf(patterns);
  const tookMs = new Map();
  const events = run({ files, concurrency: availableParallelism() + 1, timeout: fileLimitMs });
  events.on('test:complete', ({ name, details }) => {
    if (files.includes(name)) tookMs.set(name, details.duration_ms);
  });
  events.on('test:summary', ({ file, success }) => {
    if (file === undefined && !success) process.exitCode = 1;
  });
  events
    .compose(spec)
    .on('end', () => showSlowest(tookMs))
    .pipe(process.stdout, { end: false });
}

const patterns = process.argv.slice(2);
runTests(patterns.length === 0 ? everything : patterns);
