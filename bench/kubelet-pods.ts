/**
 * Compares kubeling with bare CRI: the same pods on the same machine, alternately over bare CRI and
 * as manifests in the directory of a kubelet. Prints the targets next to the results; asserts
 * nothing.
 */
import { busyboxImageName } from '../src/containerd/index.ts';
import { KubelingNode } from '../test/kubeling-node.ts';
import { openPrivateRuntime, type PrivateRuntime } from '../test/private-runtime.ts';
import { besideFloor, type Measured, names } from './beside-floor.ts';
import { compare, type Sides, timed } from './compare.ts';
import { print } from './figures.ts';
import { removeFullPod, removePod, startContainer, startFullPod, startPod } from './pods.ts';
import { processFigures } from './process-figures.ts';
import { RuntimeWatch } from './runtime-watch.ts';

const sequentialPods = 20;
const manyPods = 50;
/**
 * The number of rounds that start many pods concurrently: a single round varies too much with the
 * load of the machine.
 */
const manyRounds = 5;
const fullPods = 8;
const containersOfFullPod = 10;
const idleSeconds = 60;
const signal = new AbortController().signal;

function manifest(name: string, script: string, containers: readonly string[] = ['main']) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: containers.map((container) => ({
        name: container,
        image: busyboxImageName,
        command: ['sh', '-c', script],
      })),
    },
  };
}

const sleeps = 'trap "exit 0" TERM; sleep 100000 & wait';

async function oneByOne(runtime: PrivateRuntime, kubelet: Measured): Promise<void> {
  const groups = names('one', sequentialPods).map((name) => [name]);
  const { starts, removals } = await besideFloor(runtime, kubelet, groups);
  compare('pod running, one by one', starts, 'p50 + 40 ms, p99 + 120 ms');
  compare('pod removed, one by one', removals, '1.5 x floor at p50');
}

/** Milliseconds from the rename of the manifests into the directory until all containers run. */
async function appear(node: KubelingNode, watch: RuntimeWatch, pods: readonly string[]): Promise<number> {
  const reveals = await Promise.all(pods.map((name) => node.stage(`${name}.yaml`, manifest(name, sleeps))));
  watch.reset();
  const { ms } = await timed(async () => {
    await Promise.all(reveals.map((reveal) => reveal()));
    // Two start events per pod: the runtime emits one for the sandbox and one for the container.
    await watch.seen('start', 2 * pods.length);
    await watch.lastRuns();
  });
  return ms;
}

async function vanish(node: KubelingNode, watch: RuntimeWatch, pods: readonly string[]): Promise<number> {
  watch.reset();
  const { ms } = await timed(async () => {
    await Promise.all(pods.map((name) => node.take(`${name}.yaml`)));
    await watch.seen('delete', 2 * pods.length);
  });
  return ms;
}

async function restarts(runtime: PrivateRuntime, node: KubelingNode, watch: RuntimeWatch): Promise<void> {
  const sides: Sides = { floor: [], ours: [] };
  for (const name of names('again', sequentialPods)) {
    sides.floor.push(await bareRestart(runtime, name));
    watch.reset();
    await node.put(`${name}.yaml`, manifest(name, 'sleep 0.5; exit 1'));
    const [, , again] = await watch.seen('start', 3);
    const [exit] = await watch.seen('exit', 1);
    sides.ours.push((again?.atMs ?? Number.NaN) - (exit?.atMs ?? Number.NaN));
    await node.take(`${name}.yaml`);
    // One delete event for the sandbox and one for each of its two containers: the one that exited
    // and its replacement.
    await watch.seen('delete', 3);
  }
  compare('container exited to running again', sides, 'p50 + 40 ms');
}

/** Measures one pod at a time, each with ten containers that start sequentially. */
async function fullPod(runtime: PrivateRuntime, node: KubelingNode, watch: RuntimeWatch): Promise<void> {
  const sides: Sides = { floor: [], ours: [] };
  const containers = names('main', containersOfFullPod);
  for (const name of names('full', fullPods)) {
    const floor = await timed(() => startFullPod(runtime, name, containers));
    sides.floor.push(floor.ms);
    await removeFullPod(runtime, floor.value);
    const reveal = await node.stage(`${name}.yaml`, manifest(name, sleeps, containers));
    watch.reset();
    const ours = await timed(async () => {
      await reveal();
      await watch.seen('start', 1 + containers.length);
      await watch.lastRuns();
    });
    sides.ours.push(ours.ms);
    await node.take(`${name}.yaml`);
    await watch.seen('delete', 1 + containers.length);
  }
  compare(`pod of ${containersOfFullPod} containers running`, sides, '1.1 x floor at p50');
}

async function bareRestart(runtime: PrivateRuntime, name: string): Promise<number> {
  const { podSandboxId, containerId } = await startPod(runtime, name);
  await runtime.cri.stopContainer({ containerId, timeout: 0n }, signal);
  const { ms, value } = await timed(() => startContainer(runtime, podSandboxId, name, { attempt: 1 }));
  await removePod(runtime, { podSandboxId, containerId: value });
  return ms;
}

async function manyAtOnce(runtime: PrivateRuntime, kubelet: Measured, node: KubelingNode): Promise<void> {
  const groups = names('many', manyRounds).map((round) => names(`${round}-`, manyPods));
  const atFirst = async (round: number) => (round === 0 ? await idle(node) : undefined);
  const { starts, removals } = await besideFloor(runtime, kubelet, groups, atFirst);
  compare(`${manyPods} at once, all running`, starts, '1.15 x floor');
  compare(`${manyPods} at once, all removed`, removals, '1.5 x floor');
}

async function idle(node: KubelingNode): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  const before = await processFigures(node.pid);
  await new Promise((resolve) => setTimeout(resolve, idleSeconds * 1_000));
  const after = await processFigures(node.pid);
  const share = ((after.cpuMs - before.cpuMs) / (idleSeconds * 1_000)) * 100;
  print(
    `idle with ${manyPods} pods, ${idleSeconds} s`,
    `${share.toFixed(2)} % of a core (target under 1 %), ${after.residentMb.toFixed(1)} MB resident (target under 104 MB)`,
  );
}

await using runtime = await openPrivateRuntime();
// Starts the kubelet without the embedded API, whose CPU time and memory would otherwise be
// measured too.
await using node = await KubelingNode.open(undefined, ['--local-api=false']);
using watch = new RuntimeWatch(node.cri);
console.log(`containerd ${runtime.version}, Node.js ${process.versions.node}`);
const kubelet: Measured = {
  appear: (pods) => appear(node, watch, pods),
  vanish: (pods) => vanish(node, watch, pods),
};
await oneByOne(runtime, kubelet);
await restarts(runtime, node, watch);
await fullPod(runtime, node, watch);
await manyAtOnce(runtime, kubelet, node);
