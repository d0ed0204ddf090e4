/**
 * Simulates seeds and prints the simulation speed; prints a report of the first seed that violates
 * a rule.
 *
 *     npm run simulate -- --seeds 10000 [--from 1] [--jobs 2] [--disk scarce] [--devices offered]
 *       [--cluster joined [--volumes every-kind] [--resizes many] [--pressure some]]
 *     npm run simulate -- --seed 42
 */
import { execFile } from 'node:child_process';
import type { Socket } from 'node:net';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { describeFailure } from './report.ts';
import type { SeedOptions, SeedResult } from './seed-options.ts';
import { prepareSimulation, simulate } from './simulate.ts';

interface Played {
  readonly seeds: number;
  readonly virtualMs: number;
  readonly failed: number | undefined;
}

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    /** `joined` simulates a node with an API server; by default the node is standalone. */
    cluster: { type: 'string' },
    /**
     * `every-kind` gives pods all volume types, and requires `--cluster joined`; by default pods
     * have few volumes.
     */
    volumes: { type: 'string' },
    /** `scarce` simulates a disk that is often full; by default there is enough space. */
    disk: { type: 'string' },
    /** `offered` simulates pods that request devices; by default none do. */
    devices: { type: 'string' },
    /**
     * `many` simulates pods that are resized, and requires `--cluster joined`; by default none are.
     */
    resizes: { type: 'string' },
    /**
     * `some` simulates a node that is sometimes under resource pressure, and requires `--cluster
     * joined`; by default it never is.
     */
    pressure: { type: 'string' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    /** Set for a worker process that simulates a part of the seeds. */
    part: { type: 'boolean', default: false },
  },
});

const cluster = values.cluster === 'joined' || values.cluster === 'alone' ? values.cluster : undefined;
const volumes = values.volumes === 'every-kind' ? values.volumes : undefined;
const disk = values.disk === 'scarce' ? values.disk : undefined;
const devices = values.devices === 'offered' ? values.devices : undefined;
const resizes = values.resizes === 'many' ? values.resizes : undefined;
const pressure = values.pressure === 'some' ? values.pressure : undefined;
const options: SeedOptions = { cluster, volumes, disk, devices, resizes, pressure };

/** Simulates the seeds until one violates a rule. */
async function play(from: number, count: number): Promise<Played> {
  let virtualMs = 0;
  for (let seed = from; seed < from + count; seed++) {
    const result = await simulate(seed, options);
    virtualMs += result.virtualMs;
    if (result.violations.length > 0) return { seeds: seed - from + 1, virtualMs, failed: seed };
  }
  return { seeds: count, virtualMs, failed: undefined };
}

function playElsewhere(from: number, count: number): Promise<Played> {
  const part = ['--part', '--from', String(from), '--seeds', String(count)];
  const args = [
    fileURLToPath(import.meta.url),
    ...part,
    ...(cluster ? ['--cluster', cluster] : []),
    ...(volumes ? ['--volumes', volumes] : []),
    ...(disk ? ['--disk', disk] : []),
    ...(devices ? ['--devices', devices] : []),
    ...(resizes ? ['--resizes', resizes] : []),
    ...(pressure ? ['--pressure', pressure] : []),
  ];
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, (error, stdout) =>
      error === null ? resolve(JSON.parse(stdout) as Played) : reject(error),
    );
  });
}

/**
 * Exits when the parent process has exited and the results are not needed any more. The parent
 * holds the other end of stdin, which then closes.
 */
function endWithParent(): void {
  process.stdin.on('end', () => process.exit(1)).resume();
  (process.stdin as Socket).unref();
}

async function playAll(from: number, count: number, jobs: number): Promise<void> {
  const startMs = performance.now();
  const share = Math.ceil(count / jobs);
  const parts = await Promise.all(
    Array.from({ length: jobs }, (_, job) => {
      const first = from + job * share;
      return playElsewhere(first, Math.max(0, Math.min(share, from + count - first)));
    }),
  );
  const seconds = (performance.now() - startMs) / 1_000;
  const seeds = parts.reduce((sum, part) => sum + part.seeds, 0);
  const hours = parts.reduce((sum, part) => sum + part.virtualMs, 0) / 3_600_000;
  const failed = parts.flatMap((part) => part.failed ?? []);
  const rate = (seeds / seconds).toFixed(1);
  console.log(
    `${seeds} seeds in ${seconds.toFixed(1)} s: ${rate} a second, ${hours.toFixed(1)} hours of life`,
  );
  if (failed.length > 0) await fail(await simulate(Math.min(...failed), options));
}

async function fail(result: SeedResult): Promise<void> {
  console.log(await describeFailure(result, options));
  process.exitCode = 1;
}

await prepareSimulation();
if (values.seed !== undefined) {
  const result = await simulate(Number(values.seed), options);
  console.log(result.history.join('\n'));
  if (result.violations.length > 0) await fail(result);
  else console.log(`Seed ${values.seed} holds: ${result.hash}`);
} else if (values.part) {
  endWithParent();
  console.log(JSON.stringify(await play(Number(values.from), Number(values.seeds))));
} else {
  await playAll(Number(values.from), Number(values.seeds), Number(values.jobs));
}
