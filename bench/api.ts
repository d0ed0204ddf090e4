/**
 * Measures what a kubelet costs per pod as the number of pods grows. A complete kubelet runs under
 * virtual time; its runtime and API server are simulated in the same process, so the printed CPU
 * times include them. Each number of pods is measured in a separate process. Prints how the cost
 * per pod grows with the number of pods, and whether memory grows with the number of watch events;
 * asserts nothing.
 *
 *     npm run bench:api [-- --pods 100,1000] [--events 100000]
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { print } from './figures.ts';
import { type Cost, liveBytes, SimulatedNode } from './simulated-node.ts';

const { values } = parseArgs({
  options: {
    pods: { type: 'string', default: '100,500,1000,2000,5000' },
    events: { type: 'string', default: '100000' },
    /**
     * Internal: the benchmark starts a child process with `--part PODS` or `--part events` for each
     * measurement.
     */
    part: { type: 'string' },
  },
});

const restMinutes = 5;
const labelsPerPod = 5;
const eventPods = 100;
const warmPods = 200;
const steps = 10;

interface Figures {
  readonly pods: number;
  readonly start: Cost;
  readonly rest: Cost;
  readonly labels: Cost;
  readonly restart: Cost;
  readonly removal: Cost;
  /** The number of status patches that the kubelet sent while it restarted. */
  readonly patches: number;
  /** Memory of the kubelet alone, beyond what it uses without pods. */
  readonly kubeletBytes: number;
  /** Memory of the kubelet together with the simulated cluster and the simulated runtime. */
  readonly wholeBytes: number;
  /** Memory still in use after all pods are deleted. */
  readonly leftBytes: number;
}

/**
 * Runs every measured operation once, so that compilation and first allocations are not measured.
 */
async function warmUp(node: SimulatedNode): Promise<void> {
  await node.start();
  node.makePods(warmPods);
  await node.becomeReady(warmPods);
  await labelAll(node, warmPods);
  await node.clock.advance(60_000);
  node.deletePods();
  await node.becomeEmpty();
  await node.stop();
  node.forgetPods();
}

async function measure(pods: number): Promise<Figures> {
  const node = new SimulatedNode(Math.max(pods, warmPods));
  await warmUp(node);
  const bare = liveBytes();
  await node.start();
  const idle = liveBytes();
  const start = await node.cost(async () => {
    node.makePods(pods);
    await node.becomeReady(pods);
  });
  await node.clock.advance(60_000);
  const rest = await node.cost(() => node.clock.advance(restMinutes * 60_000));
  const labels = await node.cost(() => labelAll(node, pods));
  const whole = liveBytes();
  await node.stop();
  const without = liveBytes();
  const before = node.patches;
  const restart = await node.cost(() => node.start());
  const patches = node.patches - before;
  const removal = await node.cost(async () => {
    node.deletePods();
    await node.becomeEmpty();
  });
  // Waits until the simulated API server has also expired its watch events.
  await node.clock.advance(4_000_000);
  const leftBytes = liveBytes() - idle;
  await node.stop();
  node.close();
  const kubeletBytes = whole - without - (idle - bare);
  return {
    pods,
    start,
    rest,
    labels,
    restart,
    removal,
    patches,
    kubeletBytes,
    wholeBytes: whole - idle,
    leftBytes,
  };
}

async function labelAll(node: SimulatedNode, pods: number): Promise<void> {
  for (let round = 0; round < labelsPerPod; round++) {
    for (let index = 0; index < pods; index++) {
      node.label(index, `${round}`);
      if (index % 100 === 99) await node.clock.advance(100);
    }
    await node.clock.advance(1_000);
  }
}

/** The memory in use after 10 %, 20 %, … and 100 % of the events. */
async function measureEvents(events: number): Promise<readonly number[]> {
  const node = new SimulatedNode(eventPods);
  await node.start();
  node.makePods(eventPods);
  await node.becomeReady(eventPods);
  const held: number[] = [];
  for (let done = 0; done < events; ) {
    for (let index = 0; index < eventPods; index++) node.label(index, `${done++}`);
    await node.clock.advance(100);
    if (done % (events / steps) === 0) held.push(liveBytes());
  }
  await node.stop();
  node.close();
  return held;
}

async function inProcess<T>(part: string): Promise<T> {
  const args = [
    ...process.execArgv,
    fileURLToPath(import.meta.url),
    '--part',
    part,
    '--events',
    values.events,
  ];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 1 << 24 });
  return JSON.parse(stdout) as T;
}

const us = (value: number) => `${(value * 1_000).toFixed(0)} µs`;
const kb = (bytes: number) => `${(bytes / 1_024).toFixed(1)} KB`;
const mb = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MB`;

const perPod: Readonly<Record<string, (figures: Figures) => number>> = {
  'CPU of a start, per pod': ({ start, pods }) => start.cpuMs / pods,
  'CPU of a sync of a pod at rest': ({ rest }) => rest.cpuMs / rest.syncs,
  'CPU of a watch event': ({ labels, pods }) => labels.cpuMs / (pods * labelsPerPod),
  'CPU of a restart of the kubelet, per pod': ({ restart, pods }) => restart.cpuMs / pods,
  'CPU of a removal, per pod': ({ removal, pods }) => removal.cpuMs / pods,
};
const memory: Readonly<Record<string, (figures: Figures) => number>> = {
  'memory of the kubelet, per pod': ({ kubeletBytes, pods }) => kubeletBytes / pods,
  'memory with cluster and runtime, per pod': ({ wholeBytes, pods }) => wholeBytes / pods,
};

function compare(all: readonly Figures[]): void {
  const [smallest, largest] = [all[0], all.at(-1)];
  if (smallest === undefined || largest === undefined || smallest === largest) return;
  const of = `${largest.pods} pods over ${smallest.pods}`;
  for (const [what, figure] of Object.entries({ ...perPod, ...memory }))
    print(`${what}, ${of}`, `x ${(figure(largest) / figure(smallest)).toFixed(2)}`);
}

async function all(sizes: readonly number[], events: number): Promise<void> {
  const found: Figures[] = [];
  for (const pods of sizes) {
    const figures = await inProcess<Figures>(String(pods));
    found.push(figures);
    for (const [what, figure] of Object.entries(perPod)) print(`${pods} pods: ${what}`, us(figure(figures)));
    for (const [what, figure] of Object.entries(memory)) print(`${pods} pods: ${what}`, kb(figure(figures)));
    print(`${pods} pods: statuses written after a restart`, String(figures.patches));
    print(`${pods} pods: left when all are gone`, mb(figures.leftBytes));
  }
  compare(found);
  if (events === 0) return;
  const held = await inProcess<readonly number[]>('events');
  print(`held over ${events} watch events, each tenth`, held.map(mb).join(' '));
}

const events = Number(values.events);
if (values.part === 'events') console.log(JSON.stringify(await measureEvents(events)));
else if (values.part !== undefined) console.log(JSON.stringify(await measure(Number(values.part))));
else await all(values.pods.split(',').filter(Boolean).map(Number), events);
