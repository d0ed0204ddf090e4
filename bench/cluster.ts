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
import { besideFloor, type Measured, names } from './beside-floor.ts';
import { compare, timed } from './compare.ts';
import { print } from './figures.ts';
import { processFigures } from './process-figures.ts';

const sequentialPods = 20;
const manyPods = 50;
const manyRounds = 3;
const clock = realClock();
const random = systemRandom();
const signal = new AbortController().signal;
const sleeps = 'trap "exit 0" TERM; sleep 100000 & wait';
const { pods } = apiResources;

/** Pods as an administrator makes, watches and deletes them. The scheduler is left out: its time is not the kubelet's. */
class Desk implements Measured, AsyncDisposable {
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

  async appear(wanted: readonly string[]): Promise<number> {
    const { ms } = await timed(async () => {
      const all = this.#until(wanted, (pod) => pod !== undefined && isReady(pod));
      await Promise.all(wanted.map((name) => this.#create(name)));
      await all;
    });
    return ms;
  }

  async vanish(wanted: readonly string[]): Promise<number> {
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

async function oneByOne(runtime: PrivateRuntime, desk: Desk): Promise<void> {
  const groups = names('one', sequentialPods).map((name) => [name]);
  const { starts, removals } = await besideFloor(runtime, desk, groups);
  compare('made to Ready, one by one', starts, 'p50 + 60 ms');
  compare('deleted to gone, one by one', removals, 'p50 + 150 ms');
}

async function manyAtOnce(runtime: PrivateRuntime, desk: Desk): Promise<void> {
  const groups = names('many', manyRounds).map((round) => names(`${round}-`, manyPods));
  const { starts } = await besideFloor(runtime, desk, groups);
  compare(`${manyPods} at once, all Ready`, starts, '1.25 x floor');
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
