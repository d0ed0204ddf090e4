/**
 * A kubelet's share of a pod's life in a real cluster, beside bare CRI on the same machine: from the pod's making in the
 * API server to Ready, from its deletion to its absence, one by one and many at once. `KUBELET` names another kubelet to
 * measure in kubeling's place. Prints the targets beside the figures; asserts nothing.
 */
import {
  apiResources,
  createApiClient,
  hostApiFiles,
  loadKubeconfig,
  mainLimits,
  Reflector,
} from '../src/api/index.ts';
import { busyboxImageName } from '../src/containerd/index.ts';
import type { Pod } from '../src/kinds/index.ts';
import { collectLogs, realClock, systemRandom } from '../src/lib/index.ts';
import { ClusterNode } from '../test/cluster/cluster-node.ts';
import { isReady } from '../test/cluster/cluster-pods.ts';
import { ControlPlane } from '../test/cluster/control-plane.ts';
import { clusterAssets, noCluster } from '../test/cluster/programs.ts';
import { openPrivateRuntime, type PrivateRuntime } from '../test/private-runtime.ts';
import { percentile, percentiles, print } from './figures.ts';
import { type PodHandle, removePod, startPod } from './pods.ts';
import { processFigures } from './process-figures.ts';

const sequentialPods = 20;
const manyPods = 50;
const manyRounds = 3;
const clock = realClock();
const random = systemRandom();
const signal = new AbortController().signal;
const sleeps = 'trap "exit 0" TERM; sleep 100000 & wait';
const { pods } = apiResources;

const names = (word: string, count: number) => Array.from({ length: count }, (_, index) => `${word}${index}`);

async function timed<T>(work: () => Promise<T>): Promise<{ readonly ms: number; readonly value: T }> {
  const start = performance.now();
  const value = await work();
  return { ms: performance.now() - start, value };
}

/** Pods as an administrator makes, watches and deletes them. The scheduler is left out: its time is not the kubelet's. */
class Desk implements AsyncDisposable {
  readonly #client: ReturnType<typeof createApiClient>;
  readonly #reflector: Reflector<Pod>;
  readonly #nodeName: string;

  constructor(plane: ControlPlane, nodeName: string) {
    const { logger } = collectLogs(clock);
    this.#nodeName = nodeName;
    this.#client = createApiClient({
      kubeconfig: () => loadKubeconfig({ path: plane.adminKubeconfig, files: hostApiFiles }),
      clock,
      logger,
      userAgent: 'bench',
      environment: {},
      limits: { rate: { kind: 'unlimited' }, ...mainLimits },
    });
    this.#reflector = new Reflector<Pod>({
      client: this.#client,
      clock,
      random,
      logger,
      query: { resource: pods },
    });
    this.#reflector.start();
  }

  async open(): Promise<void> {
    await this.#reflector.waitForSync(signal);
  }

  async make(wanted: readonly string[]): Promise<number> {
    const { ms } = await timed(async () => {
      const all = this.#until(wanted, (pod) => pod !== undefined && isReady(pod));
      await Promise.all(wanted.map((name) => this.#create(name)));
      await all;
    });
    return ms;
  }

  async remove(wanted: readonly string[]): Promise<number> {
    const { ms } = await timed(async () => {
      const all = this.#until(wanted, (pod) => pod === undefined);
      const options = { gracePeriodSeconds: 1 };
      await Promise.all(
        wanted.map((name) =>
          this.#client.delete({ resource: pods, namespace: 'default', name }, options, signal),
        ),
      );
      await all;
    });
    return ms;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reflector[Symbol.asyncDispose]();
    this.#client.close();
  }

  async #create(name: string): Promise<void> {
    const container = { name: 'main', image: busyboxImageName, command: ['sh', '-c', sleeps] };
    const spec = {
      nodeName: this.#nodeName,
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 1,
      containers: [container],
    };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, spec };
    await this.#client.create<Pod>({ resource: pods, namespace: 'default' }, pod as Pod, signal);
  }

  #until(wanted: readonly string[], isSo: (pod: Pod | undefined) => boolean): Promise<void> {
    const left = new Set(wanted);
    return new Promise((resolve) => {
      const link = this.#reflector.onChange(({ type, object }) => {
        const { name } = object.metadata;
        if (isSo(type === 'deleted' ? undefined : object)) left.delete(name);
        if (left.size > 0) return;
        link[Symbol.dispose]();
        resolve();
      });
    });
  }
}

function compare(what: string, floor: readonly number[], ours: readonly number[], target: string): void {
  print(`${what}, bare CRI`, percentiles(floor));
  print(`${what}, kubelet`, percentiles(ours));
  const over = (percentile(ours, 0.5) - percentile(floor, 0.5)).toFixed(0);
  const ratio = (percentile(ours, 0.5) / percentile(floor, 0.5)).toFixed(2);
  print('', `p50 + ${over} ms, p50 ${ratio} x floor (target ${target})`);
}

async function oneByOne(runtime: PrivateRuntime, desk: Desk): Promise<void> {
  const starts = { floor: [] as number[], ours: [] as number[] };
  const removals = { floor: [] as number[], ours: [] as number[] };
  for (const name of names('one', sequentialPods)) {
    const floor = await timed(() => startPod(runtime, name));
    starts.floor.push(floor.ms);
    removals.floor.push((await timed(() => removePod(runtime, floor.value))).ms);
    starts.ours.push(await desk.make([name]));
    removals.ours.push(await desk.remove([name]));
  }
  compare('made to Ready, one by one', starts.floor, starts.ours, 'p50 + 60 ms');
  compare('deleted to gone, one by one', removals.floor, removals.ours, 'p50 + 150 ms');
}

async function manyAtOnce(runtime: PrivateRuntime, desk: Desk): Promise<void> {
  const starts = { floor: [] as number[], ours: [] as number[] };
  for (const round of names('many', manyRounds)) {
    const wanted = names(`${round}-`, manyPods);
    const floor = await timed(() => Promise.all(wanted.map((name) => startPod(runtime, name))));
    starts.floor.push(floor.ms);
    await Promise.all(floor.value.map((pod: PodHandle) => removePod(runtime, pod)));
    starts.ours.push(await desk.make(wanted));
    await desk.remove(wanted);
  }
  compare(`${manyPods} at once, all Ready`, starts.floor, starts.ours, '1.25 x floor');
}

const missing = noCluster();
if (missing !== false) {
  console.log(`Nothing is measured: ${missing}`);
} else {
  await using runtime = await openPrivateRuntime();
  await using plane = await ControlPlane.open(clusterAssets());
  await using node = await ClusterNode.open(plane);
  await node.start();
  await node.ready();
  await using desk = new Desk(plane, node.name);
  await desk.open();
  await oneByOne(runtime, desk);
  await manyAtOnce(runtime, desk);
  const { cpuMs, residentMb } = await processFigures(node.pid);
  print(
    'the kubelet, over all this',
    `${(cpuMs / 1_000).toFixed(1)} s of CPU, ${residentMb.toFixed(1)} MB resident`,
  );
}
