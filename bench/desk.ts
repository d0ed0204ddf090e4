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
import { isReady } from '../test/cluster/cluster-pods.ts';
import type { Measured } from './beside-floor.ts';
import { timed } from './compare.ts';

export type PodSpecOf = (
  pod: string,
) => Readonly<Record<string, unknown>> & { readonly containers: readonly object[] };

const clock = realClock();
const random = systemRandom();
const signal = new AbortController().signal;
const sleeps = 'trap "exit 0" TERM; sleep 100000 & wait';
const { pods } = apiResources;

/**
 * The spec of a pod with one container that sleeps, bound to the given node, without a service
 * account token.
 */
export function plainSpec(nodeName: string) {
  const container = { name: 'main', image: busyboxImageName, command: ['sh', '-c', sleeps] };
  return {
    nodeName,
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 1,
    containers: [container],
  };
}

/**
 * Creates, watches and deletes pods through the API as an administrator does. The pods are bound to
 * the node already, so the time of the scheduler is not measured.
 */
export class Desk implements Measured, AsyncDisposable {
  readonly #client: ReturnType<typeof createApiClient>;
  readonly #reflector: Reflector<Pod>;
  readonly #spec: PodSpecOf;

  /**
   * Connects to the API server of the kubeconfig; pods are created with the permissions of the
   * kubeconfig's user.
   */
  constructor(kubeconfig: string, spec: PodSpecOf) {
    const { logger } = collectLogs(clock);
    this.#spec = spec;
    this.#client = createApiClient({
      kubeconfig: () => loadKubeconfig({ path: kubeconfig, files: hostApiFiles }),
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

  async appear(expected: readonly string[]): Promise<number> {
    const { ms } = await timed(async () => {
      const all = this.#until(expected, (pod) => pod !== undefined && isReady(pod));
      await Promise.all(expected.map((name) => this.#create(name)));
      await all;
    });
    return ms;
  }

  async vanish(expected: readonly string[]): Promise<number> {
    const { ms } = await timed(async () => {
      const all = this.#until(expected, (pod) => pod === undefined);
      const options = { gracePeriodSeconds: 1 };
      await Promise.all(
        expected.map((name) =>
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
    const metadata = { name, namespace: 'default' };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: this.#spec(name) };
    await this.#client.create<Pod>({ resource: pods, namespace: 'default' }, pod as Pod, signal);
  }

  #until(expected: readonly string[], isSo: (pod: Pod | undefined) => boolean): Promise<void> {
    const left = new Set(expected);
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
