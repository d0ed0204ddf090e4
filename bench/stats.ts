import { monitorEventLoopDelay } from 'node:perf_hooks';
import { InProcessNode } from '../test/in-process-node.ts';
import { eventually } from '../test/kubeling-node.ts';
import { percentile, print } from './figures.ts';

/*
 * Measures the cost of collecting the statistics of a node and its pods: CPU time of this process
 * for one collection, and how long it blocks the event loop. Uses a real containerd with POD_COUNT
 * pods (default 100), each with an emptyDir volume.
 */

const count = Number(process.env['POD_COUNT'] ?? 100);
const rounds = 20;
/**
 * The number of warm-up rounds, after which the code is compiled as in a kubelet that has run for
 * an hour.
 */
const roundsBefore = 100;
/**
 * The delay between two rounds: longer than the second for which runtime statistics are cached, so
 * that every round queries the runtime.
 */
const gapMs = 1_200;
const { signal } = new AbortController();

async function cpuMsOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/**
 * Returns how long the work blocks the event loop. This is measured in separate rounds, because the
 * delay monitor itself wakes the process every millisecond.
 */
async function blockedMsBy(work: () => Promise<unknown>): Promise<number> {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  await work();
  delay.disable();
  // The monitor measures the time between its ticks, so its tick of 1 ms is subtracted.
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
if (provider === undefined || pages === undefined)
  throw new Error('statistics are not available on this machine');
// Waits until the work that follows the start of the pods is done, so that it is not measured.
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
