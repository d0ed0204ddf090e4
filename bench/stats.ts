import { monitorEventLoopDelay } from 'node:perf_hooks';
import { InProcessNode } from '../test/in-process-node.ts';
import { eventually } from '../test/kubeling-node.ts';
import { percentile, print } from './figures.ts';

/*
 * What it costs to find out what a node and its pods use: CPU of this process for one look at everything, and how long
 * nothing else could be done meanwhile. On a real containerd, with POD_COUNT pods (100 unless given), each of them with
 * an empty directory.
 */

const count = Number(process.env['POD_COUNT'] ?? 100);
const rounds = 20;
/** By then code is compiled as it is after an hour of a node's life. */
const roundsBefore = 100;
/** So far apart the runtime is asked each time, too; what it said is good for a second. */
const gapMs = 1_200;
const { signal } = new AbortController();

async function cpuMsOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** In a round of its own, as to measure it wakes the process all the time. */
async function blockedMsBy(work: () => Promise<unknown>): Promise<number> {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  await work();
  delay.disable();
  // It measures from tick to tick.
  return Math.max(delay.max / 1e6 - 1, 0);
}

async function tookMs(work: () => Promise<unknown>): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}

async function bench(
  what: string,
  work: () => Promise<unknown>,
  limits?: { readonly cpuMs: number; readonly blockedMs: number },
) {
  for (let round = 0; round < roundsBefore; round++) await work();
  const figure = async (of: (work: () => Promise<unknown>) => Promise<number>) => {
    const values: number[] = [];
    for (let round = 0; round < rounds; round++) {
      await new Promise((resolve) => setTimeout(resolve, gapMs));
      values.push(await of(work));
    }
    return `p50 ${percentile(values, 0.5).toFixed(1)} p90 ${percentile(values, 0.9).toFixed(1)}`;
  };
  const bound = limits === undefined ? '' : ` (wanted: cpu < ${limits.cpuMs}, blocked < ${limits.blockedMs})`;
  const [cpu, blocked, took] = [await figure(cpuMsOf), await figure(blockedMsBy), await figure(tookMs)];
  print(what, `cpu ${cpu} ms, blocked ${blocked} ms, took ${took} ms${bound}`);
}

await using node = await InProcessNode.open();
const spec = { volumes: [{ name: 'scratch', emptyDir: {} }], terminationGracePeriodSeconds: 0 };
const main = { script: 'exec sleep 100000', volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }] };
const names = Array.from({ length: count }, (_, index) => `pod${index}`);
await node.put(Object.fromEntries(names.map((name) => [name, { containers: { main }, spec }])));
await eventually(
  'all pods to run',
  async () =>
    node.kubelet.endpoints.podsWithStatus().filter(({ status }) => status.phase === 'Running').length ===
    count
      ? true
      : undefined,
  900_000,
);
const provider = await node.kubelet.runtime.statistics.provider();
const pages = await node.kubelet.runtime.statistics.pages();
if (provider === undefined || pages === undefined) throw new Error('nothing is told of this machine');
// What the start has left to do is done by then.
await new Promise((resolve) => setTimeout(resolve, 10_000));
print('pods', String(count));
const rest = () => new Promise((resolve) => setTimeout(resolve, 5_000));
print(
  'at rest, over 5 s',
  `cpu ${(await cpuMsOf(rest)).toFixed(1)} ms, blocked at most ${(await blockedMsBy(rest)).toFixed(1)} ms`,
);
await bench('processor and memory of all', () => provider.stats('cpu-and-memory', signal, { maxAgeMs: 0 }), {
  cpuMs: 15,
  blockedMs: 5,
});
await bench('the node alone', () => provider.node(signal, { maxAgeMs: 0 }));
await bench('everything, volumes as counted before', () => provider.stats('all', signal, { maxAgeMs: 0 }), {
  cpuMs: 15,
  blockedMs: 5,
});
await bench('everything, volumes counted anew', () =>
  provider.stats('all', signal, { maxAgeMs: 0, volumesMaxAgeMs: 0 }),
);
await bench('the summary from what is there, as text', async () =>
  JSON.stringify(await pages.summary('all', signal)),
);
await bench('the page of resources from what is there', () => pages.resourceMetrics(signal));
print('resident memory', `${(process.memoryUsage.rss() / 2 ** 20).toFixed(0)} MB`);
