/**
 * Measures how soon a patch of a pod's resources takes effect on a running container: from the
 * request to the API server, including its TLS handshake, until the cgroups of the container and of
 * the pod have the new values. Uses a real cluster if there is one, or else kubeling's own API;
 * `KUBELET` names another kubelet to measure instead of kubeling. Prints the target next to the
 * results; asserts nothing.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Pod } from '../src/kinds/index.ts';
import { detectCgroupLayout, realCgroupHost } from '../src/lib/index.ts';
import { noCluster } from '../test/cluster/programs.ts';
import { SmallCluster } from '../test/cluster/small-cluster.ts';
import { timed } from './compare.ts';
import { plainSpec } from './desk.ts';
import { percentiles, print } from './figures.ts';

const rounds = 40;
const pollMs = 2;
const limitMs = 60_000;
const mebibyte = 2 ** 20;
const name = 'resized';
const path = `/api/v1/namespaces/default/pods/${name}`;

interface Amounts {
  readonly milliCpu: number;
  readonly mebibytes: number;
}

/**
 * The two amounts between which the benchmark switches: each patch increases, or decreases, both
 * CPU and memory.
 */
const [small, large]: readonly [Amounts, Amounts] = [
  { milliCpu: 100, mebibytes: 64 },
  { milliCpu: 200, mebibytes: 128 },
];

function resources({ milliCpu, mebibytes }: Amounts): object {
  const both = { cpu: `${milliCpu}m`, memory: `${mebibytes}Mi` };
  return { requests: both, limits: both };
}

function podDirectory(tree: string, uid: string): string {
  const found = readdirSync(tree, { recursive: true, withFileTypes: true }).find(
    (entry) => entry.isDirectory() && entry.name.includes(`pod${uid}`),
  );
  if (found === undefined) throw new Error(`Cannot find the cgroup of the pod ${uid} below ${tree}`);
  return join(found.parentPath, found.name);
}

/**
 * Returns a function that checks whether the cgroups of the pod and of its container have exactly
 * the given amounts.
 */
async function cgroupsOf(pod: Pod): Promise<(amounts: Amounts) => boolean> {
  const layout = await detectCgroupLayout(realCgroupHost());
  const uid = pod.metadata?.uid ?? '';
  const id = pod.status?.containerStatuses?.[0]?.containerID?.split('://')[1] ?? '';
  const tree = (controller: string) =>
    layout.version === 2 ? layout.root : (layout.controllers.get(controller) ?? '');
  const [cpu, memory] = [podDirectory(tree('cpu'), uid), podDirectory(tree('memory'), uid)];
  const [quota, limit] =
    layout.version === 2
      ? (['cpu.max', 'memory.max'] as const)
      : (['cpu.cfs_quota_us', 'memory.limit_in_bytes'] as const);
  const holds = (file: string, value: number) => Number.parseInt(readFileSync(file, 'utf8'), 10) === value;
  return ({ milliCpu, mebibytes }) =>
    ['', id].every(
      (below) =>
        holds(join(cpu, below, quota), milliCpu * 100) &&
        holds(join(memory, below, limit), mebibytes * mebibyte),
    );
}

async function patch({ plane }: SmallCluster, amounts: Amounts): Promise<void> {
  const { status, body } = await plane.send(`${path}/resize`, {
    method: 'PATCH',
    contentType: 'application/strategic-merge-patch+json',
    body: { spec: { containers: [{ name: 'main', resources: resources(amounts) }] } },
  });
  if (status !== 200) throw new Error(`Cannot resize the pod: ${status} ${body}`);
}

async function settled(cluster: SmallCluster): Promise<void> {
  await cluster.podIs(name, 'resized', ({ metadata, status }) => {
    const isGoingOn = status?.conditions?.some(({ type }) => type.startsWith('PodResize'));
    return status?.observedGeneration === metadata?.generation && isGoingOn !== true;
  });
}

async function resize(
  cluster: SmallCluster,
  amounts: Amounts,
  isHeld: (amounts: Amounts) => boolean,
): Promise<number> {
  const untilMs = performance.now() + limitMs;
  const { ms } = await timed(async () => {
    const requested = patch(cluster, amounts);
    while (!isHeld(amounts)) {
      if (performance.now() > untilMs) throw new Error(`Pod was not resized within ${limitMs} ms`);
      await pause(pollMs);
    }
    await requested;
  });
  return ms;
}

const missing = noCluster();
await using cluster = missing === false ? await SmallCluster.open() : await SmallCluster.openEmbedded();
const { containers, ...spec } = plainSpec(cluster.node.name);
await cluster.plane.make({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: { ...spec, containers: containers.map((each) => ({ ...each, resources: resources(small) })) },
});
const isHeld = await cgroupsOf(await cluster.ready(name));
const took: number[] = [];
for (let round = 0; round < rounds; round++) {
  took.push(await resize(cluster, round % 2 === 0 ? large : small, isHeld));
  await settled(cluster);
}
const where = missing === false ? 'a real cluster' : 'kubeling alone';
print(`patch to cgroup (${where})`, `${percentiles(took)} (target p50 100 ms)`);
await cluster.plane.send(path, { method: 'DELETE' });
await cluster.noContainersOf(name);
